// Rules of contractions and elementwise operators; view_rules.cpp has those that move elements, reduce_rules.cpp those that reduce.
#include "graph/rules.h"
namespace warploom::graph {
Status same_type(const Question& q, bool floats_only, bool booleans) {
  const Dtype dtype = q.in(0).dtype;
  for (std::size_t i = 1; i < q.node.inputs.size(); ++i)
    if (q.has(i) && q.in(i).dtype != dtype)
      return type_error(q, fmt::format("inputs of one type, {}", name_of(dtype)),
                        fmt::format("input {} is {}", i, name_of(q.in(i).dtype)));
  const bool fits = is_float(dtype) ? is_wide_float(dtype) : !floats_only && (booleans || dtype != Dtype::boolean);
  if (!fits) return type_error(q, floats_only ? "f64, f32, bf16 or f16" : "a number", dtype);
  return ok();
}
namespace {
Result<Answer> broadcast_all(const Question& q, Dtype dtype) {
  Answer answer{dtype, {}};
  for (std::size_t i = 0; i < q.node.inputs.size(); ++i)
    if (q.has(i)) { WARPLOOM_TRY(answer.shape, broadcast(answer.shape, q.in(i).shape, q.place)); }
  return answer;
}

tl::unexpected<Error> inner_error(const Question& q) {
  return q.error(kShape, "the summed dimensions of a product differ", "A's columns as many as B's rows",
                 to_text(q.in(0).shape) + " and " + to_text(q.in(1).shape));
}
}  // namespace
namespace rules {
Result<Answer> matmul(const Question& q) {
  WARPLOOM_CHECK(same_type(q, false));
  Shape a = q.in(0).shape, b = q.in(1).shape;
  if (a.empty() || b.empty()) return q.error(kShape, "MatMul of a scalar", "1 axis or more", to_text(a) + " and " + to_text(b));
  const bool row = a.size() == 1, column = b.size() == 1;  // a vector is a row on the left, a column on the right
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  if (a[a.size() - 1] != b[b.size() - 2]) return inner_error(q);
  WARPLOOM_TRY(Shape shape, broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2), q.place));
  if (!row) shape.push_back(a[a.size() - 2]);
  if (!column) shape.push_back(b[b.size() - 1]);
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> gemm(const Question& q) {
  WARPLOOM_CHECK(same_type(q, false));
  const Shape &a = q.in(0).shape, &b = q.in(1).shape;
  if (a.size() != 2 || b.size() != 2)
    return q.error(kShape, "Gemm of tensors that are no matrices", "2 axes each", to_text(a) + " and " + to_text(b));
  const bool ta = q.node.integer("transA") != 0, tb = q.node.integer("transB") != 0;
  if (a[ta ? 0 : 1] != b[tb ? 1 : 0]) return inner_error(q);
  Shape shape = {a[ta ? 1 : 0], b[tb ? 0 : 1]};
  if (q.has(2)) {
    WARPLOOM_TRY(const Shape stretched, broadcast(shape, q.in(2).shape, q.place));
    if (stretched != shape) return q.error(kShape, "C does not stretch to the product's shape", shape, q.in(2).shape);
  }
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> pointwise(const Question& q) {
  if (q.node.op != OpKind::Identity) WARPLOOM_CHECK(same_type(q, false));
  if (q.node.op == OpKind::Mod && is_float(q.in(0).dtype)) return type_error(q, "integers", q.in(0).dtype);
  return broadcast_all(q, q.in(0).dtype);
}

Result<Answer> pointwise_float(const Question& q) {
  WARPLOOM_CHECK(same_type(q, true));
  if (q.node.op == OpKind::Gelu) {
    const std::string approximate = q.node.text("approximate");
    if (approximate != "none" && approximate != "tanh")
      return q.error(kAttribute, "approximate has an unknown value", "none or tanh", approximate);
  }
  WARPLOOM_TRY(Answer answer, broadcast_all(q, q.in(0).dtype));
  if (q.node.op == OpKind::PRelu && answer.shape != q.in(0).shape)
    return q.error(kShape, "the slope does not stretch to the input", q.in(0).shape, q.in(1).shape);
  return answer;
}

Result<Answer> power(const Question& q) {
  for (std::size_t i : {0u, 1u})
    if (q.in(i).dtype == Dtype::boolean || (is_float(q.in(i).dtype) && !is_wide_float(q.in(i).dtype)))
      return type_error(q, "numbers", q.in(i).dtype);
  return broadcast_all(q, q.in(0).dtype);
}

Result<Answer> clip(const Question& q) {
  WARPLOOM_CHECK(same_type(q, false));
  for (std::size_t i : {1u, 2u})
    if (q.has(i) && element_count(q.in(i).shape) != 1)
      return q.error(kShape, "a bound of Clip is no scalar", "[]", q.in(i).shape);
  return Answer{q.in(0).dtype, q.in(0).shape};
}

Result<Answer> where(const Question& q) {
  if (q.in(0).dtype != Dtype::boolean) return type_error(q, "a boolean condition", q.in(0).dtype);
  if (q.in(1).dtype != q.in(2).dtype)
    return type_error(q, "two choices of one type", fmt::format("{} and {}", name_of(q.in(1).dtype), name_of(q.in(2).dtype)));
  return broadcast_all(q, q.in(1).dtype);
}

Result<Answer> comparison(const Question& q) {
  constexpr std::array kLogic = {OpKind::And, OpKind::Or, OpKind::Xor, OpKind::Not};
  const bool logic = std::ranges::count(kLogic, q.node.op) > 0;
  WARPLOOM_CHECK(same_type(q, q.node.op == OpKind::IsNaN || q.node.op == OpKind::IsInf, logic || q.node.op == OpKind::Equal));
  if (logic && q.in(0).dtype != Dtype::boolean) return type_error(q, "booleans", q.in(0).dtype);
  return broadcast_all(q, Dtype::boolean);
}

Result<Answer> dropout(const Question& q) {
  if (!is_wide_float(q.in(0).dtype)) return type_error(q, "a float", q.in(0).dtype);
  if (q.has(2)) {
    const auto training = constant_integers(q.graph, q.node.inputs[2]);
    if (!training || training->size() != 1 || training->front() != 0)
      return q.error(kAttribute, "Dropout in training mode is random and not supported", "training_mode false",
                     training ? "true" : "a value not known from the model", "export for inference");
  }
  return Answer{q.in(0).dtype, q.in(0).shape, {{Dtype::boolean, q.in(0).shape}}};
}

Result<Answer> cast(const Question& q) {
  if (!q.node.attributes.contains("to")) return q.error(kAttribute, "Cast lacks its target type", "attribute to");
  WARPLOOM_TRY(const Dtype dtype, checked_dtype(q.node.integer("to"), "Cast's target type", q.place));
  return Answer{dtype, q.in(0).shape};
}

Result<Answer> cast_like(const Question& q) { return Answer{q.in(1).dtype, q.in(0).shape}; }

Result<Answer> dequantize(const Question& q) {
  const Dtype from = q.in(0).dtype, to = q.in(1).dtype;
  constexpr std::array kNarrow = {Dtype::i8, Dtype::u8, Dtype::i32, Dtype::e4m3, Dtype::e5m2};
  if (std::ranges::count(kNarrow, from) == 0 || !is_wide_float(to) || (q.has(2) && q.in(2).dtype != from))
    return type_error(q, "i8, u8, i32, e4m3 or e5m2, a scale of f32, bf16 or f16, a zero point of the first's type",
                      fmt::format("{} and {}", name_of(from), name_of(to)));
  if (q.node.integer("block_size") != 0 || q.node.integer("output_dtype") != 0)
    return q.error(kAttribute, "blocks of scales are not supported", "one scale, or one an index of the axis",
                   fmt::format("block_size {}", q.node.integer("block_size")), "scale whole rows or the whole tensor");
  const Shape &scale = q.in(1).shape, &in = q.in(0).shape;
  if (element_count(scale) != 1) {
    WARPLOOM_TRY(const std::size_t axis, checked_axis(q));
    if (scale != Shape{in[axis]}) return q.error(kShape, "the scales do not fit the axis", Shape{in[axis]}, scale);
  }
  if (q.has(2) && element_count(q.in(2).shape) != element_count(scale))
    return q.error(kShape, "as many zero points as scales", scale, q.in(2).shape);
  return Answer{to, in};
}

Result<Answer> constant(const Question& q) {
  return q.error(kAttribute, "Constant lacks its value", "one of ONNX's value attributes");
}
}  // namespace rules
}  // namespace warploom::graph
