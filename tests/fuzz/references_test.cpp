// References of random graphs against FP64: what libraries' calls compute, and plain kernels.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "graph_case.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "vendor/make.h"
#include "vendor/match.h"
#include "vendor/problem.h"

namespace warploom::fuzz {
namespace {
// Of as many graphs as WARPLOOM_REFERENCE_GRAPHS says: each takes a compiler.
int graphs_asked() {
  const char* const text = std::getenv("WARPLOOM_REFERENCE_GRAPHS");
  return text ? std::atoi(text) : 24;
}

// The worst output's relative error.
Result<double> ran(runtime::Executor& device, const GraphCase& c,
                   const runtime::Runnable& reference) {
  runtime::Bindings buffers;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    runtime::Buffer& buffer = buffers[c.graph.tensor(c.graph.inputs[i]).name];
    const auto bytes = std::ssize(c.inputs[i]);
    WARPLOOM_TRY(buffer, device.allocate(bytes));
    WARPLOOM_CHECK(device.upload(buffer, c.inputs[i].data(), bytes));
  }
  for (const graph::TensorId id : c.graph.outputs)
    WARPLOOM_TRY(buffers[c.graph.tensor(id).name],
                 device.allocate(graph::byte_count(c.graph.tensor(id))));
  WARPLOOM_TRY(const runtime::Call call, reference.bind(buffers));
  WARPLOOM_CHECK(call());
  WARPLOOM_TRY(const auto truth, graph::evaluate(c.graph, bytes_of(c)));
  double worst = 0;
  for (size_t o = 0; o < truth.size(); ++o) {
    const graph::Tensor& tensor = c.graph.tensor(c.graph.outputs[o]);
    double error = 0;
    double norm = 0;
    for (size_t i = 0; i < truth[o].size(); ++i) {
      const double got = load_as_double(tensor.dtype, buffers[tensor.name].address(), i);
      error += (got - truth[o][i]) * (got - truth[o][i]);
      norm += truth[o][i] * truth[o][i];
    }
    const double relative = std::sqrt(error / std::max(norm, 1e-30));
    // max() would lose what is no number.
    worst = std::isnan(relative) ? HUGE_VAL : std::max(worst, relative);
  }
  return worst;
}

TEST(References, OfRandomGraphsAgreeWithFp64) {
  if (!runtime::find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  const auto device = *runtime::Executor::open(Engine::cpu);
  int graphs = 0;
  int made = 0;
  int libraries = 0;
  for (uint64_t seed = 1; graphs < graphs_asked() && seed < 2000; ++seed) {
    const GraphCase c = make_graph_case(seed);
    if (!is_sound(c)) continue;
    ++graphs;
    const double bound = c.track == Track::fp32 ? 1e-4 : 0.06;
    const vendor::VendorProblem problem = vendor::match(c.graph, c.track);
    for (const vendor::Candidate& candidate : vendor::candidates(*device, problem, c.track)) {
      const auto reference = candidate.make();
      if (!reference) {
        EXPECT_EQ(reference.error().code, ErrorCode::kNoSchedule)
            << "seed " << seed << ", " << candidate.libraries << "\n"
            << describe(reference.error());
        continue;
      }
      const auto result = ran(*device, c, *reference);
      ASSERT_TRUE(result) << "seed " << seed << ", " << reference->name << "\n"
                          << describe(result.error());
      EXPECT_LT(*result, bound) << "seed " << seed << ", " << reference->name << "\n"
                                << graph::to_text(c.graph);
      made += candidate.plain;
      libraries += !candidate.plain;
    }
  }
  printf("%d graphs: %d plain references, %d by libraries\n", graphs, made, libraries);
  EXPECT_GT(10 * made, 9 * graphs);
}
}  // namespace
}  // namespace warploom::fuzz
