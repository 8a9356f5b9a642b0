// Convolutions as implicit matmuls: emitted for GPUs and emulated, against FP64.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "runtime/emulate.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Attributes;
using test::Ints;
using test::Net;

struct Case {
  std::string name;
  graph::Shape x;
  graph::Shape w;
  Attributes attributes = {};
  Dtype dtype = Dtype::f32;
  bool behind = false;  // bias, a residual and a relu follow
  int64_t phases = 1;   // along both axes, laid between one another first

  graph::Graph graph() const {
    Net n;
    auto y = n.add(OpKind::Conv, {n.x(x, dtype), n.x(w, dtype)}, attributes);
    const int64_t channels = w[0] / (phases * phases * (x.size() == 5 ? phases : 1));
    if (const int64_t p = phases; p > 1 && x.size() == 4) {  // of "same" pads
      y = n.transpose(n.reshape(y, {x[0], channels, p, p, x[2], x[3]}), {0, 1, 4, 2, 5, 3});
      y = n.reshape(y, {x[0], channels, x[2] * p, x[3] * p});
    } else if (p > 1) {
      y = n.transpose(n.reshape(y, {x[0], channels, p, p, p, x[2], x[3], x[4]}),
                      {0, 1, 5, 2, 6, 3, 7, 4});
      y = n.reshape(y, {x[0], channels, x[2] * p, x[3] * p, x[4] * p});
    }
    if (behind) {
      y = n.add(OpKind::Add, {y, n.x({channels, 1, 1}, dtype)});
      y = n.add(OpKind::Relu, {n.add(OpKind::Add, {y, n.x({1}, dtype)})});
    }
    return n.with({y});
  }
};

const Ints kOne{1, 1, 1, 1};
const Ints kTwo{2, 2};

void PrintTo(const Case& one, std::ostream* to) {
  *to << one.name;
}

const Case kCases[] = {
    {"padded", {2, 8, 9, 20}, {24, 8, 3, 3}, {{"pads", kOne}}},
    {"unpadded", {2, 8, 9, 21}, {24, 8, 3, 3}, {{"strides", Ints{2, 1}}}},
    {"rows", {2, 8, 9, 20}, {16, 8, 3, 1}},
    {"columns", {2, 8, 9, 21}, {16, 8, 1, 3}, {{"strides", kTwo}}},
    {"behind", {1, 8, 9, 20}, {24, 8, 3, 3}, {{"pads", kOne}}, Dtype::f32, true},
    {"strided", {1, 9, 11, 21}, {17, 9, 3, 3}, {{"pads", kOne}, {"strides", kTwo}}},
    {"few_channels",
     {1, 3, 21, 36},
     {24, 3, 5, 5},
     {{"pads", Ints{2, 2, 2, 2}}, {"strides", Ints{4, 4}}}},
    {"many_channels", {1, 16, 12, 36}, {40, 16, 3, 3}, {{"pads", kOne}}, Dtype::f32, true},
    {"apart", {1, 8, 12, 24}, {16, 8, 3, 3}, {{"pads", Ints{2, 2, 2, 2}}, {"dilations", kTwo}}},
    {"dilated", {1, 8, 12, 14}, {16, 8, 3, 3}, {{"pads", Ints{2, 2, 2, 2}}, {"dilations", kTwo}}},
    {"first_layer", {1, 3, 23, 35}, {16, 3, 7, 7}, {{"pads", Ints{2, 2, 2, 2}}, {"strides", kTwo}}},
    {"grouped", {1, 32, 8, 10}, {32, 16, 3, 3}, {{"pads", kOne}, {"group", int64_t{2}}}},
    {"points", {2, 16, 7, 9}, {32, 16, 1, 1}},
    {"points_strided", {1, 16, 9, 9}, {16, 16, 1, 1}, {{"strides", kTwo}}},
    {"half", {1, 16, 9, 20}, {16, 16, 3, 3}, {{"pads", kOne}}, Dtype::f16},
    {"brain", {1, 20, 9, 20}, {16, 20, 3, 3}, {{"pads", kOne}}, Dtype::bf16, true},
    {"phases", {2, 8, 9, 20}, {48, 8, 3, 3}, {{"pads", kOne}}, Dtype::f32, false, 2},
    {"phases_of_volume",
     {1, 8, 3, 4, 12},
     {64, 8, 2, 2, 2},
     {{"pads", Ints{0, 0, 0, 1, 1, 1}}},
     Dtype::f32,
     false,
     2},
    {"phases_behind", {1, 16, 10, 12}, {144, 16, 1, 1}, {}, Dtype::f16, true, 3},
    {"column", {2, 8, 12, 1}, {16, 8, 3, 2}, {{"pads", Ints{1, 0, 1, 1}}}},
    {"line", {2, 8, 90}, {16, 8, 5}, {{"pads", Ints{2, 2}}}},
    {"volume", {1, 8, 5, 6, 9}, {16, 8, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1, 1, 1}}}},
};

class Convolutions : public testing::TestWithParam<Case> {};

