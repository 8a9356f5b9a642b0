// The other side of the interface: the same kernels and the same answers on a GPU of compute
// capability 9.0. Skipped where there is none. WARPLOOM_CONFORMANCE_CUBIN names a cubin of
// conformance_text() for machines without nvcc: of kernels/conformance.cu, conformance_products.cu
// and conformance_clusters.cu as one file.
#include <gtest/gtest.h>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <ios>
#include <sstream>
#include <string>
#include <vector>
#include "conformance.h"
#include "gpu.h"
#include "harness.h"

namespace warploom::emulator::testing {
namespace {
std::string cubin() {
  if (const char* path = std::getenv("WARPLOOM_CONFORMANCE_CUBIN")) {
    std::ifstream f(path, std::ios::binary);
    std::stringstream s;
    s << f.rdbuf();
    return s.str();
  }
  return cubin_of(conformance_text(), "90a");
}

std::string run_on(Gpu& gpu, const std::string& code, const Conformance& c) {
  const std::vector<uint32_t> zeros(c.want.size());
  const Gpu::Buffer in = gpu.upload(c.in.data(), c.in.size() * 4);
  const Gpu::Buffer out = gpu.upload(zeros.data(), zeros.size() * 4);
  const auto map = [](const MapShape& m) {
    return matrix_map(nullptr, 2, m.rows, m.cols, m.cols, m.box_rows, m.box_cols, m.swizzle);
  };
  Gpu::Map map_in{};
  Gpu::Map map_out{};
  std::string wrong =
      gpu.encode(map(c.map_in), in, static_cast<size_t>(c.map_in.offset) * 4, &map_in);
  if (wrong.empty())
    wrong = gpu.encode(map(c.map_out), out, static_cast<size_t>(c.map_out.offset) * 4, &map_out);
  void* args[] = {&map_in, &map_out, const_cast<uint64_t*>(&in.address),
                  const_cast<uint64_t*>(&out.address)};
  if (wrong.empty()) wrong = gpu.launch(code, c.kernel, c.grid, c.threads, c.shared_bytes, args);
  std::vector<uint32_t> got(c.want.size());
  gpu.download(out, got.data());
  gpu.release(in);
  gpu.release(out);
  return wrong.empty() ? compare(c, got) : wrong;
}

// One test a kernel, since a fault on the GPU ends the process's context: ctest runs each in a
// process of its own.
class ConformanceOnGpu : public ::testing::TestWithParam<Conformance> {};

TEST_P(ConformanceOnGpu, AnswersAsTheEmulatedOne) {
  Gpu* gpu = Gpu::find();
  if (!gpu) GTEST_SKIP() << "no CUDA driver or device on this machine";
  static const std::string code = cubin();
  if (code.empty()) GTEST_SKIP() << "no nvcc and no WARPLOOM_CONFORMANCE_CUBIN";
  EXPECT_EQ(run_on(*gpu, code, GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Kernels, ConformanceOnGpu, ::testing::ValuesIn(conformance_cases()),
                         [](const auto& each) { return each.param.kernel; });
}  // namespace
}  // namespace warploom::emulator::testing
