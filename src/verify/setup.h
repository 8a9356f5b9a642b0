// Setup: what an evaluator must know of the problem before it can judge candidates, and how it
// travels to its process.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include "base/value_op.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/ranges.h"
#include "graph/track.h"
#include "target/capabilities.h"
#include "vendor/problem.h"

namespace warploom::verify {
struct Setup {
  graph::Graph graph;
  Track track = Track::fp32;
  Engine engine = Engine::cpu;
  // What else computes the graph, in calls of vendors' libraries; its tensors have the graph's
  // names. None: candidates are timed alone.
  std::optional<vendor::VendorProblem> reference;
  double floor_us = 0;         // the physical floor (floor_us below)
  double flops = 0;            // of the graph: how dear FP64 evaluation is
  uint64_t seed = 1;           // of the inputs
  bool time_reference = true;  // for Ready; judgements time it beside the candidate anyway
  // About how long getting ready may take: then fewer rows are made in FP64, and what had to be
  // compiled to stand in for a library is left to who has more time. 0: as long as it wants.
  double ready_ms = 0;
  graph::Ranges ranges = {};  // of inputs, as the model says from which the graph was cut
  // Of the inputs, those that hold the same in every call: candidates may prepare what they make of
  // them, before the time begins.
  std::set<std::string> constants = {};
  // Operations of other parts of the same model: truth's kernels know these, too, so that all its
  // regions find them compiled.
  std::set<ValueOp> operations = {};
};

nlohmann::json to_json(const Setup& setup);
Result<Setup> setup_from_json(const nlohmann::json& json);

// The time no kernel can beat: compulsory bytes at the datasheet's memory rate, less what the last
// cache may hold when warm, or the arithmetic at the peak of the track's unit, sums in fp16 where
// these are faster, whichever is longer. 0 where the target states no rates.
double floor_us(const target::Capabilities& capabilities, Track track, double flops, double bytes);
// The same without the allowance for a warm cache: what a roofline fraction is measured against.
double roofline_us(const target::Capabilities& capabilities, Track track, double flops,
                   double bytes);

// That time and what sets it. A kernel whose data stays in a cache may be faster than the DRAM
// bound.
struct Bound {
  double us = 0;           // 0: no bound is known
  std::string_view of;     // "DRAM" or "arithmetic"; "": none is known
  double measured_us = 0;  // the same by the rates measured on this card; 0: they were not
};

Bound bound_of(const target::Capabilities& capabilities, Track track, double flops, double bytes);
}  // namespace warploom::verify
