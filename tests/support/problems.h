// Small problems for tests: graphs, inputs and their FP64 answers.
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::test {
struct MatmulShape {
  int64_t m;
  int64_t n;
  int64_t k;
  std::vector<int64_t> batch = {};
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;
  bool gelu = false;
  int64_t block = 0;
  int64_t columns = 1;        // of scales: along k, and of the second operand so many columns wide
  Dtype result = Dtype::f32;  // of such a product
};

inline graph::Graph matmul_graph(const MatmulShape& s, Dtype dtype) {
  graph::Builder b("matmul");
  auto shape = [&](int64_t x, int64_t y) {
    graph::Shape out = s.batch;
    out.push_back(x);
    out.push_back(y);
    return out;
  };
  std::vector<int64_t> swapped;
  for (size_t i = 0; i < s.batch.size(); ++i)
    swapped.push_back(static_cast<int64_t>(i));
  swapped.push_back(static_cast<int64_t>(s.batch.size()) + 1);
  swapped.push_back(static_cast<int64_t>(s.batch.size()));
  auto x = b.input("x", dtype, s.transpose_a ? shape(s.k, s.m) : shape(s.m, s.k));
  auto w = b.input("w", dtype, s.transpose_b ? shape(s.n, s.k) : shape(s.k, s.n));
  for (auto* narrow : {&x, &w})  // 8-bit operands are scaled
    if (bits_of(dtype) == 8 && s.block == 0)
      *narrow = b.add(graph::OpKind::DequantizeLinear,
                      {*narrow, b.constant(narrow == &x ? "sx" : "sw", Dtype::f32, {},
                                           std::array{narrow == &x ? 0.5 : 0.25})});
  if (s.transpose_a) x = b.add(graph::OpKind::Transpose, {x}, {{"perm", swapped}});
  if (s.transpose_b) w = b.add(graph::OpKind::Transpose, {w}, {{"perm", swapped}});
  auto y = s.block == 0 ? b.add(graph::OpKind::MatMul, {x, w})
                        : b.add(graph::OpKind::ScaledMatMul,
                                {x, w, b.input("sx", Dtype::f32, {s.m, s.k / s.block}),
                                 b.input("sw", Dtype::f32, {s.k / s.block, s.n / s.columns})},
                                {{"output_dtype", int64_t{onnx_type_of(s.result)}}});
  if (s.bias)
    y = b.add(graph::OpKind::Add,
              {y, b.input("bias", bits_of(dtype) == 8 ? Dtype::f32 : dtype, {s.n})});
  if (s.gelu) y = b.add(graph::OpKind::Gelu, {y});
  b.output(y);
  return *graph::decompose(*b.finish());
}

inline graph::Graph softmax_graph(int64_t rows, int64_t columns, Dtype dtype, bool log = false) {
  graph::Builder b("softmax");
  b.output(b.add(log ? graph::OpKind::LogSoftmax : graph::OpKind::Softmax,
                 {b.input("x", dtype, {rows, columns})}));
  return *graph::decompose(*b.finish());
}

// Normal inputs in each tensor's own type.
inline std::vector<std::vector<std::byte>> random_inputs(const graph::Graph& graph, uint64_t seed,
                                                         double scale = 1) {
  std::vector<std::vector<std::byte>> inputs;
  for (const auto id : graph.inputs) {
    const auto& tensor = graph.tensor(id);
    Random random(seed, tensor.name);
    std::vector<std::byte> bytes(static_cast<size_t>(graph::byte_count(tensor)));
    for (int64_t i = 0; i < graph::element_count(tensor.shape); ++i)
      store_from_double(tensor.dtype, bytes.data(), static_cast<size_t>(i),
                        random.normal() * (is_float(tensor.dtype) ? scale : 40));
    inputs.push_back(std::move(bytes));
  }
  return inputs;
}
}  // namespace warploom::test
