#include "vendor/match.h"
#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/rendered.h"
#include "cases.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "runtime/compile.h"
#include "vendor/make.h"
#include "vendor/plain.h"
#include "vendor/problem.h"

namespace warploom::vendor {
namespace {
const Case& case_named(std::string_view name) {
  static const std::vector<Case> all = library_cases();
  return *std::ranges::find(all, name, &Case::name);
}

VendorProblem problem_of(std::string_view name) {
  return match(graph_of(case_named(name)), Track::fp32);
}

TEST(Match, TravelsAsJson) {
  for (const Case& one : library_cases()) {
    const VendorProblem problem = match(graph_of(one), Track::fp32);
    const nlohmann::json sent = problem;
    const auto bytes = nlohmann::json::to_cbor(sent);
    const auto received = nlohmann::json::from_cbor(bytes).get<VendorProblem>();
    EXPECT_EQ(nlohmann::json(received), sent) << one.name;
    EXPECT_EQ(words_of(received.steps), words_of(problem.steps)) << one.name;
  }
}

TEST(Match, ATransposeIsAMatterOfStrides) {
  const VendorProblem problem = problem_of("attention");
  const auto& first = std::get<Matmul>(problem.steps[0].operation);
  EXPECT_EQ(first.b.buffer, "k");
  EXPECT_EQ(first.b.strides, (Shape{768, 192, 1, 16}));
}

TEST(Match, WhatIsReadTwiceIsNotTakenIntoItsMaker) {
  const Case twice{"twice", "", [](Builder& b) {
                     const auto p = b.add(OpKind::MatMul, {b.input("x", Dtype::f32, {4, 5}),
                                                           b.input("w", Dtype::f32, {5, 6})});
                     const auto t = b.add(OpKind::Tanh, {p});
                     return b.add(OpKind::MatMul, {t, b.add(OpKind::Transpose, {p})});
                   }};
  EXPECT_EQ(words_of(match(graph_of(twice), Track::fp32).steps), "matmul ×2, tanh");
}

TEST(Match, OperatorsWithoutACallArePlain) {
  const Case scan{"scan", "", [](Builder& b) {
                    const auto x = b.input("x", Dtype::f32, {4, 50});
                    return b.add(OpKind::CumSum, {x, b.integers("axis", Integers{1})});
                  }};
  const VendorProblem problem = match(graph_of(scan), Track::fp32);
  EXPECT_EQ(unmatched_of(problem), 1);
  EXPECT_EQ(expected_reference(problem, Engine::cpu), "plain");
}

TEST(Match, OperatorsBehindARegionAreFoundByTheirTensors) {
  const graph::Graph given = graph_of(case_named("layer_norm"));
  const auto region = graph::decompose(given);
  ASSERT_TRUE(region);
  std::vector<std::string> names;
  for (const graph::Tensor& tensor : region->tensors)
    names.push_back(tensor.name);
  const auto operators = operators_of(given, *region, names);
  ASSERT_TRUE(operators);
  EXPECT_EQ(words_of(match_region(*region, operators, Track::fp32).steps), "layer norm");
}

TEST(Match, ARegionWithoutOperatorsIsMatchedAsItIs) {
  const auto region = graph::decompose(graph_of(case_named("conv_relu_maxpool")));
  ASSERT_TRUE(region);
  EXPECT_EQ(words_of(match_region(*region, std::nullopt, Track::fp32).steps),
            "convolution + bias + relu, pooling");
}

TEST(Match, ExpectedReferencesNameTheLibraryOfTheEngine) {
  const VendorProblem problem = problem_of("attention");
  EXPECT_EQ(expected_reference(problem, Engine::cpu), "oneDNN (matmul + linear, softmax, matmul)");
  EXPECT_EQ(expected_reference(problem, Engine::cuda),
            "cuBLASLt (matmul + linear, matmul) + cuDNN (softmax)");
}

TEST(Plain, KnowsEveryValueOperation) {
  const std::string& text = resource("plain/values.h");
  for (const std::string_view name : {
#define WARPLOOM_VALUE_OP(name, ...) std::string_view(#name),
#include "base/value_ops.def"
       })
    EXPECT_NE(text.find(fmt::format("Real v_{}(", name)), std::string::npos) << name;
}

TEST(Plain, CompilesForAGpu) {
  for (const std::string_view name : {"softmax", "conv_asymmetric_pads", "reduce_l2", "concat"}) {
    const auto list = plain_list(graph_of(case_named(name)), Engine::cuda, "sm_90a");
    ASSERT_TRUE(list) << describe(list.error());
    const auto binary = runtime::compile(*list, {.most_spills = runtime::kAnySpills});
    if (!binary && binary.error().code == ErrorCode::kNoNvrtc) GTEST_SKIP() << "no NVRTC";
    ASSERT_TRUE(binary) << describe(binary.error());
  }
}
}  // namespace
}  // namespace warploom::vendor
