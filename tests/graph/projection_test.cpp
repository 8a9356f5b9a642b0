// Outputs summed with signs: the projected graph against sums of the whole output.
#include "graph/projection.h"
#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>
#include "base/dtype.h"
#include "base/random.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
struct Case {
  const char* name;
  std::function<TensorId(Builder&)> build;
  int64_t extent;  // of the axis that is summed; 0: nothing makes it cheaper
};

TensorId matmul(Builder& b, Dtype dtype = Dtype::f32) {
  return b.add(OpKind::MatMul, {b.input("a", dtype, {40, 64}), b.input("b", dtype, {64, 48})});
}

const Case kCases[] = {
    {"product", [](Builder& b) { return matmul(b); }, 48},
    {"product in bf16", [](Builder& b) { return matmul(b, Dtype::bf16); }, 48},
    {"with a bias along the columns, scaled",
     [](Builder& b) {
       const TensorId bias = b.input("bias", Dtype::f32, {48});
       const TensorId scale = b.input("scale", Dtype::f32, {1});
       return b.add(OpKind::Mul, {b.add(OpKind::Add, {matmul(b), bias}), scale});
     },
     48},
    {"less a whole residual, by rows divided",
     [](Builder& b) {
       const TensorId residual = b.input("r", Dtype::f32, {40, 48});
       const TensorId scale = b.input("scale", Dtype::f32, {40, 1});
       return b.add(OpKind::Div, {b.add(OpKind::Sub, {residual, matmul(b)}), scale});
     },
     48},
    {"scaled by columns: the rows are summed",
     [](Builder& b) { return b.add(OpKind::Mul, {matmul(b), b.input("scale", Dtype::f32, {48})}); },
     40},
    {"batched, transposed and cast",
     [](Builder& b) {
       const TensorId product = b.add(OpKind::MatMul, {b.input("a", Dtype::f16, {3, 32, 56}),
                                                       b.input("b", Dtype::f16, {3, 56, 40})});
       return b.add(
           OpKind::Cast,
           {b.add(OpKind::Transpose, {product}, {{"perm", std::vector<int64_t>{2, 0, 1}}})},
           {{"to", int64_t{1}}});
     },
     40},
    {"as Gemm of transposed operands",
     [](Builder& b) {
       return b.add(OpKind::Gemm,
                    {b.input("a", Dtype::f32, {64, 40}), b.input("b", Dtype::f32, {48, 64}),
                     b.input("c", Dtype::f32, {48})},
                    {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5}});
     },
     48},
    {"under another shape",
     [](Builder& b) {
       const int64_t to[] = {8, 5, 48};
       return b.add(OpKind::Reshape, {matmul(b), b.integers("to", to)});
     },
     48},
    {"by a product",
     [](Builder& b) {
       const TensorId product = b.add(OpKind::MatMul, {b.input("c", Dtype::f32, {48, 64}),
                                                       b.input("d", Dtype::f32, {64, 72})});
       return b.add(OpKind::MatMul, {b.input("a", Dtype::f32, {40, 48}), product});
     },
     72},
    {"convolution with a bias",
     [](Builder& b) {
       return b.add(OpKind::Conv,
                    {b.input("x", Dtype::f32, {2, 6, 12, 13}),
                     b.input("w", Dtype::f32, {32, 6, 3, 3}), b.input("bias", Dtype::f32, {32})},
                    {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
     },
     32},
    {"convolution in groups",
     [](Builder& b) {
       return b.add(
           OpKind::Conv,
           {b.input("x", Dtype::f32, {2, 8, 12, 13}), b.input("w", Dtype::f32, {32, 4, 3, 3})},
           {{"group", int64_t{2}}});
     },
     0},
    {"weights cast from bytes, which would wrap",
     [](Builder& b) {
       const TensorId weights =
           b.add(OpKind::Cast, {b.input("w", Dtype::i8, {64, 48})}, {{"to", int64_t{1}}});
       return b.add(OpKind::MatMul, {b.input("a", Dtype::f32, {40, 64}), weights});
     },
     48},
    {"with a residual of bytes",
     [](Builder& b) {
       return b.add(OpKind::Add,
                    {matmul(b), b.add(OpKind::Cast, {b.input("r", Dtype::u8, {40, 48})},
                                      {{"to", int64_t{1}}})});
     },
     48},
    {"of integers, divided",
     [](Builder& b) {
       const TensorId product = b.add(OpKind::MatMul, {b.input("a", Dtype::i32, {40, 64}),
                                                       b.input("w", Dtype::i32, {64, 48})});
       return b.add(OpKind::Div, {product, b.input("by", Dtype::i32, {1})});
     },
     0},
    {"of integers that wrap, cast",
     [](Builder& b) {
       const TensorId product = b.add(OpKind::MatMul, {b.input("a", Dtype::i32, {40, 64}),
                                                       b.input("w", Dtype::i32, {64, 48})});
       return b.add(OpKind::Cast, {product}, {{"to", int64_t{1}}});
     },
     0},
    {"nothing",
     [](Builder& b) {
       return b.add(OpKind::MatMul,
                    {b.input("a", Dtype::f32, {64, 8}), b.input("w", Dtype::f32, {8, 0})});
     },
     0},
    {"behind an activation", [](Builder& b) { return b.add(OpKind::Relu, {matmul(b)}); }, 0},
    {"without a product",
     [](Builder& b) {
       return b.add(OpKind::Add,
                    {b.input("x", Dtype::f32, {40, 48}), b.input("y", Dtype::f32, {40, 48})});
     },
     0},
};

std::vector<double> elements_of(const Graph& graph, std::span<const Bytes> inputs) {
  return (*evaluate(graph, inputs)).at(0);
}
}  // namespace

