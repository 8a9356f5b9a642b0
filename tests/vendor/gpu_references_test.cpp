// The references that only a GPU can show. Skipped, with the reason, where there is none.
#include <cstdio>
#include <memory>
#include <utility>
#include "base/dtype.h"
#include "base/error.h"
#include "cases.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "runtime/executor.h"
#include "vendor/make.h"
#include "vendor/match.h"
#include "vendor/problem.h"

namespace warploom::vendor {
namespace {
class GpuReferences : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto opened = runtime::Executor::open(Engine::cuda);
    if (!opened) GTEST_SKIP() << describe(opened.error());
    device = *std::move(opened);
  }

  std::unique_ptr<runtime::Executor> device;
};

// How often cuDNN or cuBLASLt served a whole case stands in the test's properties.
TEST_P(GpuReferences, EveryCandidateAgreesWithFp64) {
  const graph::Graph graph = graph_of(GetParam());
  const VendorProblem problem = match(graph, Track::fp32);
  for (const Candidate& candidate : candidates(*device, problem, Track::fp32)) {
    const auto reference = candidate.make();
    if (!reference && reference.error().code == ErrorCode::kNoNvrtc) GTEST_SKIP() << "no NVRTC";
    if (!reference && !candidate.plain) {
      printf("%s: %s: %s\n", GetParam().name.c_str(), candidate.libraries.c_str(),
             describe(reference.error()).c_str());
      continue;
    }
    ASSERT_TRUE(reference) << describe(reference.error());
    const auto error = error_of(*device, graph, *reference, inputs_of(graph));
    ASSERT_TRUE(error);
    EXPECT_LT(*error, 5e-6) << candidate.libraries << ": " << reference->name;
    printf("%s: %s: %s, error %.2g\n", GetParam().name.c_str(), candidate.libraries.c_str(),
           reference->name.c_str(), *error);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuReferences, testing::ValuesIn(library_cases()),
                         [](const auto& each) { return each.param.name; });

TEST_F(GpuReferences, Fp32IsStrictAndTf32IsNot) {
  const Case convolution{"c", "convolution", [](Builder& b) {
                           const auto x = b.input("x", Dtype::f32, {8, 64, 28, 28});
                           const auto w = b.input("w", Dtype::f32, {64, 64, 3, 3});
                           return b.add(OpKind::Conv, {x, w});
                         }};
  const graph::Graph graph = graph_of(convolution);
  for (const auto& [track, bound] : {std::pair(Track::fp32, 5e-6), std::pair(Track::tf32, 2e-3)}) {
    const auto offered = candidates(*device, match(graph, track), track);
    const auto reference = offered[0].make();
    if (!reference) GTEST_SKIP() << describe(reference.error());
    const auto error = error_of(*device, graph, *reference, inputs_of(graph));
    ASSERT_TRUE(error);
    EXPECT_LT(*error, bound) << reference->name;
  }
}
}  // namespace
}  // namespace warploom::vendor
