// Outcomes that were not measured but made up, by a rule that a test can state: for training and
// replaying without a machine.
#pragma once
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include "../graph/builder.h"
#include "../support/fixed_cpu.h"
#include "base/casts.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "search/policy/outcomes.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
inline target::Capabilities recorded_target() {
  return test::fixed_cpu();
}

inline graph::Graph transposed(int64_t rows, int64_t columns) {
  graph::Builder b("transposed");
  const auto x = b.input("x", Dtype::f32, {rows, columns});
  b.output(b.add(graph::OpKind::Transpose, {x}));
  return *graph::decompose(*b.finish());
}

// Doublings between a field's value and the one that is best.
inline double doublings_off(const kernels::KernelConfig& config, const char* field, double best) {
  return std::abs(std::log2(as_double(config.get(field).value_or(1)) / best));
}

// Every plan of loops that transpose a matrix; tiles of 64 by 8 are the fastest.
inline RecordedProblem made_up_problem(const std::string& name, Use use, int64_t rows,
                                       int64_t columns) {
  RecordedProblem out{.name = name, .use = use, .graph = transposed(rows, columns)};
  const SearchSpace space = search_space_of({out.graph, out.track}, test::fixed_cpu());
  std::set<std::string> seen;
  for (const auto& family : space.families)
    kernels::SpaceWalk(*family).all([&](const kernels::KernelConfig& config) {
      const double off = doublings_off(config, "tile_x", 64) + doublings_off(config, "tile_y", 8);
      if (seen.insert(config.text()).second)
        out.plans.push_back({.config = config.text(), .us = 100 * (1 + off)});
      return true;
    });
  return out;
}

inline Outcomes made_up_outcomes() {
  Outcomes out{.machine = "none", .capabilities = test::fixed_cpu()};
  out.problems.push_back(made_up_problem("small", Use::train, 256, 384));
  out.problems.push_back(made_up_problem("wide", Use::train, 128, 2048));
  out.problems.push_back(made_up_problem("held", Use::hold_out, 512, 640));
  return out;
}
}  // namespace warploom::search
