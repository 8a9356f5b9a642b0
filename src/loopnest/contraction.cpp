#include "loopnest/contraction.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/value_op.h"
#include "loopnest/affine.h"
#include "loopnest/contraction_factors.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
// Gives the product of a vector and a matrix its one row: an axis of size 1.
void add_row(Contraction& c) {
  const size_t row = c.nest.axes.size();
  c.m = {row};
  c.nest.axes.push_back(1);
  std::vector<Access*> with_row = {&c.nest.loads[c.a]};
  for (LoopNest::Output& output : c.nest.outputs) {
    with_row.push_back(&output.place);
    for (Affine& dim : output.place.at)
      dim.steps.push_back(0);
  }
  for (Access& load : c.nest.loads)
    for (Affine& dim : load.at)
      dim.steps.push_back(0);
  for (Access* const access : with_row) {
    access->shape.insert(access->shape.begin(), 1);
    access->strides.insert(access->strides.begin(), 0);
    access->at.insert(access->at.begin(), along(row, row + 1));
  }
  for (Expr& value : c.nest.values) {
    value.at.steps.push_back(0);
    value.varies.push_back(false);
  }
}

// Puts the sum times these values and the number in place of the sum for all that read it.
void multiply_behind(Contraction& c, std::vector<int> factors, double number) {
  const int sum = as_int(c.sum);
  const auto varies = c.nest.values[c.sum].varies;
  std::vector<Expr> behind;
  if (number != 1) {
    factors.push_back(sum + 1);
    const std::vector<bool> nowhere(varies.size());
    behind.push_back({.value = number, .varies = nowhere});
  }
  c.scaled = !factors.empty();
  int last = sum;
  for (const int factor : factors) {
    Expr product{.kind = Kind::apply, .op = ValueOp::mul, .operands = {last, factor}};
    product.varies = varies;
    behind.push_back(std::move(product));
    last = sum + as_int(behind.size());
  }
  const int added = as_int(behind.size());
  const auto move = [&](int& value) { value += value >= sum ? added : 0; };
  auto& values = c.nest.values;
  for (size_t v = c.sum + 1; v < values.size(); ++v)
    std::ranges::for_each(values[v].operands, move);
  for (LoopNest::Output& output : c.nest.outputs)
    move(output.value);
  for (size_t& r : c.reductions)
    r += behind.size();
  const auto after_sum = values.begin() + sum + 1;
  values.insert(after_sum, behind.begin(), behind.end());
}

// The condition by which a value chooses its operand `i`, as a constraint.
std::optional<Affine> choice_of(const LoopNest& nest, const Expr& value, size_t i) {
  const bool chooses = value.kind == Kind::apply && value.op == ValueOp::where && i > 0;
  return chooses ? constraint_of(nest, value.operands[0], i == 1) : std::nullopt;
}

// Where outputs need the sum: everywhere, unless all ways to each of them go through choices by the
// same places, before rows are reduced.
std::vector<Affine> domain_constraints_of(const Contraction& c) {
  using Constraints = std::vector<Affine>;
  const LoopNest& n = c.nest;
  std::vector<std::optional<Constraints>> needs(n.values.size());  // nothing: nowhere
  needs[c.sum] = Constraints{};
  for (size_t v = c.sum + 1; v < n.values.size(); ++v) {
    const Expr& value = n.values[v];
    const bool before_rows = c.reductions.empty() || v < c.reductions[0];
    for (size_t i = 0; i < value.operands.size(); ++i) {
      auto own = needs[as_size(value.operands[i])];
      if (!own) continue;
      const auto choice = before_rows ? choice_of(n, value, i) : std::nullopt;
      if (choice) own->push_back(*choice);
      needs[v] = !needs[v] || needs[v] == own ? own : Constraints{};
    }
  }
  const auto of = [&](const LoopNest::Output& output) {
    return needs[as_size(output.value)].value_or(Constraints{});
  };
  const auto first = of(n.outputs[0]);
  const auto agrees = [&](const LoopNest::Output& output) { return of(output) == first; };
  return std::ranges::all_of(n.outputs, agrees) ? first : Constraints{};
}

