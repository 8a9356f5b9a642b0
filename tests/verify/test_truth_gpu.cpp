// Judging with truth on the GPU and with truth on this machine's cores: the same verdicts. Figures
// of both for large problems are printed where WARPLOOM_TRUTH_FIGURES is set, and never held to
// anything.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "runtime/executor.h"
#include "vendor/plain.h"
#include "verify/evaluator.h"

namespace warploom::verify {
namespace {
using graph::Builder, graph::OpKind, graph::TensorId;
using Integers = std::vector<int64_t>;
using Build = std::function<TensorId(Builder&)>;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class GpuJudges : public testing::Test {
 protected:
  void SetUp() override {
    const auto gpu = runtime::Executor::describe(Engine::cuda);
    if (!gpu) GTEST_SKIP() << describe(gpu.error());
    arch_ = gpu->arch;
  }

  void TearDown() override { ::unsetenv("WARPLOOM_TRUTH"); }

  static graph::Graph graph_of(const Build& build) {
    Builder builder("judged");
    builder.output(build(builder));
    auto graph = builder.finish();
    EXPECT_TRUE(graph) << describe(graph.error());
    graph->tensor(graph->outputs[0]).name = "y";
    return *graph;
  }

  // A plain kernel of `computed` is judged as a candidate for `wanted`.
  Result<Verdict> judged(const graph::Graph& wanted, const graph::Graph& computed, bool on_gpu,
                         bool whole) const {
    ::setenv("WARPLOOM_TRUTH", on_gpu ? "gpu" : "cpu", 1);
    WARPLOOM_TRY(Evaluator evaluator,
                 Evaluator::start({.graph = wanted, .engine = Engine::cuda, .seed = 5}));
    Request request{.whole = whole, .check_ms = 5000};
    WARPLOOM_TRY(request.list, vendor::plain_list(computed, Engine::cuda, arch_));
    return evaluator.judge(request);
  }

  std::string arch_;
};

struct Pair {
  const char* name;
  Build wanted;
  Build wrong;  // in a few elements, or all
};

const std::vector<Pair> kPairs = {
    {"swish",
     [](Builder& b) { return b.add(OpKind::Swish, {b.input("x", Dtype::f32, {300, 1000})}); },
     [](Builder& b) {
       return b.add(OpKind::Swish, {b.input("x", Dtype::f32, {300, 1000})}, {{"alpha", 1.001}});
     }},
    {"product",
     [](Builder& b) {
       return b.add(OpKind::MatMul,
                    {b.input("x", Dtype::f32, {300, 400}), b.input("w", Dtype::f32, {400, 200})});
     },
     [](Builder& b) {
       const TensorId x = b.add(OpKind::Round, {b.input("x", Dtype::f32, {300, 400})});
       return b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {400, 200})});
     }},
    {"softmax",
     [](Builder& b) { return b.add(OpKind::Softmax, {b.input("x", Dtype::f32, {200, 3000})}); },
     [](Builder& b) { return b.add(OpKind::Exp, {b.input("x", Dtype::f32, {200, 3000})}); }},
    {"place of the smallest",
     [](Builder& b) {
       return b.add(OpKind::ArgMin, {b.input("x", Dtype::f32, {200, 300})}, {{"axis", int64_t{1}}});
     },
     [](Builder& b) {
       return b.add(OpKind::ArgMax, {b.input("x", Dtype::f32, {200, 300})}, {{"axis", int64_t{1}}});
     }},
};

TEST_F(GpuJudges, AcceptAndRefuseAsTheCpusTruthDoes) {
  for (const Pair& pair : kPairs) {
    const graph::Graph wanted = graph_of(pair.wanted);
    const graph::Graph wrong = graph_of(pair.wrong);
    for (const bool whole : {false, true}) {
      for (const bool on_gpu : {true, false}) {
        const auto right = judged(wanted, wanted, on_gpu, whole);
        ASSERT_TRUE(right) << describe(right.error());
        EXPECT_TRUE(right->accepted) << pair.name << ": " << describe(right->error_found);
        EXPECT_EQ(right->truth.starts_with("the GPU"), on_gpu) << right->truth;
        const auto refused = judged(wanted, wrong, on_gpu, whole);
        ASSERT_TRUE(refused) << describe(refused.error());
        EXPECT_FALSE(refused->accepted) << pair.name;
        EXPECT_EQ(refused->error_found.code, ErrorCode::kCandidateWrong)
            << describe(refused->error_found);
      }
    }
  }
}