TEST_P(Convolutions, AgreeWithFp64AndHaveNoHazard) {
  Random random(2, GetParam().name);
  const Region region{GetParam().graph(),
                      GetParam().dtype == Dtype::f32 ? Track::fp32 : Track::tolerance};
  int tried = 0;
  for (const std::string target : {"sm_80", "sm_90a"}) {
    auto capabilities = *target::capabilities_of(target);
    capabilities.num_sms = 16;  // blocks that wait for each other are emulated together
    const FamilyPtr matmul = matmul_wgmma_family(region, capabilities);
    const FamilyPtr wgmma = matmul ? matmul : conv_wgmma_family(region, capabilities);
    const FamilyPtr windows = im2win_family(region, capabilities);
    for (const FamilyPtr& family :
         {matmul_mma_family(region, capabilities), matmul_simt_family(region, capabilities), wgmma,
          wgmma, wgmma, windows, windows, windows}) {
      if (!family) continue;
      auto schedule = test::random_schedule(*family, random);
      ASSERT_TRUE(schedule) << family->name();
      if (schedule->get("layout_candidate")) test::set_field(*schedule, "layout_candidate", 0);
      const auto list = build(region, *schedule, capabilities);
      ASSERT_TRUE(list) << schedule->text() << describe(list.error());
      auto inputs = test::random_inputs(region.graph, 1);
      runtime::EmulatedBuffers buffers;
      for (size_t b = 0; b < inputs.size(); ++b)
        buffers[list->inputs[b].name] = inputs[b];
      std::vector<std::byte> output(static_cast<size_t>(list->outputs[0].bytes()), std::byte{0xff});
      buffers[list->outputs[0].name] = output;
      const auto ran = runtime::emulate(*list, buffers);
      ASSERT_TRUE(ran) << schedule->text() << describe(ran.error()) << list->kernels.back().source;
      const auto want =
          graph::evaluate(region.graph, std::vector<graph::Bytes>(inputs.begin(), inputs.end()), 1);
      EXPECT_LT(test::error_of((*want)[0], GetParam().dtype, output),
                test::allowed(GetParam().dtype))
          << schedule->text();
      ++tried;
    }
  }
  EXPECT_GE(tried, 2);
}

INSTANTIATE_TEST_SUITE_P(Emulated, Convolutions, testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.name; });

TEST(Im2win, MeasuresWeightsThatAreReadBackwards) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  Net n;
  const auto y = n.add(graph::OpKind::ConvTranspose, {n.x({1, 12, 5, 28}), n.x({12, 3, 5, 5})},
                       {{"pads", Ints{1, 3, 2, 0}}});
  const Region region{n.with({y}), Track::fp32};
  const FamilyPtr family = im2win_family(region, capabilities);
  ASSERT_TRUE(family);
  auto inputs = test::random_inputs(region.graph, 1);
  const auto want =
      graph::evaluate(region.graph, std::vector<graph::Bytes>(inputs.begin(), inputs.end()), 1);
  Random random(1, "backwards");
  const auto schedule = test::random_schedule(*family, random);
  ASSERT_TRUE(schedule);
  const auto list = build(region, *schedule, capabilities);
  ASSERT_TRUE(list) << schedule->text() << describe(list.error());
  runtime::EmulatedBuffers buffers;
  for (size_t b = 0; b < inputs.size(); ++b)
    buffers[list->inputs[b].name] = inputs[b];
  std::vector<std::byte> output(static_cast<size_t>(list->outputs[0].bytes()), std::byte{0xff});
  buffers[list->outputs[0].name] = output;
  const auto ran = runtime::emulate(*list, buffers);
  ASSERT_TRUE(ran) << schedule->text() << describe(ran.error());
  EXPECT_LT(test::error_of((*want)[0], Dtype::f32, output), test::allowed(Dtype::f32))
      << schedule->text();
}

TEST(Im2win, BuildsWhatIsLegal) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  const Case cases[] = {
      {"channels_no_multiple_of_8", {1, 12, 18, 28}, {16, 12, 3, 3}, {{"pads", kOne}}},
      {"weights_beside_patterns",
       {1, 32, 11, 56},
       {12, 32, 3, 5},
       {{"pads", Ints{2, 2, 2, 2}}, {"strides", kTwo}}},
      {"pixels_beyond_a_lone_row",
       {2, 1, 7, 56},
       {32, 1, 4, 7},
       {{"pads", Ints{0, 1, 0, 1}}, {"strides", Ints{3, 1}}}},
  };
  for (const Case& one : cases) {
    const Region region{one.graph(), Track::fp32};
    const FamilyPtr family = im2win_family(region, capabilities);
    ASSERT_TRUE(family) << one.name;
    Random random(1, one.name);
    for (int i = 0; i < 40; ++i) {
      const auto schedule = test::random_schedule(*family, random);
      ASSERT_TRUE(schedule) << one.name;
      const auto list = build(region, *schedule, capabilities);
      EXPECT_TRUE(list) << one.name << ": " << schedule->text() << describe(list.error());
    }
  }
}
}  // namespace
}  // namespace warploom::kernels
