// Products of which a triangle is kept, and products with a triangle for a factor.
#pragma once
#include <gtest/gtest.h>
#include <algorithm>
#include "loopnest/contraction.h"
#include "support/nets.h"

namespace warploom::test {
using loopnest::Affine, loopnest::Contraction, graph::OpKind;

struct Product {
  int64_t m = 130;
  int64_t n = 140;
  int64_t k = 40;
  std::vector<int64_t> batch = {};

  graph::Shape shape(int64_t x, int64_t y) const {
    graph::Shape out = batch;
    out.insert(out.end(), {x, y});
    return out;
  }
};

inline graph::TensorId triangle(Net& net, graph::TensorId x, int64_t upper, int64_t diagonal = 0) {
  return net.add(OpKind::Trilu, {x, net.reshape(net.ints({diagonal}), {})}, {{"upper", upper}});
}

inline graph::Graph kept(const Product& p, int64_t upper, int64_t diagonal,
                         Dtype dtype = Dtype::f32) {
  Net net;
  const auto y =
      net.add(OpKind::MatMul, {net.x(p.shape(p.m, p.k), dtype), net.x(p.shape(p.k, p.n), dtype)});
  return net.with({triangle(net, y, upper, diagonal)});
}

enum class Side : uint8_t { a, b };

inline graph::Graph times(const Product& p, Side side, int64_t upper, int64_t diagonal,
                          Dtype dtype = Dtype::f32) {
  Net net;
  auto a = net.x(p.shape(p.m, p.k), dtype);
  auto b = net.x(p.shape(p.k, p.n), dtype);
  (side == Side::a ? a : b) = triangle(net, side == Side::a ? a : b, upper, diagonal);
  return net.with({net.add(OpKind::MatMul, {a, b})});
}

inline Contraction found(const graph::Graph& graph) {
  auto c = loopnest::contraction_of(loopnest::nests_of(graph));
  EXPECT_TRUE(c) << to_text(graph);
  return c.value_or(Contraction{});
}

// Whether the bounds hold at these indices along the axes of row, column and k.
inline bool within(const Contraction& c, int64_t row, int64_t column, int64_t k = 0) {
  return std::ranges::all_of(c.domain_constraints, [&](const Affine& b) {
    return b.begin + b.steps[c.row] * row + b.steps[c.column] * column + b.steps[c.k[0]] * k >= 0;
  });
}
}  // namespace warploom::test
