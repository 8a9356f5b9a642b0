#include "loopnest/contraction.h"

namespace warploom::loopnest {
namespace {
// What a condition, or its contrary, bounds: one of places x and y that says x < y or, as graphs
// spell it, x < y or x = y.
std::optional<Affine> bound_of(const LoopNest& n, int condition, bool holds) {
  const auto operand = [&](const Expr& of, size_t i) -> const Expr& {
    return n.values[at(of.operands[i])];
  };
  const auto is = [](const Expr& v, ValueOp op) { return v.kind == Kind::apply && v.op == op; };
  const Expr& value = n.values[at(condition)];
  const bool or_equal =
      is(value, ValueOp::where) && is(operand(value, 0), ValueOp::less) &&
      is(operand(value, 2), ValueOp::equal) && operand(value, 1).value == 1 &&
      std::ranges::is_permutation(operand(value, 0).operands, operand(value, 2).operands);
  const Expr& less = or_equal ? operand(value, 0) : value;
  if (!is(less, ValueOp::less)) return std::nullopt;
  const Expr& x = operand(less, holds ? 0 : 1);
  const Expr& y = operand(less, holds ? 1 : 0);
  if (x.kind != Kind::index || y.kind != Kind::index) return std::nullopt;
  Affine bound = y.at;
  bound.begin -= x.at.begin + (holds != or_equal ? 1 : 0);
  for (size_t a = 0; a < bound.steps.size(); ++a) bound.steps[a] -= x.at.steps[a];
  return bound;
}

// The factors that a value is the product of: loads that vary along what it is summed over, a
// number, and values that do not.
struct Factors {
  const LoopNest& nest;
  const std::vector<int>& over;  // axes
  std::vector<size_t> loads = {};
  std::vector<int> scales = {};
  double number = 1;
  std::map<size_t, Affine> triangles = {};  // loads of which one is kept
  int taken = 0;                            // values so far

  bool take(int v) {
    constexpr int kMost = 256;  // a square is two factors, its square four: no end in sight
    if (++taken > kMost) return false;
    const Expr& value = nest.values[at(v)];
    if (value.kind == Kind::constant) {
      number *= value.value;
      return true;
    }
    if (std::ranges::none_of(over, [&](int k) { return value.varies[at(k)]; })) {
      scales.push_back(v);
      return true;
    }
    if (value.kind == Kind::load) {
      loads.push_back(at(value.load));
      return nest.loads[at(value.load)].lookup_dim < 0;
    }
    if (value.kind != Kind::apply) return false;
    if (value.op == ValueOp::where) return take_triangle(value);
    const Expr& last = nest.values[at(value.operands.back())];
    if (value.op == ValueOp::sub && last.kind == Kind::constant && last.value == 0)
      return take(value.operands[0]);  // a zero point
    return value.op == ValueOp::mul && take(value.operands[0]) && take(value.operands[1]);
  }

