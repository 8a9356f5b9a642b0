// What a candidate's kernels read, looked at in a call that is made for it.
#include <fmt/format.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "verify/cell.h"
#include "verify/cpu_gate.h"
#include "verify/oracle.h"
#include "verify/read_watch.h"
#include "verify/runner.h"

namespace warploom::verify {
std::vector<Readable> Runner::readable_by(const Work& work, const CellLaunch& launch) const {
  const auto number = as_size(launch.function);
  const Kernel& kernel = work.list->kernels[number];
  std::vector<Readable> all;
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    const Argument& argument = kernel.args[i];
    const int64_t bytes = work.buffers.at(argument.buffer).bytes() - argument.offset;
    const uint64_t begin = launch.buffers[i];
    all.push_back({begin, begin + as_uint64(bytes), argument.buffer});
  }
  for (const uint64_t begin : scratch_addresses())
    all.push_back({begin, begin + as_uint64(kernel.shared_bytes), "its scratch"});
  return all;
}

// Its blocks in a random order, since the time may be up before the last of them.
Result<ReadReport> Runner::reads_of(const Work& work, const CellLaunch& asked, bool every) {
  CellLaunch launch = asked;
  mix_blocks(launch);
  return cell_->watch_reads({.launches = {launch},
                             .threads = 1,
                             .scratch = scratch_addresses(),
                             .limit_ms = options_.limit_ms},
                            readable_by(work, launch), every, random_.next());
}

// Of a call the kernel with this number. A cell ends with what was looked at, so those before it
// are run again for it.
Status Runner::look_at_reads(const Work& work, size_t number, bool every, Reads& all) {
  WARPLOOM_CHECK(hold(work));
  renew(work);
  size_t before = number;
  for (const CellLaunch& launch : launches_of(work)) {
    const bool ours = launch.function < 0;
    if (ours || before > 0) {
      WARPLOOM_CHECK(launch_whole(launch));
      before -= !ours;
      continue;
    }
    WARPLOOM_TRY(const ReadReport report, reads_of(work, launch, every));
    all.seen += report.seen;
    all.watched += report.watched;
    if (!report.finding) break;
    const auto kernel = as_size(launch.function);
    const uint64_t at = cell_->address_in_image(report.finding->instruction, launch.function);
    const std::string& image = images_.at(&work.list->kernels[kernel]);
    return fail({ErrorCode::kCandidateForbidden, "a candidate reads what is not its own",
                 place_of_instruction(*work.list, kernel, image, at),
                 "its buffers, its scratch, its stack and its constants",
                 fmt::format("{}, at {:#x}", report.finding->read, at),
                 "compute from the buffers alone"});
  }
  return ok();
}

// Each function once, in an order that is drawn, as long as there is time.
Result<Runner::Reads> Runner::look_at_reads(const runtime::Call& call) {
  constexpr double kMostMs = 10'000;
  const auto start = std::chrono::steady_clock::now();
  WARPLOOM_CHECK(call());
  come_home();
  Reads all;
  std::set<std::pair<std::string, std::string>> known;  // images and names
  for (const Work& work : std::exchange(waiting_, {})) {
    std::vector<size_t> order(work.kernels.size());
    std::iota(order.begin(), order.end(), size_t{0});
    random_.shuffle(order);
    for (const size_t number : order) {
      const Kernel& kernel = work.list->kernels[work.kernels[number]];
      if (!known.emplace(images_.at(&kernel), kernel.name).second) continue;
      const bool in_time = ms_since(start) < kMostMs;
      all.left_out += !in_time;
      for (const bool every : {false, true})
        if (in_time) WARPLOOM_CHECK(look_at_reads(work, number, every, all));
    }
  }
  return all;
}
}  // namespace warploom::verify
