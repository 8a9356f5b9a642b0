// The rewriting of ONNX Runtime's operators that join others: norms with what is added before them,
// products and convolutions with what follows.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_attention.h"
#include "graph/composite_pieces.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
Status check_given(const NodeContext& context, std::initializer_list<size_t> required) {
  for (const size_t i : required)
    if (!context.has(i))
      return context.error(ErrorCode::kOnnxName, "a required input is left out", "a tensor",
                           fmt::format("nothing for input {}", i));
  return ok();
}

Result<Id> activated(PrimitiveWriter& writer, Id x, const std::string& activation) {
  using enum OpKind;
  if (activation == "Relu") return writer.make(Relu, {x}, "relu");
  if (activation == "Tanh") return writer.make(Tanh, {x}, "tanh");
  if (activation == "Sigmoid") return writer.make(Sigmoid, {x}, "sigmoid");
  const std::vector<double> given = writer.node.attribute<std::vector<double>>("activation_params");
  const auto parameter = [&](size_t i, std::string_view name, double otherwise) {
    const double own = writer.node.real(fmt::format("activation_{}", name), otherwise);
    return i < given.size() ? given[i] : own;
  };
  if (activation == "LeakyRelu") {
    const double alpha = parameter(0, "alpha", as_double(0.01f));
    return writer.make(LeakyRelu, {x}, "leaky", {{"alpha", alpha}});
  }
  if (activation == "HardSigmoid") {
    const double alpha = parameter(0, "alpha", as_double(0.2f));
    const double beta = parameter(1, "beta", 0.5);
    return writer.make(HardSigmoid, {x}, "hard_sigmoid", {{"alpha", alpha}, {"beta", beta}});
  }
  if (activation == "Clip") {
    if (given.size() != 2)
      return writer.error(kAttribute, "a Clip lacks its ends", "activation_params of 2 numbers",
                          fmt::format("{}", given.size()));
    const Id least = writer.scalar(given[0], x, "least");
    const Id most = writer.scalar(given[1], x, "most");
    return writer.make(Clip, {x, least, most}, "clipped");
  }
  return x;
}

std::map<std::string, Attribute> window_attributes(const Node& node) {
  std::map<std::string, Attribute> attributes;
  for (const std::string name : {"auto_pad", "kernel_shape", "strides", "dilations", "pads",
                                 "group", "ceil_mode", "count_include_pad"})
    if (const auto given = node.attributes.find(name); given != node.attributes.end())
      attributes.insert(*given);
  return attributes;
}

namespace rewrites {
namespace {
struct Normed {
  Id y = kAbsent;
  Id mean = kAbsent;
  Id inverse = kAbsent;
};

// Along the last axes, from `first` on; by the mean square alone where not `centred`.
Normed normed(PrimitiveWriter& writer, Id x, size_t first, bool centred) {
  const List over = span(first, writer.rank(x));
  Normed made;
  Id around = x;
  if (centred) {
    made.mean = writer.mean(x, over, "mean");
    around = writer.sub(x, made.mean, "centered");
  }
  const Id square = writer.mul(around, around, "square");
  const Id variance = writer.mean(square, over, "variance");
  made.inverse = writer.inverse_root(variance, writer.node.real("epsilon"));
  if (made.mean == kAbsent) made.mean = made.inverse;
  made.y = writer.mul(around, made.inverse, "normalized");
  return made;
}

Status check_stretches(const PrimitiveWriter& writer, Id given, const Shape& to) {
  WARPLOOM_TRY(const Shape both, broadcast(writer.shape(given), to, writer.place));
  if (both == to) return ok();
  return writer.error(kShape, "an input does not stretch to the first", to, writer.shape(given));
}

Id wide_of(PrimitiveWriter& writer, Id x, std::string_view what) {
  return bits_of(writer.dtype(x)) == 16 ? writer.cast(x, Dtype::f32, what) : x;
}
}  // namespace

// Y and the inverse deviation, as ONNX Runtime makes of LayerNormalization without a mean.
Result<Outputs> simplified_layer_norm(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0, true));
  WARPLOOM_CHECK(check_number(writer, 1, true));
  WARPLOOM_TRY(const size_t axis, checked_axis(writer));
  const Shape line = entries(writer.in(0).shape, axis);
  WARPLOOM_CHECK(check_stretches(writer, writer.raw(1), line));
  const Normed made = normed(writer, writer.wide(0), axis, false);
  const Id scale = wide_of(writer, writer.raw(1), "scale");
  return Outputs{writer.mul(made.y, scale, "y"), made.inverse};
}

