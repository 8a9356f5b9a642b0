// Outcome: what a search found, of a whole and of each of its regions.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "codegen/launch_list.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "plan/plan.h"
#include "verify/evaluator.h"

namespace warploom::search {
// What a search made of a network's boundaries between regions (boundary_search.h).
struct BoundaryOutcome {
  bool were_choice = false;
  int tried = 0;     // other partitions
  std::string note;  // what became of it, where there is something to say
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
  nlohmann::json card;  // its figures (target/capabilities.h)
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
  // What building the bundle and running its check would take; 0: not told.
  double delivery_seconds = 0;
  std::vector<verify::SetUpPart> set_up;  // of the first evaluator; of several regions none
  uint64_t seed = 0;
  bool interrupted = false;
  bool recalled = false;                  // from the archive alone; of several regions all
  kernels::KernelConfig schedule;         // of the only region
  std::string key;                        // of its problem in the archive
  std::vector<std::string> device_notes;  // of several, those that were left out, and why
  nlohmann::json coder;  // what a model did (coder/model_writer.h); null: there was none
  std::vector<Outcome>
      regions;      // the different ones, each for itself, in the order of their first kernels
  int times = 1;    // of a region: how often it occurs
  plan::Plan plan;  // of the whole; of a region none
  BoundaryOutcome boundaries;
  // Of the whole plan's rewrites, what each choice was predicted to take and took
  // (choice_search.h); null: there was none.
  nlohmann::json choices;
  std::string plans_key;  // of its plans in the archive (plan_archive.h); empty: it left no choice
  LaunchList list;
  std::string schedule_text() const;  // a line a region
};

// The documented keys of `warploom optimize --json`, less `bundle`.
nlohmann::json to_json(const Outcome& outcome);

// The regions' figures added up: times and references, errors the worst, the speedup of those that
// have a reference, weighted by their times, its interval from theirs.
void sum_up(Outcome& whole, const std::vector<Outcome>& regions);

// A time against its bound, by datasheet rates: roofline_fraction (null above 1), bound, bound_us;
// by the rates measured on the card: measured_fraction, measured_bound_us (null where they were
// not); and bound_text as "58 % of the DRAM bound, 63 % of the copy rate measured here" or "above
// the DRAM bound: data stays in cache".
nlohmann::json against_bound(const verify::Bound& bound, double us);
}  // namespace warploom::search
