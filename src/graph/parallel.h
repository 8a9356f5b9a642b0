// Work shared among threads: parallel_for(count, threads, body) calls body(i) once for every i below count, in any order,
// on up to `threads` threads (0: one a core). What a body throws is thrown to the caller after all have stopped.
#pragma once

#include <cstdint>
#include <functional>

namespace warploom::graph {

void parallel_for(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body);

}  // namespace warploom::graph
