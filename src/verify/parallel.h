// Work on all cores, and the clock it is held to. Within the room only.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>
#include "graph/parallel.h"

namespace warploom::verify {

inline double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// [0, count) in parts of at least `grain`, at most one a thread (0 threads: as many as cores); `work(result, begin, end)` of each
// part at the same time, the caller's among them. The parts' results, in order.
template <class T, class Work>
std::vector<T> in_parallel(std::int64_t count, std::int64_t grain, Work work, int threads = 0) {
  const std::int64_t most = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t parts = std::clamp<std::int64_t>(count / grain, 1, most);
  std::vector<T> results(static_cast<std::size_t>(parts));
  graph::parallel_for(parts, threads, [&](std::int64_t p) {
    work(results[static_cast<std::size_t>(p)], count * p / parts, count * (p + 1) / parts);
  });
  return results;
}

}  // namespace warploom::verify
