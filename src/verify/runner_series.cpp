// Calls of a kernel one after another, without anything made new between them.
#include <algorithm>
#include <utility>
#include <vector>
#include "base/error.h"
#include "verify/cell.h"
#include "verify/runner.h"

namespace warploom::verify {
Result<double> Runner::series(const std::vector<Work>& works, int times) {
  come_home();
  WARPLOOM_CHECK(hold(works[0]));
  renew(works[0]);
  std::vector<CellLaunch> launches;
  int threads = 1;
  for (const Work& work : works) {
    for (CellLaunch& launch : launches_of(work)) {
      threads = std::max(threads, threads_of(launch));
      launches.push_back(std::move(launch));
    }
  }
  WARPLOOM_CHECK(measure_overhead(threads));
  WARPLOOM_TRY(const double us, cell_->run({.launches = std::move(launches),
                                            .times = times,
                                            .threads = threads,
                                            .scratch = scratch_addresses(),
                                            .limit_ms = options_.limit_ms * times}));
  WARPLOOM_CHECK(look_at_margins());
  return without_overhead(us, threads) / times;
}
}  // namespace warploom::verify
