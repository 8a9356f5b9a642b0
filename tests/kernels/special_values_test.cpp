// What families promise where inputs are infinite or NaN.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "cases.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "runtime/emulate.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"

namespace warploom::kernels {
namespace {
graph::Graph convolution() {
  test::Net conv;
  const auto y = conv.add(graph::OpKind::Conv, {conv.x({8, 64, 56, 56}), conv.x({64, 64, 3, 3})},
                          {{"pads", test::Ints{1, 1, 1, 1}}});
  return conv.with({y});
}

std::vector<Region> regions() {
  return {{convolution(), Track::fp32},
          {convolution(), Track::tf32},
          {test::matmul_graph({256, 256, 256}, Dtype::bf16), Track::bf16},
          {test::matmul_graph({256, 256, 256}, Dtype::f32), Track::fp32},
          {test::matmul_graph({256, 256, 256}, Dtype::f32), Track::tf32},
          {test::softmax_graph(1024, 4096, Dtype::f32, false), Track::fp32}};
}

SpecialValues special_of(const Region& region, const std::string& family,
                         const std::string& target) {
  const FamilyPtr found = family_for(region, family, *target::capabilities_of(target));
  EXPECT_TRUE(found) << family;
  return found ? found->special_values(KernelConfig(found->type())) : SpecialValues::exact;
}

TEST(SpecialValues, EveryRegionKeepsAFamilyThatIsExact) {
  for (const Region& region : regions())
    for (const char* target : {"sm_90a", "sm_80", "cpu"}) {
      const auto all = families_for(region, *target::capabilities_of(target));
      const auto is_exact = [](const FamilyPtr& family) {
        bool legal = false;
        SpaceWalk(*family).all([&](const KernelConfig& config) {
          legal = family->special_values(config) == SpecialValues::exact;
          return false;  // the first that is legal
        });
        return legal;
      };
      EXPECT_TRUE(std::ranges::any_of(all, is_exact))
          << target << " " << name_of(region.track) << " " << region.graph.name;
    }
}

TEST(SpecialValues, SplitOperandsAreFiniteAndOthersExact) {
  const Region fp32(test::matmul_graph({256, 256, 256}, Dtype::f32), Track::fp32);
  const Region tf32(test::matmul_graph({256, 256, 256}, Dtype::f32), Track::tf32);
  EXPECT_EQ(special_of(fp32, "matmul_wgmma", "sm_90a"), SpecialValues::finite);
  EXPECT_EQ(special_of(fp32, "matmul_mma", "sm_80"), SpecialValues::finite);
  EXPECT_EQ(special_of(fp32, "matmul_simt", "sm_80"), SpecialValues::exact);
  EXPECT_EQ(special_of(tf32, "matmul_wgmma", "sm_90a"), SpecialValues::exact);
}

TEST(SpecialValues, WindowOrderIsFinite) {
  EXPECT_EQ(special_of({convolution(), Track::tf32}, "conv_wgmma", "sm_90a"),
            SpecialValues::finite);
}

TEST(SpecialValues, ALaunchListSaysWhatItsConfigPromises) {
  const Region region(test::matmul_graph({256, 256, 256}, Dtype::f32), Track::fp32);
  const auto capabilities = *target::capabilities_of("sm_80");
  for (const char* name : {"matmul_mma", "matmul_simt"}) {
    const FamilyPtr family = family_for(region, name, capabilities);
    ASSERT_TRUE(family);
    KernelConfig config;
    SpaceWalk(*family).all([&](const KernelConfig& legal) {
      config = legal;
      return false;
    });
    const auto list = build(region, config, capabilities);
    ASSERT_TRUE(list) << describe(list.error());
    EXPECT_EQ(list->special, family->special_values(config)) << name;
  }
}

// "number", "inf", "-inf", "nan".
std::string kind_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isfinite(value)) return "number";
  return value > 0 ? "inf" : "-inf";
}

// Where a kernel that is exact has another kind of number than FP64 has, when one in 97 elements of
// the first input is infinite; empty: nowhere.
std::string first_of_another_kind(const test::Case& c, const LaunchList& list) {
  auto inputs = test::random_inputs(c.region.graph, 1);
  const Dtype dtype = list.inputs[0].dtype;
  for (int64_t i = 5; i < list.inputs[0].elements(); i += 97)
    store_from_double(dtype, inputs[0].data(), i, i % 2 == 0 ? HUGE_VAL : -HUGE_VAL);
  runtime::EmulatedBuffers buffers;
  std::vector<graph::Bytes> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    buffers[list.inputs[i].name] = inputs[i];
    views.emplace_back(inputs[i]);
  }
  std::vector<std::byte> output(static_cast<size_t>(list.outputs[0].bytes()));
  buffers[list.outputs[0].name] = output;
  const auto done = runtime::emulate(list, buffers, {});
  if (!done) return describe(done.error());
  const auto expected = graph::evaluate(c.region.graph, views, 1);
  if (!expected) return describe(expected.error());
  for (size_t i = 0; i < (*expected)[0].size(); ++i) {
    const std::string found = kind_of(load_as_double(list.outputs[0].dtype, output.data(), i));
    const std::string right = kind_of((*expected)[0][i]);
    if (found != right) return fmt::format("element {} is {}, not {}", i, found, right);
  }
  return "";
}

class EmulatedSpecialValues : public testing::TestWithParam<test::Case> {};

TEST_P(EmulatedSpecialValues, ExactKernelsHaveInfinitiesAndNanWhereFp64Does) {
  const test::Case& c = GetParam();
  const auto list = build(c.region, c.schedule, test::capabilities_of(c));
  ASSERT_TRUE(list) << describe(list.error());
  const Dtype dtype = list->inputs[0].dtype;
  const bool holds_infinities = is_float(dtype) && bits_of(dtype) >= 16;
  if (list->special == SpecialValues::finite || !holds_infinities ||
      !is_float(list->outputs[0].dtype))
    GTEST_SKIP() << "finite, or integers";
  EXPECT_EQ(first_of_another_kind(c, *list), "");
}

INSTANTIATE_TEST_SUITE_P(All, EmulatedSpecialValues, testing::ValuesIn(test::all_cases()),
                         [](const auto& one) { return one.param.name; });
}  // namespace
}  // namespace warploom::kernels
