// Networks whose values are read twice, as many layers of them as a test wants: what planning must
// not do twice for each.
#pragma once
#include <fmt/format.h>
#include <map>
#include "../graph/builder.h"

namespace warploom::plan {
// x = relu(conv(relu(conv(x))) + x)
inline graph::Graph residual_blocks(int blocks) {
  using graph::OpKind;
  graph::Builder b("residual");
  const std::map<std::string, graph::Attribute> same = {{"pads", std::vector<int64_t>(4, 1)}};
  graph::TensorId x = b.input("x", Dtype::f32, {1, 4, 6, 6});
  for (int i = 0; i < blocks; ++i) {
    const graph::TensorId w = b.input(fmt::format("w{}", i), Dtype::f32, {4, 4, 3, 3});
    const graph::TensorId v = b.input(fmt::format("v{}", i), Dtype::f32, {4, 4, 3, 3});
    const graph::TensorId inner = b.add(OpKind::Relu, {b.add(OpKind::Conv, {x, w}, same)});
    const graph::TensorId outer = b.add(OpKind::Conv, {inner, v}, same);
    x = b.add(OpKind::Relu, {b.add(OpKind::Add, {outer, x})});
  }
  b.output(x);
  return *graph::decompose(*b.finish());
}

// x = x + relu(x·w)
inline graph::Graph residual_layers(int layers) {
  using graph::OpKind;
  graph::Builder b("layers");
  graph::TensorId x = b.input("x", Dtype::f32, {4, 8});
  for (int i = 0; i < layers; ++i) {
    const graph::TensorId w = b.input(fmt::format("w{}", i), Dtype::f32, {8, 8});
    x = b.add(OpKind::Add, {x, b.add(OpKind::Relu, {b.add(OpKind::MatMul, {x, w})})});
  }
  b.output(x);
  return *graph::decompose(*b.finish());
}

// Every layer reads what all before it made: x[n] = relu(conv(x[0] ++ … ++ x[n - 1])).
inline graph::Graph dense_block(int layers) {
  using graph::OpKind;
  graph::Builder b("dense");
  std::vector<graph::TensorId> made = {b.input("x", Dtype::f32, {1, 4, 6, 6})};
  graph::TensorId all = made[0];
  for (int i = 0; i < layers; ++i) {
    const graph::TensorId w = b.input(fmt::format("w{}", i), Dtype::f32, {4, 4 * (i + 1), 1, 1});
    made.push_back(b.add(OpKind::Relu, {b.add(OpKind::Conv, {all, w})}));
    all = b.add(OpKind::Concat, made, {{"axis", int64_t{1}}});
  }
  b.output(all);
  return *graph::decompose(*b.finish());
}

// x = x·x + x, of one element a place.
inline graph::Graph doubling_chain(int steps, Dtype dtype = Dtype::f32) {
  using graph::OpKind;
  graph::Builder b("doubling");
  graph::TensorId x = b.input("x", dtype, {64});
  for (int i = 0; i < steps; ++i)
    x = b.add(OpKind::Add, {b.add(OpKind::Mul, {x, x}), x});
  b.output(x);
  return *graph::decompose(*b.finish());
}

// Rows x - mean(x), one behind another, of which each is read three times.
inline graph::Graph centred_rows(int steps) {
  using graph::OpKind;
  graph::Builder b("rows");
  const std::map<std::string, graph::Attribute> rows = {{"axes", std::vector<int64_t>{1}},
                                                        {"keepdims", int64_t{1}}};
  graph::TensorId x = b.input("x", Dtype::f32, {16, 64});
  for (int i = 0; i < steps; ++i) {
    const graph::TensorId square = b.add(OpKind::Mul, {x, x});
    x = b.add(OpKind::Sub, {b.add(OpKind::Add, {square, x}), b.add(OpKind::ReduceMax, {x}, rows)});
  }
  b.output(x);
  return *graph::decompose(*b.finish());
}

// So many elementwise operators, one behind another.
inline graph::Graph deep_chain(int operators) {
  using graph::OpKind;
  graph::Builder b("deep");
  graph::TensorId x = b.input("x", Dtype::f32, {64});
  for (int i = 0; i < operators; ++i)
    x = b.add(i % 2 ? OpKind::Tanh : OpKind::Abs, {x});
  b.output(x);
  return *graph::decompose(*b.finish());
}
}  // namespace warploom::plan
