// Products of the oracle in a process of their own: on a GPU where there is one, and everywhere by
// the same text on the host.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "host_multiplier.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "vendor/plain.h"
#include "verify/coverage.h"
#include "verify/evaluator.h"
#include "verify/gpu_products.h"
#include "verify/inputs.h"

namespace warploom::verify {
namespace {
// Rows and columns of some tensor: so far apart, so many, `depth` apart along k.
struct Side {
  Dtype dtype;
  int64_t line;
  int64_t depth;
  int64_t batch;
};

struct Case {
  const char* name;
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t batch;
  Side a;
  Side b;
};

constexpr Case kCases[] = {
    {"packed", 70, 65, 33, 1, {Dtype::f32, 33, 1, 0}, {Dtype::f32, 1, 65, 0}},
    {"one column", 3, 1, 40, 1, {Dtype::f64, 40, 1, 0}, {Dtype::f64, 1, 1, 0}},
    {"one row and one term", 1, 130, 1, 1, {Dtype::bf16, 1, 1, 0}, {Dtype::f16, 1, 130, 0}},
    {"transposed, in a batch",
     17,
     64,
     16,
     3,
     {Dtype::bf16, 1, 17, 272},
     {Dtype::bf16, 16, 1, 1024}},
    {"one operand for the whole batch",
     64,
     9,
     20,
     4,
     {Dtype::f16, 20, 1, 1280},
     {Dtype::i8, 1, 9, 0}},
    {"overlapping windows", 5, 90, 7, 2, {Dtype::f32, 7, 1, 0}, {Dtype::f64, 1, 1, 96}},
    {"backwards", 20, 20, 20, 1, {Dtype::f32, -20, -1, 0}, {Dtype::e4m3, 1, -20, 0}},
    {"packed types", 33, 10, 31, 2, {Dtype::i4, 31, 1, 0}, {Dtype::u2, 1, 10, 310}},
};

// Memory that a side reads, numbers between -8 and 8 in it, and its tables.
struct Filled {
  Filled(const Side& side, int64_t lines, int64_t depths, int64_t batch, uint64_t seed)
      : dtype(side.dtype) {
    const auto along = [](int64_t step, int64_t count, std::vector<int64_t>& to) {
      for (int64_t i = 0; i < count; ++i)
        to.push_back(i * step);
      return step < 0 ? (count - 1) * -step : 0;
    };
    first = along(side.line, lines, line) + along(side.depth, depths, depth);
    const int64_t size = first + std::max(line.back(), line[0]) + std::max(depth.back(), depth[0]) +
                         (batch - 1) * side.batch + 1;
    bytes.resize(static_cast<size_t>(bytes_of(dtype, size)));
    Random random(seed, "operands");
    for (int64_t i = 0; i < size; ++i)
      store_from_double(dtype, bytes.data(), static_cast<size_t>(i), 16 * random.uniform() - 8);
  }

  graph::Operand operand() const { return {bytes.data(), dtype, line.data(), depth.data()}; }

  Dtype dtype;
  std::vector<std::byte> bytes;
  std::vector<int64_t> line;
  std::vector<int64_t> depth;
  int64_t first = 0;
};

struct Sums {
  std::vector<double> value;
  std::vector<double> magnitude;
};

void expect_near(const std::vector<double>& wanted, const std::vector<double>& found,
                 const std::vector<double>& magnitude) {
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(found[i], wanted[i], 1e-14 * magnitude[i]) << i;
}

void expect_agreement_on(const Case& c, const graph::ProductEngine& engine) {
  const Filled a(c.a, c.m, c.k, c.batch, 1);
  const Filled b(c.b, c.n, c.k, c.batch, 2);
  graph::Product product{a.operand(), b.operand(), c.m, c.n, c.k};
  for (int64_t i = 0; i < c.batch; ++i)  // the last product's results come first
    product.batch.push_back(
        {a.first + i * c.a.batch, b.first + i * c.b.batch, (c.batch - 1 - i) * c.m * c.n});
  const std::vector<double> start(static_cast<size_t>(c.batch * c.m * c.n), 3.0);
  Sums wanted{start, start};
  Sums found{start, start};
  Sums alone{start, start};
  graph::multiply_add(product, wanted.value.data(), wanted.magnitude.data(), 1);
  ASSERT_TRUE(engine(product, found.value.data(), found.magnitude.data()));
  ASSERT_TRUE(engine(product, nullptr, alone.magnitude.data()));
  EXPECT_EQ(alone.magnitude, found.magnitude);
  expect_near(wanted.value, found.value, wanted.magnitude);
  expect_near(wanted.magnitude, found.magnitude, wanted.magnitude);
}

// What an engine adds must be what the CPU adds, but for the order of the sums.
void expect_agreement(const graph::ProductEngine& engine) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    expect_agreement_on(c, engine);
  }
}