  // where(x ≤ y, element, 0), an axis a dimension of its tensor.
  bool take_triangle(const Expr& where) {
    const Expr& kept = nest.values[at(where.operands[1])];
    const Expr& beyond = nest.values[at(where.operands[2])];
    const auto bound = bound_of(nest, where.operands[0], true);
    if (!bound || kept.kind != Kind::load || beyond.kind != Kind::constant || beyond.value != 0)
      return false;
    const Access& load = nest.loads[at(kept.load)];
    bool plain = load.inside && is_computed_float(load.dtype);
    for (const Affine& dim : load.at)
      plain &=
          dim == along(at(std::ranges::find(dim.steps, 1) - dim.steps.begin()) % dim.steps.size(),
                       dim.steps.size());
    for (size_t a = 0; a < nest.axes.size(); ++a) plain &= bound->steps[a] == 0 || load.uses(a);
    triangles.emplace(at(kept.load), *bound);
    return plain && take(where.operands[1]);
  }
};

// A vector times a matrix has one row.
void add_row(Contraction& c) {
  const size_t row = c.nest.axes.size();
  c.m = {row};
  c.nest.axes.push_back(1);
  for (Access& load : c.nest.loads)
    for (Affine& dim : load.at) dim.steps.push_back(0);
  Access& a = c.nest.loads[c.a];
  Access& out = c.nest.outputs[0].place;
  for (Affine& dim : out.at) dim.steps.push_back(0);
  for (Access* access : {&a, &out}) {
    access->shape.insert(access->shape.begin(), 1);
    access->strides.insert(access->strides.begin(), 0);
    access->at.insert(access->at.begin(), along(row, row + 1));
  }
  for (Expr& value : c.nest.values) {
    value.at.steps.push_back(0);
    value.varies.push_back(false);
  }
}

// The sum times these values and the number, in place of the sum for all that read it.
void multiply_behind(Contraction& c, std::vector<int> scales, double number) {
  const int sum = static_cast<int>(c.sum);
  const std::vector<bool> varies = c.nest.values[c.sum].varies;
  std::vector<Expr> behind;
  if (number != 1) {
    scales.push_back(sum + 1);
    behind.push_back({.value = number, .varies = std::vector<bool>(varies.size())});
  }
  c.scaled = !scales.empty();
  for (int last = sum; const int scale : scales) {
    behind.push_back(
        {.kind = Kind::apply, .op = ValueOp::mul, .operands = {last, scale}, .varies = varies});
    last = sum + static_cast<int>(behind.size());
  }
  const auto move = [&](int& value) {
    value += value >= sum ? static_cast<int>(behind.size()) : 0;
  };
  auto& values = c.nest.values;
  for (size_t v = c.sum + 1; v < values.size(); ++v)
    std::ranges::for_each(values[v].operands, move);
  move(c.nest.outputs[0].value);
  for (size_t& r : c.reductions) r += behind.size();
  values.insert(values.begin() + sum + 1, behind.begin(), behind.end());
}

// Where the output needs the sum: everywhere, unless all ways to it go through choices by place,
// before rows are reduced.
std::vector<Affine> bounds_of(const Contraction& c) {
  const LoopNest& n = c.nest;
  using Bounds = std::vector<Affine>;
  std::vector<std::optional<Bounds>> needs(n.values.size());  // nothing: nowhere
  needs[c.sum] = Bounds{};
  for (size_t v = c.sum + 1; v < n.values.size(); ++v) {
    const Expr& value = n.values[v];
    for (size_t i = 0; i < value.operands.size(); ++i) {
      auto own = needs[at(value.operands[i])];
      if (!own) continue;
      const bool alone = c.reductions.empty() || v < c.reductions[0];
      const bool chosen = alone && value.kind == Kind::apply && value.op == ValueOp::where && i > 0;
      if (const auto bound = chosen ? bound_of(n, value.operands[0], i == 1) : std::nullopt)
        own->push_back(*bound);
      needs[v] = !needs[v] || needs[v] == own ? own : Bounds{};
    }
  }
  return needs[at(n.outputs[0].value)].value_or(Bounds{});
}
}  // namespace

std::optional<Contraction> contraction_of(const LoopNest& nest, bool any) {
  if (nest.outputs.size() != 1 || nest.scan() || nest.has_integers()) return std::nullopt;
  Contraction c{.nest = nest};
  const LoopNest& n = c.nest;
  for (size_t v = 0; v < n.values.size(); ++v)
    if (n.values[v].kind == Kind::reduce) c.reductions.push_back(v);
  if (c.reductions.empty()) return std::nullopt;
  c.sum = c.reductions[0];
  c.reductions.erase(c.reductions.begin());
  if (n.values[c.sum].op != ValueOp::add) return std::nullopt;
  int fastest = -1;
  for (const size_t r : c.reductions) {
    const auto& over = n.values[r].axes;
    if (over.size() != 1 || (fastest >= 0 && over[0] != fastest) || !reduce_op(n.values[r].op))
      return std::nullopt;
    fastest = over[0];
  }
  Factors product{n, n.values[c.sum].axes};
  if (!product.take(n.values[c.sum].operands[0])) return std::nullopt;
  auto& factors = product.loads;
  const auto is_scale = [&](size_t load) {
    return std::ranges::any_of(product.over, [&](int k) { return !n.loads[load].uses(at(k)); });
  };
  const auto scales = std::stable_partition(factors.begin(), factors.end(), std::not_fn(is_scale));
  c.scales.assign(scales, factors.end());
  factors.erase(scales, factors.end());
  if (factors.size() != 2 || factors[0] == factors[1] ||
      (!any && !(c.scales.empty() && c.reductions.empty())))
    return std::nullopt;
  const Access& out = n.outputs[0].place;
  for (size_t a = 0; a < n.axes.size(); ++a)
    if (fastest < 0 && out.stride(a) == 1) fastest = static_cast<int>(a);
  if (fastest < 0 || out.stride(at(fastest)) > 1) return std::nullopt;
  // Columns of a tile lie side by side, but where a few phases of a transposed convolution, which
  // its weights have beside their own columns, lie between them.
  constexpr int64_t kPhases = 8;
  const auto sides = [&](size_t a) {
    return std::pair(n.loads[factors[0]].uses(a), n.loads[factors[1]].uses(a));
  };
  int64_t beside = 1;  // columns of the same factor that the fastest lies within
  for (size_t a = 0; a < n.axes.size(); ++a)
    if (at(fastest) != a && sides(a) == sides(at(fastest))) beside *= n.axes[a];
  if (const int64_t few = n.axes[at(fastest)]; c.reductions.empty() && few <= kPhases && beside > 1)
    for (size_t a = 0, phase = at(fastest); a < n.axes.size(); ++a)
      if (n.axes[a] > kPhases && out.stride(a) == few && sides(a) != sides(phase))
        fastest = static_cast<int>(a);
  const bool first = n.loads[factors[0]].uses(at(fastest));
  const bool second = n.loads[factors[1]].uses(at(fastest));
  if (first == second) return std::nullopt;
  c.a = factors[first ? 1 : 0];
  c.b = factors[first ? 0 : 1];
  const Access& load_a = n.loads[c.a];
  const Access& load_b = n.loads[c.b];
  for (size_t a = 0; a < n.axes.size(); ++a) {
    const bool in_a = load_a.uses(a);
    const bool in_b = load_b.uses(a);
    const bool summed = std::ranges::count(n.values[c.sum].axes, static_cast<int>(a)) > 0;
    if (summed ? !(in_a && in_b) : !(in_a || in_b)) return std::nullopt;
    (summed ? c.k : in_a && in_b ? c.batch : in_a ? c.m : c.n).push_back(a);
  }
  // What is known before the sum may vary along k as its factors; nothing behind it, nor the
  // output.
  for (size_t v = 0; v < n.values.size(); ++v)
    for (const size_t k : c.k)
      if (n.values[v].varies[k] && v > c.sum) return std::nullopt;
  if (c.n.empty() || c.k.empty() || (c.k.size() > 1 && !product.triangles.empty()))
    return std::nullopt;
  if (c.m.empty()) add_row(c);
  std::erase(c.n, at(fastest));
  c.n.push_back(at(fastest));
  c.column = at(fastest);
  c.row = c.scales.empty()
              ? *std::ranges::max_element(c.m, {}, [&](size_t axis) { return n.axes[axis]; })
              : c.m.back();
  multiply_behind(c, std::move(product.scales), product.number);
  const auto moves_pixels = [&](size_t k) {
    return std::ranges::any_of(
        load_b.at, [&](const Affine& dim) { return dim.steps[k] != 0 && steps_along(dim, c.n); });
  };
  const auto scaled = [&](size_t k) {
    return std::ranges::any_of(c.scales, [&](auto load) { return n.loads[load].uses(k); });
  };
  for (const size_t k : c.k)
    if (!moves_pixels(k) && !scaled(k) && (!c.channel || n.axes[k] > n.axes[*c.channel]))
      c.channel = k;
  for (const size_t k : c.k)
    if (k != c.channel) c.window = k;
  c.bounds = bounds_of(c);
  c.triangles = std::move(product.triangles);
  for (auto& [load, bound] : c.triangles) {
    bound.steps.resize(c.nest.axes.size());
    c.bounds.push_back(bound);
  }
  return c;
}

double part_within(const Contraction& c) {
  // of a lattice
  constexpr int64_t kPoints = 1 << 14;
  constexpr int64_t kGolden = 10125;
  int64_t within = 0;
  for (int64_t i = 0; i < kPoints; ++i)
    within += std::ranges::all_of(c.bounds, [&](const Affine& bound) {
      int64_t above = bound.begin;
      int64_t part = i;
      for (size_t a = 0; a < bound.steps.size(); part = part * kGolden % kPoints, ++a)
        above += bound.steps[a] * (c.nest.axes[a] * part / kPoints);
      return above >= 0;
    });
  return static_cast<double>(within) / static_cast<double>(kPoints);
}

Contraction exchanged(Contraction c) {
  std::swap(c.a, c.b);
  std::swap(c.m, c.n);
  std::swap(c.row, c.column);
  return c;
}

std::optional<size_t> second_column(const Contraction& c) {
  const auto operands = epilogue_of(c);
  if (c.n.size() < 2 || !operands) return std::nullopt;
  const size_t axis = c.n[c.n.size() - 2];
  const bool whole = std::all_of(operands->begin(), operands->end(), [&](int operand) {
    return c.nest.loads[at(operand)].uses(axis) == c.nest.loads[at(operand)].uses(c.column);
  });
  const bool apart = std::ranges::none_of(c.nest.loads, [&](const Access& load) {
    return std::ranges::any_of(load.at, [&](const Affine& dim) {
      return dim.steps[axis] != 0 && dim.steps[c.column] != 0;
    });
  });
  return whole && apart ? std::optional(axis) : std::nullopt;
}

std::optional<std::vector<int>> epilogue_of(const Contraction& contraction) {
  constexpr double kMostNodes = 4096;  // a tile value is a tree where values share operands
  std::vector<int> loads;
  std::map<int, double> nodes;
  const auto plain = [&](const Affine& place) {  // along the only axis of a side of the tile
    const auto crosses = [&](const auto& side) {
      return side.size() > 1 && steps_along(place, side);
    };
    return !crosses(contraction.m) && !crosses(contraction.n);
  };
  const auto visit = [&](const auto& self, int v) -> double {
    const auto [known, fresh] = nodes.try_emplace(v, 1);
    const Expr& value = contraction.nest.values[at(v)];
    if (!fresh || at(v) == contraction.sum || value.kind == Kind::constant) return known->second;
    if (value.kind == Kind::load)
      loads.push_back(value.load);
    else if (value.kind == Kind::index ? !plain(value.at)
                                       : value.kind != Kind::apply && value.kind != Kind::reduce)
      return HUGE_VAL;
    double all = 1;
    for (const int operand : value.operands) all += self(self, operand);
    return nodes[v] = value.kind == Kind::reduce && all <= kMostNodes ? 1 : all;
  };
  const auto& [result, place] = contraction.nest.outputs[0];
  const Expr& last = contraction.nest.values[at(result)];
  const bool stored_so = last.kind == Kind::round && last.dtype == place.dtype;
  if (visit(visit, stored_so ? last.operands[0] : result) > kMostNodes) return std::nullopt;
  return loads;
}

std::vector<RowStep> row_steps(const Contraction& c) {
  const auto& values = c.nest.values;
  std::vector<RowStep> steps;
  std::vector<int> kept = {static_cast<int>(c.sum)};  // by each set
  for (size_t i = 0; i < c.reductions.size(); ++i) {
    const int operand = values[c.reductions[i]].operands[0];
    // Whether what is still to be computed reads a value otherwise than by way of what is kept.
    std::set<int> seen;
    const auto needs = [&](const auto& self, int from, int value) -> bool {
      if (from == value) return true;
      if (!seen.insert(from).second) return false;
      const bool known = from == operand || std::ranges::count(kept, from) > 0 ||
                         std::ranges::count(c.reductions, at(from)) > 0;
      return !known && std::ranges::any_of(values[at(from)].operands,
                                           [&](int to) { return self(self, to, value); });
    };
    const auto needed = [&](int value) {
      seen.clear();
      bool any = needs(needs, c.nest.outputs[0].value, value);
      for (size_t later = i + 1; later < c.reductions.size(); ++later)
        any |= needs(needs, values[c.reductions[later]].operands[0], value);
      return any;
    };
    size_t set = at(std::ranges::find(kept, operand) - kept.begin());
    if (set == kept.size()) set = at(std::ranges::find_if_not(kept, needed) - kept.begin());
    if (set == kept.size()) kept.push_back(operand);
    kept[set] = operand;
    steps.push_back({c.reductions[i], operand, set});
  }
  return steps;
}
}  // namespace warploom::loopnest
