// The emulator's own kernels on the GPU's side of the interface, where there is a compiler for it.
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include "conformance.h"
#include "harness.h"

namespace warploom::emulator::testing {
namespace {
TEST(Nvcc, CompilesTheKernelsWithoutSpillsOrRepairs) {
  const std::pair<std::string, const char*> texts[] = {{conformance_text(), "90a"},
                                                       {read_kernel("gemm_sm80"), "80"},
                                                       {read_kernel("gemm_sm90"), "90a"},
                                                       {read_kernel("softmax_cluster"), "90a"}};
  for (const auto& [text, arch] : texts) {
    const std::string said = compile_with_nvcc(text, arch);
    if (said == "absent") GTEST_SKIP() << "no nvcc on this machine";
    EXPECT_EQ(said, "") << text.substr(0, text.find('\n'));
  }
}
}  // namespace
}  // namespace warploom::emulator::testing
