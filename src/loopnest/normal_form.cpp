#include "base/rows.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
void complete(LoopNest& nest) {
  const size_t rank = nest.axes.size();
  const auto squeeze = [&](Access& access) {
    for (size_t d = access.shape.size(); d-- > 0;) {
      access.at[d].steps.resize(rank);
      if (access.lookup_dim == static_cast<int>(d)) continue;
      if (access.shape[d] == 1 && access.at[d] == Affine{0, std::vector<int64_t>(rank)})
        access.erase(d);
    }
  };
  for (Access& load : nest.loads) squeeze(load);
  for (auto& output : nest.outputs) squeeze(output.place);
  for (Expr& value : nest.values) {
    value.at.steps.resize(rank);
    value.varies.assign(rank, false);
    for (size_t a = 0; a < rank; ++a) {
      if (value.kind == Kind::load) value.varies[a] = nest.loads[at(value.load)].uses(a);
      if (value.kind == Kind::index) value.varies[a] = value.at.steps[a] != 0;
      for (const int operand : value.operands)
        value.varies[a] = value.varies[a] || nest.values[at(operand)].varies[a];
    }
    for (const int axis : value.axes) value.varies[at(axis)] = value.kind == Kind::scan;
  }
}

void drop_unused(LoopNest& nest) {
  std::vector<bool> needed(nest.values.size(), false);
  for (const auto& output : nest.outputs) needed[at(output.value)] = true;
  for (size_t v = nest.values.size(); v-- > 0;)
    if (needed[v])
      for (const int operand : nest.values[v].operands) needed[at(operand)] = true;
  std::vector<int> renamed(nest.values.size());
  std::vector<Access> loads;
  std::vector<Expr> values;
  for (size_t v = 0; v < nest.values.size(); ++v) {
    if (!needed[v]) continue;
    Expr& value = nest.values[v];
    renamed[v] = static_cast<int>(values.size());
    for (int& operand : value.operands) operand = renamed[at(operand)];
    if (value.kind == Kind::load) {
      loads.push_back(std::move(nest.loads[at(value.load)]));
      value.load = static_cast<int>(loads.size()) - 1;
    }
    values.push_back(std::move(value));
  }
  for (auto& output : nest.outputs) output.value = renamed[at(output.value)];
  nest.loads = std::move(loads);
  nest.values = std::move(values);
}

void erase_axis(Affine& affine, size_t a) {
  affine.steps.erase(affine.steps.begin() + static_cast<ptrdiff_t>(a));
}

// Whether a coordinate steps along axes a and a + 1, the inner one so long, as along one.
bool one_axis(const Affine& c, size_t a, int64_t inner) {
  return c.steps[a] == c.steps[a + 1] * inner;
}

// The dimension of an access that is an axis of this size, -1 where there is none.
int own_dimension(const Access& access, size_t a, int64_t size) {
  for (size_t d = 0; d < access.at.size(); ++d)
    if (access.shape[d] == size && access.lookup_dim != static_cast<int>(d) &&
        access.at[d] == along(a, access.at[d].steps.size()))
      return static_cast<int>(d);
  return -1;
}

bool can_merge(const Access& access, size_t a, const std::vector<int64_t>& axes) {
  const int outer = own_dimension(access, a, axes[a]);
  const int inner = own_dimension(access, a + 1, axes[a + 1]);
  for (int d = 0; d < static_cast<int>(access.at.size()); ++d)
    if (d != outer && d != inner && !one_axis(access.at[at(d)], a, axes[a + 1])) return false;
  if (outer < 0 || inner < 0) return outer == inner;
  return access.strides[at(outer)] == access.strides[at(inner)] * axes[a + 1];
}

void merge(Access& access, size_t a, const std::vector<int64_t>& axes) {
  const int outer = own_dimension(access, a, axes[a]);
  const int inner = own_dimension(access, a + 1, axes[a + 1]);
  if (outer >= 0) {
    access.shape[at(inner)] *= axes[a];
    access.erase(at(outer));
  }
  for (Affine& c : access.at) erase_axis(c, a);
}