// input + skip (+ bias), normed along the last axis: Y, mean, inverse deviation, the sum.
Result<Outputs> skip_layer_norm(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  const bool centred = writer.node.op == OpKind::SkipLayerNormalization;
  const Shape shape = writer.in(0).shape;
  if (shape.empty()) return writer.error(kShape, "a norm of a scalar", "1 axis or more", shape);
  const size_t bias = centred ? 4 : 3;
  for (const size_t i : {size_t{1}, bias})
    if (writer.has(i)) WARPLOOM_CHECK(check_stretches(writer, writer.raw(i), shape));
  for (size_t i = 2; i < (centred ? 4u : 3u); ++i)
    WARPLOOM_CHECK(check_vector(writer, i, shape.back()));
  const Dtype type = writer.in(0).dtype;
  Id sum = writer.add(writer.wide(0), writer.wide(1), "sum");
  if (writer.has(bias)) sum = writer.add(sum, writer.wide(bias), "with_bias");
  const Normed made = normed(writer, sum, shape.size() - 1, centred);
  Id y = writer.mul(made.y, writer.wide(2), "scaled");
  if (centred && writer.has(3)) y = writer.add(y, writer.wide(3), "shifted");
  return Outputs{y, made.mean, made.inverse, writer.cast(sum, type, "skipped")};
}

namespace {
// Rows of a table by indices [B,S].
Id embedded(PrimitiveWriter& writer, size_t table, Id indices, std::string_view what) {
  const int64_t first = 0;
  const Id rows =
      writer.make(OpKind::Gather, {writer.raw(table), indices}, what, {{"axis", first}});
  return wide_of(writer, rows, what);
}

Status check_embedding(const NodeContext& context) {
  WARPLOOM_CHECK(check_given(context, {0, 2, 3, 5, 6}));
  const Shape& ids = context.in(0).shape;
  if (ids.size() != 2) return context.error(kShape, "words are no matrix", "[B,S]", ids);
  const Dtype type = context.in(2).dtype;
  for (const size_t i : {2, 3, 4}) {
    if (!context.has(i)) continue;
    const Tensor& table = context.in(i);
    if (table.dtype != type || !is_wide_float(type)) return type_error(context, type, table.dtype);
    const bool fits = table.shape.size() == 2 && table.shape[1] == context.in(2).shape.back();
    if (!fits)
      return context.error(kShape, "a table does not fit the words'", "[N,H]", table.shape);
  }
  if (context.has(1) != context.has(4))
    return context.error(ErrorCode::kOnnxName, "segments lack their table", "both or none");
  for (const size_t i : {5, 6})
    WARPLOOM_CHECK(check_vector(context, i, context.in(2).shape[1]));
  return ok();
}
}  // namespace

// Rows for words, positions and segments, added and normed: Y, how long each line is, the sum.
Result<Outputs> embed_layer_norm(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_embedding(writer));
  const Shape ids = writer.in(0).shape;
  const Dtype type = writer.in(2).dtype;
  Id sum = embedded(writer, 2, writer.raw(0), "words");
  const Id positions = writer.has(8) ? writer.raw(8) : writer.places({1, ids[1]}, "positions");
  sum = writer.add(sum, embedded(writer, 3, positions, "by_position"), "placed");
  if (writer.has(1)) {
    const Id segments = embedded(writer, 4, writer.raw(1), "segments");
    sum = writer.add(sum, segments, "with_segments");
  }
  const Normed made = normed(writer, sum, 2, true);
  const Id scale = wide_of(writer, writer.raw(5), "scale");
  const Id bias = wide_of(writer, writer.raw(6), "bias");
  const Id y = writer.add(writer.mul(made.y, scale, "scaled"), bias, "y");
  const List rows = {1};
  Id lengths = kAbsent;
  if (writer.has(7)) {
    const Id mask = writer.cast(writer.raw(7), Dtype::i32, "mask");
    lengths = writer.reduce(OpKind::ReduceSum, mask, rows, "lengths", 0);
  } else {
    lengths = writer.table(Dtype::i32, {ids[0]}, "lengths", [](int64_t) { return 0; });
  }
  return Outputs{writer.cast(y, type, "embedded"), lengths, writer.cast(sum, type, "embedding")};
}

namespace {
// The last two axes exchanged, or the first taken behind the rows.
Result<Id> turned_operand(PrimitiveWriter& writer, size_t i, std::string_view transposes,
                          std::string_view by_batch) {
  const Id x = writer.raw(i);
  const size_t rank = writer.rank(x);
  const bool exchanged = writer.node.integer(transposes) != 0;
  const bool batches = writer.node.integer(by_batch) != 0;
  if (!exchanged && !batches) return x;
  if (rank < 2) {
    if (!batches) return x;
    return writer.error(kShape, "a batch of a vector", "3 axes or more", writer.shape(x));
  }
  List order = span(0, rank);
  if (batches) {  // [rows, batch.., columns] → [batch.., rows, columns]
    order = span(1, rank - 1);
    order.push_back(0);
    order.push_back(as_int64(rank) - 1);
  }
  if (exchanged) std::swap(order[rank - 2], order[rank - 1]);
  return writer.make(OpKind::Transpose, {x}, transposes, {{"perm", order}});
}
}  // namespace

