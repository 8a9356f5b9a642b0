// Problems that were searched before, in an archive of a test's own.
#pragma once
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "archive/archive.h"
#include "archive/travel.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "recorded.h"
#include "search/near.h"
#include "search/options.h"
#include "search/policy/archive_outcomes.h"
#include "search/policy/features.h"
#include "search/policy/outcomes.h"
#include "search/policy/recorded_tree.h"
#include "search/problem_record.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "target/capabilities.h"
#include "verify/evaluator.h"

namespace warploom::search {
using archive::Archive;
using kernels::KernelConfig;

inline graph::Graph product(int64_t m, int64_t k, int64_t n, Dtype dtype = Dtype::f32) {
  graph::Builder b("product");
  const auto x = b.input("x", dtype, {m, k});
  const auto w = b.input("w", dtype, {k, n});
  b.output(b.add(graph::OpKind::MatMul, {x, w}));
  return *graph::decompose(*b.finish());
}

inline graph::Graph softmax(int64_t rows, int64_t columns) {
  graph::Builder b("softmax");
  const auto x = b.input("x", Dtype::f32, {rows, columns});
  b.output(b.add(graph::OpKind::Softmax, {x}, {{"axis", int64_t{1}}}));
  return *graph::decompose(*b.finish());
}

class Near : public testing::Test {
 protected:
  SearchSpace space_of(graph::Graph graph, Track track = Track::fp32) const {
    return search_space_of({std::move(graph), track}, recorded_target());
  }

  archive::Problem problem_of(const SearchSpace& space, char digit) const {
    archive::Problem out{std::string(32, digit), space.region.graph.name};
    out.track = name_of(space.region.track);
    out.target = space.capabilities.arch;
    out.device = "a device";
    note_problem(out, space);
    return out;
  }

  // A problem that was searched: its configs with these times; 0: refused.
  archive::Problem add(Archive& into, const SearchSpace& space, char digit,
                       const std::map<std::string, double>& times) const {
    const archive::Problem problem = problem_of(space, digit);
    EXPECT_TRUE(into.add_problem(problem));
    for (const auto& [text, us] : times) {
      archive::Candidate one{.problem = problem.key, .schedule = text};
      one.fields = nlohmann::json::object();
      one.stage = us > 0 ? archive::Stage::screened : archive::Stage::refused;
      if (us > 0) one.median_us = us;
      if (us <= 0) one.error_code = "candidate-wrong";
      EXPECT_TRUE(into.record(one));
    }
    return problem;
  }

  // Some legal configs of a family, in the order of its walk, without tiles that a shape cuts off.
  static std::vector<KernelConfig> configs_of(const SearchSpace& space, const std::string& family,
                                              size_t most) {
    std::vector<KernelConfig> out;
    for (const kernels::FamilyPtr& one : space.families) {
      if (one->name() != family) continue;
      std::set<std::string> seen;
      kernels::SpaceWalk(*one).all([&](const KernelConfig& config) {
        const bool is_large =
            config.get("tile_x").value_or(1) > 32 || config.get("tile_y").value_or(1) > 32;
        if (!is_large && seen.insert(config.text()).second) out.push_back(config);
        return out.size() < most;
      });
    }
    return out;
  }

  std::vector<NearStart> starts(Archive& from, const SearchSpace& space,
                                bool is_known = false) const {
    return *near_starts(from, problem_of(space, 'f'), space, is_known);
  }

  ScratchFolder folder_{"near-test"};
  Archive archive_ = *Archive::open(folder_.path() / "archive.sqlite");
};
}  // namespace warploom::search
