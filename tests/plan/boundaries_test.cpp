// Boundaries between regions: which may be changed, by which rules not, and what comes of it.
#include "plan/boundaries.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/plan.h"
#include "plan/region.h"
#include "random_graphs.h"
#include "target/capabilities.h"

namespace warploom::plan {
namespace {
using graph::Graph;
using graph::OpClass;
using graph::OpKind;
using graph::TensorId;
using enum BoundaryRule;
using Nodes = std::set<int>;
using Rules = std::set<BoundaryRule>;

// The rules worked out again, by trying all there is: what PartEditor finds by looking along edges.
class ByForce {
 public:
  ByForce(const Graph& graph, const Partition& partition, const Rank& rank)
      : graph_(graph), partition_(partition), rank_(rank) {}

  Rules broken(const BoundaryChange& change) const {
    const bool is_cut = change.kind == BoundaryKind::cut_region;
    return is_cut ? broken_by_cut(change.tensor) : broken_by_join(change.tensor, change.other);
  }

 private:
  Rules broken_by_cut(const std::string& name) const {
    const TensorId id = *graph_.tensor_named(name);
    const int maker = graph_.producer(id);
    Rules out;
    bool is_inside = false;
    for (const Region& region : partition_.regions) {
      const Nodes nodes(region.nodes.begin(), region.nodes.end());
      if (maker < 0 || !nodes.contains(maker)) continue;
      const Nodes above = needed(nodes, {id}, {});
      std::vector<TensorId> stored;
      std::vector<TensorId> rest;
      for (const TensorId one : ids_of(region.stored()))
        (above.contains(graph_.producer(one)) ? stored : rest).push_back(one);
      stored.push_back(id);
      if (is_inside) {  // another region that computed it again
        const Nodes left = needed(nodes, ids_of(region.stored()), {id});
        add(out, left, ids_of(region.stored()));
        continue;
      }
      is_inside = true;
      if (rest.empty()) return {made_inside};
      const Nodes below = needed(nodes, rest, stored);
      for (const int n : above)
        if (below.contains(n) && !is_cheap(n)) out.insert(computed_once);
      std::ranges::sort(stored);
      const auto twice = std::ranges::unique(stored);
      stored.erase(twice.begin(), twice.end());
      add(out, above, stored);
      add(out, below, rest);
    }
    return is_inside ? out : Rules{made_inside};
  }

  void add(Rules& out, const Nodes& nodes, std::vector<TensorId> stored) const {
    const auto moves = [&](int n) {
      return graph::only_moves(graph::class_of(graph_.nodes[as_size(n)].op));
    };
    if (std::ranges::all_of(nodes, moves)) out.insert(computes);
    sort_by_size(stored);
    if (!rank_(region_of(graph_, nodes, stored).graph)) out.insert(covered);
  }

  Rules broken_by_join(const std::string& one, const std::string& other) const {
    const auto first = storer_of(one);
    const auto second = storer_of(other);
    if (!first || !second) return {stored_here};
    if (*first == *second) return {two_regions};
    Rules out;
    const Region& a = partition_.regions[*first];
    const Region& b = partition_.regions[*second];
    if (!know_the_same(a, b)) out.insert(adjacent);
    if (is_ring(*first, *second)) out.insert(no_way_round);
    Nodes nodes(a.nodes.begin(), a.nodes.end());
    nodes.insert(b.nodes.begin(), b.nodes.end());
    const auto moves = [&](int n) {
      return graph::only_moves(graph::class_of(graph_.nodes[as_size(n)].op));
    };
    if (std::ranges::all_of(nodes, moves)) out.insert(computes);
    if (reads_constants_alone(a) != reads_constants_alone(b)) out.insert(prepared_alike);
    std::vector<TensorId> stored;
    for (const Region* region : {&a, &b})
      for (const TensorId id : ids_of(region->stored()))
        if (is_needed(id, *first, *second)) stored.push_back(id);
    sort_by_size(stored);
    if (stored.empty()) return {no_way_round};
    const auto found = rank_(region_of(graph_, nodes, stored).graph);
    if (!found) out.insert(covered);
    const int most = std::max(rank_(a.graph).value_or(1 << 30), rank_(b.graph).value_or(1 << 30));
    if (found && *found > most) out.insert(suit_kept);
    return out;
  }

