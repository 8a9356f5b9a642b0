// Inputs, truth and comparison as a GPU computes them (verify/truth_engine.h): here by the very
// text of its kernels, compiled for this machine's cores, held to the CPU's own.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "truth_checks.h"
#include "verify/inputs.h"
#include "verify/truth_kernels.h"
#include "verify/truth_work.h"

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

  inline static ScratchFolder cache_{"truth-test"};
  inline static std::unique_ptr<runtime::Executor> device_;
};

const std::vector<InputFamily>& kAll = input_families();

// Every pointwise operator that takes floats alone, on numbers of every kind; how many there are.
int expect_pointwise(runtime::Executor& device) {
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
      for (const InputFamily family : kAll)
        expect_truth(device, *graph, family, 5);
    }
  }
  return tried;
}

TEST_F(Truths, OfEveryPointwiseOperatorAreTheCpus) {
  EXPECT_GT(expect_pointwise(*device_), 60);
}

struct Row {
  const char* name;
  std::function<TensorId(Builder&)> build;
};

TensorId floats(Builder& b, graph::Shape shape, Dtype dtype = Dtype::f32) {
  return b.input("x", dtype, std::move(shape));
}

TensorId whole(Builder& b, Dtype dtype, graph::Shape shape) {
  return b.input("n", dtype, std::move(shape));
}