// Finds a contraction step by step; a step is false where the nest is none.
class Finder {
 public:
  explicit Finder(const LoopNest& nest) { c_.nest = nest; }

  std::optional<Contraction> find(bool any, Results results) {
    if (n_.outputs.size() > 1 && results == Results::one) return std::nullopt;
    if (n_.scan() || n_.has_integers()) return std::nullopt;
    if (!find_reductions()) return std::nullopt;
    TermFactors factors(n_, n_.values[c_.sum].axes);
    if (!factors.take(n_.values[c_.sum].operands[0])) return std::nullopt;
    c_.scales = factors.take_block_scales();
    const bool plain = c_.scales.empty() && c_.reductions.empty();
    if (factors.loads.size() != 2 || factors.loads[0] == factors.loads[1] || !(any || plain))
      return std::nullopt;
    c_.a = factors.loads[0];
    c_.b = factors.loads[1];
    if (!find_column() || !find_axes() || varies_along_k_behind_sum()) return std::nullopt;
    if (!stores_results()) return std::nullopt;
    if (c_.k.size() > 1 && !factors.triangular.empty()) return std::nullopt;
    if (c_.m.empty()) add_row(c_);
    choose_row();
    multiply_behind(c_, std::move(factors.constant_along_sum), factors.number);
    choose_channel_and_window();
    c_.domain_constraints = domain_constraints_of(c_);
    c_.triangular_operands = std::move(factors.triangular);
    for (auto& [load, constraint] : c_.triangular_operands) {
      constraint.steps.resize(n_.axes.size());  // a row may have been added
      c_.domain_constraints.push_back(constraint);
    }
    return std::move(c_);
  }

 private:
  // The first reduction is the sum; those behind it all go over one axis, the column.
  bool find_reductions() {
    for (size_t v = 0; v < n_.values.size(); ++v)
      if (n_.values[v].kind == Kind::reduce) c_.reductions.push_back(v);
    if (c_.reductions.empty()) return false;
    c_.sum = c_.reductions[0];
    c_.reductions.erase(c_.reductions.begin());
    if (n_.values[c_.sum].op != ValueOp::add) return false;
    for (const size_t r : c_.reductions) {
      const auto& over = n_.values[r].axes;
      if (over.size() != 1 || (column_ && over[0] != *column_) || !reduce_op(n_.values[r].op))
        return false;
      column_ = over[0];
    }
    return true;
  }

  // Which of the two factors step along an axis.
  std::pair<bool, bool> users(size_t axis) const {
    return {c_.access_a().uses(axis), c_.access_b().uses(axis)};
  }

  // The column, and which factor is b: the one that uses it.
  bool find_column() {
    const Access& out = n_.outputs[0].place;
    for (size_t a = 0; a < n_.axes.size(); ++a)
      if (!column_ && out.stride(a) == 1) column_ = a;
    if (!column_ || out.stride(*column_) > 1) return false;
    if (c_.reductions.empty()) step_over_phases();
    const auto [in_a, in_b] = users(*column_);
    if (in_a == in_b) return false;
    if (in_a) std::swap(c_.a, c_.b);
    return true;
  }

  // Columns of a tile lie side by side, but where a few phases of a transposed convolution, which
  // its weights have beside their own columns, lie between them: then the column is the axis around
  // the phases.
  void step_over_phases() {
    constexpr int64_t kPhases = 8;
    const Access& out = n_.outputs[0].place;
    const size_t phase = *column_;
    const int64_t few = n_.axes[phase];
    int64_t beside = 1;  // columns of the same factor that the fastest lies within
    for (size_t a = 0; a < n_.axes.size(); ++a)
      if (a != phase && users(a) == users(phase)) beside *= n_.axes[a];
    if (few > kPhases || beside <= 1) return;
    for (size_t a = 0; a < n_.axes.size(); ++a)
      if (n_.axes[a] > kPhases && out.stride(a) == few && users(a) != users(phase)) column_ = a;
  }