  bool is_cheap(int n) const {
    const OpClass kind = graph::class_of(graph_.nodes[as_size(n)].op);
    return graph::only_moves(kind) || kind == OpClass::pointwise;
  }

  Nodes needed(const Nodes& within, const std::vector<TensorId>& wanted,
               const std::vector<TensorId>& known) const {
    Nodes out;
    const std::function<void(TensorId)> need = [&](TensorId id) {
      const int maker = id == graph::kAbsent ? -1 : graph_.producer(id);
      if (maker < 0 || !within.contains(maker) || contains(known, id)) return;
      if (!out.insert(maker).second) return;
      for (const TensorId input : graph_.nodes[as_size(maker)].inputs)
        need(input);
    };
    for (const TensorId id : wanted)
      need(id);
    return out;
  }

  // Whether regions would wait for each other once two are one.
  bool is_ring(size_t first, size_t second) const {
    const auto together = [&](size_t region) { return region == second ? first : region; };
    std::map<size_t, std::set<size_t>> readers;
    for (size_t to = 0; to < partition_.regions.size(); ++to)
      for (const std::string& name : read_by(partition_.regions[to]))
        if (const auto from = storer_of(name); from && together(*from) != together(to))
          readers[together(*from)].insert(together(to));
    std::set<size_t> reached;
    const std::function<void(size_t)> reach = [&](size_t from) {
      for (const size_t to : readers[from])
        if (reached.insert(to).second) reach(to);
    };
    reach(first);
    return reached.contains(first);
  }

  bool know_the_same(const Region& a, const Region& b) const {
    const auto names = read_by(a);
    const auto others = read_by(b);
    const auto is_known = [&](const std::string& name) {
      return contains(names, name) || contains(a.stored(), name);
    };
    const auto is_read = [&](const std::string& name) { return contains(names, name); };
    return std::ranges::any_of(others, is_known) || std::ranges::any_of(b.stored(), is_read);
  }

  bool reads_constants_alone(const Region& region) const {
    const Nodes all = needed(every_node(), ids_of(region.stored()), {});
    for (const int n : all)
      for (const TensorId id : graph_.nodes[as_size(n)].inputs)
        if (contains(graph_.inputs, id)) return false;
    return true;
  }

  Nodes every_node() const {
    Nodes out;
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      out.insert(as_int(n));
    return out;
  }

  bool is_needed(TensorId id, size_t first, size_t second) const {
    if (contains(graph_.outputs, id)) return true;
    for (size_t i = 0; i < partition_.regions.size(); ++i)
      if (i != first && i != second &&
          contains(read_by(partition_.regions[i]), graph_.tensor(id).name))
        return true;
    return false;
  }

  std::vector<std::string> read_by(const Region& region) const {
    std::vector<std::string> out;
    const Nodes nodes(region.nodes.begin(), region.nodes.end());
    for (const TensorId id : inputs_of(graph_, nodes))
      out.push_back(graph_.tensor(id).name);
    return out;
  }

  std::optional<size_t> storer_of(const std::string& name) const {
    for (size_t i = 0; i < partition_.regions.size(); ++i)
      if (contains(partition_.regions[i].stored(), name)) return i;
    return std::nullopt;
  }

  std::vector<TensorId> ids_of(const std::vector<std::string>& names) const {
    std::vector<TensorId> out;
    for (const std::string& name : names)
      out.push_back(*graph_.tensor_named(name));
    return out;
  }

  void sort_by_size(std::vector<TensorId>& stored) const {
    const auto elements = [&](TensorId id) {
      return graph::element_count(graph_.tensor(id).shape);
    };
    std::ranges::sort(stored, {}, [&](TensorId id) { return graph_.producer(id); });
    std::ranges::stable_sort(stored, std::greater{}, elements);
  }

