// Work shared among threads: parallel_for(count, threads, body) calls body(i) once for every i
// below count, in any order, on up to `threads` threads (0: one a core). What a body throws is
// thrown to the caller after all have stopped.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

namespace warploom::graph {
inline void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body) {
  if (threads <= 0) threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads <= 1) {
    for (int64_t i = 0; i < count; ++i)
      body(i);
    return;
  }
  std::atomic<int64_t> next = 0;
  const auto work = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++)
        body(i);
    } catch (...) {
      next = count;
      throw;
    }
  };
  std::vector<std::future<void>> helpers;  // each waits for its end when it goes
  try {
    for (int t = 1; t < threads; ++t)
      helpers.push_back(std::async(std::launch::async, work));
  } catch (const std::system_error&) {  // no more threads to be had: those that there are do it all
  }
  work();
  for (auto& helper : helpers)
    helper.get();
}

// [0, count) in parts of at least `grain`, at most one a core; `work(result, begin, end)` of each
// part at the same time, the caller's among them. The parts' results, in order.
template <class T, class Work> std::vector<T> in_parallel(int64_t count, int64_t grain, Work work) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t parts = std::clamp<int64_t>(count / grain, 1, cores);
  std::vector<T> results(parts);
  parallel_for(parts, 0,
               [&](int64_t p) { work(results[p], count * p / parts, count * (p + 1) / parts); });
  return results;
}
}  // namespace warploom::graph