TEST(Projection, IsTheSumOfTheWholeWithItsSigns) {
  for (const Case& c : kCases) {
    Builder b(c.name);
    b.output(c.build(b));
    const Result<Graph> graph = b.finish();
    ASSERT_TRUE(graph) << c.name << graph.error().message;
    const auto projection = project(*graph, 0, 7);
    ASSERT_EQ(projection.has_value(), c.extent > 0) << c.name;
    if (!projection) continue;
    EXPECT_EQ(projection->extent, c.extent) << c.name;
    std::vector<std::vector<std::byte>> bytes;
    std::vector<Bytes> inputs;
    Random random(3, c.name);
    for (const TensorId id : graph->inputs) {
      bytes.emplace_back(static_cast<size_t>(byte_count(graph->tensor(id))));
      for (int64_t i = 0; i < element_count(graph->tensor(id).shape); ++i)
        store_from_double(graph->tensor(id).dtype, bytes.back().data(), static_cast<size_t>(i),
                          is_float(graph->tensor(id).dtype)
                              ? 1 + random.uniform()
                              : static_cast<double>(50 + random.below(50)));
    }
    for (const auto& one : bytes)
      inputs.emplace_back(one);
    const std::vector<double> all = elements_of(*graph, inputs);
    const std::vector<double> sums = elements_of(projection->graph, inputs);
    const auto [before, extent, after] =
        std::tuple(projection->before, projection->extent, projection->after);
    ASSERT_EQ(std::ssize(all), before * extent * after) << c.name;
    ASSERT_EQ(std::ssize(sums), before * after) << c.name;
    for (int64_t i = 0; i < std::ssize(sums); ++i) {
      double sum = 0;
      double square = 0;
      for (int64_t k = 0; k < extent; ++k) {
        const double element = all[(i / after * extent + k) * after + i % after];
        sum += projection->signs[k] * element;
        square += element * element;
      }
      ASSERT_NEAR(sums[i], sum, 1e-12 * std::sqrt(square) * static_cast<double>(extent))
          << c.name << " at " << i;
    }
  }
}

TEST(Projection, TakesTheWorkOfReadingTheOperands) {
  Builder b("large");
  b.output(b.add(OpKind::MatMul, {b.input("a", Dtype::bf16, {8192, 8192}),
                                  b.input("b", Dtype::bf16, {8192, 8192})}));
  EXPECT_TRUE(project(*b.finish(), 0, 1));
}

TEST(Projection, HasOtherSignsForAnotherSeedAndNearlyAsManyOfEach) {
  Builder b("signs");
  b.output(b.add(OpKind::MatMul,
                 {b.input("a", Dtype::bf16, {64, 64}), b.input("b", Dtype::bf16, {64, 30000})}));
  const Graph graph = *b.finish();
  const auto one = project(graph, 0, 1);
  const auto other = project(graph, 0, 2);
  ASSERT_TRUE(one && other);
  EXPECT_NE(one->signs, other->signs);
  for (const auto& projection : {one, other})
    EXPECT_LE(std::abs(std::reduce(projection->signs.begin(), projection->signs.end())), 128);
}
}  // namespace warploom::graph