  const Graph& graph_;
  const Partition& partition_;
  const Rank& rank_;
};

std::vector<BoundaryChange> every_change(const Graph& graph, const Partition& partition) {
  std::vector<BoundaryChange> out;
  std::vector<std::string> stored;
  for (const graph::Node& node : graph.nodes)
    out.push_back({BoundaryKind::cut_region, graph.tensor(node.outputs[0]).name});
  for (const Region& region : partition.regions)
    for (const std::string& name : region.stored())
      stored.push_back(name);
  for (const std::string& one : stored)
    for (const std::string& other : stored)
      out.push_back({BoundaryKind::join_regions, one, other});
  return out;
}

class RandomBoundaries : public testing::TestWithParam<int> {};

// Every cut of every tensor and every join of every pair: those that are legal compute the same,
// bit by bit, and those that are refused break the rule that is named.
TEST_P(RandomBoundaries, AreChangedWhereNoRuleForbidsIt) {
  const auto seed = static_cast<uint64_t>(GetParam());
  const Graph whole = random_graph(seed);
  const Rank rank = random_rank(seed);
  Boundaries boundaries(whole, rank, {}, {}, random_work(seed));
  const Partition fused = *boundaries.under({});
  const ByForce by_force(whole, fused, rank);
  for (const BoundaryChange& change : every_change(whole, fused)) {
    const auto changed = boundaries.under({change});
    const Rules broken = by_force.broken(change);
    EXPECT_EQ(changed.has_value(), broken.empty()) << to_text(change);
    if (changed) {
      EXPECT_EQ(changed->changes, BoundaryChanges{change});
      expect_computes_the_whole(whole, *changed, seed);
      continue;
    }
    EXPECT_EQ(changed.error().code, ErrorCode::kScheduleIllegal);
    const auto is_named = [&](BoundaryRule rule) {
      return changed.error().expected.ends_with(fmt::format("({})", name_of(rule)));
    };
    EXPECT_TRUE(std::ranges::any_of(broken, is_named))
        << to_text(change) << ": " << changed.error().expected;
  }
}

// Several changes, one after another, each of what can be made then.
TEST_P(RandomBoundaries, ComputeTheSameHoweverOftenTheyAreChanged) {
  const auto seed = static_cast<uint64_t>(GetParam());
  const Graph whole = random_graph(seed);
  Boundaries boundaries(whole, random_rank(seed), {}, {}, random_work(seed));
  Random random(seed, "changes");
  BoundaryChanges changes;
  for (int step = 0; step < 4; ++step) {
    std::vector<BoundaryChanges> legal;
    for (const BoundaryOption& option : boundaries.options(changes))
      if (!option.refusal) legal.push_back(option.changes);
    if (legal.empty()) return;
    const auto& chosen = legal[random.below(legal.size())];
    changes.insert(changes.end(), chosen.begin(), chosen.end());
    const auto changed = boundaries.under(changes);
    ASSERT_TRUE(changed) << to_text(changes) << describe(changed.error());
    expect_computes_the_whole(whole, *changed, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(OfRandomGraphs, RandomBoundaries, testing::Range(0, 80));

TEST(Boundaries, OfRandomGraphsAreCutAndJoinedAndRefusedForManyRules) {
  std::map<std::string, int> seen;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    const Graph whole = random_graph(seed);
    Boundaries boundaries(whole, random_rank(seed), {}, {}, random_work(seed));
    for (const BoundaryOption& option : boundaries.options({}))
      ++seen[std::string(option.refusal ? name_of(option.refusal->rule)
                                        : name_of(option.changes.front().kind))];
  }
  for (const char* name :
       {"cut_region", "join_regions", "no_way_round", "covered", "suit_kept", "computes"})
    EXPECT_GT(seen[name], 0) << name;
}

target::Capabilities cpu() {
  auto capabilities = *target::capabilities_of("cpu");
  capabilities.num_sms = 2;
  return capabilities;
}

// So many layers relu(x·w + b), and softmax.
Graph layers(int count) {
  graph::Builder b("layers");
  TensorId x = b.input("x", Dtype::f32, {8, 16});
  for (int i = 0; i < count; ++i) {
    const TensorId w = b.input(fmt::format("w{}", i), Dtype::f32, {16, 16});
    const TensorId bias = b.input(fmt::format("b{}", i), Dtype::f32, {16});
    x = b.add(OpKind::Relu, {b.add(OpKind::Add, {b.add(OpKind::MatMul, {x, w}), bias})});
  }
  b.output(b.add(OpKind::Softmax, {x}));
  return *lower_for_target(*b.finish(), cpu());
}

std::vector<std::string> names_of(const Partition& parts) {
  std::vector<std::string> out;
  for (const Region& region : parts.regions)
    out.push_back(region.graph.name);
  return out;
}

using Names = std::vector<std::string>;

const BoundaryOption* option_for(const std::vector<BoundaryOption>& all,
                                 const BoundaryChange& change) {
  const auto found = std::ranges::find_if(
      all, [&](const BoundaryOption& one) { return contains(one.changes, change); });
  return found == all.end() ? nullptr : &*found;
}

std::string result_of(const Graph& graph, OpKind op) {
  const auto node = std::ranges::find(graph.nodes, op, &graph::Node::op);
  return graph.tensor(node->outputs[0]).name;
}

TEST(Boundaries, EqualBlocksAreCutAlike) {
  const Graph graph = layers(3);
  auto boundaries = boundaries_of(graph, Track::fp32, cpu());
  ASSERT_TRUE(boundaries) << describe(boundaries.error());
  const auto all = boundaries->options({});
  const BoundaryOption* const cut =
      option_for(all, {BoundaryKind::cut_region, result_of(graph, OpKind::Add)});
  ASSERT_TRUE(cut && !cut->refusal);
  EXPECT_EQ(cut->changes.size(), 3u);
  EXPECT_EQ(cut->bytes, 3 * 8 * 16 * 4);
  EXPECT_EQ(cut->first, "MatMul+Add");
  EXPECT_EQ(cut->second, "Relu");
  const auto parts = boundaries->under(cut->changes);
  ASSERT_TRUE(parts) << describe(parts.error());
  const Names layer = {"MatMul+Add", "Relu"};
  Names wanted;
  for (int i = 0; i < 3; ++i)
    wanted.insert(wanted.end(), layer.begin(), layer.end());
  wanted.push_back("ReduceMax+Sub+Exp+ReduceSum+Reciprocal+Mul");
  EXPECT_EQ(names_of(*parts), wanted);
  EXPECT_EQ(parts->regions[0].identity, parts->regions[2].identity);
}

TEST(Boundaries, WhatWasCutIsJoinedAgain) {
  const Graph graph = layers(1);
  auto boundaries = boundaries_of(graph, Track::fp32, cpu());
  ASSERT_TRUE(boundaries);
  const Partition fused = *boundaries->under({});
  const std::string sum = result_of(graph, OpKind::Add);
  const std::string last = result_of(graph, OpKind::Relu);
  const auto again =
      boundaries->under({{BoundaryKind::cut_region, sum}, {BoundaryKind::join_regions, sum, last}});
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(names_of(*again), names_of(fused));
  EXPECT_EQ(again->regions[0].identity, fused.regions[0].identity);
}

// A chain of equal regions becomes pairs: none is joined to two.
TEST(Boundaries, OfAChainOfEqualRegionsEachIsJoinedOnce) {
  graph::Builder b("chain");
  TensorId x = b.input("x", Dtype::f32, {8, 16});
  for (int i = 0; i < 4; ++i)
    x = b.add(OpKind::Tanh, {x});
  b.output(x);
  const Graph graph = *b.finish();
  const Rank two_at_most = [](const Graph& region) -> std::optional<int> {
    return region.nodes.size() <= 2 ? std::optional(0) : std::nullopt;
  };
  Boundaries boundaries(graph, two_at_most);
  const Partition fused = *boundaries.under({});
  BoundaryChanges cuts;
  for (const Region& region : fused.regions)
    cuts.push_back(
        {BoundaryKind::cut_region, region.tensors[as_size(region.graph.nodes[0].outputs[0])]});
  const auto options = boundaries.options(cuts);
  const auto join = std::ranges::find_if(options, [](const BoundaryOption& one) {
    return one.changes.front().kind == BoundaryKind::join_regions;
  });
  ASSERT_NE(join, options.end());
  EXPECT_EQ(join->changes.size(), 2u);
}

TEST(Boundaries, AProductIsNotLostForLoops) {
  graph::Builder b("prologue");
  const TensorId x = b.add(OpKind::Exp, {b.input("x", Dtype::f32, {64, 64})});
  b.output(b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {64, 64})}));
  const Graph graph = *lower_for_target(*b.finish(), cpu());
  const auto joined = regions_of(graph, Track::fp32, cpu(), {}, {},
                                 {{BoundaryKind::join_regions, result_of(graph, OpKind::Exp),
                                   result_of(graph, OpKind::MatMul)}});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kScheduleIllegal);
  EXPECT_NE(joined.error().expected.find("product_kept"), std::string::npos)
      << joined.error().expected;
}

