// optimize: from a graph to the fastest kernels that are proven right, within a budget.
//
// The graph is decomposed and partitioned into regions (partition.h). Each different one is a
// problem of its own with a share of the budget: the candidates of every family that covers it are
// enumerated or sampled, compiled in parallel in child processes, judged and timed one at a time in
// the evaluator process, and recorded in the archive as soon as they are known. A run that was
// interrupted or killed goes on where it stopped when it is started again with the same problem,
// target and track; other models with equal regions find them there. The best of each region make
// the plan, which is then judged as a whole against the whole graph.
#pragma once
#include "kernels/family.h"
#include "search/partition.h"
#include "verify/evaluator.h"

namespace warploom::search {
// automatic: enumerate small spaces, else beam
enum class Strategy : uint8_t { automatic, enumerate, random, beam };
inline constexpr const char* kStrategyNames[] = {"automatic", "enumerate", "random", "beam"};

struct Progress {
  double seconds = 0;
  double budget_seconds = 0;
  // judged so far; of these refused
  int candidates = 0;
  int refused = 0;
  double best_us = 0;  // 0: none yet
  double reference_us = 0;
  std::string best;  // the best schedule's text
  // which of the different regions is searched
  int region = 1;
  int regions = 1;
  std::string region_name = {};
  std::string phase = {};  // what it is busy with, where that is not trying candidates
};

struct Options {
  std::string target = "auto";  // "auto": the GPU when there is one, else "cpu"
  Track track = Track::fp32;
  double budget_seconds = 60;
  double asked_seconds =
      0;  // a region's share of its network's budget, whatever others left; 0: the budget
  double patience_seconds = 0;  // how much longer a search may take that has found nothing right
  int max_candidates = 0;       // of a region; 0: no limit but the budget
  uint64_t seed = 1;
  Strategy strategy = Strategy::automatic;
  int jobs = 0;         // compilations at once; 0: one a core
  std::string archive;  // empty: cache_folder()/archive.sqlite
  bool resume = true;   // use what the archive knows of this problem
  bool onward = false;  // search on even where it knows the answer: see explore()
  const std::atomic<bool>* interrupted = nullptr;  // set by a signal handler
  std::function<void(const Progress&)> on_progress = {};
};

// What a search found. Figures that belong together are of one run: a region's time and its
// reference's were taken in turns, and its speedup is of their pairs. What is not known is 0 (a
// name: empty) here and null in JSON.
struct Outcome {
  std::string problem;  // the graph's name; of a region "MatMul+Add+Gelu"
  std::string label;    // of a region, in the model's own words: "Conv + Relu"
  std::string output;   // and the tensor that it stores, as the model calls it
  std::string target;   // "sm_90a", "x86-64-v4"
  std::string device;   // "NVIDIA H200", the CPU's model name
  Track track = Track::fp32;
  std::string reference;    // "cuBLASLt 13.0", "oneDNN 2.6.3", "plain"; of several regions those
                            // that they have, with " + " between
  verify::Verdict verdict;  // on the best; of several regions see sum_up(), until they are judged
                            // whole
  double speedup = 0;       // verdict.speedup's median
  double regions_us = 0;    // of several: their times, each in its own run beside its reference
  double compared_us = 0;   // of those alone that have a reference
  double regions_reference_us = 0;      // and of their references; verdict.reference_us, too, but:
  bool reference_covers_model = false;  // it is of one that computes the whole model, in turns
                                        // with the whole plan
  std::vector<std::string> without_reference;  // the labels of the others
  bool proven = false;                         // judged whole in a fresh process
  double roofline_fraction = 0;                // the bound over best; above 1 where data is cached
  verify::Bound bound = {};                    // by datasheet rates
  // judged; of these refused, which the archive says more of
  int candidates = 0;
  int refused = 0;
  double seconds = 0;
  uint64_t seed = 0;
  bool interrupted = false;
  bool recalled = false;           // from the archive alone; of several regions all
  kernels::KernelConfig schedule;  // of the only region
  std::string key;                 // of its problem in the archive
  std::vector<Outcome>
      regions;    // the different ones, each for itself, in the order of their first kernels
  int times = 1;  // of a region: how often it occurs
  LaunchList list;
  std::string schedule_text() const;  // a line a region
};

// The documented keys of `warploom optimize --json`, less `bundle`. (outcome.cpp)
nlohmann::json to_json(const Outcome& outcome);

// The regions' figures added up: times and references, errors the worst, the speedup of those that
// have a reference, weighted by their times, its interval from theirs. (outcome.cpp)
void sum_up(Outcome& whole, const std::vector<Outcome>& regions);

// A time against its bound: roofline_fraction (null above 1), bound, bound_us, and bound_text as
// "58 % of the DRAM bound" or "above the DRAM bound: data stays in cache". (outcome.cpp)
nlohmann::json against_bound(const verify::Bound& bound, double us);

// Fails with kNoSchedule, with kNoCorrectCandidate (the refusals' summary in `found`), with
// kPlanWrong where every region is right and the whole is not, with what the machine lacks, or with
// kInterrupted when a region had nothing before the interrupt. Planning has half of the budget, or
// two seconds where that is less: regions are then left as they are.
Result<Outcome> optimize(const graph::Graph& graph, const Options& options);

// The graph as it is cut into regions: in primitives, common ones once, as many of them as keep the
// target busy. What it computes is judged by what was given.
Result<graph::Graph> planned(graph::Graph graph, const target::Capabilities& capabilities);
// The regions that optimize() searches, of such a graph.
Result<Partition> regions_of(const graph::Graph& graph, Track track,
                             const target::Capabilities& capabilities, const Limits& limits = {});

// What to plan for on a target by name; "auto": the GPU when there is one, else the CPU.
Result<target::Capabilities> resolve_target(const std::string& name);

// The track a graph competes in when the user names none: by its widest floating-point input.
Track default_track(const graph::Graph& graph);
}  // namespace warploom::search
