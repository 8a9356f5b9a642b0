#include "kernels/contraction.h"
namespace warploom::kernels {
namespace {
// The factors that a value is the product of: loads that vary along what it is summed over, a number, and values that do not.
struct Factors {
  const Nest& nest;
  const std::vector<int>& over;  // axes
  std::vector<std::size_t> loads = {};
  std::vector<int> scales = {};
  double number = 1;

  bool take(int v) {
    const NestValue& value = nest.values[at(v)];
    if (value.kind == Kind::constant) return number *= value.value, true;
    if (std::ranges::none_of(over, [&](int k) { return value.varies[at(k)]; })) return scales.push_back(v), true;
    if (value.kind == Kind::load) return loads.push_back(at(value.load)), nest.loads[at(value.load)].lookup_dim < 0;
    if (value.kind != Kind::apply) return false;
    const NestValue& last = nest.values[at(value.operands.back())];
    if (value.op == ValueOp::sub && last.kind == Kind::constant && last.value == 0)
      return take(value.operands[0]);  // a zero point
    return value.op == ValueOp::mul && take(value.operands[0]) && take(value.operands[1]);
  }
};

// A vector times a matrix has one row.
void add_row(Contraction& c) {
  const std::size_t row = c.nest.axes.size();
  c.m = {row};
  c.nest.axes.push_back(1);
  for (Access& load : c.nest.loads)
    for (Affine& dim : load.at) dim.steps.push_back(0);
  Access &a = c.nest.loads[c.a], &out = c.nest.outputs[0].place;
  for (Affine& dim : out.at) dim.steps.push_back(0);
  for (Access* access : {&a, &out}) {
    access->shape.insert(access->shape.begin(), 1), access->strides.insert(access->strides.begin(), 0);
    access->at.insert(access->at.begin(), along(row, row + 1));
  }
  for (NestValue& value : c.nest.values) value.at.steps.push_back(0), value.varies.push_back(false);
}

// The sum times these values and the number, in place of the sum for all that read it.
void multiply_behind(Contraction& c, std::vector<int> scales, double number) {
  const int sum = static_cast<int>(c.sum);
  const std::vector<bool> varies(c.nest.axes.size());
  std::vector<NestValue> behind;
  if (number != 1) scales.push_back(sum + 1), behind.push_back({.value = number, .varies = varies});
  c.scaled = !scales.empty();
  for (int last = sum; const int scale : scales) {
    behind.push_back({.kind = Kind::apply, .op = ValueOp::mul, .operands = {last, scale}, .varies = varies});
    last = sum + static_cast<int>(behind.size());
  }
  const auto move = [&](int& value) { value += value >= sum ? static_cast<int>(behind.size()) : 0; };
  auto& values = c.nest.values;
  for (std::size_t v = c.sum + 1; v < values.size(); ++v) std::ranges::for_each(values[v].operands, move);
  move(c.nest.outputs[0].value);
  values.insert(values.begin() + sum + 1, behind.begin(), behind.end());
}
}  // namespace
std::optional<Contraction> contraction_of(const Nest& nest, bool blocks) {
  if (nest.outputs.size() != 1 || nest.scan()) return std::nullopt;
  Contraction c{.nest = nest};
  const Nest& n = c.nest;
  const std::vector<bool> reduced = n.reduced();
  if (std::ranges::count(n.values, Kind::reduce, &NestValue::kind) != 1) return std::nullopt;
  c.sum = at(std::ranges::find(n.values, Kind::reduce, &NestValue::kind) - n.values.begin());
  if (n.values[c.sum].op != ValueOp::add) return std::nullopt;
  Factors product{n, n.values[c.sum].axes};
  if (!product.take(n.values[c.sum].operands[0])) return std::nullopt;
  auto& factors = product.loads;
  const auto is_scale = [&](std::size_t load) {
    return std::ranges::any_of(product.over, [&](int k) { return !n.loads[load].uses(at(k)); });
  };
  const auto scales = std::ranges::stable_partition(factors, std::not_fn(is_scale));
  c.scales.assign(scales.begin(), scales.end());
  factors.erase(scales.begin(), scales.end());
  if (factors.size() != 2 || factors[0] == factors[1] || (!blocks && !c.scales.empty())) return std::nullopt;
  const Access& out = n.outputs[0].place;
  int fastest = -1;
  for (std::size_t a = 0; a < n.axes.size(); ++a)
    if (out.stride(a) == 1) fastest = static_cast<int>(a);
  if (fastest < 0) return std::nullopt;
  const bool first = n.loads[factors[0]].uses(at(fastest)), second = n.loads[factors[1]].uses(at(fastest));
  if (first == second) return std::nullopt;
  c.a = factors[first ? 1 : 0], c.b = factors[first ? 0 : 1];
  const Access &load_a = n.loads[c.a], &load_b = n.loads[c.b];
  for (std::size_t a = 0; a < n.axes.size(); ++a) {
    const bool in_a = load_a.uses(a), in_b = load_b.uses(a);
    if (reduced[a] ? !(in_a && in_b) : !(in_a || in_b)) return std::nullopt;
    (reduced[a] ? c.k : in_a && in_b ? c.batch : in_a ? c.m : c.n).push_back(a);
  }
  // What is known before the sum may vary along k as its factors; nothing behind it, nor the output.
  for (std::size_t v = 0; v < n.values.size(); ++v)
    for (const std::size_t k : c.k)
      if (n.values[v].varies[k] && v > c.sum) return std::nullopt;
  if (c.n.empty() || c.k.empty()) return std::nullopt;
  if (c.m.empty()) add_row(c);
  std::erase(c.n, at(fastest));
  c.n.push_back(at(fastest));
  c.column = at(fastest);
  c.row = c.scales.empty() ? *std::ranges::max_element(c.m, {}, [&](std::size_t axis) { return n.axes[axis]; }) : c.m.back();
  multiply_behind(c, std::move(product.scales), product.number);
  const auto moves_pixels = [&](std::size_t k) {
    return std::ranges::any_of(load_b.at, [&](const Affine& dim) { return dim.steps[k] != 0 && steps_along(dim, c.n); });
  };
  const auto scaled = [&](std::size_t k) {
    return std::ranges::any_of(c.scales, [&](auto load) { return n.loads[load].uses(k); });
  };
  for (const std::size_t k : c.k)
    if (!moves_pixels(k) && !scaled(k) && (!c.channel || n.axes[k] > n.axes[*c.channel])) c.channel = k;
  for (const std::size_t k : c.k)
    if (k != c.channel) c.window = k;
  return c;
}

Contraction exchanged(Contraction c) {
  std::swap(c.a, c.b), std::swap(c.m, c.n), std::swap(c.row, c.column);
  return c;
}

std::optional<std::size_t> second_column(const Contraction& c) {
  const auto operands = epilogue_of(c);
  if (c.n.size() < 2 || !operands) return std::nullopt;
  const std::size_t axis = c.n[c.n.size() - 2];
  const bool whole = std::all_of(operands->begin(), operands->end(), [&](int operand) {
    return c.nest.loads[at(operand)].uses(axis) == c.nest.loads[at(operand)].uses(c.column);
  });
  const bool apart = std::ranges::none_of(c.nest.loads, [&](const Access& load) {
    return std::ranges::any_of(load.at, [&](const Affine& dim) { return dim.steps[axis] != 0 && dim.steps[c.column] != 0; });
  });
  return whole && apart ? std::optional(axis) : std::nullopt;
}

std::optional<std::vector<int>> epilogue_of(const Contraction& contraction) {
  constexpr double kMostNodes = 4096;  // a tile value is a tree where values share operands
  std::vector<int> loads;
  std::map<int, double> nodes;
  const auto plain = [&](const Affine& place) {  // along the only axis of a side of the tile
    const auto crosses = [&](const auto& side) { return side.size() > 1 && steps_along(place, side); };
    return !crosses(contraction.m) && !crosses(contraction.n);
  };
  const auto visit = [&](const auto& self, int v) -> double {
    const auto [known, fresh] = nodes.try_emplace(v, 1);
    const NestValue& value = contraction.nest.values[at(v)];
    if (!fresh || at(v) == contraction.sum || value.kind == Kind::constant) return known->second;
    if (value.kind == Kind::load) loads.push_back(value.load);
    else if (value.kind == Kind::index ? !plain(value.at) : value.kind != Kind::apply) return HUGE_VAL;
    double all = 1;
    for (const int operand : value.operands) all += self(self, operand);
    return nodes[v] = all;
  };
  const auto& [result, place] = contraction.nest.outputs[0];
  const NestValue& last = contraction.nest.values[at(result)];
  const bool stored_so = last.kind == Kind::round && last.dtype == place.dtype;
  if (visit(visit, stored_so ? last.operands[0] : result) > kMostNodes) return std::nullopt;
  return loads;
}
}  // namespace warploom::kernels
