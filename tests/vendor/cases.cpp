#include "cases.h"
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"

namespace warploom::vendor {
namespace {
TensorId conv(Builder& b, TensorId x, graph::Shape weights,
              std::map<std::string, graph::Attribute> a, bool bias = false) {
  const int64_t channels = weights[0];
  std::vector<TensorId> inputs = {x, b.input("w", Dtype::f32, std::move(weights))};
  if (bias) inputs.push_back(b.input("b", Dtype::f32, {channels}));
  return b.add(OpKind::Conv, std::move(inputs), std::move(a));
}

TensorId deconv(Builder& b, TensorId x, graph::Shape weights,
                std::map<std::string, graph::Attribute> a) {
  return b.add(OpKind::ConvTranspose, {x, b.input("w", Dtype::f32, std::move(weights))},
               std::move(a));
}

TensorId x_of(Builder& b, graph::Shape shape, Dtype dtype = Dtype::f32) {
  return b.input("x", dtype, std::move(shape));
}

TensorId reduce(Builder& b, OpKind op, TensorId x, Integers axes, int64_t keep = 1) {
  return b.add(op, {x, b.integers("axes", axes)}, {{"keepdims", keep}});
}

std::vector<Case> convolutions() {
  return {
      {"conv_relu_maxpool", "convolution + bias + relu, pooling",
       [](Builder& b) {
         const auto c = conv(b, x_of(b, {2, 16, 14, 14}), {32, 16, 3, 3},
                             {{"pads", Integers{1, 1, 1, 1}}}, true);
         return b.add(OpKind::MaxPool, {b.add(OpKind::Relu, {c})},
                      {{"kernel_shape", Integers{2, 2}}, {"strides", Integers{2, 2}}});
       }},
      {"conv", "convolution",
       [](Builder& b) { return conv(b, x_of(b, {1, 3, 9, 11}), {8, 3, 3, 3}, {}); }},
      {"conv_asymmetric_pads", "convolution",
       [](Builder& b) {
         return conv(b, x_of(b, {2, 5, 9, 8}), {7, 5, 3, 2}, {{"pads", Integers{2, 0, 1, 1}}});
       }},
      {"conv_strides", "convolution",
       [](Builder& b) {
         return conv(b, x_of(b, {1, 16, 15, 15}), {16, 16, 3, 3},
                     {{"strides", Integers{2, 3}}, {"pads", Integers{1, 1, 1, 1}}});
       }},
      {"conv_dilations", "convolution",
       [](Builder& b) {
         return conv(b, x_of(b, {1, 8, 16, 16}), {8, 8, 3, 3},
                     {{"dilations", Integers{2, 3}}, {"pads", Integers{2, 3, 2, 3}}});
       }},
      {"conv_groups", "convolution",
       [](Builder& b) {
         return conv(b, x_of(b, {2, 8, 7, 7}), {12, 2, 3, 3}, {{"group", int64_t{4}}});
       }},
      {"conv_depthwise", "convolution + bias",
       [](Builder& b) {
         return conv(b, x_of(b, {1, 24, 12, 12}), {24, 1, 3, 3},
                     {{"group", int64_t{24}}, {"pads", Integers{1, 1, 1, 1}}}, true);
       }},
      {"conv_pointwise", "convolution",
       [](Builder& b) { return conv(b, x_of(b, {1, 32, 8, 8}), {48, 32, 1, 1}, {}); }},
      {"conv_1d", "convolution",
       [](Builder& b) {
         return conv(b, x_of(b, {2, 6, 50}), {9, 6, 5}, {{"pads", Integers{4, 0}}});
       }},
      {"conv_3d", "convolution",
       [](Builder& b) {
         return conv(b, x_of(b, {1, 4, 6, 7, 8}), {5, 4, 3, 2, 3},
                     {{"strides", Integers{1, 2, 1}}});
       }},
      {"conv_same_upper", "convolution",
       [](Builder& b) {
         return conv(b, x_of(b, {1, 4, 9, 9}), {4, 4, 4, 4}, {{"auto_pad", "SAME_UPPER"}});
       }},
      {"conv_residual", "convolution + add + relu",
       [](Builder& b) {
         const auto x = x_of(b, {1, 16, 10, 10});
         const auto c = conv(b, x, {16, 16, 3, 3}, {{"pads", Integers{1, 1, 1, 1}}});
         return b.add(OpKind::Relu, {b.add(OpKind::Add, {c, x})});
       }},
      {"conv_silu", "convolution + swish",
       [](Builder& b) {
         const auto c = conv(b, x_of(b, {1, 8, 8, 8}), {8, 8, 3, 3}, {});
         return b.add(OpKind::Mul, {c, b.add(OpKind::Sigmoid, {c})});
       }},
      {"conv_hardswish", "convolution + hardswish",
       [](Builder& b) {
         return b.add(OpKind::HardSwish, {conv(b, x_of(b, {1, 8, 8, 8}), {8, 8, 3, 3}, {})});
       }},
      {"conv_leaky_relu", "convolution + relu",
       [](Builder& b) {
         return b.add(OpKind::LeakyRelu, {conv(b, x_of(b, {1, 8, 8, 8}), {8, 8, 3, 3}, {})},
                      {{"alpha", 0.1}});
       }},
  };
}

std::vector<Case> transposed_convolutions() {
  return {
      {"conv_transpose", "transposed convolution",
       [](Builder& b) {
         return deconv(b, x_of(b, {1, 8, 7, 7}), {8, 5, 3, 3}, {{"strides", Integers{2, 2}}});
       }},
      {"conv_transpose_output_padding", "transposed convolution",
       [](Builder& b) {
         return deconv(b, x_of(b, {1, 4, 6, 6}), {4, 6, 3, 3},
                       {{"strides", Integers{2, 2}},
                        {"pads", Integers{1, 1, 1, 1}},
                        {"output_padding", Integers{1, 1}}});
       }},
      {"conv_transpose_groups", "transposed convolution",
       [](Builder& b) {
         return deconv(b, x_of(b, {2, 8, 5, 5}), {8, 3, 2, 2},
                       {{"group", int64_t{4}}, {"strides", Integers{2, 1}}});
       }},
      {"conv_transpose_1d", "transposed convolution",
       [](Builder& b) {
         return deconv(b, x_of(b, {1, 3, 20}), {3, 4, 5},
                       {{"strides", Integers{3}}, {"dilations", Integers{2}}});
       }},
  };
}

std::vector<Case> pools() {
  return {
      {"max_pool_padded", "pooling",
       [](Builder& b) {
         return b.add(OpKind::MaxPool, {x_of(b, {2, 5, 11, 10})},
                      {{"kernel_shape", Integers{3, 3}},
                       {"strides", Integers{2, 2}},
                       {"pads", Integers{1, 0, 1, 1}}});
       }},
      {"max_pool_ceil", "pooling",
       [](Builder& b) {
         return b.add(OpKind::MaxPool, {x_of(b, {1, 4, 10, 10})},
                      {{"kernel_shape", Integers{3, 3}},
                       {"strides", Integers{2, 2}},
                       {"ceil_mode", int64_t{1}}});
       }},
      {"max_pool_dilated", "pooling",
       [](Builder& b) {
         return b.add(OpKind::MaxPool, {x_of(b, {1, 4, 12, 12})},
                      {{"kernel_shape", Integers{3, 2}}, {"dilations", Integers{2, 3}}});
       }},
      {"max_pool_3d", "pooling",
       [](Builder& b) {
         return b.add(OpKind::MaxPool, {x_of(b, {1, 3, 6, 6, 6})},
                      {{"kernel_shape", Integers{2, 3, 2}}, {"strides", Integers{2, 1, 2}}});
       }},
      {"average_pool", "pooling",
       [](Builder& b) {
         return b.add(OpKind::AveragePool, {x_of(b, {1, 6, 9, 9})},
                      {{"kernel_shape", Integers{3, 3}}, {"pads", Integers{1, 1, 1, 1}}});
       }},
      {"average_pool_counting_padding", "pooling",
       [](Builder& b) {
         return b.add(OpKind::AveragePool, {x_of(b, {1, 6, 9, 9})},
                      {{"kernel_shape", Integers{3, 2}},
                       {"pads", Integers{1, 0, 1, 1}},
                       {"count_include_pad", int64_t{1}}});
       }},
      {"average_pool_ceil", "pooling",
       [](Builder& b) {
         return b.add(OpKind::AveragePool, {x_of(b, {1, 3, 8, 8})},
                      {{"kernel_shape", Integers{3, 3}},
                       {"strides", Integers{2, 2}},
                       {"ceil_mode", int64_t{1}}});
       }},
      {"average_pool_1d", "pooling",
       [](Builder& b) {
         return b.add(OpKind::AveragePool, {x_of(b, {2, 3, 30})},
                      {{"kernel_shape", Integers{4}}, {"strides", Integers{2}}});
       }},
      {"global_average_pool", "pooling",
       [](Builder& b) { return b.add(OpKind::GlobalAveragePool, {x_of(b, {2, 9, 7, 6})}); }},
      {"global_max_pool", "pooling",
       [](Builder& b) { return b.add(OpKind::GlobalMaxPool, {x_of(b, {2, 9, 7, 6})}); }},
  };
}

std::vector<Case> products() {
  return {
      {"matmul", "matmul",
       [](Builder& b) {
         return b.add(OpKind::MatMul, {x_of(b, {33, 50}), b.input("w", Dtype::f32, {50, 20})});
       }},
      {"matmul_bias_gelu", "matmul + bias + gelu_erf",
       [](Builder& b) {
         const auto p =
             b.add(OpKind::MatMul, {x_of(b, {16, 32}), b.input("w", Dtype::f32, {32, 8})});
         return b.add(OpKind::Gelu, {b.add(OpKind::Add, {p, b.input("b", Dtype::f32, {8})})});
       }},
      {"matmul_gelu_by_parts", "matmul + gelu_tanh",
       [](Builder& b) {
         const auto p =
             b.add(OpKind::MatMul, {x_of(b, {16, 32}), b.input("w", Dtype::f32, {32, 8})});
         return b.add(OpKind::Gelu, {p}, {{"approximate", "tanh"}});
       }},
      {"matmul_batched", "matmul",
       [](Builder& b) {
         return b.add(OpKind::MatMul,
                      {x_of(b, {2, 3, 9, 17}), b.input("w", Dtype::f32, {3, 17, 6})});
       }},
      {"matmul_rows_by_one_matrix", "matmul + bias",
       [](Builder& b) {
         const auto p =
             b.add(OpKind::MatMul, {x_of(b, {4, 9, 16}), b.input("w", Dtype::f32, {16, 12})});
         return b.add(OpKind::Add, {p, b.input("b", Dtype::f32, {12})});
       }},
      {"matmul_vector", "matmul",
       [](Builder& b) {
         return b.add(OpKind::MatMul, {x_of(b, {7, 30}), b.input("v", Dtype::f32, {30})});
       }},
      {"gemm_transposed", "matmul + bias",
       [](Builder& b) {
         return b.add(
             OpKind::Gemm,
             {x_of(b, {20, 9}), b.input("w", Dtype::f32, {14, 20}), b.input("c", Dtype::f32, {14})},
             {{"transA", int64_t{1}}, {"transB", int64_t{1}}});
       }},
      {"gemm_scaled", "matmul + linear",
       [](Builder& b) {
         return b.add(OpKind::Gemm, {x_of(b, {9, 20}), b.input("w", Dtype::f32, {20, 5})},
                      {{"alpha", 0.5}});
       }},
      {"attention", "matmul + linear, softmax, matmul",
       [](Builder& b) {
         const auto q = x_of(b, {2, 4, 12, 16});
         const auto k = b.input("k", Dtype::f32, {2, 4, 12, 16});
         const auto v = b.input("v", Dtype::f32, {2, 4, 12, 16});
         const auto t = b.add(OpKind::Transpose, {k}, {{"perm", Integers{0, 1, 3, 2}}});
         const auto half = b.constant("half", Dtype::f32, {}, std::array{0.25});
         const auto s = b.add(OpKind::Mul, {b.add(OpKind::MatMul, {q, t}), half});
         return b.add(OpKind::MatMul, {b.add(OpKind::Softmax, {s}), v});
       }},
      {"heads", "matmul, copy",
       [](Builder& b) {
         const auto p =
             b.add(OpKind::MatMul, {x_of(b, {2, 6, 16}), b.input("w", Dtype::f32, {16, 24})});
         const auto parts = b.integers("shape", Integers{2, 6, 4, 6});
         return b.add(OpKind::Transpose, {b.add(OpKind::Reshape, {p, parts})},
                      {{"perm", Integers{0, 2, 1, 3}}});
       }},
  };
}

std::vector<Case> rows() {
  return {
      {"softmax", "softmax",
       [](Builder& b) { return b.add(OpKind::Softmax, {x_of(b, {4, 5, 100})}); }},
      {"softmax_middle_axis", "softmax",
       [](Builder& b) {
         return b.add(OpKind::Softmax, {x_of(b, {3, 20, 7})}, {{"axis", int64_t{1}}});
       }},
      {"log_softmax", "softmax",
       [](Builder& b) { return b.add(OpKind::LogSoftmax, {x_of(b, {9, 33})}); }},
      {"layer_norm", "layer norm",
       [](Builder& b) {
         return b.add(
             OpKind::LayerNormalization,
             {x_of(b, {3, 5, 48}), b.input("s", Dtype::f32, {48}), b.input("b", Dtype::f32, {48})});
       }},
      {"layer_norm_two_axes", "layer norm",
       [](Builder& b) {
         return b.add(OpKind::LayerNormalization,
                      {x_of(b, {6, 5, 8}), b.input("s", Dtype::f32, {5, 8}),
                       b.input("b", Dtype::f32, {5, 8})},
                      {{"axis", int64_t{1}}});
       }},
      {"batch_norm", "batch norm",
       [](Builder& b) {
         return b.add(
             OpKind::BatchNormalization,
             {x_of(b, {2, 6, 5, 5}), b.input("s", Dtype::f32, {6}), b.input("b", Dtype::f32, {6}),
              b.input("m", Dtype::f32, {6}), b.input("positive_v", Dtype::f32, {6})});
       }},
      {"batch_norm_relu", "batch norm + relu",
       [](Builder& b) {
         return b.add(OpKind::Relu,
                      {b.add(OpKind::BatchNormalization,
                             {x_of(b, {2, 16, 6, 6}), b.input("s", Dtype::f32, {16}),
                              b.input("b", Dtype::f32, {16}), b.input("m", Dtype::f32, {16}),
                              b.input("positive_v", Dtype::f32, {16})})});
       }},
      {"instance_norm", "layer norm + mul + bias",
       [](Builder& b) {
         return b.add(
             OpKind::InstanceNormalization,
             {x_of(b, {2, 4, 6, 6}), b.input("s", Dtype::f32, {4}), b.input("b", Dtype::f32, {4})});
       }},
      {"group_norm", "layer norm + mul + bias",
       [](Builder& b) {
         return b.add(OpKind::GroupNormalization,
                      {x_of(b, {2, 12, 5, 5}), b.input("s", Dtype::f32, {12}),
                       b.input("b", Dtype::f32, {12})},
                      {{"num_groups", int64_t{3}}});
       }},
      {"lrn", "LRN",
       [](Builder& b) {
         return b.add(OpKind::LRN, {x_of(b, {1, 12, 5, 5})},
                      {{"size", int64_t{5}}, {"alpha", 0.1}});
       }},
      {"reduce_sum", "reduction",
       [](Builder& b) { return reduce(b, OpKind::ReduceSum, x_of(b, {7, 9, 30}), {2}); }},
      {"reduce_mean_dropped", "reduction",
       [](Builder& b) { return reduce(b, OpKind::ReduceMean, x_of(b, {7, 9, 30}), {1}, 0); }},
      {"reduce_max_all", "reduction",
       [](Builder& b) { return reduce(b, OpKind::ReduceMax, x_of(b, {7, 9, 3}), {0, 1, 2}); }},
      {"reduce_min_outer_axes", "reduction",
       [](Builder& b) { return reduce(b, OpKind::ReduceMin, x_of(b, {7, 9, 30}), {0, 2}); }},
      {"reduce_product", "reduction",
       [](Builder& b) { return reduce(b, OpKind::ReduceProd, x_of(b, {5, 6}), {1}); }},
      {"reduce_l1", "reduction",
       [](Builder& b) { return reduce(b, OpKind::ReduceL1, x_of(b, {5, 60}), {1}); }},
      {"reduce_l2", "reduction",
       [](Builder& b) { return reduce(b, OpKind::ReduceL2, x_of(b, {5, 60}), {1}); }},
      {"reduce_sum_square", "reduction",
       [](Builder& b) { return reduce(b, OpKind::ReduceSumSquare, x_of(b, {5, 60}), {0}); }},
  };
}

std::vector<Case> elementwise() {
  return {
      {"add_relu", "add + relu",
       [](Builder& b) {
         return b.add(OpKind::Relu,
                      {b.add(OpKind::Add, {x_of(b, {6, 50}), b.input("y", Dtype::f32, {6, 50})})});
       }},
      {"subtract_from_a_row", "linear + bias",
       [](Builder& b) {
         return b.add(OpKind::Sub, {b.input("y", Dtype::f32, {50}), x_of(b, {6, 50})});
       }},
      {"divide_by_a_column", "div",
       [](Builder& b) {
         return b.add(OpKind::Div, {x_of(b, {6, 50}), b.input("positive", Dtype::f32, {6, 1})});
       }},
      {"clip_tanh", "clip + tanh",
       [](Builder& b) {
         const auto low = b.constant("low", Dtype::f32, {}, std::array{-0.5});
         const auto high = b.constant("high", Dtype::f32, {}, std::array{0.75});
         return b.add(OpKind::Tanh, {b.add(OpKind::Clip, {x_of(b, {6, 50}), low, high})});
       }},
      {"mish", "mish", [](Builder& b) { return b.add(OpKind::Mish, {x_of(b, {6, 50})}); }},
      {"softplus", "softplus",
       [](Builder& b) { return b.add(OpKind::Softplus, {x_of(b, {6, 50})}); }},
      {"elu", "elu", [](Builder& b) { return b.add(OpKind::Elu, {x_of(b, {6, 50})}); }},
      {"selu_of_a_vector", "elu + linear",
       [](Builder& b) { return b.add(OpKind::Selu, {x_of(b, {40}, Dtype::bf16)}); }},
      {"exp", "exp", [](Builder& b) { return b.add(OpKind::Exp, {x_of(b, {6, 50})}); }},
      {"concat", "copy ×2",
       [](Builder& b) {
         return b.add(OpKind::Concat, {x_of(b, {3, 4, 5}), b.input("y", Dtype::f32, {3, 2, 5})},
                      {{"axis", int64_t{1}}});
       }},
      {"transpose", "copy",
       [](Builder& b) {
         return b.add(OpKind::Transpose, {x_of(b, {5, 6, 7})}, {{"perm", Integers{2, 0, 1}}});
       }},
  };
}
}  // namespace

std::vector<Case> library_cases() {
  std::vector<Case> out = convolutions();
  for (const auto& more : {transposed_convolutions(), pools(), products(), rows(), elementwise()})
    out.insert(out.end(), more.begin(), more.end());
  return out;
}
}  // namespace warploom::vendor
