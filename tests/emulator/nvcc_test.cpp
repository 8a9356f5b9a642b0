// The emulator's own kernels on the GPU's side of the interface, where there is a compiler for it.
#include <gtest/gtest.h>
#include "harness.h"

namespace warploom::emulator::testing {
namespace {
TEST(Nvcc, CompilesTheKernelsWithoutSpillsOrRepairs) {
  const std::pair<const char*, const char*> kernels[] = {{"conformance", "90a"},
                                                         {"gemm_sm80", "80"},
                                                         {"gemm_sm90", "90a"},
                                                         {"softmax_cluster", "90a"}};
  for (const auto& [kernel, arch] : kernels) {
    const std::string said = compile_with_nvcc(read_kernel(kernel), arch);
    if (said == "absent") GTEST_SKIP() << "no nvcc on this machine";
    EXPECT_EQ(said, "") << kernel;
  }
}
}  // namespace
}  // namespace warploom::emulator::testing