std::optional<int> one_at_most(const Graph& region) {
  return region.nodes.size() == 1 ? std::optional(0) : std::nullopt;
}

std::string refused(Boundaries& boundaries, const BoundaryChange& change) {
  const auto changed = boundaries.under({change});
  return changed ? "" : changed.error().expected;
}

TEST(Boundaries, WhatWeightsAloneMakeIsJoinedToNothingElse) {
  graph::Builder b("prepared");
  const TensorId y = b.add(OpKind::Tanh, {b.input("w", Dtype::f32, {64, 64})});
  const TensorId z = b.add(OpKind::Mul, {y, b.input("x", Dtype::f32, {64, 64})});
  b.output(z);
  const Graph graph = *b.finish();
  const BoundaryChange join{BoundaryKind::join_regions, graph.tensor(y).name, graph.tensor(z).name};
  Boundaries prepared(graph, one_at_most, {}, {"w"});
  EXPECT_TRUE(refused(prepared, join).ends_with("(prepared_alike)")) << refused(prepared, join);
  Boundaries other(graph, one_at_most);
  EXPECT_TRUE(refused(other, join).ends_with("(covered)")) << refused(other, join);
}

// y = s + tanh(s), s the sums of rows: behind the tanh the sums would be needed again.
TEST(Boundaries, ACutComputesNoReductionTwice) {
  graph::Builder b("twice");
  const TensorId s = b.add(OpKind::ReduceSum, {b.input("x", Dtype::f32, {8, 64})},
                           {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}});
  const TensorId t = b.add(OpKind::Tanh, {s});
  b.output(b.add(OpKind::Add, {s, t}));
  const Graph graph = *b.finish();
  Boundaries boundaries(graph, [](const Graph&) { return 0; });
  const std::string at_tanh = refused(boundaries, {BoundaryKind::cut_region, graph.tensor(t).name});
  EXPECT_TRUE(at_tanh.ends_with("(computed_once)")) << at_tanh;
  EXPECT_EQ(refused(boundaries, {BoundaryKind::cut_region, graph.tensor(s).name}), "");
}

