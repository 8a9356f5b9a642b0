// Work shared among threads: parallel_for(count, threads, body) calls body(i) once for every i below count, in any order,
// on up to `threads` threads (0: one a core). What a body throws is thrown to the caller after all have stopped.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace warploom::graph {

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

// [0, count) in parts of at least `grain`, at most one a thread (0 threads: as many as cores); `work(result, begin, end)` of each
// part at the same time, the caller's among them. The parts' results, in order.
template <class T, class Work>
std::vector<T> in_parallel(std::int64_t count, std::int64_t grain, Work work, int threads = 0) {
  const std::int64_t most = threads > 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t parts = std::clamp<std::int64_t>(count / grain, 1, most);
  std::vector<T> results(static_cast<std::size_t>(parts));
  parallel_for(parts, threads, [&](std::int64_t p) {
    work(results[static_cast<std::size_t>(p)], count * p / parts, count * (p + 1) / parts);
  });
  return results;
}

}  // namespace warploom::graph