  bool find_axes() {
    const auto& over = n_.values[c_.sum].axes;
    for (size_t a = 0; a < n_.axes.size(); ++a) {
      const auto [in_a, in_b] = users(a);
      const bool summed = std::ranges::count(over, a) > 0;
      const bool fits = summed ? in_a && in_b : in_a || in_b;
      if (!fits) return false;
      if (summed)
        c_.k.push_back(a);
      else if (in_a && in_b)
        c_.batch.push_back(a);
      else
        (in_a ? c_.m : c_.n).push_back(a);
    }
    return !c_.n.empty() && !c_.k.empty();
  }

  // What is known before the sum may vary along k as its factors; nothing behind it, nor the
  // output.
  bool varies_along_k_behind_sum() const {
    for (size_t v = c_.sum + 1; v < n_.values.size(); ++v)
      for (const size_t k : c_.k)
        if (n_.values[v].varies[k]) return true;
    return false;
  }

  // Of several results each is one of every tile: it has all axes, but for columns that are
  // reduced.
  bool stores_results() const {
    if (n_.outputs.size() == 1) return true;
    const bool reduces = !c_.reductions.empty();
    return std::ranges::all_of(n_.outputs, [&](const LoopNest::Output& output) {
      for (const auto* const axes : {&c_.batch, &c_.m, &c_.n})
        for (const size_t axis : *axes)
          if (!output.place.uses(axis) && !(reduces && axis == *column_)) return false;
      return true;
    });
  }

  void choose_row() {
    std::erase(c_.n, *column_);
    c_.n.push_back(*column_);
    c_.column = *column_;
    const auto size = [&](size_t axis) { return n_.axes[axis]; };
    c_.row = c_.m.back();
    if (c_.scales.empty()) c_.row = *std::ranges::max_element(c_.m, {}, size);
  }

  void choose_channel_and_window() {
    const auto moves_pixels = [&](size_t k) {
      return std::ranges::any_of(c_.access_b().at, [&](const Affine& dim) {
        return dim.steps[k] != 0 && steps_along(dim, c_.n);
      });
    };
    const auto is_scaled = [&](size_t k) {
      return std::ranges::any_of(c_.scales, [&](size_t load) { return n_.loads[load].uses(k); });
    };
    for (const size_t k : c_.k) {
      if (moves_pixels(k) || is_scaled(k)) continue;
      if (!c_.channel || n_.axes[k] > n_.axes[*c_.channel]) c_.channel = k;
    }
    for (const size_t k : c_.k)
      if (k != c_.channel) c_.window = k;
  }

  Contraction c_;
  LoopNest& n_ = c_.nest;
  std::optional<size_t> column_;
};
}  // namespace

std::optional<Contraction> contraction_of(const LoopNest& nest, bool any, Results results) {
  return Finder(nest).find(any, results);
}

double part_within(const Contraction& c) {
  // Counted on a lattice.
  constexpr int64_t kPoints = 1 << 14;
  constexpr int64_t kGolden = 10125;
  const auto holds_at = [&](const Affine& constraint, int64_t point) {
    int64_t above = constraint.begin;
    int64_t part = point;
    for (size_t a = 0; a < constraint.steps.size(); ++a) {
      above += constraint.steps[a] * (c.nest.axes[a] * part / kPoints);
      part = part * kGolden % kPoints;
    }
    return above >= 0;
  };
  int64_t within = 0;
  for (int64_t point = 0; point < kPoints; ++point) {
    const bool counts = std::ranges::all_of(
        c.domain_constraints, [&](const Affine& each) { return holds_at(each, point); });
    within += counts ? 1 : 0;
  }
  return as_double(within) / as_double(kPoints);
}

Contraction with_swapped_ab(Contraction c) {
  std::swap(c.a, c.b);
  std::swap(c.m, c.n);
  std::swap(c.row, c.column);
  return c;
}
}  // namespace warploom::loopnest
