#include <limits>
#include "kernels/nest.h"
namespace warploom::kernels {
namespace {
using Kind = NestValue::Kind;

void complete(Nest& nest) {
  const std::size_t rank = nest.axes.size();
  const auto squeeze = [&](Access& access) {
    for (std::size_t d = access.shape.size(); d-- > 0;) {
      access.at[d].steps.resize(rank);
      if (access.lookup_dim == static_cast<int>(d)) continue;
      if (access.shape[d] != 1 || access.at[d] != Affine{0, std::vector<std::int64_t>(rank)}) continue;
      const auto where = static_cast<std::ptrdiff_t>(d);
      access.shape.erase(access.shape.begin() + where);
      access.strides.erase(access.strides.begin() + where);
      access.at.erase(access.at.begin() + where);
      access.lookup_dim -= access.lookup_dim > static_cast<int>(d);
    }
  };
  for (Access& load : nest.loads) squeeze(load);
  for (auto& output : nest.outputs) squeeze(output.place);
  for (NestValue& value : nest.values) {
    value.at.steps.resize(rank);
    value.varies.assign(rank, false);
    for (std::size_t a = 0; a < rank; ++a) {
      if (value.kind == Kind::load) value.varies[a] = nest.loads[at(value.load)].uses(a);
      if (value.kind == Kind::index) value.varies[a] = value.at.steps[a] != 0;
      for (const int operand : value.operands) value.varies[a] = value.varies[a] || nest.values[at(operand)].varies[a];
    }
    for (const int axis : value.axes) value.varies[at(axis)] = false;
  }
}

void drop_unused(Nest& nest) {
  std::vector<bool> needed(nest.values.size(), false);
  for (const auto& output : nest.outputs) needed[at(output.value)] = true;
  for (std::size_t v = nest.values.size(); v-- > 0;)
    if (needed[v])
      for (const int operand : nest.values[v].operands) needed[at(operand)] = true;
  std::vector<int> renamed(nest.values.size());
  std::vector<Access> loads;
  std::vector<NestValue> values;
  for (std::size_t v = 0; v < nest.values.size(); ++v) {
    if (!needed[v]) continue;
    NestValue& value = nest.values[v];
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

void erase_axis(Affine& affine, std::size_t a) { affine.steps.erase(affine.steps.begin() + static_cast<std::ptrdiff_t>(a)); }

// Axes a and a + 1 of a coordinate that steps along both as along one.
bool one_axis(const Affine& c, std::size_t a, std::int64_t inner) { return c.steps[a] == c.steps[a + 1] * inner; }

// The dimension d of an access of which d belongs to axis a and d + 1 is axis a + 1, all of it; -1 where there is none.
int pair_of_dimensions(const Access& access, std::size_t a, std::int64_t inner) {
  int found = -1;
  for (std::size_t d = 0; d < access.at.size(); ++d) {
    const Affine& c = access.at[d];
    if (c.steps[a] == 0 && c.steps[a + 1] == 0) continue;
    if (found >= 0 && at(found) + 1 == d) continue;
    if (access.lookup_dim == static_cast<int>(d) || access.lookup_dim == static_cast<int>(d) + 1) return -1;
    if (found >= 0 || c.steps[a] != 1 || c.steps[a + 1] != 0 || d + 1 == access.at.size()) return -1;
    Affine only{0, std::vector<std::int64_t>(c.steps.size())};
    only.steps[a + 1] = 1;
    if (access.at[d + 1] != only || access.shape[d + 1] != inner || access.strides[d] != access.strides[d + 1] * inner) return -1;
    found = static_cast<int>(d);
  }
  return found;
}
bool can_merge(const Access& access, std::size_t a, std::int64_t inner) {
  return std::all_of(access.at.begin(), access.at.end(), [&](const Affine& c) { return one_axis(c, a, inner); }) ||
         pair_of_dimensions(access, a, inner) >= 0;
}
void merge(Access& access, std::size_t a, std::int64_t inner) {
  const bool plain = std::all_of(access.at.begin(), access.at.end(), [&](const Affine& c) { return one_axis(c, a, inner); });
  if (!plain) {
    const auto d = at(pair_of_dimensions(access, a, inner));
    Affine& outer = access.at[d];
    outer.begin *= inner;
    for (auto& step : outer.steps) step *= inner;
    outer.steps[a + 1] = 1;
    access.shape[d] *= inner;
    access.strides[d] = access.strides[d + 1];
    const auto next = static_cast<std::ptrdiff_t>(d) + 1;
    access.shape.erase(access.shape.begin() + next);
    access.strides.erase(access.strides.begin() + next);
    access.at.erase(access.at.begin() + next);
    access.lookup_dim -= access.lookup_dim > static_cast<int>(d);
  }
  for (Affine& c : access.at) erase_axis(c, a);
}

bool merge_axes(Nest& nest, std::size_t a) {
  const std::int64_t inner = nest.axes[a + 1];
  const int outer_axis = static_cast<int>(a);
  for (const Access& load : nest.loads)
    if (!can_merge(load, a, inner)) return false;
  for (const auto& output : nest.outputs)
    if (!can_merge(output.place, a, inner)) return false;
  for (const NestValue& value : nest.values) {
    if (value.kind == Kind::index && !one_axis(value.at, a, inner)) return false;
    const auto over = [&](int axis) { return std::find(value.axes.begin(), value.axes.end(), axis) != value.axes.end(); };
    if (value.varies[a] != value.varies[a + 1] || over(outer_axis) != over(outer_axis + 1)) return false;
  }
  for (Access& load : nest.loads) merge(load, a, inner);
  for (auto& output : nest.outputs) merge(output.place, a, inner);
  for (NestValue& value : nest.values) {
    erase_axis(value.at, a);
    value.varies.erase(value.varies.begin() + static_cast<std::ptrdiff_t>(a));
    std::erase(value.axes, outer_axis);
    for (int& axis : value.axes) axis -= axis > outer_axis;
  }
  nest.axes[a + 1] *= nest.axes[a];
  nest.axes.erase(nest.axes.begin() + static_cast<std::ptrdiff_t>(a));
  return true;
}

// An access that never leaves its tensor gets one dimension an axis, and a first one of two elements where it does not begin at 0.
void one_dimension_an_axis(Access& access, const std::vector<std::int64_t>& axes, bool output) {
  Access plain = access;
  plain.shape.clear(), plain.strides.clear(), plain.at.clear();
  std::int64_t begin = 0;
  for (std::size_t d = 0; d < access.at.size(); ++d) begin += access.at[d].begin * access.strides[d];
  if (!access.inside || (output && begin != 0)) return;
  const auto add = [&](std::int64_t size, std::int64_t stride, const Affine& c) {
    plain.shape.push_back(size), plain.strides.push_back(stride), plain.at.push_back(c);
  };
  const Affine none{0, std::vector<std::int64_t>(axes.size())};
  if (begin != 0) add(2, begin, {1, none.steps});
  for (std::size_t a = 0; a < axes.size(); ++a) {
    std::int64_t stride = 0;
    Affine own = none;
    own.steps[a] = 1;
    for (std::size_t d = 0; d < access.at.size(); ++d) {
      if (access.at[d].steps[a] < 0) return;
      stride += access.at[d].steps[a] * access.strides[d];
    }
    if (access.uses(a)) add(axes[a], stride, own);
  }
  access = std::move(plain);
}
}  // namespace
Nest normal_form(Nest nest) {
  complete(nest);
  drop_unused(nest);
  for (std::size_t a = nest.axes.size(); a-- > 1;) merge_axes(nest, a - 1);
  for (Access& load : nest.loads) one_dimension_an_axis(load, nest.axes, false);
  for (auto& output : nest.outputs) one_dimension_an_axis(output.place, nest.axes, true);
  return nest;
}

bool NestValue::same(const NestValue& other) const {
  return std::tie(kind, load, at, op, dtype, operands, axes) ==
             std::tie(other.kind, other.load, other.at, other.op, other.dtype, other.operands, other.axes) &&
         std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(other.value);
}

bool Access::uses(std::size_t axis) const {
  return std::any_of(at.begin(), at.end(), [&](const Affine& c) { return c.steps[axis] != 0; });
}

std::int64_t Access::stride(std::size_t axis) const {
  std::int64_t sum = 0;
  for (std::size_t d = 0; d < at.size(); ++d) sum += at[d].steps[axis] * strides[d];
  return sum;
}

std::vector<bool> Nest::reduced() const {
  std::vector<bool> out(axes.size(), false);
  for (const NestValue& value : values)
    for (const int axis : value.axes) out[at(axis)] = true;
  return out;
}

double identity_of(ValueOp op) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return op == ValueOp::max ? -infinity : op == ValueOp::min ? infinity : op == ValueOp::mul ? 1 : 0;
}
std::optional<tile::ReduceOp> reduce_op(ValueOp op) {
  if (op == ValueOp::mul) return std::nullopt;
  return op == ValueOp::max ? tile::ReduceOp::max : op == ValueOp::min ? tile::ReduceOp::min : tile::ReduceOp::sum;
}
}  // namespace warploom::kernels
