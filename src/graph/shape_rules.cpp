// Rules of contractions and elementwise operators; view_rules.cpp has those that move elements,
// reduce_rules.cpp those that reduce.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
// What gives the right bits whatever the sign: unsigned numbers of 64 bits are computed with as
// signed ones. Comparisons are written so that they are right as well (pointwise.cpp).
bool is_right_unsigned(OpKind op) {
  using enum OpKind;
  constexpr std::array kRight = {
      Add,        Sub,        Mul,    Neg,     Equal,    Less,       LessOrEqual,    Greater,
      Abs,        Sign,       Max,    Min,     Clip,     Relu,       GreaterOrEqual, MatMul,
      ReduceSum,  ReduceProd, CumSum, CumProd, BitShift, BitwiseAnd, BitwiseOr,      BitwiseXor,
      BitwiseNot, Identity};
  return contains(kRight, op);
}
}  // namespace

Status check_number(const NodeContext& context, size_t i, bool floats_only, bool booleans) {
  const Dtype dtype = context.in(i).dtype;
  if (dtype == Dtype::u64 && !is_right_unsigned(context.node.op))
    return type_error(context, "a number, but no unsigned one of 64 bits", dtype);
  const bool is_number = booleans || dtype != Dtype::boolean;
  const bool fits = is_float(dtype) ? is_wide_float(dtype) : !floats_only && is_number;
  if (fits) return ok();
  return type_error(context, floats_only ? "f64, f32, bf16 or f16" : "a number", dtype);
}

Status same_type(const NodeContext& context, bool floats_only, bool booleans) {
  const Dtype dtype = context.in(0).dtype;
  for (size_t i = 1; i < context.node.inputs.size(); ++i) {
    if (!context.has(i) || context.in(i).dtype == dtype) continue;
    const std::string expected = fmt::format("inputs of one type, {}", name_of(dtype));
    const Dtype other = context.in(i).dtype;
    return type_error(context, expected, fmt::format("input {} is {}", i, name_of(other)));
  }
  return check_number(context, 0, floats_only, booleans);
}

AxisSources aligned(const Shape& in, size_t rank) {
  AxisSources sources(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] != 1) sources[i].axis = as_int(rank - in.size() + i);
  return sources;
}

namespace {
// Every input aligned.
InferredOutput elementwise(const NodeContext& context, Dtype dtype, const Shape& shape) {
  InferredOutput output{dtype, shape};
  for (size_t i = 0; i < context.node.inputs.size(); ++i) {
    auto& read = output.reads.emplace_back();
    if (context.has(i)) read = aligned(context.in(i).shape, shape.size());
  }
  return output;
}

Result<InferredOutput> broadcast_all(const NodeContext& context, Dtype dtype) {
  Shape shape;
  for (size_t i = 0; i < context.node.inputs.size(); ++i)
    if (context.has(i)) {
      WARPLOOM_TRY(shape, broadcast(shape, context.in(i).shape, context.place));
    }
  return elementwise(context, dtype, shape);
}
}  // namespace