// What is not pointwise: each as a kernel of its own must take it, and with what it becomes when it
// is decomposed.
const std::vector<Row> kRows = {
    {"product",
     [](Builder& b) {
       return b.add(OpKind::MatMul, {floats(b, {70, 33}), b.input("w", Dtype::f32, {33, 65})});
     }},
    {"product of values with errors",
     [](Builder& b) {
       const TensorId x = b.add(OpKind::Exp, {floats(b, {3, 17, 33})});
       const TensorId w = b.add(OpKind::Tanh, {b.input("w", Dtype::f32, {33, 20})});
       return b.add(OpKind::MatMul, {x, w});
     }},
    {"product over a long axis",
     [](Builder& b) {
       return b.add(OpKind::MatMul, {floats(b, {2, 9000}), b.input("w", Dtype::f32, {9000, 3})});
     }},
    {"product of a batch, transposed",
     [](Builder& b) {
       const TensorId w = b.input("w", Dtype::f32, {2, 3, 9, 8});
       return b.add(OpKind::MatMul,
                    {floats(b, {2, 3, 7, 8}),
                     b.add(OpKind::Transpose, {w}, {{"perm", Integers{0, 1, 3, 2}}})});
     }},
    {"product of whole numbers",
     [](Builder& b) {
       return b.add(OpKind::MatMul,
                    {whole(b, Dtype::i32, {5, 7}), b.input("m", Dtype::i32, {7, 6})});
     }},
    {"gemm",
     [](Builder& b) {
       return b.add(
           OpKind::Gemm,
           {floats(b, {5, 9}), b.input("w", Dtype::f32, {4, 9}), b.input("c", Dtype::f32, {4})},
           {{"transB", int64_t{1}}, {"alpha", 0.5}});
     }},
    {"convolution in groups",
     [](Builder& b) {
       return b.add(
           OpKind::Conv,
           {floats(b, {2, 6, 9, 11}), b.input("w", Dtype::f32, {8, 3, 3, 3}),
            b.input("bias", Dtype::f32, {8})},
           {{"group", int64_t{2}}, {"pads", Integers{1, 1, 1, 0}}, {"strides", Integers{2, 1}}});
     }},
    {"convolution of every channel",
     [](Builder& b) {
       return b.add(
           OpKind::Conv,
           {b.add(OpKind::Tanh, {floats(b, {2, 5, 7, 7})}), b.input("w", Dtype::f32, {5, 1, 3, 3})},
           {{"group", int64_t{5}}, {"dilations", Integers{2, 1}}});
     }},
    {"transposed convolution",
     [](Builder& b) {
       return b.add(OpKind::ConvTranspose,
                    {floats(b, {2, 4, 5, 5}), b.input("w", Dtype::f32, {4, 3, 3, 3})},
                    {{"strides", Integers{2, 2}}, {"pads", Integers{1, 0, 1, 1}}});
     }},
    {"convolution of three axes",
     [](Builder& b) {
       return b.add(OpKind::Conv,
                    {floats(b, {1, 2, 4, 5, 6}), b.input("w", Dtype::f32, {3, 2, 2, 3, 2})});
     }},
    {"largest of windows",
     [](Builder& b) {
       return b.add(OpKind::MaxPool, {floats(b, {2, 3, 9, 9})},
                    {{"kernel_shape", Integers{3, 2}}, {"pads", Integers{1, 1, 1, 0}}});
     }},
    {"mean of windows",
     [](Builder& b) {
       return b.add(OpKind::AveragePool, {b.add(OpKind::Exp, {floats(b, {2, 3, 9, 9})})},
                    {{"kernel_shape", Integers{3, 3}},
                     {"strides", Integers{2, 2}},
                     {"pads", Integers{1, 1, 1, 1}}});
     }},
    {"sums of rows",
     [](Builder& b) {
       return b.add(OpKind::ReduceSum, {floats(b, {9, 700}), b.integers("a", Integers{1})});
     }},
    {"sums of columns",
     [](Builder& b) {
       return b.add(OpKind::ReduceSum, {floats(b, {700, 9}), b.integers("a", Integers{0})});
     }},
    {"one sum", [](Builder& b) { return b.add(OpKind::ReduceSum, {floats(b, {30, 40, 50})}); }},
    {"largest of outer axes",
     [](Builder& b) {
       return b.add(OpKind::ReduceMax,
                    {b.add(OpKind::Sin, {floats(b, {6, 50, 4})}), b.integers("a", Integers{0, 2})});
     }},
    {"smallest of rows",
     [](Builder& b) {
       return b.add(OpKind::ReduceMin, {floats(b, {9, 700}), b.integers("a", Integers{1})});
     }},
    {"products of rows",
     [](Builder& b) {
       return b.add(OpKind::ReduceProd,
                    {b.add(OpKind::Cos, {floats(b, {9, 70})}), b.integers("a", Integers{1})});
     }},
    {"sums of whole numbers",
     [](Builder& b) {
       return b.add(OpKind::ReduceSum,
                    {whole(b, Dtype::i64, {9, 300}), b.integers("a", Integers{1})});
     }},
    {"largest of whole numbers",
     [](Builder& b) {
       return b.add(OpKind::ReduceMax,
                    {whole(b, Dtype::i32, {9, 300}), b.integers("a", Integers{1})});
     }},
    {"norm",
     [](Builder& b) {
       return b.add(OpKind::ReduceL2, {floats(b, {9, 70}), b.integers("a", Integers{1})});
     }},
    {"prefix sums of rows",
     [](Builder& b) {
       return b.add(OpKind::CumSum,
                    {b.add(OpKind::Neg, {floats(b, {4, 300})}), b.integers("a", Integers{1})});
     }},
    {"prefix sums of columns, from the end",
     [](Builder& b) {
       return b.add(OpKind::CumSum, {floats(b, {30, 20}), b.integers("a", Integers{0})},
                    {{"reverse", int64_t{1}}, {"exclusive", int64_t{1}}});
     }},
    {"prefix sums of whole numbers",
     [](Builder& b) {
       return b.add(OpKind::CumSum, {whole(b, Dtype::i32, {4, 90}), b.integers("a", Integers{1})});
     }},
    {"softmax", [](Builder& b) { return b.add(OpKind::Softmax, {floats(b, {6, 300})}); }},
    {"logarithm of a softmax over an inner axis",
     [](Builder& b) {
       return b.add(OpKind::LogSoftmax, {floats(b, {3, 20, 7})}, {{"axis", int64_t{1}}});
     }},
    {"layer norm",
     [](Builder& b) {
       return b.add(OpKind::LayerNormalization,
                    {floats(b, {6, 80}), b.input("s", Dtype::f32, {80})});
     }},
    {"batch norm",
     [](Builder& b) {
       return b.add(
           OpKind::BatchNormalization,
           {floats(b, {2, 4, 5, 6}), b.input("s", Dtype::f32, {4}), b.input("b", Dtype::f32, {4}),
            b.input("m", Dtype::f32, {4}), b.input("v", Dtype::f32, {4})});
     }},
    {"group norm",
     [](Builder& b) {
       return b.add(
           OpKind::GroupNormalization,
           {floats(b, {2, 6, 5, 5}), b.input("s", Dtype::f32, {6}), b.input("b", Dtype::f32, {6})},
           {{"num_groups", int64_t{3}}});
     }},
    {"place of the largest",
     [](Builder& b) {
       return b.add(OpKind::ArgMax, {floats(b, {7, 30})}, {{"axis", int64_t{1}}});
     }},
    {"place of the smallest of columns",
     [](Builder& b) {
       return b.add(OpKind::ArgMin, {floats(b, {30, 7})}, {{"axis", int64_t{0}}});
     }},
    {"transpose of a slice",
     [](Builder& b) {
       const TensorId part =
           b.add(OpKind::Slice, {floats(b, {8, 9, 10}), b.integers("b", Integers{7, 1}),
                                 b.integers("e", Integers{0, 8}), b.integers("a", Integers{0, 2}),
                                 b.integers("s", Integers{-2, 3})});
       return b.add(OpKind::Transpose, {part}, {{"perm", Integers{2, 0, 1}}});
     }},
    {"reshape of a transpose",
     [](Builder& b) {
       const TensorId turned = b.add(OpKind::Transpose, {floats(b, {6, 8})});
       return b.add(OpKind::Reshape, {turned, b.integers("s", Integers{4, 12})});
     }},
    {"concatenation",
     [](Builder& b) {
       const TensorId x = floats(b, {3, 4});
       return b.add(OpKind::Concat, {x, b.add(OpKind::Exp, {x}), b.input("y", Dtype::f32, {3, 2})},
                    {{"axis", int64_t{1}}});
     }},
    {"padding that crops",
     [](Builder& b) {
       return b.add(OpKind::Pad,
                    {b.add(OpKind::Exp, {floats(b, {5, 6})}),
                     b.integers("p", Integers{2, -1, 0, 3}), b.input("v", Dtype::f32, {})});
     }},
    {"gather",
     [](Builder& b) {
       return b.add(OpKind::Gather,
                    {b.add(OpKind::Exp, {floats(b, {9, 5})}), whole(b, Dtype::i64, {4, 3})});
     }},
    {"expansion",
     [](Builder& b) {
       return b.add(OpKind::Expand, {floats(b, {5, 1}), b.integers("s", Integers{3, 5, 4})});
     }},
    {"cast to narrow floats and back",
     [](Builder& b) {
       TensorId x = floats(b, {9, 70});
       for (const int64_t type : {17, 1, 10, 1, 16, 1})
         x = b.add(OpKind::Cast, {x}, {{"to", type}});
       return x;
     }},
    {"cast to whole numbers",
     [](Builder& b) { return b.add(OpKind::Cast, {floats(b, {9, 70})}, {{"to", int64_t{3}}}); }},
    {"arithmetic of whole numbers",
     [](Builder& b) {
       const TensorId n = whole(b, Dtype::i64, {9, 40});
       const TensorId m = b.input("m", Dtype::i64, {40});
       const TensorId product = b.add(OpKind::Mul, {n, m});
       const TensorId rest = b.add(OpKind::Mod, {product, m});
       return b.add(OpKind::Max, {b.add(OpKind::Sub, {rest, n}), b.add(OpKind::Abs, {m})});
     }},
    {"narrow inputs of other types",
     [](Builder& b) {
       const TensorId x =
           b.add(OpKind::Cast, {floats(b, {9, 7}, Dtype::f16)}, {{"to", int64_t{1}}});
       const TensorId y =
           b.add(OpKind::Cast, {b.input("y", Dtype::e5m2, {7})}, {{"to", int64_t{1}}});
       const TensorId z =
           b.add(OpKind::Cast, {b.input("z", Dtype::u8, {9, 1})}, {{"to", int64_t{1}}});
       return b.add(OpKind::Add, {b.add(OpKind::Mul, {x, y}), z});
     }},
    {"attention",
     [](Builder& b) {
       const TensorId k = b.add(OpKind::Transpose, {b.input("k", Dtype::f32, {2, 9, 8})},
                                {{"perm", Integers{0, 2, 1}}});
       const TensorId scores = b.add(OpKind::MatMul, {floats(b, {2, 7, 8}), k});
       return b.add(OpKind::MatMul,
                    {b.add(OpKind::Softmax, {scores}), b.input("v", Dtype::f32, {2, 9, 6})});
     }},
};