bool merge_axes(LoopNest& nest, size_t a) {
  const int64_t inner = nest.axes[a + 1];
  if (nest.axes[a] > kLongestAxis / std::max<int64_t>(inner, 1)) return false;
  const int outer_axis = static_cast<int>(a);
  for (const Access& load : nest.loads)
    if (!can_merge(load, a, nest.axes)) return false;
  for (const auto& output : nest.outputs)
    if (!can_merge(output.place, a, nest.axes)) return false;
  for (const Expr& value : nest.values) {
    if (value.kind == Kind::index && !one_axis(value.at, a, inner)) return false;
    const auto over = [&](int axis) {
      return std::ranges::find(value.axes, axis) != value.axes.end();
    };
    if (value.varies[a] != value.varies[a + 1] || over(outer_axis) != over(outer_axis + 1))
      return false;
  }
  for (Access& load : nest.loads) merge(load, a, nest.axes);
  for (auto& output : nest.outputs) merge(output.place, a, nest.axes);
  for (Expr& value : nest.values) {
    erase_axis(value.at, a);
    value.varies.erase(value.varies.begin() + static_cast<ptrdiff_t>(a));
    std::erase(value.axes, outer_axis);
    for (int& axis : value.axes) axis -= axis > outer_axis;
  }
  nest.axes[a + 1] *= nest.axes[a];
  nest.axes.erase(nest.axes.begin() + static_cast<ptrdiff_t>(a));
  return true;
}

// Dimensions that are never left become one for each axis that they step along, and a first one of
// two elements where they do not begin at 0.
void one_dimension_an_axis(Access& access, const LoopNest& nest, bool output) {
  const std::vector<int64_t>& axes = nest.axes;
  Access plain = access;
  plain.shape.clear();
  plain.strides.clear();
  plain.at.clear();
  int64_t begin = 0;
  std::vector<int64_t> strides(axes.size(), 0);
  std::vector<size_t> others;
  for (size_t d = 0; d < access.at.size(); ++d) {
    const Affine& c = access.at[d];
    const bool forwards = std::ranges::all_of(c.steps, [](int64_t step) { return step >= 0; });
    const bool left = !forwards || c.begin < 0 || nest.range(c).second >= access.shape[d] ||
                      access.lookup_dim == static_cast<int>(d);
    if (left || (output && c.begin != 0)) {
      others.push_back(d);
      continue;
    }
    begin += c.begin * access.strides[d];
    for (size_t a = 0; a < axes.size(); ++a) strides[a] += c.steps[a] * access.strides[d];
  }
  const auto add = [&](int64_t size, int64_t stride, const Affine& c) {
    plain.shape.push_back(size);
    plain.strides.push_back(stride);
    plain.at.push_back(c);
  };
  if (begin != 0) add(2, begin, {1, std::vector<int64_t>(axes.size())});
  for (size_t a = 0; a < axes.size(); ++a)
    if (strides[a] != 0) add(axes[a], strides[a], along(a, axes.size()));
  for (const size_t d : others) {
    if (access.lookup_dim == static_cast<int>(d))
      plain.lookup_dim = static_cast<int>(plain.at.size());
    add(access.shape[d], access.strides[d], access.at[d]);
  }
  access = std::move(plain);
}
}  // namespace

LoopNest normal_form(LoopNest nest) {
  complete(nest);
  drop_unused(nest);
  for (Access& load : nest.loads) one_dimension_an_axis(load, nest, false);
  for (auto& output : nest.outputs) one_dimension_an_axis(output.place, nest, true);
  for (size_t a = nest.axes.size(); a-- > 1;) merge_axes(nest, a - 1);
  return nest;
}

bool Expr::same(const Expr& other) const {
  return std::tie(kind, load, at, op, dtype, operands, axes, reverse, integers) ==
             std::tie(other.kind, other.load, other.at, other.op, other.dtype, other.operands,
                      other.axes, other.reverse, other.integers) &&
         std::bit_cast<uint64_t>(value) == std::bit_cast<uint64_t>(other.value);
}

