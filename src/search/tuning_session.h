// TuningSession: one search, from what the archive knows to the best config that is proven right.
//
//   1. look up     the archive may have the answer
//   2. prepare     an evaluator starts; configs are ranked meanwhile; earlier searches are resumed
//   3. screen      configs are compiled ahead, judged on samples and timed, one at a time
//   4. finals      the fastest few are measured again beside the reference; the best of them that
//                  is right is judged whole in a fresh process
#pragma once
#include "base/error.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/task.h"

namespace warploom::search {
// Promotion judges on other inputs than the search.
inline constexpr uint64_t kFreshSeed = 0x5eed5eed5eed5eedull;

// Where a search of at least this budget has come to its end, by this program on this machine with
// the same seed, the archive gives the answer: a kernel of the same text was judged whole there, by
// the same compiler and driver. Searches that a strategy or a number of candidates limits always
// search, and so do those with `force_search`.
//
// The outcome lacks what optimize() works out of it: part of the roofline, labels, seconds.
Result<Outcome> tune(const Task& task, const Options& options);
}  // namespace warploom::search