// Whether an engine takes a product of n by n by k, which is right then.
bool takes(const graph::ProductEngine& engine, int64_t n, int64_t k) {
  const std::vector<float> ones(static_cast<size_t>(n * k), 1.0f);
  std::vector<int64_t> lines(static_cast<size_t>(n));
  std::vector<int64_t> depths(static_cast<size_t>(k));
  for (size_t i = 0; i < lines.size(); ++i)
    lines[i] = static_cast<int64_t>(i) * k;
  std::iota(depths.begin(), depths.end(), 0);
  const graph::Operand side = {ones.data(), Dtype::f32, lines.data(), depths.data()};
  std::vector<double> sums(static_cast<size_t>(n * n));
  const bool taken = engine({side, side, n, n, k, {{0, 0, 0}}}, sums.data(), nullptr);
  EXPECT_EQ(sums, std::vector<double>(sums.size(), taken ? static_cast<double>(k) : 0.0));
  return taken;
}

class Products : public testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }

  void TearDown() override { ::unsetenv(kHostProducts); }

  inline static ScratchFolder cache_{"products-test"};
};

class GpuProducts : public Products {
 protected:
  void SetUp() override {
    const auto gpu = runtime::Executor::open(Engine::cuda);
    if (!gpu) GTEST_SKIP() << describe(gpu.error());
  }
};

TEST_F(Products, OfTheKernelsTextAgreeWithTheCpu) {
  ::setenv(kHostProducts, "1", 1);
  expect_agreement(gpu_products({.least = 0}));
}

TEST_F(Products, ThatAreSmallAreDeclinedAndStartNoProcess) {
  const graph::ProductEngine engine = gpu_products({.program = "/nonexistent"});
  EXPECT_FALSE(takes(engine, 64, 64));
  EXPECT_FALSE(takes(gpu_products({.least = 0}), 0, 64));
}

TEST_F(Products, ThatAreSmallBesideTheirOperandsAreDeclined) {
  ::setenv(kHostProducts, "1", 1);
  const graph::ProductEngine engine = gpu_products({.least = 1});
  EXPECT_FALSE(takes(engine, 4, 2000));
  EXPECT_TRUE(takes(engine, 160, 160));
}

TEST_F(Products, AreLeftToTheCpuWhereTheProcessEnds) {
  const graph::ProductEngine engine = gpu_products({.least = 1, .program = "/bin/false"});
  EXPECT_FALSE(takes(engine, 160, 160));
  EXPECT_FALSE(takes(engine, 160, 160));
}

TEST_F(Products, AreLeftToTheCpuWhereTheProcessHangs) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(
      takes(gpu_products({.least = 1, .limit_ms = 100, .program = "/usr/bin/yes"}), 160, 160));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(Products, AreLeftToTheCpuWhereThereIsNoGpu) {
  if (runtime::Executor::open(Engine::cuda)) GTEST_SKIP() << "a GPU is here";
  EXPECT_FALSE(takes(gpu_products({.least = 1}), 160, 160));
}

// Rows of a graph by an engine and by the CPU.
void expect_same_rows(const Result<graph::Graph>& graph, const graph::ProductEngine& engine) {
  ASSERT_TRUE(graph) << describe(graph.error());
  std::vector<Filled> data;
  std::vector<graph::Bytes> inputs;
  for (const graph::TensorId id : graph->inputs) {
    const int64_t elements = graph::element_count(graph->tensor(id).shape);
    data.emplace_back(Side{graph->tensor(id).dtype, 1, 0, 0}, elements, 1, 1, data.size());
  }
  for (const Filled& one : data)
    inputs.emplace_back(one.bytes);
  graph::EvalOptions means;
  means.products = engine;
  const int64_t rows = graph::rows_of(*graph).count;
  const auto wanted = graph::evaluate_magnitude_rows(*graph, inputs, 0, 1, rows);
  const auto found = graph::evaluate_magnitude_rows(*graph, inputs, 0, 1, rows, means);
  ASSERT_TRUE(wanted && found);
  for (size_t i = 0; i < wanted->value.size(); ++i) {
    ASSERT_NEAR(found->value[i], wanted->value[i], 1e-14 * wanted->magnitude[i]);
    ASSERT_NEAR(found->magnitude[i], wanted->magnitude[i], 1e-14 * wanted->magnitude[i]);
  }
}

