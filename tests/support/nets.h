// Small graphs of primitives by hand.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <array>
#include <map>
#include "../graph/builder.h"

namespace warploom::test {
using Attributes = std::map<std::string, graph::Attribute>;
using Ints = std::vector<int64_t>;

struct Net : graph::Builder {
  Net() : Builder("net") {}

  graph::TensorId x(graph::Shape shape, Dtype dtype = Dtype::f32) {
    return input(fmt::format("x{}", inputs_++), dtype, std::move(shape));
  }

  graph::TensorId ints(Ints values) { return integers(fmt::format("c{}", inputs_++), values); }

  graph::TensorId number(double value) {
    return constant(fmt::format("c{}", inputs_++), Dtype::f32, {}, std::array{value});
  }

  graph::TensorId reshape(graph::TensorId id, Ints shape) {
    return add(graph::OpKind::Reshape, {id, ints(std::move(shape))});
  }

  graph::TensorId transpose(graph::TensorId id, Ints perm) {
    return add(graph::OpKind::Transpose, {id}, {{"perm", std::move(perm)}});
  }

  graph::TensorId slice(graph::TensorId id, int64_t axis, int64_t begin, int64_t end,
                        int64_t step = 1) {
    return add(graph::OpKind::Slice, {id, ints({begin}), ints({end}), ints({axis}), ints({step})});
  }

  graph::Graph with(const std::vector<graph::TensorId>& outputs) {
    for (const graph::TensorId id : outputs)
      output(id);
    const auto graph = graph::decompose(*finish());
    EXPECT_TRUE(graph.has_value()) << describe(graph.error());
    return *graph;
  }

 private:
  int inputs_ = 0;
};
}  // namespace warploom::test