namespace rules {
Result<InferredOutput> none(const NodeContext& context) {
  return context.error(ErrorCode::kInternal, "what is no primitive is asked for its rule");
}

Result<InferredOutput> matmul(const NodeContext& context) {
  WARPLOOM_CHECK(same_type(context, false));
  const Shape& a = context.in(0).shape;
  const Shape& b = context.in(1).shape;
  const auto both = [&] { return to_text(a) + " and " + to_text(b); };
  if (a.empty() || b.empty())
    return context.error(kShape, "MatMul of a scalar", "1 axis or more", both());
  // The last two axes of each: one is summed, one kept; a vector's one is summed.
  const size_t left = a.size() - 1;
  const size_t right = b.size() - (b.size() == 1 ? 1 : 2);
  if (a[left] != b[right])
    return context.error(kShape, "the summed dimensions of a product differ",
                         "A's columns as many as B's rows", both());
  const auto batch = [](const Shape& in) {
    const auto matrix_axes = std::min<ptrdiff_t>(2, std::ssize(in));
    return Shape(in.begin(), in.end() - matrix_axes);
  };
  WARPLOOM_TRY(const Shape batches, broadcast(batch(a), batch(b), context.place));
  InferredOutput output{context.in(0).dtype, batches};
  for (const auto& [in, summed] : {std::pair(a, left), std::pair(b, right)}) {
    AxisSources sources = aligned(batch(in), batches.size());
    sources.resize(in.size());
    if (in.size() > 1) {
      const size_t kept = 2 * in.size() - 3 - summed;
      sources[kept].axis = as_int(output.shape.size());
      output.shape.push_back(in[kept]);
    }
    output.reads.emplace_back(std::move(sources));
  }
  return output;
}

Result<InferredOutput> pointwise(const NodeContext& context) {
  if (context.node.op != OpKind::Identity) WARPLOOM_CHECK(same_type(context, false));
  return broadcast_all(context, context.in(0).dtype);
}

Result<InferredOutput> whole_numbers(const NodeContext& context) {
  WARPLOOM_CHECK(same_type(context, false));
  if (is_float(context.in(0).dtype)) return type_error(context, "integers", context.in(0).dtype);
  return broadcast_all(context, context.in(0).dtype);
}

Result<InferredOutput> pointwise_float(const NodeContext& context) {
  WARPLOOM_CHECK(same_type(context, true));
  WARPLOOM_TRY(InferredOutput output, broadcast_all(context, context.in(0).dtype));
  const Shape& x = context.in(0).shape;
  if (context.node.op == OpKind::PRelu && output.shape != x) {
    const Shape& slope = context.in(1).shape;
    return context.error(kShape, "the slope does not stretch to the input", x, slope);
  }
  return output;
}

Result<InferredOutput> power(const NodeContext& context) {
  for (size_t i : {0u, 1u})
    WARPLOOM_CHECK(check_number(context, i));
  return broadcast_all(context, context.in(0).dtype);
}

Result<InferredOutput> clip(const NodeContext& context) {
  WARPLOOM_CHECK(same_type(context, false));
  for (size_t i : {1u, 2u})
    if (context.has(i) && element_count(context.in(i).shape) != 1)
      return context.error(kShape, "a bound of Clip is no scalar", "[]", context.in(i).shape);
  return elementwise(context, context.in(0).dtype, context.in(0).shape);
}

Result<InferredOutput> where(const NodeContext& context) {
  if (context.in(0).dtype != Dtype::boolean)
    return type_error(context, "a boolean condition", context.in(0).dtype);
  if (context.in(1).dtype != context.in(2).dtype) {
    const std::string_view first = name_of(context.in(1).dtype);
    const std::string_view second = name_of(context.in(2).dtype);
    const std::string found = fmt::format("{} and {}", first, second);
    return type_error(context, "two choices of one type", found);
  }
  return broadcast_all(context, context.in(1).dtype);
}

Result<InferredOutput> comparison(const NodeContext& context) {
  constexpr std::array kLogic = {OpKind::And, OpKind::Or, OpKind::Xor, OpKind::Not};
  const OpKind op = context.node.op;
  const bool logic = contains(kLogic, op);
  const bool of_floats = op == OpKind::IsNaN || op == OpKind::IsInf;
  WARPLOOM_CHECK(same_type(context, of_floats, logic || op == OpKind::Equal));
  if (logic && context.in(0).dtype != Dtype::boolean)
    return type_error(context, "booleans", context.in(0).dtype);
  return broadcast_all(context, Dtype::boolean);
}

Result<InferredOutput> cast(const NodeContext& context) {
  if (!context.node.attributes.contains("to"))
    return context.error(kAttribute, "Cast lacks its target type", "attribute to");
  const int64_t to = context.node.integer("to");
  const auto known = checked_dtype(to, "Cast's target type", context.place);
  WARPLOOM_TRY(const Dtype dtype, known);
  const Dtype from = context.in(0).dtype;
  const bool loses_sign =
      (from == Dtype::u64 && is_float(dtype)) || (dtype == Dtype::u64 && is_float(from));
  if (loses_sign)
    return type_error(context, "no unsigned numbers of 64 bits to or from floats", from);
  return elementwise(context, dtype, context.in(0).shape);
}

Result<InferredOutput> dequantize(const NodeContext& context) {
  const Dtype from = context.in(0).dtype;
  const Dtype to = context.in(1).dtype;
  using enum Dtype;
  constexpr std::array kNarrow = {i8, u8, i16, u16, i32, e4m3, e5m2};
  const bool zero_fits = !context.has(2) || context.in(2).dtype == from;
  if (contains(kNarrow, from) && is_wide_float(to) && zero_fits) return broadcast_all(context, to);
  const std::string expected =
      "i8, u8, i16, u16, i32, e4m3 or e5m2, a scale of f32, bf16 or f16, a zero point of the "
      "first's type";
  return type_error(context, expected, fmt::format("{} and {}", name_of(from), name_of(to)));
}
}  // namespace rules
}  // namespace warploom::graph
