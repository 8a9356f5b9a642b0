// What follows the sum of a contraction: whether a tile can compute it, and how it reduces rows.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
// The expression tree of an epilogue, down to the sum.
class EpilogueTree {
 public:
  explicit EpilogueTree(const Contraction& contraction) : c_(contraction) {}

  // How many nodes a value has as a tree; infinitely many where a tile cannot compute it.
  double count(int id) {
    const auto [known, fresh] = nodes_.try_emplace(id, 1);
    const Expr& value = c_.nest.value(id);
    const bool is_sum = as_size(id) == c_.sum;
    if (!fresh || is_sum || value.kind == Kind::constant) return known->second;
    if (value.kind == Kind::load) loads.push_back(value.load);
    if (!can_compute(value)) return HUGE_VAL;
    double all = 1;
    for (const int operand : value.operands)
      all += count(operand);
    const bool starts_anew = value.kind == Kind::reduce && all <= kMostNodes;
    nodes_[id] = starts_anew ? 1 : all;
    return nodes_[id];
  }

  // A tile value is a tree where values share operands.
  static constexpr double kMostNodes = 4096;
  std::vector<int> loads;

 private:
  bool can_compute(const Expr& value) const {
    switch (value.kind) {
      case Kind::index: return is_plain(value.at);
      case Kind::load:
      case Kind::apply:
      case Kind::reduce: return true;
      default: return false;
    }
  }

  // Whether a coordinate steps along the only axis of a side of the tile.
  bool is_plain(const Affine& place) const {
    const auto crosses = [&](const std::vector<size_t>& side) {
      return side.size() > 1 && steps_along(place, side);
    };
    return !crosses(c_.m) && !crosses(c_.n);
  }

  const Contraction& c_;
  std::map<int, double> nodes_;
};

// What a contraction still computes behind one of its reductions.
class LaterReads {
 public:
  LaterReads(const Contraction& contraction, size_t step, const std::vector<int>& kept)
      : c_(contraction), step_(step), kept_(kept), operand_(operand_of(step)) {}

  // Whether it reads a value otherwise than by way of what is kept.
  bool need(int value) const {
    std::set<int> seen;
    bool any = false;
    for (const LoopNest::Output& output : c_.nest.outputs)
      any |= reads(output.value, value, seen);
    for (size_t later = step_ + 1; later < c_.reductions.size(); ++later)
      any |= reads(operand_of(later), value, seen);
    return any;
  }

 private:
  int operand_of(size_t reduction) const {
    return c_.nest.values[c_.reductions[reduction]].operands[0];
  }

  bool reads(int from, int value, std::set<int>& seen) const {
    if (from == value) return true;
    if (!seen.insert(from).second) return false;
    const auto step = as_size(from);
    const bool is_reduction = std::ranges::count(c_.reductions, step) > 0;
    const bool is_kept = from == operand_ || std::ranges::count(kept_, from) > 0;
    if (is_reduction || is_kept) return false;
    const auto leads_there = [&](int operand) { return reads(operand, value, seen); };
    return std::ranges::any_of(c_.nest.value(from).operands, leads_there);
  }

  const Contraction& c_;
  size_t step_;
  const std::vector<int>& kept_;
  int operand_;
};
}  // namespace

std::optional<std::vector<int>> epilogue_of(const Contraction& contraction) {
  EpilogueTree tree(contraction);
  double nodes = 0;
  for (const auto& [result, place] : contraction.nest.outputs) {
    const Expr& last = contraction.nest.value(result);
    const bool rounded_by_store = last.kind == Kind::round && last.dtype == place.dtype;
    nodes += tree.count(rounded_by_store ? last.operands[0] : result);
  }
  if (nodes > EpilogueTree::kMostNodes) return std::nullopt;
  return std::move(tree.loads);
}

std::optional<size_t> second_column(const Contraction& c) {
  const auto operands = epilogue_of(c);
  if (c.n.size() < 2 || !operands) return std::nullopt;
  const size_t axis = c.n[c.n.size() - 2];
  const auto uses_both_or_none = [&](int operand) {
    const Access& load = c.nest.loads[as_size(operand)];
    return load.uses(axis) == load.uses(c.column);
  };
  const auto follows_both = [&](const Affine& dim) {
    return dim.steps[axis] != 0 && dim.steps[c.column] != 0;
  };
  if (!std::ranges::all_of(*operands, uses_both_or_none)) return std::nullopt;
  for (const Access& load : c.nest.loads)
    if (std::ranges::any_of(load.at, follows_both)) return std::nullopt;
  return axis;
}

std::vector<RowStep> row_steps(const Contraction& c) {
  std::vector<RowStep> steps;
  std::vector<int> kept = {as_int(c.sum)};  // by set
  for (size_t i = 0; i < c.reductions.size(); ++i) {
    const int operand = c.nest.values[c.reductions[i]].operands[0];
    const LaterReads later(c, i, kept);
    auto set = std::ranges::find(kept, operand);
    if (set == kept.end())
      set = std::ranges::find_if_not(kept, [&](int value) { return later.need(value); });
    const auto number = as_size(set - kept.begin());
    if (set == kept.end())
      kept.push_back(operand);
    else
      *set = operand;
    steps.push_back({c.reductions[i], operand, number});
  }
  return steps;
}
}  // namespace warploom::loopnest
