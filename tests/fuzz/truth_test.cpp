// Random graphs: truth as a GPU evaluates it (verify/truth_engine.h), by the text of its kernels on
// this machine's cores, is the CPU's.
#include <gtest/gtest.h>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include "../verify/truth_checks.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph_case.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "verify/inputs.h"

namespace warploom::fuzz {
namespace {
TEST(Truth, OfRandomGraphsIsTheCpus) {
  if (!runtime::find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
  const char* const asked = std::getenv("WARPLOOM_TRUTH_GRAPHS");
  const int graphs = asked ? std::atoi(asked) : 40;
  const auto device = *runtime::Executor::open(Engine::cpu);
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(graphs); ++seed) {
    SCOPED_TRACE(seed);
    const GraphCase c = make_graph_case(seed);
    if (c.graph.inputs.empty()) continue;
    for (const verify::InputFamily family :
         {verify::InputFamily::normal, verify::InputFamily::shifted, verify::InputFamily::nans})
      verify::expect_truth(*device, c.graph, family, seed);
  }
}
}  // namespace
}  // namespace warploom::fuzz
