// Values beyond the edges of tensors. A load counts as its padding value there; of what is computed
// the elements outside are known where they are one number (relu of a load padded with 0 is 0), and
// chosen by coordinate elsewhere.
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "loopnest/affine.h"
#include "loopnest/graph_reader.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
using graph::Shape, graph::TensorId;

GraphReader::MaybeValue GraphReader::read_padded(TensorId id, const Coordinates& at, double fill) {
  const Shape& shape = tensor(id).shape;
  const MaybeValue value = read(id, at);
  if (!value || axes_.in_bounds(at, shape)) return value;
  const auto key = std::tuple(id, at, std::bit_cast<uint64_t>(fill));
  if (const auto found = padded_.find(key); found != padded_.end()) return found->second;
  Outside outside{at, shape};
  int result = *value;
  const Expr& of = nest_.value(result);
  const Access* const load = of.kind == Kind::load ? &nest_.load_of(of) : nullptr;
  // A padding value is of the type that is loaded.
  const bool pads = load && rounded(load->dtype, fill) == fill && leaves_alike(*load, outside);
  if (pads && load->padding_value != fill) {
    Access padded = *load;
    padded.padding_value = fill;
    result = exprs_.load(std::move(padded));
  } else if (!pads && value_outside(result, outside) != fill) {
    result = where_inside(result, at, shape, exprs_.constant(fill), tensor(id).dtype);
  }
  padded_[key] = result;
  return result;
}

// Whether a load lies outside its tensor just where the coordinates lie outside the shape.
bool GraphReader::leaves_alike(const Access& load, const Outside& outside) const {
  if (load.is_gathered()) return false;
  const auto leaving = [&](const Coordinates& at, const Shape& shape) {
    std::set<std::pair<Affine, int64_t>> out;
    for (size_t d = 0; d < at.size(); ++d)
      if (!axes_.lies_in(at[d], 0, shape[d])) out.emplace(at[d], shape[d]);
    return out;
  };
  return leaving(load.at, load.shape) == leaving(outside.at, outside.shape);
}

// What a value is outside, where that is one number.
std::optional<double> GraphReader::value_outside(int value, Outside& outside) const {
  const auto found = outside.known.find(value);
  if (found != outside.known.end()) return found->second;
  const auto number = compute_outside(value, outside);
  outside.known[value] = number;
  return number;
}

std::optional<double> GraphReader::compute_outside(int value, Outside& outside) const {
  const Expr& of = nest_.value(value);
  if (of.kind == Kind::load && leaves_alike(nest_.load_of(of), outside))
    return nest_.load_of(of).padding_value;
  if (of.kind == Kind::constant) return of.value;
  if (of.kind != Kind::apply || of.integers) return std::nullopt;
  std::array<double, 3> operands{};
  for (size_t i = 0; i < of.operands.size(); ++i) {
    const auto operand = value_outside(of.operands[i], outside);
    if (!operand) return std::nullopt;
    operands[i] = *operand;
  }
  return warploom::apply(of.op, operands[0], operands[1], operands[2]);
}

// where(every coordinate lies inside the shape, value, fill). Coordinates are compared with halves,
// which are exact between integers.
int GraphReader::where_inside(int value, const Coordinates& at, const Shape& shape, int fill,
                              Dtype dtype) {
  std::optional<int> all;
  for (size_t d = 0; d < at.size(); ++d) {
    if (axes_.lies_in(at[d], 0, shape[d])) continue;
    const int coordinate = exprs_.index(at[d]);
    const int end = exprs_.constant(as_double(shape[d]) - 0.5);
    const int below = exprs_.apply(ValueOp::less, {coordinate, end});
    const int begin = exprs_.constant(-0.5);
    const int above = exprs_.apply(ValueOp::less, {begin, coordinate});
    const int both = exprs_.product(above, below);
    all = all ? exprs_.product(*all, both) : both;
  }
  return exprs_.apply_as(dtype, ValueOp::where, {*all, value, fill});
}
}  // namespace warploom::loopnest
