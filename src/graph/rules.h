// What the operators' rules share. Private to the room.
#pragma once
#include "graph/operators.h"
namespace warploom::graph {
using List = std::vector<std::int64_t>;
inline constexpr ErrorCode kType = ErrorCode::kOnnxType, kShape = ErrorCode::kOnnxShape, kAttribute = ErrorCode::kOnnxAttribute;
inline auto type_error(const Question& q, Words expected, Words found) {
  return q.error(kType, "an input's element type does not fit the operator", std::move(expected), std::move(found));
}

inline bool is_wide_float(Dtype dtype) { return is_float(dtype) && bits_of(dtype) >= 16; }
// Every input of one type, of 16 bits or more if floating-point; booleans only where `booleans`.
Status same_type(const Question& q, bool floats_only, bool booleans = false);

// How an input of shape `in` is read that broadcasting aligns at the last axes of an output of `rank` axes.
Access aligned(const Shape& in, std::size_t rank);
// Every input read so.
Answer elementwise(const Question& q, Dtype dtype, const Shape& shape);
// Axis i of the input is axis i of the output.
Access same_axes(std::size_t rank);

// An input that must be a constant list of integers, because the output's shape depends on it.
Result<List> list(const Question& q, std::size_t i, std::string_view what, std::size_t most = kMaxRank);

// The attribute axis, counted from the front.
inline Result<std::size_t> checked_axis(const Question& q) {
  WARPLOOM_TRY(const int axis, normalized_axis(q.node.integer("axis"), q.in(0).shape.size(), q.place));
  return static_cast<std::size_t>(axis);
}
// Distinct normalised axes, ascending.
Result<List> axes(const Question& q, const List& wanted, std::size_t rank);
Status check_vector(const Question& q, std::size_t i, std::int64_t size);  // an input of so many elements, if it is there
Status check_power(const Question& q);                                     // the p of a norm
Status check_channels(const Question& q);                                  // a batch, channels, and maybe more
Status check_weights(const Question& q);                                   // a convolution's, and its bias
}  // namespace warploom::graph