Result<Outputs> fused_matmul(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  WARPLOOM_TRY(const Id a, turned_operand(writer, 0, "transA", "transBatchA"));
  WARPLOOM_TRY(const Id b, turned_operand(writer, 1, "transB", "transBatchB"));
  const Id product = writer.make(OpKind::MatMul, {a, b}, "product");
  const double alpha = writer.node.real("alpha", 1);
  if (alpha == 1) return Outputs{product};
  return Outputs{writer.mul(product, writer.scalar(alpha, product, "factor"), "y")};
}

Result<Outputs> fused_gemm(PrimitiveWriter& writer) {
  std::map<std::string, Attribute> attributes;
  for (const std::string name : {"alpha", "beta", "transA", "transB"})
    attributes[name] = writer.node.attributes.at(name);
  std::vector<Id> inputs = writer.node.inputs;
  const Id y = writer.make(OpKind::Gemm, std::move(inputs), "gemm", std::move(attributes));
  WARPLOOM_TRY(const Id bent, activated(writer, y, writer.node.text("activation")));
  return Outputs{bent};
}

Result<Outputs> fused_conv(PrimitiveWriter& writer) {
  std::vector<Id> inputs = {writer.raw(0), writer.raw(1)};
  if (writer.has(2)) inputs.push_back(writer.raw(2));
  Id y = writer.make(OpKind::Conv, std::move(inputs), "conv", window_attributes(writer.node));
  if (writer.has(3)) {
    if (writer.in(3).shape != writer.shape(y))
      return writer.error(kShape, "what is added does not fit the result", writer.shape(y),
                          writer.in(3).shape);
    y = writer.add(y, writer.raw(3), "added");
  }
  WARPLOOM_TRY(const Id bent, activated(writer, y, writer.node.text("activation")));
  return Outputs{bent};
}

// Channels last, in the input and the output.
Result<Outputs> channels_last_conv(PrimitiveWriter& writer) {
  const size_t rank = writer.rank(writer.raw(0));
  if (rank < 3)
    return writer.error(kShape, "an input has no spatial axes", "3 axes or more",
                        writer.in(0).shape);
  List first = {0, as_int64(rank) - 1};
  first = chained(first, span(1, rank - 1));
  List last = {0};
  last = chained(last, span(2, rank));
  last.push_back(1);
  const Id x = writer.make(OpKind::Transpose, {writer.raw(0)}, "channels_first", {{"perm", first}});
  std::vector<Id> inputs = {x, writer.raw(1)};
  if (writer.has(2)) inputs.push_back(writer.raw(2));
  const Id y = writer.make(OpKind::Conv, std::move(inputs), "conv", window_attributes(writer.node));
  return Outputs{writer.make(OpKind::Transpose, {y}, "channels_last", {{"perm", last}})};
}

namespace {
// What a MatMulNBits says of its weights.
struct Packed {
  int64_t k = 0;
  int64_t n = 0;
  int64_t bits = 4;
  int64_t block = 32;
  int64_t blocks = 0;  // along k
};

Result<Packed> packed_weights(const PrimitiveWriter& writer) {
  Packed packed;
  packed.k = writer.node.integer("K");
  packed.n = writer.node.integer("N");
  packed.bits = writer.node.integer("bits", 4);
  packed.block = writer.node.integer("block_size");
  const bool whole = packed.bits == 2 || packed.bits == 4 || packed.bits == 8;
  const bool fits = packed.k > 0 && packed.n > 0 && packed.block >= 16;
  if (!whole || !fits || packed.block % 16 != 0) {
    const std::string found = fmt::format("K {}, N {}, bits {}, block_size {}", packed.k, packed.n,
                                          packed.bits, packed.block);
    return writer.error(kAttribute, "weights cannot be packed so",
                        "K and N of 1 or more, 2, 4 or 8 bits, blocks of 16 or a multiple", found);
  }
  packed.blocks = ceil_div(packed.k, packed.block);
  const int64_t bytes = packed.n * packed.blocks * packed.block * packed.bits / 8;
  const Tensor& b = writer.in(1);
  if (b.dtype != Dtype::u8) return type_error(writer, "packed weights of u8", b.dtype);
  if (element_count(b.shape) != bytes)
    return writer.error(kShape, "packed weights have another size", fmt::format("{} bytes", bytes),
                        b.shape);
  if (element_count(writer.in(2).shape) != packed.n * packed.blocks)
    return writer.error(kShape, "the scales do not fit the blocks", Shape{packed.n, packed.blocks},
                        writer.in(2).shape);
  return packed;
}

// Numbers of a few bits out of bytes [lines, bytes], the low ones first: [lines, count] of u8.
Id unpacked(PrimitiveWriter& writer, Id bytes, int64_t lines, int64_t count, int64_t bits,
            std::string_view what) {
  const int64_t each = 8 / bits;  // to a byte
  const int64_t in_line = ceil_div(count, each);
  Id apart = writer.reshape(bytes, {lines, in_line, 1}, what);
  if (each > 1) {
    const auto power = [&](int64_t i) { return int64_t{1} << i * bits; };
    const Id powers = writer.table(Dtype::u8, {each}, "powers", power);
    const Id base = writer.constant(Dtype::u8, {}, {as_double(int64_t{1} << bits)}, "base");
    const Id moved = writer.make(OpKind::Div, {apart, powers}, "moved");
    apart = writer.make(OpKind::Mod, {moved, base}, what);
  }
  const Id all = writer.reshape(apart, {lines, in_line * each}, what);
  return part_of(writer, all, 1, 0, count, what);
}
}  // namespace