TEST_F(Products, OfMatricesWithErrorsOfTheirOwnAreTheSameByAnEngine) {
  ::setenv(kHostProducts, "1", 1);
  graph::Builder builder("mm");
  const auto x = builder.input("x", Dtype::f32, {9, 40});
  const auto w = builder.input("w", Dtype::f32, {40, 30});
  builder.output(builder.add(graph::OpKind::MatMul, {builder.add(graph::OpKind::Exp, {x}), w}));
  expect_same_rows(builder.finish(), gpu_products({.least = 0}));
}

TEST_F(Products, OfGroupsOfAConvolutionAreTheSameByAnEngine) {
  ::setenv(kHostProducts, "1", 1);
  graph::Builder builder("conv");
  const auto x = builder.input("x", Dtype::bf16, {3, 4, 6, 7});
  const auto w = builder.input("w", Dtype::bf16, {6, 2, 3, 3});
  builder.output(builder.add(graph::OpKind::Conv, {x, w},
                             {{"group", int64_t{2}}, {"pads", std::vector<int64_t>(4, 1)}}));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph) << describe(graph.error());
  expect_same_rows(graph::decompose(*graph), gpu_products({.least = 0}));
}

TEST_F(Products, HaveAKernelThatCompilesWithoutSpills) {
  if (!runtime::find_cuda_compiler()) GTEST_SKIP() << "no NVRTC and no nvcc here";
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const auto binary = runtime::compile(product_list(arch, 1));
    EXPECT_TRUE(binary) << arch << ": " << describe(binary.error());
  }
}

TEST_F(GpuProducts, AgreeWithTheCpu) {
  expect_agreement(gpu_products({.least = 0}));
}

// 2^39 multiply-adds, twice: the first with the start of the process.
TEST_F(GpuProducts, OfManyOperationsTakeSeconds) {
  const graph::ProductEngine engine = gpu_products();
  for (int time = 0; time < 2; ++time) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_TRUE(takes(engine, 8192, 8192));
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    printf("8192^3: %.2f s\n", seconds.count());
    EXPECT_LT(seconds.count(), 30);
  }
}

// 10^12 operations, every element of all families; and honest kernels do not contradict the host's
// clock.
TEST_F(GpuProducts, LetALargeProblemBeJudgedWhole) {
  constexpr int64_t n = 8192;
  graph::Builder builder("mm");
  const auto a = builder.input("A", Dtype::bf16, {n, n});
  const auto b = builder.input("B", Dtype::bf16, {n, n});
  builder.output(builder.add(graph::OpKind::MatMul, {a, b}));
  auto graph = builder.finish();
  ASSERT_TRUE(graph) << describe(graph.error());
  graph->tensor(graph->outputs[0]).name = "C";
  const auto evaluator = Evaluator::start({.graph = *graph,
                                           .track = Track::bf16,
                                           .engine = Engine::cuda,
                                           .flops = 2.0 * n * n * n,
                                           .seed = 5});
  ASSERT_TRUE(evaluator) << describe(evaluator.error());
  const auto info = runtime::Executor::open(Engine::cuda).value()->info();
  Request request{.whole = true, .check_ms = 120'000};
  const auto plain = vendor::plain_list(*graph, Engine::cuda, info.arch);
  ASSERT_TRUE(plain) << describe(plain.error());
  request.list = *plain;
  const auto start = std::chrono::steady_clock::now();
  auto judge = *evaluator;
  const auto verdict = judge.judge(request);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(verdict) << describe(verdict.error());
  EXPECT_TRUE(verdict->accepted) << describe(verdict->error_found);
  const Coverage all = coverage_of(*graph, Track::bf16, SpecialValues::exact, {});
  EXPECT_EQ(verdict->evidence.size(), all.families.size());
  for (const Evidence& evidence : verdict->evidence) {
    if (is_wide(evidence.family)) continue;
    EXPECT_EQ(evidence.rows_checked, evidence.rows);
  }
  printf("judged whole in %.1f s, %.1f us a call\n", seconds.count(), verdict->median_us);
}
}  // namespace
}  // namespace warploom::verify
