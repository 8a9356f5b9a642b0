// The search itself, for any catalogue of schedules. optimize() calls it with the families of kernels/, tests with their own.
#pragma once
#include "search/proposer.h"
namespace warploom::search {
struct Problem {
  Catalogue catalogue;
  verify::Setup setup;
  double roofline_us = 0;
  // In the evaluator's place, where verdicts were recorded before: then the seed and they alone decide what is tried, and no clock ends
  // the search, but `max_candidates`. For tests: no command sets it.
  std::function<Result<verify::Verdict>(const kernels::Schedule&, const verify::Request&)> recorded = {};
};

// Which vendor kernel computes the same as a graph: nothing where the graph is neither a packed matmul with a bias and an activation
// that the libraries know, nor a plain softmax over rows.
std::optional<verify::Reference> vendor_match(const graph::Graph& graph, Track track);

inline constexpr std::uint64_t kFreshSeed = 0x5eed5eed5eed5eedull;  // promotion judges on other inputs than the search

// What asks for a judgement of the whole in about so many seconds, of which no launch may take more than its limit.
verify::Request whole_request(const LaunchList& list, double seconds, double limit_ms);

// A problem but for how to search it, which takes time for a whole network, and its reference.
Problem outline_of(const kernels::Region& region, const target::Capabilities& capabilities, std::uint64_t seed);

// An error that no other candidate would escape.
bool is_fatal(ErrorCode code);

// The outcome lacks what optimize() works out of it: speedup, part of the roofline, seconds.
Result<Outcome> explore(const Problem& problem, const Options& options);

// A plan of several regions judged whole, in a fresh process, in about so many seconds: the verdict that accepts it, or kPlanWrong.
Result<verify::Verdict> judge_plan(const verify::Setup& setup, const LaunchList& list, double seconds,
                                   const std::atomic<bool>* interrupted = nullptr);
}  // namespace warploom::search
