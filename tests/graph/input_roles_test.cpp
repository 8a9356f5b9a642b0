#include <gtest/gtest.h>
#include <array>
#include <cstdint>
#include <vector>
#include "base/dtype.h"
#include "builder.h"
#include "graph/graph.h"

namespace warploom::graph {
namespace {
std::vector<int64_t> terms(const Graph& graph) {
  std::vector<int64_t> all;
  for (const InputRole& role : input_roles(graph))
    all.push_back(role.terms);
  return all;
}

TEST(InputRoles, WeightsKnowWhatTheirProductsSum) {
  Builder b("two layers");
  const TensorId x = b.input("x", Dtype::f32, {1, 3, 8, 8});
  const TensorId w = b.input("w", Dtype::f32, {4, 3, 3, 3});
  const TensorId conv = b.add(OpKind::Conv, {x, w, b.input("bias", Dtype::f32, {4})});
  const TensorId flat = b.add(OpKind::Flatten, {b.add(OpKind::Relu, {conv})});
  b.output(b.add(OpKind::MatMul,
                 {flat, b.add(OpKind::Transpose, {b.input("v", Dtype::f32, {5, 144})})}));
  EXPECT_EQ(terms(*b.finish()), (std::vector<int64_t>{1, 27, 1, 144}));
}

TEST(InputRoles, OneProductIsNoNetwork) {
  Builder b("products beside each other");
  const TensorId x = b.input("x", Dtype::f32, {4, 8});
  const auto product = [&](const char* name) {
    return b.add(OpKind::MatMul, {x, b.input(name, Dtype::f32, {8, 6})});
  };
  b.output(b.add(OpKind::Mul, {product("v"), product("w")}));
  EXPECT_EQ(terms(*b.finish()), (std::vector<int64_t>{1, 1, 1}));
}

TEST(InputRoles, AVarianceIsWhatWithAConstantTheRootIsTakenOf) {
  Builder b("roots");
  const TensorId variance = b.input("variance", Dtype::f32, {4});
  const TensorId other = b.input("other", Dtype::f32, {4});
  b.output(b.add(
      OpKind::Sqrt,
      {b.add(OpKind::Add, {variance, b.constant("epsilon", Dtype::f32, {}, std::array{1e-5})})}));
  b.output(b.add(OpKind::Sqrt, {other}));
  const auto roles = input_roles(*b.finish());
  EXPECT_TRUE(roles[0].variance);
  EXPECT_FALSE(roles[1].variance);
}
}  // namespace
}  // namespace warploom::graph
