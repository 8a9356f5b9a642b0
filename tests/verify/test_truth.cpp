// Inputs, truth and comparison as a GPU computes them (verify/truth_engine.h): here by the very
// text of its kernels, compiled for this machine's cores, held to the CPU's own.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "truth_checks.h"
#include "verify/inputs.h"
#include "verify/truth_engine.h"
#include "verify/truth_kernels.h"

namespace warploom::verify {
namespace {
using graph::Builder, graph::OpKind, graph::TensorId;
using Integers = std::vector<int64_t>;

class Truths : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1);
    if (runtime::find_cpu_compiler()) device_ = *runtime::Executor::open(Engine::cpu);
  }

  static void TearDownTestSuite() { device_.reset(); }

  void SetUp() override {
    if (!device_) GTEST_SKIP() << "no C++ compiler here";
  }

  // What is built is the same on the engine as on the CPU, on inputs of several families.
  static void expect_same(const std::function<TensorId(Builder&)>& build,
                          const std::vector<InputFamily>& families = {
                              InputFamily::normal, InputFamily::shifted, InputFamily::outliers}) {
    Builder builder("truth");
    builder.output(build(builder));
    const auto graph = builder.finish();
    ASSERT_TRUE(graph) << describe(graph.error());
    for (const InputFamily family : families) expect_truth(*device_, *graph, family, 3);
  }

  inline static ScratchFolder cache_{"truth-test"};
  inline static std::unique_ptr<runtime::Executor> device_;
};

const std::vector<InputFamily> kAll = input_families();

// Every pointwise operator that takes floats alone, on numbers of every kind.
TEST_F(Truths, OfEveryPointwiseOperatorAreTheCpus) {
  int tried = 0;
  for (const std::string& name : graph::operator_names()) {
    const OpKind op = *graph::op_named(name);
    if (graph::class_of(op) != graph::OpClass::pointwise) continue;
    for (const size_t inputs : {1, 2, 3}) {
      Builder builder(name);
      std::vector<TensorId> given;
      for (size_t i = 0; i < inputs; ++i)
        given.push_back(builder.input("x" + std::to_string(i), Dtype::f32,
                                      i == 1 ? graph::Shape{70} : graph::Shape{9, 70}));
      std::map<std::string, graph::Attribute> attributes;
      if (op == OpKind::Mod) attributes["fmod"] = int64_t{1};
      builder.output(builder.add(op, given, attributes));
      const auto graph = builder.finish();
      if (!graph) continue;
      ++tried;
      for (const InputFamily family : kAll) expect_truth(*device_, *graph, family, 5);
    }
  }
  EXPECT_GT(tried, 60);
}

TEST_F(Truths, OfAProductAreTheCpus) {
  expect_same([](Builder& b) {
    return b.add(OpKind::MatMul,
                 {b.input("x", Dtype::f32, {70, 33}), b.input("w", Dtype::f32, {33, 65})});
  });
}

TEST_F(Truths, OfAProductOfValuesWithErrorsAreTheCpus) {
  expect_same([](Builder& b) {
    const TensorId x = b.add(OpKind::Exp, {b.input("x", Dtype::f32, {3, 17, 33})});
    const TensorId w = b.add(OpKind::Tanh, {b.input("w", Dtype::bf16, {33, 20})});
    return b.add(OpKind::MatMul, {x, b.add(OpKind::Cast, {w}, {{"to", int64_t{1}}})});
  });
}

TEST_F(Truths, OfAConvolutionAreTheCpus) {
  expect_same([](Builder& b) {
    return b.add(OpKind::Conv,
                 {b.input("x", Dtype::f32, {2, 6, 9, 11}), b.input("w", Dtype::f32, {8, 3, 3, 3}),
                  b.input("bias", Dtype::f32, {8})},
                 {{"group", int64_t{2}}, {"pads", Integers{1, 1, 1, 0}}, {"strides", Integers{2, 1}}});
  });
}

TEST_F(Truths, OfASoftmaxAreTheCpus) {
  expect_same([](Builder& b) {
    return b.add(OpKind::Softmax, {b.input("x", Dtype::f32, {6, 300})});
  }, kAll);
}
}  // namespace
}  // namespace warploom::verify