TEST_F(GpuJudges, CompareWholeOutputsInAScreening) {
  const graph::Graph swish = graph_of(kPairs[0].wanted);
  const auto verdict = judged(swish, swish, true, false);
  ASSERT_TRUE(verdict) << describe(verdict.error());
  ASSERT_FALSE(verdict->evidence.empty());
  for (const Evidence& evidence : verdict->evidence)
    EXPECT_EQ(evidence.rows_checked, evidence.rows);
}

const std::vector<Pair> kLarge = {
    {"softmax 4096 x 65536",
     [](Builder& b) { return b.add(OpKind::Softmax, {b.input("x", Dtype::f32, {4096, 65536})}); },
     nullptr},
    {"matmul 4096",
     [](Builder& b) {
       return b.add(OpKind::MatMul, {b.input("x", Dtype::f32, {4096, 4096}),
                                     b.input("w", Dtype::f32, {4096, 4096})});
     },
     nullptr},
    {"conv 128 x 64 x 56 x 56, 3 x 3",
     [](Builder& b) {
       return b.add(
           OpKind::Conv,
           {b.input("x", Dtype::f32, {128, 64, 56, 56}), b.input("w", Dtype::f32, {64, 64, 3, 3})},
           {{"pads", Integers{1, 1, 1, 1}}});
     },
     nullptr},
    {"swish over 1.6e9",
     [](Builder& b) { return b.add(OpKind::Swish, {b.input("x", Dtype::f32, {4096, 393216})}); },
     nullptr},
    {"argmin 128 x 4096 x 1024",
     [](Builder& b) {
       return b.add(OpKind::ArgMin, {b.input("x", Dtype::f32, {128, 4096, 1024})},
                    {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}});
     },
     nullptr},
    {"cumsum 32768 x 32768",
     [](Builder& b) {
       return b.add(OpKind::CumSum,
                    {b.input("x", Dtype::f32, {32768, 32768}), b.integers("a", Integers{1})});
     },
     nullptr},
};

TEST_F(GpuJudges, PrintFigures) {
  const char* const asked = ::getenv("WARPLOOM_TRUTH_FIGURES");
  if (!asked) GTEST_SKIP() << "only where WARPLOOM_TRUTH_FIGURES is set";
  for (const Pair& pair : kLarge) {
    const graph::Graph graph = graph_of(pair.wanted);
    for (const bool on_gpu : {true, false}) {
      if (!on_gpu && std::string(asked) == "gpu") continue;
      ::setenv("WARPLOOM_TRUTH", on_gpu ? "gpu" : "cpu", 1);
      const auto start = std::chrono::steady_clock::now();
      auto evaluator = Evaluator::start({.graph = graph, .engine = Engine::cuda, .seed = 5});
      const double setup = seconds_since(start);
      ASSERT_TRUE(evaluator) << describe(evaluator.error());
      const auto plain = vendor::plain_list(graph, Engine::cuda, arch_);
      ASSERT_TRUE(plain) << describe(plain.error());
      printf("%-32s %-9s set-up %6.2f s", pair.name, on_gpu ? "GPU" : "CPU", setup);
      for (const char* which : {"first", "second", "whole"}) {
        Request request{.list = *plain, .whole = which[0] == 'w', .timing_ms = 50};
        const auto judging = std::chrono::steady_clock::now();
        const auto verdict = evaluator->judge(request);
        const double took = seconds_since(judging);
        ASSERT_TRUE(verdict) << describe(verdict.error());
        const bool compared = !verdict->evidence.empty() &&
                              verdict->evidence[0].rows_checked == verdict->evidence[0].rows;
        printf("  %s %6.2f s (judge %7.0f ms, %zu families%s)%s", which, took, verdict->judge_ms,
               verdict->evidence.size(), compared ? ", whole" : "",
               verdict->accepted ? "" : " REFUSED");
        if (!verdict->accepted) printf(" %s", describe(verdict->error_found).c_str());
      }
      printf("  [%s]\n", evaluator->ready().truth.c_str());
      fflush(stdout);
    }
  }
}
}  // namespace
}  // namespace warploom::verify
