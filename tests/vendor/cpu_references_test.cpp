#include <memory>
#include <string>
#include "base/dtype.h"
#include "base/error.h"
#include "cases.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "vendor/make.h"
#include "vendor/match.h"
#include "vendor/problem.h"
#include "vendor/program.h"

namespace warploom::vendor {
namespace {
runtime::Executor& cpu() {
  static const std::unique_ptr<runtime::Executor> device = *runtime::Executor::open(Engine::cpu);
  return *device;
}

bool has_dnnl() {
  return dnnl_library(Layouts::rows, {}) != nullptr;
}

class CpuReferences : public testing::TestWithParam<Case> {};

TEST_P(CpuReferences, EveryCandidateAgreesWithFp64) {
  const graph::Graph graph = graph_of(GetParam());
  const VendorProblem problem = match(graph, Track::fp32);
  EXPECT_EQ(words_of(problem.steps), GetParam().calls);
  const bool narrow = graph.tensor(graph.outputs[0]).dtype != Dtype::f32;
  const double bound = narrow ? 6e-3 : 2e-6;
  int libraries = 0;
  for (const Candidate& candidate : candidates(cpu(), problem, Track::fp32)) {
    if (candidate.plain && !runtime::find_cpu_compiler()) continue;
    const auto reference = candidate.make();
    if (!reference && !candidate.plain) continue;  // one of several ways
    ASSERT_TRUE(reference) << describe(reference.error());
    const auto error = error_of(cpu(), graph, *reference, inputs_of(graph));
    ASSERT_TRUE(error);
    EXPECT_LT(*error, bound) << candidate.libraries << ": " << reference->name;
    const bool whole = reference->name.find("plain") == std::string::npos;
    libraries += whole && !candidate.plain;
  }
  EXPECT_TRUE(libraries > 0 || !has_dnnl()) << "no library serves it";
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuReferences, testing::ValuesIn(library_cases()),
                         [](const auto& each) { return each.param.name; });
}  // namespace
}  // namespace warploom::vendor
