// Rules of contractions and elementwise operators; view_rules.cpp has those that move elements,
// reduce_rules.cpp those that reduce.
#include "graph/rules.h"

namespace warploom::graph {
Status check_number(const NodeContext& q, size_t i, bool floats_only, bool booleans) {
  const Dtype dtype = q.in(i).dtype;
  if (is_float(dtype) ? is_wide_float(dtype)
                      : !floats_only && (booleans || dtype != Dtype::boolean))
    return ok();
  return type_error(q, floats_only ? "f64, f32, bf16 or f16" : "a number", dtype);
}

Status same_type(const NodeContext& q, bool floats_only, bool booleans) {
  const Dtype dtype = q.in(0).dtype;
  for (size_t i = 1; i < q.node.inputs.size(); ++i)
    if (q.has(i) && q.in(i).dtype != dtype)
      return type_error(q, fmt::format("inputs of one type, {}", name_of(dtype)),
                        fmt::format("input {} is {}", i, name_of(q.in(i).dtype)));
  return check_number(q, 0, floats_only, booleans);
}

Access aligned(const Shape& in, size_t rank) {
  Access access(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i] != 1) access[i].axis = static_cast<int>(rank - in.size() + i);
  return access;
}

namespace {
// Every input aligned.
Answer elementwise(const NodeContext& q, Dtype dtype, const Shape& shape) {
  Answer answer{dtype, shape};
  for (size_t i = 0; i < q.node.inputs.size(); ++i)
    answer.reads.push_back(q.has(i) ? std::optional(aligned(q.in(i).shape, shape.size()))
                                    : std::nullopt);
  return answer;
}

Result<Answer> broadcast_all(const NodeContext& q, Dtype dtype) {
  Shape shape;
  for (size_t i = 0; i < q.node.inputs.size(); ++i)
    if (q.has(i)) {
      WARPLOOM_TRY(shape, broadcast(shape, q.in(i).shape, q.place));
    }
  return elementwise(q, dtype, shape);
}
}  // namespace

namespace rules {
Result<Answer> none(const NodeContext& q) {
  return q.error(ErrorCode::kInternal, "what is no primitive is asked for its rule");
}

Result<Answer> matmul(const NodeContext& q) {
  WARPLOOM_CHECK(same_type(q, false));
  const Shape& a = q.in(0).shape;
  const Shape& b = q.in(1).shape;
  const auto both = [&] { return to_text(a) + " and " + to_text(b); };
  if (a.empty() || b.empty())
    return q.error(kShape, "MatMul of a scalar", "1 axis or more", both());
  // The last two axes of each: one is summed, one kept; a vector's one is summed.
  const size_t left = a.size() - 1;
  const size_t right = b.size() - (b.size() == 1 ? 1 : 2);
  if (a[left] != b[right])
    return q.error(kShape, "the summed dimensions of a product differ",
                   "A's columns as many as B's rows", both());
  const auto batch = [](const Shape& in) {
    return Shape(in.begin(), in.end() - std::min<ptrdiff_t>(2, std::ssize(in)));
  };
  WARPLOOM_TRY(const Shape batches, broadcast(batch(a), batch(b), q.place));
  Answer answer{q.in(0).dtype, batches};
  for (const auto& [in, summed] : {std::pair(a, left), std::pair(b, right)}) {
    Access access = aligned(batch(in), batches.size());
    access.resize(in.size());
    if (in.size() > 1) {
      const size_t kept = 2 * in.size() - 3 - summed;
      access[kept].axis = static_cast<int>(answer.shape.size());
      answer.shape.push_back(in[kept]);
    }
    answer.reads.emplace_back(std::move(access));
  }
  return answer;
}

Result<Answer> pointwise(const NodeContext& q) {
  if (q.node.op != OpKind::Identity) WARPLOOM_CHECK(same_type(q, false));
  return broadcast_all(q, q.in(0).dtype);
}

Result<Answer> whole_numbers(const NodeContext& q) {
  WARPLOOM_CHECK(same_type(q, false));
  if (is_float(q.in(0).dtype)) return type_error(q, "integers", q.in(0).dtype);
  return broadcast_all(q, q.in(0).dtype);
}

Result<Answer> pointwise_float(const NodeContext& q) {
  WARPLOOM_CHECK(same_type(q, true));
  WARPLOOM_TRY(Answer answer, broadcast_all(q, q.in(0).dtype));
  if (q.node.op == OpKind::PRelu && answer.shape != q.in(0).shape)
    return q.error(kShape, "the slope does not stretch to the input", q.in(0).shape, q.in(1).shape);
  return answer;
}

Result<Answer> power(const NodeContext& q) {
  for (size_t i : {0u, 1u}) WARPLOOM_CHECK(check_number(q, i));
  return broadcast_all(q, q.in(0).dtype);
}

Result<Answer> clip(const NodeContext& q) {
  WARPLOOM_CHECK(same_type(q, false));
  for (size_t i : {1u, 2u})
    if (q.has(i) && element_count(q.in(i).shape) != 1)
      return q.error(kShape, "a bound of Clip is no scalar", "[]", q.in(i).shape);
  return elementwise(q, q.in(0).dtype, q.in(0).shape);
}

Result<Answer> where(const NodeContext& q) {
  if (q.in(0).dtype != Dtype::boolean) return type_error(q, "a boolean condition", q.in(0).dtype);
  if (q.in(1).dtype != q.in(2).dtype)
    return type_error(q, "two choices of one type",
                      fmt::format("{} and {}", name_of(q.in(1).dtype), name_of(q.in(2).dtype)));
  return broadcast_all(q, q.in(1).dtype);
}

Result<Answer> comparison(const NodeContext& q) {
  constexpr std::array kLogic = {OpKind::And, OpKind::Or, OpKind::Xor, OpKind::Not};
  const bool logic = contains(kLogic, q.node.op);
  WARPLOOM_CHECK(same_type(q, q.node.op == OpKind::IsNaN || q.node.op == OpKind::IsInf,
                           logic || q.node.op == OpKind::Equal));
  if (logic && q.in(0).dtype != Dtype::boolean) return type_error(q, "booleans", q.in(0).dtype);
  return broadcast_all(q, Dtype::boolean);
}

Result<Answer> cast(const NodeContext& q) {
  if (!q.node.attributes.contains("to"))
    return q.error(kAttribute, "Cast lacks its target type", "attribute to");
  WARPLOOM_TRY(const Dtype dtype,
               checked_dtype(q.node.integer("to"), "Cast's target type", q.place));
  return elementwise(q, dtype, q.in(0).shape);
}

Result<Answer> dequantize(const NodeContext& q) {
  const Dtype from = q.in(0).dtype;
  const Dtype to = q.in(1).dtype;
  constexpr std::array kNarrow = {Dtype::i8, Dtype::u8, Dtype::i32, Dtype::e4m3, Dtype::e5m2};
  if (!contains(kNarrow, from) || !is_wide_float(to) || (q.has(2) && q.in(2).dtype != from))
    return type_error(
        q,
        "i8, u8, i32, e4m3 or e5m2, a scale of f32, bf16 or f16, a zero point of the first's type",
        fmt::format("{} and {}", name_of(from), name_of(to)));
  return broadcast_all(q, to);
}
}  // namespace rules
}  // namespace warploom::graph
