// Einsum against loops over every label.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
struct Case {
  std::string equation;
  std::vector<Shape> shapes;
  std::vector<std::string>
      labels;  // an axis each, of the operands and the result, without ellipses
};

Result<Graph> einsum(const std::string& equation, const std::vector<Shape>& shapes) {
  Builder b("einsum");
  std::vector<TensorId> inputs;
  for (const Shape& shape : shapes)
    inputs.push_back(b.input(fmt::format("x{}", inputs.size()), Dtype::f64, shape));
  b.output(b.add(OpKind::Einsum, inputs, {{"equation", equation}}));
  return b.finish();
}

// The sum over all labels that the result lacks of the operands' products.
std::vector<double> by_loops(const Case& c, const std::vector<std::vector<double>>& x) {
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < c.shapes.size(); ++i)
    for (size_t d = 0; d < c.shapes[i].size(); ++d)
      sizes[c.labels[i][d]] = c.shapes[i][d];
  int64_t all = 1;
  int64_t results = 1;
  for (const auto& [label, size] : sizes)
    all *= size;
  for (const char label : c.labels.back())
    results *= sizes[label];
  std::vector<double> out(static_cast<size_t>(results));
  for (int64_t n = 0; n < all; ++n) {
    std::map<char, int64_t> at;
    int64_t rest = n;
    for (const auto& [label, size] : sizes) {
      at[label] = rest % size;
      rest /= size;
    }
    double product = 1;
    for (size_t i = 0; i < x.size(); ++i) {
      int64_t place = 0;
      for (size_t d = 0; d < c.shapes[i].size(); ++d)
        place = place * c.shapes[i][d] + at[c.labels[i][d]];
      product *= x[i][static_cast<size_t>(place)];
    }
    int64_t place = 0;
    for (const char label : c.labels.back())
      place = place * sizes[label] + at[label];
    out[static_cast<size_t>(place)] += product;
  }
  return out;
}

class EinsumOf : public testing::TestWithParam<Case> {};

TEST_P(EinsumOf, IsTheSumOfProducts) {
  const Case& c = GetParam();
  const auto graph = einsum(c.equation, c.shapes);
  ASSERT_TRUE(graph) << describe(graph.error());
  std::vector<std::vector<double>> x;
  std::vector<Bytes> views;
  Random random(1, c.equation);
  for (const Shape& shape : c.shapes) {
    x.emplace_back(static_cast<size_t>(element_count(shape)));
    for (double& element : x.back())
      element = random.normal();
  }
  for (const auto& one : x)
    views.push_back(std::as_bytes(std::span(one)));
  const auto primitive = decompose(*graph);
  ASSERT_TRUE(primitive) << describe(primitive.error());
  const auto found = evaluate(*primitive, views, 1);
  ASSERT_TRUE(found) << describe(found.error());
  const auto wanted = by_loops(c, x);
  ASSERT_EQ((*found)[0].size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR((*found)[0][i], wanted[i], 1e-12) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(
    Equations, EinsumOf,
    testing::Values(Case{"bhqd,bhkd->bhqk", {{2, 3, 4, 5}, {2, 3, 6, 5}}, {"bhqd", "bhkd", "bhqk"}},
                    Case{"kj, ji", {{2, 3}, {3, 4}}, {"kj", "ji", "ik"}},
                    Case{"ij->ji", {{2, 3}}, {"ij", "ji"}}, Case{"ij->i", {{2, 3}}, {"ij", "i"}},
                    Case{"i,i->", {{5}, {5}}, {"i", "i", ""}},
                    Case{"ij,k->kij", {{2, 3}, {4}}, {"ij", "k", "kij"}},
                    Case{"...ij,hjk->h...ik", {{4, 2, 3}, {5, 3, 2}}, {"xij", "hjk", "hxik"}},
                    Case{"...,...->...", {{3, 4}, {3, 4}}, {"xy", "xy", "xy"}},
                    Case{"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}, {"ij", "jk", "kl", "il"}},
                    Case{"aB,aB->B", {{3, 4}, {3, 4}}, {"aB", "aB", "B"}}));

TEST(Einsum, EquationsThatDoNotFitAreRefused) {
  const Shape square = {3, 3};
  for (const auto& [equation, count] : {std::pair("ij->ii", 1),
                                        {"ij", 2},
                                        {"ij,jk->iz", 2},
                                        {"i?,jk->ij", 2},
                                        {"ijk,jk->ij", 2},
                                        {"i..,jk->ij", 2},
                                        {"", 1}}) {
    const auto graph = einsum(equation, std::vector<Shape>(static_cast<size_t>(count), square));
    ASSERT_FALSE(graph) << equation;
    EXPECT_EQ(graph.error().code, ErrorCode::kOnnxAttribute) << equation;
  }
  EXPECT_EQ(einsum("ij,jk->ik", {{3, 4}, {5, 6}}).error().code, ErrorCode::kOnnxAttribute);
}
}  // namespace
}  // namespace warploom::graph
