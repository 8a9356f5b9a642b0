// What the gate must let pass: kernels of people and of every CPU family, for several machines.
#include <gtest/gtest.h>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include "../graph/builder.h"
#include "../support/paths.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "gate_images.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "support/paths.h"
#include "target/capabilities.h"

namespace warploom::verify {
namespace {
using graph::OpKind;

TEST(GateOfHonest, EveryHonestKernelOfTheCorpusPasses) {
  int count = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(test::source_path("tests/verify/corpus/honest"))) {
    if (file.path().extension() != ".cpp") continue;
    EXPECT_EQ(verdict(compiled(read_file(file.path()).value_or(""))), "ok") << file.path();
    ++count;
  }
  EXPECT_GE(count, 15);
}

TEST(GateOfHonest, TablesSwitchesAndCallsOfMathematicsPass) {
  EXPECT_EQ(verdict(honest_image()), "ok");
}

// Vectors' intrinsics that compilers do not come upon by themselves.
TEST(GateOfHonest, IntrinsicsOfNewerMachinesPass) {
  const auto image = compiled_for(
      "sapphirerapids",
      kernel("  _tile_zero(0);\n  _tile_loadd(1, b[1], 64);\n  _tile_dpbf16ps(0, 1, 2);\n"
             "  _tile_dpbusd(3, 1, 2);\n  _tile_stored(0, b[2], 64);\n  _tile_release();\n"
             "  auto a = _mm512_loadu_ps(x);\n  auto c = _mm512_loadu_si512(b[1]);\n"
             "  c = _mm512_dpbusd_epi32(c, c, c);\n"
             "  a = _mm512_dpbf16_ps(a, _mm512_cvtne2ps_pbh(a, a), _mm512_cvtne2ps_pbh(a, a));\n"
             "  auto h = _mm512_loadu_ph(b[2]);\n  h = _mm512_fmadd_ph(h, h, h);\n"
             "  _mm512_storeu_ph(b[2], h);\n  _mm512_storeu_ps(x, a);\n"
             "  _mm512_stream_si512(static_cast<__m512i*>(b[1]), c);\n  _mm_sfence();",
             "#include <immintrin.h>"));
  ASSERT_TRUE(image) << describe(image.error());
  EXPECT_EQ(verdict(*image), "ok");
}

graph::Graph graph_of(const std::string& what) {
  graph::Builder b(what);
  const auto x = b.input("x", Dtype::f32, {67, 130});
  if (what == "matmul") {
    const auto y = b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {130, 45})});
    b.output(b.add(OpKind::Gelu, {y}, {{"approximate", std::string("none")}}));
  } else if (what == "softmax") {
    b.output(b.add(OpKind::Softmax, {x}, {{"axis", int64_t{-1}}}));
  } else {
    b.output(b.add(OpKind::Tanh, {x}));
  }
  return *graph::decompose(*b.finish());
}

class GateOfFamilies : public testing::TestWithParam<std::string> {};

// The first config of each family that takes the graph.
TEST_P(GateOfFamilies, PassForEveryMachine) {
  const auto machine = *target::capabilities_of("cpu");
  const kernels::Region region(graph_of(GetParam()), Track::fp32);
  int count = 0;
  for (const kernels::FamilyPtr& family : kernels::families_for(region, machine)) {
    std::optional<kernels::KernelConfig> config;
    kernels::SpaceWalk(*family).all([&](const kernels::KernelConfig& one) {
      config = one;
      return false;
    });
    if (!config) continue;
    const auto list = kernels::build(region, *config, machine);
    ASSERT_TRUE(list) << describe(list.error());
    for (const Kernel& one : list->kernels)
      for (const char* march : {"native", "x86-64-v3", "x86-64-v4", "sapphirerapids"}) {
        const auto image = compiled_for(march, one.source);
        ASSERT_TRUE(image) << describe(image.error());
        EXPECT_EQ(verdict(*image), "ok") << march << " " << config->text();
        ++count;
      }
  }
  EXPECT_GE(count, 4);
}

INSTANTIATE_TEST_SUITE_P(Graphs, GateOfFamilies,
                         testing::Values("matmul", "softmax", "elementwise"),
                         [](const auto& one) { return one.param; });
}  // namespace
}  // namespace warploom::verify
