// A closed space whose verdicts are made up: times that fields decide, each by its own part, so
// that what one action gains does not depend much on what others did.
#pragma once
#include <cmath>
#include <string>
#include "../graph/builder.h"
#include "../support/fixed_cpu.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/space_walk.h"
#include "search/closed_space.h"
#include "search/search_space.h"
#include "search/strategy/curves.h"

namespace warploom::search {
// Of every field a value that is best, drawn by its name; a value that is some doublings away costs
// a share more for each. A few configs are refused.
inline Judged made_up(const kernels::KernelConfig& config) {
  double us = config.family() == "matmul_cpu" ? 100 : 300;
  for (size_t i = 0; i < config.size(); ++i) {
    const double best = as_double(hash64(config.field(i).name) % 7);
    us *= 1 + 0.1 * std::abs(std::log2(1. + as_double(config.get(i))) - best);
  }
  const bool is_refused = hash64(config.text()) % 17 == 0;
  return {.config = config, .accepted = !is_refused, .us = is_refused ? 0 : us};
}

inline Recording made_up_recording() {
  graph::Builder b("mm");
  const auto x = b.input("x", Dtype::f32, {256, 256});
  const auto w = b.input("w", Dtype::f32, {256, 256});
  b.output(b.add(graph::OpKind::MatMul, {x, w}));
  Recording out;
  out.space = closed_space(
      search_space_of({*graph::decompose(*b.finish()), Track::fp32}, test::fixed_cpu()),
      {{"matmul_cpu",
        {{"tile_m", {4, 6, 8}},
         {"tile_n", {32, 48, 64}},
         {"block_k", {64, 128, 256}},
         {"step_k", {0, 64}},
         {"tasks_m", {1, 2}},
         {"tasks_n", {1, 2}},
         {"pack_a", {0}},
         {"pack_b", {0, 1}}}},
       {"direct", {{"tile_x", {16, 32}}, {"tile_y", {1, 4}}}}});
  for (const kernels::FamilyPtr& family : out.space.families)
    kernels::SpaceWalk(*family).all([&](const kernels::KernelConfig& config) {
      out.verdicts[config.text()] = made_up(config);
      return true;
    });
  out.actions = std::make_shared<ActionSpace>(out.space);
  return out;
}
}  // namespace warploom::search