void expect_row(runtime::Executor& device, size_t row) {
  Builder builder("truth");
  builder.output(kRows[row].build(builder));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph) << kRows[row].name << ": " << describe(graph.error());
  SCOPED_TRACE(kRows[row].name);
  for (const InputFamily family : kAll)
    expect_truth(device, *graph, family, 3);
}

class TruthRows : public Truths, public testing::WithParamInterface<size_t> {};

TEST_P(TruthRows, AreTheCpusInEveryFamily) {
  expect_row(*device_, GetParam());
}

INSTANTIATE_TEST_SUITE_P(OfOperators, TruthRows, testing::Range(size_t{0}, kRows.size()));

class GpuTruths : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (auto gpu = runtime::Executor::open(Engine::cuda)) device_ = *std::move(gpu);
  }

  static void TearDownTestSuite() { device_.reset(); }

  void SetUp() override {
    if (!device_) GTEST_SKIP() << "no GPU here";
  }

  inline static std::unique_ptr<runtime::Executor> device_;
};

TEST_F(GpuTruths, OfEveryRowAreTheCpus) {
  for (size_t row = 0; row < kRows.size(); ++row)
    expect_row(*device_, row);
}

TEST_F(GpuTruths, OfEveryPointwiseOperatorAreTheCpus) {
  EXPECT_GT(expect_pointwise(*device_), 60);
}

TEST_F(Truths, HaveKernelsThatCompileForGpus) {
  if (!runtime::find_cuda_compiler()) GTEST_SKIP() << "no NVRTC and no nvcc here";
  const LaunchList list = truth_list(Engine::cuda, "sm_80", 1, all_truth_work().operations);
  const auto binary = runtime::compile(list, {.most_spills = runtime::kAnySpills});
  EXPECT_TRUE(binary) << describe(binary.error());
}
}  // namespace
}  // namespace warploom::verify