// A [.., K] · B [N, K]ᵀ, B of a few bits with a scale and a zero point for each block along K.
Result<Outputs> matmul_n_bits(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0, true));
  WARPLOOM_TRY(const Packed packed, packed_weights(writer));
  const Dtype type = writer.in(0).dtype;
  const Dtype scale_type = writer.in(2).dtype;
  if (!is_wide_float(scale_type)) return type_error(writer, "scales that are floats", scale_type);
  const Shape a = writer.in(0).shape;
  if (a.empty() || a.back() != packed.k)
    return writer.error(kShape, "A does not fit K", fmt::format("[..,{}]", packed.k), a);
  if (writer.has(4))
    return writer.error(ErrorCode::kOnnxName, "weights in an order of their own (g_idx)",
                        "no input 4", "g_idx", "pack the weights without act_order");
  const int64_t columns = packed.blocks * packed.block;
  Id b = unpacked(writer, writer.raw(1), packed.n, columns, packed.bits, "numbers");
  b = writer.reshape(b, {packed.n, packed.blocks, packed.block}, "by_block");
  const Shape each = {packed.n, packed.blocks, 1};
  const Id scales = writer.reshape(writer.raw(2), each, "scales");
  Id zero = kAbsent;
  if (!writer.has(3)) {
    const double middle = as_double(int64_t{1} << (packed.bits - 1));
    zero = writer.constant(Dtype::u8, {}, {middle}, "middle");
  } else if (writer.in(3).dtype == Dtype::u8) {
    const int64_t bytes = packed.n * ceil_div(packed.blocks * packed.bits, 8);
    if (element_count(writer.in(3).shape) != bytes)
      return writer.error(kShape, "the zero points do not fit the blocks",
                          fmt::format("{} bytes", bytes), writer.in(3).shape);
    zero = unpacked(writer, writer.raw(3), packed.n, packed.blocks, packed.bits, "zeros");
    zero = writer.reshape(zero, each, "zeros");
  }
  Id weights = kAbsent;
  if (zero != kAbsent) {
    weights = writer.make(OpKind::Dequantize, {b, scales, zero}, "weights");
  } else {  // zero points of the scales' type
    if (element_count(writer.in(3).shape) != packed.n * packed.blocks)
      return writer.error(kShape, "the zero points do not fit the blocks", each,
                          writer.in(3).shape);
    const Id zeros = writer.cast(writer.reshape(writer.raw(3), each, "zeros"), scale_type, "zeros");
    const Id numbers = writer.cast(b, scale_type, "as_floats");
    weights = writer.mul(writer.sub(numbers, zeros, "around_zero"), scales, "weights");
  }
  weights = writer.reshape(weights, {packed.n, columns}, "rows");
  weights = writer.cast(part_of(writer, weights, 1, 0, packed.k, "used"), type, "rows");
  const List turned = {1, 0};
  const Id right = writer.make(OpKind::Transpose, {weights}, "right", {{"perm", turned}});
  Id y = writer.make(OpKind::MatMul, {writer.raw(0), right}, "product");
  if (writer.has(5)) {
    WARPLOOM_CHECK(check_vector(writer, 5, packed.n));
    y = writer.add(y, writer.raw(5), "biased");
  }
  return Outputs{y};
}
}  // namespace rewrites
}  // namespace warploom::graph
