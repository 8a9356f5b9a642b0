#include "plan/legality.h"
#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include "graph/graph.h"
#include "plan/fusion.h"
#include "plan/groups.h"
#include "plan/joins.h"
#include "plan/limits.h"
#include "plan/region.h"

namespace warploom::plan {
namespace {
using graph::Graph, graph::Node, graph::OpClass;
using graph::OpKind;
using Nodes = Groups::Nodes;

bool takes_backwards(const Graph& graph, const Node& node) {
  if (node.op != OpKind::Slice || node.inputs.size() <= 4) return false;
  const auto steps = graph::constant_integers(graph, node.inputs.back());
  return steps && std::ranges::min(*steps) < 0;
}
}  // namespace

Legality::Legality(const Graph& graph, Rank rank, const Limits& limits, LoopWorkOf loop_work)
    : graph_(graph), rank_(std::move(rank)), limits_(limits), loop_work_(std::move(loop_work)) {}

std::optional<int> Legality::rank_of(const Region& region) {
  const auto [known, fresh] = ranks_.try_emplace(region.identity);
  if (fresh) known->second = rank_(region.graph);
  return known->second;
}

bool Legality::allows(const Groups& groups, const Nodes& from, int into) {
  if (limits_.ended() || limits_.late()) return false;  // nothing changes any more
  Nodes both = groups.nodes_of(into);
  for (const int root : from) {
    const Nodes& nodes = groups.nodes_of(root);
    both.insert(nodes.begin(), nodes.end());
  }
  if (both.size() > kMostNodes || inputs_of(graph_, both).size() > kMostReads) return false;
  if (is_kept_apart(groups, both)) return false;
  const auto found = rank_of(region_of(graph_, both, {groups.stored(into)}));
  return found && *found <= wanted_rank(groups, from, into, both);
}

bool Legality::gains(const Groups& groups, const Part& first, const Part& second,
                     const Part& both) {
  if (limits_.ended() || limits_.late()) return false;
  if (both.nodes.size() > kMostNodes || both.read.size() > kMostReads) return false;
  if (is_kept_apart(groups, both.nodes)) return false;
  const Region one = region_of(graph_, first.nodes, first.stored);
  const Region other = region_of(graph_, second.nodes, second.stored);
  const Region all = region_of(graph_, both.nodes, both.stored);
  const auto does_one = work_of(one);
  const auto does_other = work_of(other);
  const auto does_all = work_of(all);
  if (!does_one || !does_other || !does_all) return false;
  const bool fewer = does_all->values < does_one->values + does_other->values &&
                     does_all->bytes < does_one->bytes + does_other->bytes;
  if (!fewer) return false;
  const auto wanted = std::min(rank_of(one), rank_of(other));
  const auto found = rank_of(all);
  return found && *found <= wanted;
}

bool Legality::reads_backwards(const Nodes& both) const {
  const auto convolves = [&](int n) {
    return graph::class_of(graph_.nodes[n].op) == OpClass::convolution;
  };
  const auto backward = [&](int n) { return takes_backwards(graph_, graph_.nodes[n]); };
  return std::ranges::any_of(both, convolves) && std::ranges::any_of(both, backward);
}

std::optional<LoopWork> Legality::work_of(const Region& region) {
  const auto [known, fresh] = work_.try_emplace(region.identity);
  if (fresh) known->second = loop_work_(region.graph);
  return known->second;
}

// Unions that are refused whatever a family says.
bool Legality::is_kept_apart(const Groups& groups, const Nodes& both) const {
  if (reads_backwards(both)) return true;
  return !behind_products_ && groups.some_node_is(both, OpClass::contraction) &&
         groups.some_node_is(both, OpClass::reduction);
}

// The phases that a transposed convolution leaves are laid side by side by a family for products,
// or by a program of their own.
bool Legality::interleaves(const Groups& groups, int n) const {
  constexpr int64_t kFew = 8;
  if (groups.node(n).op != OpKind::Transpose) return false;
  const auto& shape = graph_.tensor(groups.stored(n)).shape;
  return shape.back() <= kFew;
}

int Legality::rank_of_group(const Groups& groups, int root) {
  const Region region = region_of(graph_, groups.nodes_of(root), {groups.stored(root)});
  return rank_of(region).value_or(std::numeric_limits<int>::max());
}

// The worst rank that a union's family may have.
int Legality::wanted_rank(const Groups& groups, const Nodes& from, int into, const Nodes& both) {
  int wanted = rank_of_group(groups, into);
  for (const int root : from) {
    const Nodes& nodes = groups.nodes_of(root);
    const bool computes = !groups.every_node_is(nodes, {OpClass::view, OpClass::movement});
    const bool again = computes && groups.is_multiplied(root, groups.nodes_of(into));
    const int better = again ? kLastRank - 1 : 0;
    wanted = std::min(wanted, rank_of_group(groups, root) - better);
  }
  const auto lays_phases = [&](int n) { return interleaves(groups, n); };
  if (groups.some_node_is(both, OpClass::convolution) && std::ranges::any_of(both, lays_phases))
    wanted = std::min(wanted, 0);
  return wanted;
}
}  // namespace warploom::plan