TEST(Boundaries, GoThroughTextAndJson) {
  const BoundaryChanges changes = {{BoundaryKind::cut_region, "layer1/out:0"},
                                   {BoundaryKind::join_regions, "a", "b c"}};
  EXPECT_EQ(to_text(changes), "cut_region layer1/out:0; join_regions a + b c");
  EXPECT_EQ(*boundaries_from_text(to_text(changes)), changes);
  EXPECT_EQ(*boundaries_from_json(to_json(changes)), changes);
  EXPECT_EQ(*boundaries_from_text(""), BoundaryChanges{});
  for (const char* text : {"cut_region", "cut_region ", "split x", "join_regions a",
                           "join_regions a + b + c", "cut_region a; ", "cut_region a + b"})
    EXPECT_EQ(boundaries_from_text(text).error().code, ErrorCode::kPlanInvalid) << text;
  for (const char* text :
       {"{}", "[1]", R"([{"kind": "cut_region"}])", R"([{"kind": "split", "tensors": ["a"]}])",
        R"([{"kind": "join_regions", "tensors": ["a"]}])"})
    EXPECT_EQ(boundaries_from_json(nlohmann::json::parse(text)).error().code,
              ErrorCode::kPlanInvalid)
        << text;
}

TEST(Boundaries, ArePartOfAPlan) {
  const Graph graph = layers(1);
  Plan plan{graph, Track::fp32, "cpu", {}, *regions_of(graph, Track::fp32, cpu()), {}};
  plan.configs.resize(plan.partition.regions.size());
  EXPECT_EQ(plan.text().find("boundaries"), std::string::npos);
  Plan other = plan;
  const std::string sum = result_of(graph, OpKind::Add);
  const auto cut = regions_of(graph, Track::fp32, cpu(), {}, {}, {{BoundaryKind::cut_region, sum}});
  ASSERT_TRUE(cut) << describe(cut.error());
  other.partition = *cut;
  other.configs.resize(cut->regions.size());
  EXPECT_NE(other.text().find("boundaries: cut_region " + sum + "\n"), std::string::npos)
      << other.text();
  EXPECT_NE(other, plan);
}
}  // namespace
}  // namespace warploom::plan
