#include "graph/operators.h"
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"

namespace warploom::graph {
namespace rules {
#define WARPLOOM_OP(name, since, least, most, op_class, rule, rewrite) InferenceRule rule;
#include "graph/ops.def"
}  // namespace rules

namespace rewrites {
#define WARPLOOM_OP(name, since, least, most, op_class, rule, rewrite) Rewrite rewrite;
#include "graph/ops.def"
}  // namespace rewrites

namespace {
constexpr std::array kOperators = {
#define WARPLOOM_OP(name, since, least, most, op_class, rule, rewrite) \
  Operator{#name, since, least, most, OpClass::op_class, &rules::rule, &rewrites::rewrite},
#include "graph/ops.def"
};

// The attributes of operators, the only list of them. After import every attribute with a default
// is present, so that nobody repeats these values; without one its absence has a meaning of its own
// (Transpose without perm) or is an error (Cast without to).
struct AttributeGroup {
  std::vector<OpKind> ops;
  std::vector<AttributeRow> rows;
};

AttributeRow known(std::string_view name, AttributeKind kind, int64_t since = 0) {
  return {name, kind, since, std::nullopt};
}

AttributeRow known(std::string_view name, Attribute otherwise, int64_t since = 0) {
  return {name, static_cast<AttributeKind>(otherwise.index()), since, std::move(otherwise)};
}

AttributeRow one_of(std::vector<Attribute> among, AttributeRow row) {
  row.among = std::move(among);
  return row;
}
using enum OpKind;
using enum AttributeKind;
using I = int64_t;
const double kEpsilon = as_double(1e-5f);
const AttributeGroup kAttributes[] = {
    {{Gemm},
     {known("alpha", 1.0), known("beta", 1.0), known("transA", I{0}), known("transB", I{0})}},
    {{Conv, MaxPool, MaxPoolPlaces, SumPool, AveragePool, LpPool, ConvTranspose},
     {one_of({"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}, known("auto_pad", text)),
      known("kernel_shape", integers), known("strides", integers), known("dilations", integers),
      known("pads", integers)}},
    {{Conv, ConvTranspose}, {known("group", I{1})}},
    {{ConvTranspose}, {known("output_padding", integers), known("output_shape", integers)}},
    {{MaxPool, MaxPoolPlaces, AveragePool}, {known("ceil_mode", integer)}},
    {{LpPool}, {known("ceil_mode", integer, 18)}},
    {{MaxPool, MaxPoolPlaces}, {one_of({I{0}, I{1}}, known("storage_order", integer))}},
    {{AveragePool}, {known("count_include_pad", I{0})}},
    {{LpPool, GlobalLpPool, LpNormalization}, {known("p", I{2})}},
    {{ReduceSum, ReduceMax, ReduceMin, ReduceProd, ReduceMean, ReduceL1, ReduceL2, ReduceLogSum,
      ReduceLogSumExp, ReduceSumSquare},
     {known("axes", integers), known("keepdims", I{1}), known("noop_with_empty_axes", integer)}},
    {{CumSum}, {known("exclusive", I{0}), known("reverse", I{0})}},
    {{ArgMax, ArgMin},
     {known("axis", I{0}), known("keepdims", I{1}), known("select_last_index", I{0})}},
    {{Softmax, LogSoftmax, Hardmax, LpNormalization, LayerNormalization, RMSNormalization},
     {known("axis", I{-1})}},
    {{Split, Gather, GatherElements}, {known("axis", I{0})}},
    {{GatherND}, {known("batch_dims", I{0})}},
    // Of what decompose() writes: the choice counts indices of an axis of so many from the front.
    {{Where}, {known("index_size", integer, kInternal)}},
    {{NegativeLogLikelihoodLoss, SoftmaxCrossEntropyLoss},
     {known("ignore_index", integer), one_of({"none", "sum", "mean"}, known("reduction", "mean"))}},
    {{Resize},
     {one_of({"nearest", "linear", "cubic"}, known("mode", "nearest")),
      one_of({"half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners",
              "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"},
             known("coordinate_transformation_mode", "half_pixel")),
      one_of({"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"},
             known("nearest_mode", "round_prefer_floor")),
      one_of({"stretch", "not_larger", "not_smaller"},
             known("keep_aspect_ratio_policy", "stretch", 18)),
      one_of({I{0}, I{1}}, known("antialias", I{0}, 18)), known("cubic_coeff_a", -0.75),
      known("exclude_outside", I{0}), known("extrapolation_value", 0.0),
      known("axes", integers, 18)}},
    {{LRN},
     {known("size", integer), known("alpha", as_double(1e-4f)), known("beta", 0.75),
      known("bias", 1.0)}},
    {{Flatten, DequantizeLinear}, {known("axis", I{1})}},
    {{Concat}, {known("axis", integer)}},
    {{LayerNormalization, RMSNormalization, BatchNormalization, InstanceNormalization,
      GroupNormalization},
     {known("epsilon", kEpsilon)}},
    {{LayerNormalization, RMSNormalization}, {one_of({I{1}}, known("stash_type", I{1}))}},
    {{GroupNormalization}, {known("num_groups", integer), known("stash_type", I{1}, 21)}},
    {{BatchNormalization}, {known("momentum", as_double(0.9f)), known("training_mode", I{0}, 14)}},
    {{MeanVarianceNormalization}, {known("axes", std::vector<I>{0, 2, 3})}},
    {{Split}, {known("num_outputs", integer, 18)}},
    {{DepthToSpace, SpaceToDepth}, {known("blocksize", integer)}},
    {{DepthToSpace, SpaceToDepth}, {one_of({"DCR", "CRD"}, known("mode", "DCR"))}},
    {{Trilu}, {known("upper", I{1})}},
    {{Einsum}, {known("equation", text)}},
    {{Mod}, {known("fmod", I{0})}},
    {{ThresholdedRelu, Celu, Elu, Swish}, {known("alpha", 1.0)}},
    {{Shrink}, {known("lambd", 0.5), known("bias", 0.0)}},
    {{EyeLike}, {known("dtype", integer), known("k", I{0})}},
    {{OneHot}, {known("axis", I{-1})}},
    {{Selu},
     {known("alpha", 1.67326319217681884765625), known("gamma", 1.05070102214813232421875)}},
    {{LeakyRelu}, {known("alpha", as_double(0.01f))}},
    {{HardSigmoid}, {known("alpha", as_double(0.2f)), known("beta", 0.5)}},
    {{Gelu}, {one_of({"none", "tanh"}, known("approximate", "none"))}},
    {{IsInf}, {known("detect_negative", I{1}), known("detect_positive", I{1})}},
    {{Dropout}, {known("seed", integer)}},
    // Of what decompose() writes: also a number of the type itself is rounded to it, which the
    // reference, computing in FP64, does nowhere else.
    {{Cast}, {known("to", integer), known("rounds", integer, kInternal)}},
    {{Cast, CastLike}, {known("saturate", I{1}, 19)}},
    {{Pad}, {one_of({"constant", "edge", "reflect", "wrap"}, known("mode", text))}},
    {{Reshape}, {known("allowzero", I{0}, 14)}},
    {{Transpose}, {known("perm", integers)}},
    {{DequantizeLinear}, {known("block_size", I{0}, 21), known("output_dtype", I{0}, 23)}},
    {{ScaledMatMul}, {known("output_dtype", I{16})}},
    {{Attention},
     {known("is_causal", I{0}), known("q_num_heads", integer), known("kv_num_heads", integer),
      known("scale", real), known("softcap", 0.0),
      one_of({I{0}, I{1}, I{2}, I{3}}, known("qk_matmul_output_mode", I{0})),
      one_of({I{1}, I{10}, I{11}, I{16}}, known("softmax_precision", integer)),
      known("left_window_size", I{-1}, 25), known("right_window_size", I{-1}, 25)}},
    {{RotaryEmbedding},
     {known("interleaved", I{0}), known("num_heads", I{0}), known("rotary_embedding_dim", I{0})}},
    {{MultiHeadAttention, ProjectedAttention},
     {known("num_heads", I{0}), known("mask_filter_value", -10000.0), known("scale", 0.0),
      known("unidirectional", I{0})}},
    {{ProjectedAttention},
     {known("do_rotary", I{0}), known("qkv_hidden_sizes", integers),
      known("past_present_share_buffer", I{0}), known("rotary_embedding_dim", I{0})}},
    {{GroupQueryAttention},
     {known("num_heads", I{0}), known("kv_num_heads", I{0}), known("scale", 0.0),
      known("softcap", 0.0), known("causal", I{1}), known("do_rotary", I{0}),
      known("rotary_interleaved", I{0}), known("local_window_size", I{-1}),
      known("smooth_softmax", I{0}), one_of({I{0}}, known("qk_output", I{0})),
      one_of({I{0}}, known("sliding_window_cache", I{0})),
      one_of({"NONE"}, known("k_quant_type", "NONE")),
      one_of({"NONE"}, known("v_quant_type", "NONE")), known("kv_cache_bit_width", I{0}),
      known("qk_norm_epsilon", as_double(1e-6f))}},
    {{PositionedRotaryEmbedding},
     {known("interleaved", I{0}), known("num_heads", I{0}), known("rotary_embedding_dim", I{0}),
      known("scale", 1.0), known("is_packed_batching", I{0})}},
    {{SimplifiedLayerNormalization},
     {known("axis", I{-1}), known("epsilon", kEpsilon), known("stash_type", I{1})}},
    {{SkipLayerNormalization, SkipSimplifiedLayerNormalization, EmbedLayerNormalization},
     {known("epsilon", as_double(1e-12f))}},
    {{EmbedLayerNormalization}, {known("mask_index_type", I{0})}},
    {{FusedMatMul},
     {known("alpha", 1.0), known("transA", I{0}), known("transB", I{0}), known("transBatchA", I{0}),
      known("transBatchB", I{0})}},
    {{FusedGemm},
     {known("alpha", 1.0), known("beta", 1.0), known("transA", I{0}), known("transB", I{0})}},
    {{FusedGemm, FusedConv},
     {one_of({"", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Clip"},
             known("activation", "")),
      known("activation_params", reals), known("activation_alpha", real),
      known("activation_beta", real), known("activation_gamma", real)}},
    {{FusedConv, NhwcConv, QLinearConv, ConvInteger, DeformConv},
     {one_of({"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}, known("auto_pad", text)),
      known("kernel_shape", integers), known("strides", integers), known("dilations", integers),
      known("pads", integers), known("group", I{1})}},
    {{MatMulNBits},
     {known("K", I{0}), known("N", I{0}), known("bits", I{4}), known("block_size", I{32}),
      known("accuracy_level", I{0})}},
    {{LinearAttention},
     {known("chunk_size", I{64}), known("kv_num_heads", I{0}), known("q_num_heads", I{0}),
      known("scale", 0.0),
      one_of({"linear", "gated", "delta", "gated_delta"}, known("update_rule", "gated_delta"))}},
    {{CausalConvWithState}, {one_of({"none", "silu", "swish"}, known("activation", "none"))}},
    {{QuantizeLinear},
     {known("axis", I{1}), known("block_size", I{0}, 21), known("output_dtype", I{0}, 21),
      known("saturate", I{1}, 19), known("precision", I{0}, 23)}},
    {{QLinearLeakyRelu}, {known("alpha", as_double(0.01f))}},
    {{QLinearAveragePool, QLinearGlobalAveragePool}, {known("channels_last", I{0})}},
    {{QLinearAveragePool},
     {one_of({"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"}, known("auto_pad", text)),
      known("kernel_shape", integers), known("strides", integers), known("pads", integers),
      known("ceil_mode", I{0}), known("count_include_pad", I{0})}},
    {{QLinearConcat}, {known("axis", integer)}},
    {{QGemm}, {known("alpha", 1.0), known("transA", I{0}), known("transB", I{0})}},
    {{GroupNorm, SkipGroupNorm},
     {one_of({I{0}, I{1}}, known("activation", I{0})), known("channels_last", I{1}),
      known("epsilon", kEpsilon), known("groups", I{0})}},
    {{BiasSoftmax}, {known("axis", I{1}), known("is_inner_broadcast", I{0})}},
    {{ScatterElements}, {known("axis", I{0})}},
    {{ScatterElements, ScatterND},
     {one_of({"none", "add", "mul", "max", "min"}, known("reduction", "none", 16))}},
    {{TensorScatter},
     {known("axis", I{-2}), one_of({"linear", "circular"}, known("mode", "linear"))}},
    {{TopK},
     {known("axis", I{-1}), known("largest", I{1}, 11), known("sorted", I{1}, 11),
      known("k", integer)}},
    {{Compress}, {known("axis", integer)}},
    {{ReverseSequence}, {known("batch_axis", I{1}), known("time_axis", I{0})}},
    {{CumProd}, {known("exclusive", I{0}), known("reverse", I{0})}},
    {{MaxUnpool},
     {known("kernel_shape", integers), known("strides", integers), known("pads", integers)}},
    {{GridSample},
     {one_of({"linear", "nearest", "cubic", "bilinear", "bicubic"}, known("mode", "linear")),
      one_of({"zeros", "border", "reflection"}, known("padding_mode", "zeros"))}},
    {{GridSample, AffineGrid}, {known("align_corners", I{0})}},
    {{RoiAlign},
     {one_of({"avg", "max"}, known("mode", "avg")),
      one_of({"half_pixel", "output_half_pixel"},
             known("coordinate_transformation_mode", "half_pixel")),
      known("output_height", I{1}), known("output_width", I{1}), known("sampling_ratio", I{0}),
      known("spatial_scale", 1.0)}},
    {{DeformConv}, {known("offset_group", I{1})}},
    {{DFT}, {known("axis", integer), known("inverse", I{0}), known("onesided", I{0})}},
    {{STFT}, {known("onesided", I{1})}},
    {{HannWindow, HammingWindow, BlackmanWindow},
     {known("output_datatype", I{1}), known("periodic", I{1})}},
    {{MelWeightMatrix}, {known("output_datatype", I{1})}},
    {{BitShift}, {one_of({"LEFT", "RIGHT"}, known("direction", text))}},
    {{BitCast}, {known("to", integer)}},
    {{Col2Im}, {known("dilations", integers), known("pads", integers), known("strides", integers)}},
    {{CenterCropPad}, {known("axes", integers)}},
    {{SwiGLU}, {known("alpha", 1.0)}},
    {{QuickGelu}, {known("alpha", as_double(1.702f))}},
    {{RNN, GRU, LSTM},
     {known("activations", texts), known("activation_alpha", reals),
      known("activation_beta", reals), known("clip", real), known("hidden_size", integer),
      one_of({"forward", "reverse", "bidirectional"}, known("direction", "forward")),
      one_of({I{0}, I{1}}, known("layout", I{0}, 14))}},
    {{GRU}, {known("linear_before_reset", I{0})}},
    {{LSTM}, {known("input_forget", I{0})}},
    {{OpKind::Shape}, {known("start", I{0}, 15), known("end", integer, 15)}},
};
}  // namespace

const Operator& operator_of(OpKind op) {
  return kOperators[as_size(op)];
}

std::span<const Operator> operators() {
  return kOperators;
}

std::string_view name_of(OpKind op) {
  return operator_of(op).name;
}

OpClass class_of(OpKind op) {
  return operator_of(op).op_class;
}

std::optional<OpKind> op_named(std::string_view name) {
  return row_where<OpKind>(kOperators, name, &Operator::name);
}

std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (const Operator& row : kOperators)
    if (row.since < kInternal) names.emplace_back(row.name);
  std::ranges::sort(names);
  return names;
}

std::string supported_operators() {
  return listed(operator_names());
}

std::vector<const AttributeRow*> attributes_of(OpKind op) {
  std::vector<const AttributeRow*> rows;
  for (const AttributeGroup& group : kAttributes)
    if (contains(group.ops, op))
      for (const AttributeRow& row : group.rows)
        rows.push_back(&row);
  return rows;
}

const AttributeRow* attribute_named(OpKind op, std::string_view name) {
  const auto rows = attributes_of(op);
  const auto found = std::ranges::find(rows, name, &AttributeRow::name);
  return found == rows.end() ? nullptr : *found;
}

size_t NodeContext::axis(size_t rank) const {
  return as_size(*normalized_axis(node.integer("axis"), rank, place));
}

std::optional<AxisSources> axis_sources(const Graph& graph, const Node& node, size_t input) {
  auto output = operator_of(node.op).rule({graph, node});
  if (!output || input >= output->reads.size()) return std::nullopt;
  return std::move(output->reads[input]);
}

int64_t terms_of(const Graph& graph, const Node& node) {
  using enum OpClass;
  constexpr std::array kCombines = {contraction, convolution, window, reduction, scan};
  const OpClass kind = class_of(node.op);
  if (!contains(kCombines, kind)) return 1;
  // An output of a convolution meets every weight of its channel.
  const size_t input = kind == OpClass::convolution ? 1 : 0;
  const AxisSources sources = *axis_sources(graph, node, input);
  const auto& shape = graph.tensor(node.inputs[input]).shape;
  int64_t terms = 1;
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool all = sources[i].axis == AxisSource::kWhole;
    terms *= all ? shape[i] : sources[i].taps;
  }
  return terms;
}

tl::unexpected<Error> NodeContext::error(ErrorCode code, std::string message, ErrorDetail expected,
                                         ErrorDetail found, std::string remedy) const {
  Error error{code, std::move(message), place};
  error.expected = std::move(expected);
  error.found = std::move(found);
  error.remedy = std::move(remedy);
  return fail(error);
}
}  // namespace warploom::graph
