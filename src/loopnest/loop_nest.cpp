#include "loopnest/loop_nest.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/rows.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "loopnest/affine.h"
#include "tile/program.h"

namespace warploom::loopnest {
using tile::ReduceOp;

bool Expr::same(const Expr& other) const {
  const auto fields = [](const Expr& e) {
    return std::tie(e.kind, e.load, e.at, e.op, e.dtype, e.operands, e.axes, e.reverse, e.integers);
  };
  const auto bits = std::bit_cast<uint64_t>(value);  // so that -0 is not 0, and a NaN is itself
  const auto other_bits = std::bit_cast<uint64_t>(other.value);
  return bits == other_bits && fields(*this) == fields(other);
}

size_t Expr::hash() const {
  size_t hash = 0;
  const auto add = [&](auto number) {
    hash = (hash ^ std::hash<decltype(number)>()(number)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  add(as_int(kind));
  add(load);
  add(as_int(op));
  add(as_int(dtype));
  add(std::bit_cast<uint64_t>(value));
  add(at.begin);
  for (const int64_t step : at.steps)
    add(step);
  for (const int operand : operands)
    add(operand);
  for (const size_t axis : axes)
    add(axis);
  add(reverse);
  return hash;
}

bool Access::uses(size_t axis) const {
  return std::ranges::any_of(at, [&](const Affine& c) { return c.steps[axis] != 0; });
}

std::optional<size_t> Access::dim_of(size_t axis) const {
  const auto steps = [&](const Affine& c) { return c.steps[axis] != 0; };
  if (std::ranges::count_if(at, steps) != 1) return std::nullopt;
  return as_size(std::ranges::find_if(at, steps) - at.begin());
}

int64_t Access::stride(size_t axis) const {
  int64_t sum = 0;
  for (size_t d = 0; d < at.size(); ++d)
    sum += at[d].steps[axis] * strides[d];
  return sum;
}

void Access::erase(size_t dim) {
  const auto where = as_int64(dim);
  shape.erase(shape.begin() + where);
  strides.erase(strides.begin() + where);
  at.erase(at.begin() + where);
  if (gather_dim > as_int(dim)) --gather_dim;
}

std::vector<bool> LoopNest::reduced() const {
  std::vector<bool> out(axes.size(), false);
  for (const Expr& value : values) {
    if (value.kind != Kind::reduce) continue;
    for (const size_t axis : value.axes)
      out[axis] = true;
  }
  return out;
}

const Expr* LoopNest::scan() const {
  const auto found = std::ranges::find(values, Kind::scan, &Expr::kind);
  return found == values.end() ? nullptr : &*found;
}

std::pair<int64_t, int64_t> LoopNest::range(const Affine& coordinate) const {
  return range_of(coordinate, axes);
}

bool LoopNest::repeats_reductions(int64_t terms) const {
  const auto is_long = [&](const Expr& value) {
    int64_t count = 1;
    for (const size_t axis : value.axes)
      count *= axes[axis];
    return value.kind == Kind::reduce && count > terms;
  };
  // By value: the axes of the loops that it is computed in, and whether it is in any.
  std::vector<std::vector<bool>> loops(values.size(), std::vector<bool>(axes.size()));
  for (const Output& output : outputs)
    for (size_t axis = 0; axis < axes.size(); ++axis)
      if (output.place.uses(axis)) loops[as_size(output.value)][axis] = true;
  for (size_t v = values.size(); v-- > 0;) {
    const Expr& value = values[v];
    std::vector<bool> within = loops[v];
    for (size_t axis = 0; axis < axes.size() && is_long(value); ++axis)
      if (within[axis] && !value.varies[axis]) return true;
    if (value.kind == Kind::reduce)
      for (const size_t axis : value.axes)
        within[axis] = true;
    for (const int operand : value.operands)
      for (size_t axis = 0; axis < axes.size(); ++axis)
        loops[as_size(operand)][axis] = loops[as_size(operand)][axis] || within[axis];
  }
  return false;
}

bool LoopNest::bypasses_l1(const Access& load, int64_t l2_bytes) const {
  constexpr int64_t kHardlyWrites = 16;  // bytes read for each one written
  const auto bytes = [](const Access& access) {
    return graph::element_count(access.shape) * bytes_of(access.dtype);
  };
  int64_t read = 0;
  int64_t written = 0;
  for (const Access& each : loads)
    read += bytes(each);
  for (const Output& output : outputs)
    written += bytes(output.place);
  const bool used_once = graph::element_count(load.shape) >= graph::element_count(axes);
  return used_once && (written * kHardlyWrites < read || read + written < l2_bytes);
}

bool LoopNest::is_integer_value(int id) const {
  const Expr& of = value(id);
  if (of.kind == Kind::load) return is_integer(load_of(of).dtype);
  if (of.kind == Kind::constant) return of.value == std::trunc(of.value);
  return of.kind == Kind::index || of.integers;
}

bool LoopNest::has_integers() const {
  return std::ranges::any_of(values, &Expr::integers);
}

namespace {
// The largest magnitude of what an operation makes of operands of these magnitudes.
double magnitude_of_apply(ValueOp op, const std::vector<double>& operands) {
  switch (op) {
    case ValueOp::less:
    case ValueOp::equal: return 1;
    case ValueOp::where: return std::max(operands[1], operands[2]);
    case ValueOp::min:
    case ValueOp::max: return std::max(operands[0], operands[1]);
    case ValueOp::add:
    case ValueOp::sub: return operands[0] + operands[1];
    case ValueOp::mul: return operands[0] * operands[1];
    default: return HUGE_VAL;
  }
}

double magnitude_of_reduce(const LoopNest& nest, const Expr& reduce, double operand) {
  if (reduce.op == ValueOp::mul) return HUGE_VAL;
  if (reduce.op != ValueOp::add) return operand;
  double bound = operand;
  for (const size_t axis : reduce.axes)
    bound *= as_double(nest.axes[axis]);
  return bound;
}

double magnitude_of_round(const Expr& round, double operand) {
  constexpr double kExactInFloat = 0x1p24;
  if (round.dtype == Dtype::boolean) return 1;
  return round.integers && operand <= kExactInFloat ? operand : HUGE_VAL;
}

// The largest magnitude of a value, given those of its operands.
double magnitude_of(const LoopNest& nest, const Expr& of, const std::vector<double>& operands) {
  switch (of.kind) {
    case Kind::constant: return std::abs(of.value);
    case Kind::index: {
      const auto [low, high] = nest.range(of.at);
      return as_double(std::max(std::abs(low), std::abs(high)));
    }
    case Kind::load: return bits_of(nest.load_of(of).dtype) == 8 ? 255 : HUGE_VAL;
    case Kind::reduce: return magnitude_of_reduce(nest, of, operands[0]);
    case Kind::apply: return magnitude_of_apply(of.op, operands);
    case Kind::round: return magnitude_of_round(of, operands[0]);
    case Kind::scan: break;
  }
  return HUGE_VAL;
}
}  // namespace

double LoopNest::largest_magnitude(int id) const {
  std::vector<double> known;  // of the values up to this one, operands before users
  for (int v = 0; v <= id; ++v) {
    std::vector<double> operands;
    for (const int operand : value(v).operands)
      operands.push_back(known[as_size(operand)]);
    const double bound = magnitude_of(*this, value(v), operands);
    known.push_back(bound < HUGE_VAL ? bound : HUGE_VAL);  // 0 · ∞ is no number
  }
  return known.back();
}

double identity_of(ValueOp op) {
  const auto reduction = reduce_op(op);
  return reduction ? tile::reduction_of(*reduction).identity : 1;  // that of a product
}

std::optional<ReduceOp> reduce_op(ValueOp op) {
  return row_where<ReduceOp>(tile::kReductions, op, &tile::Reduction::combine);
}
}  // namespace warploom::loopnest