size_t Expr::hash() const {
  size_t hash = 0;
  const auto add = [&](auto number) {
    hash = (hash ^ std::hash<decltype(number)>()(number)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  add(static_cast<int>(kind));
  add(load);
  add(static_cast<int>(op));
  add(static_cast<int>(dtype));
  add(std::bit_cast<uint64_t>(value));
  add(at.begin);
  for (const int64_t step : at.steps) add(step);
  for (const int operand : operands) add(operand);
  for (const int axis : axes) add(axis);
  add(reverse);
  return hash;
}

bool Access::uses(size_t axis) const {
  return std::ranges::any_of(at, [&](const Affine& c) { return c.steps[axis] != 0; });
}

std::optional<size_t> Access::dim_of(size_t axis) const {
  const auto steps = [&](const Affine& c) { return c.steps[axis] != 0; };
  if (std::ranges::count_if(at, steps) != 1) return std::nullopt;
  return static_cast<size_t>(std::ranges::find_if(at, steps) - at.begin());
}

int64_t Access::stride(size_t axis) const {
  int64_t sum = 0;
  for (size_t d = 0; d < at.size(); ++d) sum += at[d].steps[axis] * strides[d];
  return sum;
}

void Access::erase(size_t dim) {
  const auto where = static_cast<ptrdiff_t>(dim);
  shape.erase(shape.begin() + where);
  strides.erase(strides.begin() + where);
  at.erase(at.begin() + where);
  lookup_dim -= lookup_dim > static_cast<int>(dim);
}

std::vector<bool> LoopNest::reduced() const {
  std::vector<bool> out(axes.size(), false);
  for (const Expr& value : values)
    for (const int axis : value.axes) out[at(axis)] = out[at(axis)] || value.kind == Kind::reduce;
  return out;
}

const Expr* LoopNest::scan() const {
  const auto found = std::ranges::find(values, Kind::scan, &Expr::kind);
  return found == values.end() ? nullptr : &*found;
}

std::pair<int64_t, int64_t> LoopNest::range(const Affine& coordinate) const {
  int64_t low = coordinate.begin;
  int64_t high = coordinate.begin;
  for (size_t a = 0; a < coordinate.steps.size(); ++a)
    (coordinate.steps[a] < 0 ? low : high) += coordinate.steps[a] * (axes[a] - 1);
  return {low, high};
}

bool LoopNest::passes_by(const Access& load, int64_t l2_bytes) const {
  const auto bytes = [](const Access& access) {
    return graph::element_count(access.shape) * bytes_of(access.dtype);
  };
  int64_t read = 0;
  int64_t written = 0;
  for (const Access& each : loads) read += bytes(each);
  for (const Output& output : outputs) written += bytes(output.place);
  return graph::element_count(load.shape) >= graph::element_count(axes) &&
         (written * 16 < read || read + written < l2_bytes);
}

bool LoopNest::is_whole(int value) const {
  const Expr& of = values[at(value)];
  if (of.kind == Kind::load) return is_integer(loads[at(of.load)].dtype);
  if (of.kind == Kind::constant) return of.value == std::trunc(of.value);
  return of.kind == Kind::index || of.integers;
}

bool LoopNest::has_integers() const {
  return std::ranges::any_of(values, &Expr::integers);
}

namespace {
// LoopNest::most of one value by those of its operands.
double most_by(const LoopNest& nest, const Expr& of, const std::vector<double>& known) {
  const auto operand = [&](size_t i) { return known[at(of.operands[i])]; };
  double bound = HUGE_VAL;
  switch (of.kind) {
    case Kind::constant: bound = std::abs(of.value); break;
    case Kind::index: {
      const auto [low, high] = nest.range(of.at);
      bound = static_cast<double>(std::max(std::abs(low), std::abs(high)));
      break;
    }
    case Kind::load: bound = bits_of(nest.loads[at(of.load)].dtype) == 8 ? 255 : HUGE_VAL; break;
    case Kind::reduce:
      bound = of.op == ValueOp::mul ? HUGE_VAL : operand(0);
      for (const int axis : of.axes)
        bound *= of.op == ValueOp::add ? static_cast<double>(nest.axes[at(axis)]) : 1;
      break;
    case Kind::apply:
      if (of.op == ValueOp::less || of.op == ValueOp::equal) bound = 1;
      if (of.op == ValueOp::where) bound = std::max(operand(1), operand(2));
      if (of.op == ValueOp::min || of.op == ValueOp::max) bound = std::max(operand(0), operand(1));
      if (of.op == ValueOp::add || of.op == ValueOp::sub) bound = operand(0) + operand(1);
      if (of.op == ValueOp::mul) bound = operand(0) * operand(1);
      break;
    case Kind::round:
      if (of.dtype == Dtype::boolean) bound = 1;
      if (of.integers && of.dtype != Dtype::boolean && operand(0) <= 0x1p24) bound = operand(0);
      break;
    case Kind::scan: break;
  }
  return bound < HUGE_VAL ? bound : HUGE_VAL;  // 0 · ∞ is no number
}
}  // namespace

double LoopNest::most(int value) const {
  std::vector<double> known;  // of the values up to this one, operands before users
  for (int v = 0; v <= value; ++v) known.push_back(most_by(*this, values[at(v)], known));
  return known.back();
}

double identity_of(ValueOp op) {
  const auto reduction = reduce_op(op);
  return reduction ? tile::reduction_of(*reduction).identity : 1;  // that of a product
}

std::optional<tile::ReduceOp> reduce_op(ValueOp op) {
  return row_where<tile::ReduceOp>(tile::kReductions, op, &tile::Reduction::combine);
}
}  // namespace warploom::loopnest
