// What only foreign kernels on a GPU ask for: that they are gated, start alone, and find nothing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "codegen/prepare.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "verify/bytes.h"
#include "verify/gpu_gate.h"
#include "verify/gpu_scrub.h"
#include "verify/judge.h"
#include "verify/judge_parts.h"

namespace warploom::verify {
Status Judge::gate_on_gpu(LaunchList& list, const runtime::Binary& binary, bool foreign,
                          Contender& made) const {
  for (size_t i = 0; i < binary.images.size(); ++i) {
    WARPLOOM_CHECK(check_gpu_kernel(list.kernels[i], binary.images[i], foreign));
    WARPLOOM_TRY(const int64_t bytes, local_bytes_of(binary.images[i], list.kernels[i].name));
    made.local_bytes = std::max(made.local_bytes, bytes);
  }
  made.foreign = foreign;
  if (!foreign) return ok();
  // A call's first launch begins when what is before it has ended: else calls would overlap, and
  // their time would be that of many at once.
  for (const std::vector<size_t>& numbers : {called_kernels(list), list.prepare})
    if (!numbers.empty()) list.kernels[numbers.front()].programmatic_launch = false;
  return ok();
}

// Poison shows what stays unwritten. A kernel that waits for it must not be right in every call: in
// some, once the first were looked at, outputs and workspaces hold ordinary numbers.
Status Judge::fill_as_found(const Contender& who, std::span<const Set> sets) {
  constexpr uint64_t kPoisoned = 32;
  constexpr uint64_t kOneIn = 3;
  Random random(setup_.seed + ++forgotten_, "as found");
  if (forgotten_ <= kPoisoned || random.below(kOneIn) != 0) return ok();
  const uint32_t word = ordinary(random);
  for (const Set& set : sets)
    for (const Guarded& output : set.outputs)
      WARPLOOM_CHECK(device_->fill(output.data, word));
  for (const auto& [name, workspace] : who.workspaces)
    if (!who.prepared.contains(name)) WARPLOOM_CHECK(device_->fill(workspace.data, word));
  return ok();
}

Status Judge::forget(const Contender& who, std::span<const Set> sets) {
  if (!who.foreign) return ok();
  if (!scrub_) WARPLOOM_TRY(scrub_, GpuScrub::make(*device_, setup_.seed));
  // The reference's outputs are the answer, or were.
  for (const Set& set : sets)
    if (!shared_outputs_)
      for (const Guarded& output : set.vendor_outputs)
        WARPLOOM_CHECK(device_->fill(output.data, runtime::kPoison));
  WARPLOOM_CHECK(fill_as_found(who, sets));
  return scrub_->run(who.local_bytes);
}
}  // namespace warploom::verify
