#include "verify/judge.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {

// As fp32 3.6e16, as bf16 pairs the like: who reads beyond an end gets a result that is visibly wrong.
const std::vector<std::uint32_t>& guard_pattern() {
  static const std::vector<std::uint32_t> pattern(static_cast<std::size_t>(kGuardBytes) / 4, 0x5afe5afeu);
  return pattern;
}

}  // namespace

Result<Guarded> allocate_guarded(runtime::Executor& device, std::int64_t bytes) {
  WARPLOOM_TRY(runtime::Buffer whole, device.allocate(bytes + 2 * kGuardBytes));
  Guarded out{whole, whole.slice(kGuardBytes, bytes)};
  for (const std::int64_t from : {std::int64_t{0}, kGuardBytes + bytes})
    WARPLOOM_CHECK(device.upload(whole, guard_pattern().data(), kGuardBytes, from));
  return out;
}

Status check_guards(runtime::Executor& device, const Guarded& buffer, const std::string& name) {
  std::vector<std::uint32_t> found(guard_pattern().size());
  for (const bool after : {false, true}) {
    WARPLOOM_CHECK(
        device.download(buffer.whole, found.data(), kGuardBytes, after ? kGuardBytes + buffer.data.bytes() : 0));
    if (found == guard_pattern()) continue;
    return fail({ErrorCode::kCandidateWroteInput, "a candidate wrote outside its buffers", name,
                 "writes within the output", fmt::format("changed bytes {} the buffer", after ? "behind" : "before"),
                 ""});
  }
  return ok();
}

Status poison(runtime::Executor& device, const Guarded& buffer) { return device.fill(buffer.data, kPoison); }

}  // namespace warploom::verify
