// Convolutions with a pool behind them as one kernel on a GPU: emitted and emulated, against FP64.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
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

struct Pooled {
  std::string name;
  graph::Shape x;
  graph::Shape w;
  Ints window;
  Ints strides;
  Attributes convolution = {};
  Dtype dtype = Dtype::f32;
  Track track = Track::fp32;
  OpKind pool = OpKind::MaxPool;
  bool beside = false;  // a bias and a relu before the pool, a residual and tanh behind it

  graph::Graph graph() const {
    Net n;
    auto y = n.add(OpKind::Conv, {n.x(x, dtype), n.x(w, dtype)}, convolution);
    graph::Shape channels(x.size() - 1, 1);
    channels[0] = w[0];
    if (beside) y = n.add(OpKind::Relu, {n.add(OpKind::Add, {y, n.x(channels, dtype)})});
    y = n.add(pool, {y}, {{"kernel_shape", window}, {"strides", strides}});
    if (beside) y = n.add(OpKind::Tanh, {n.add(OpKind::Add, {y, n.x(result_shape(), dtype)})});
    return n.with({y});
  }

  graph::Shape result_shape() const {
    Pooled plain = *this;
    plain.beside = false;
    const graph::Graph graph = plain.graph();
    return graph.tensor(graph.outputs[0]).shape;
  }
};

void PrintTo(const Pooled& one, std::ostream* to) {
  *to << one.name;
}

const Ints kTwo{2, 2};
const Attributes kPadded = {{"pads", Ints{1, 1, 1, 1}}};

const Pooled kCases[] = {
    {"fp32", {2, 8, 12, 20}, {24, 8, 3, 3}, kTwo, kTwo, kPadded},
    {"fp32_odd", {1, 9, 13, 11}, {17, 9, 3, 3}, kTwo, kTwo, kPadded},
    {"fp32_unpadded", {2, 8, 11, 19}, {16, 8, 3, 3}, kTwo, kTwo},
    {"fp32_beside",
     {1, 8, 10, 14},
     {24, 8, 3, 3},
     kTwo,
     kTwo,
     kPadded,
     Dtype::f32,
     Track::fp32,
     OpKind::MaxPool,
     true},
    {"fp32_mean",
     {1, 8, 10, 14},
     {24, 8, 1, 1},
     kTwo,
     kTwo,
     {},
     Dtype::f32,
     Track::fp32,
     OpKind::AveragePool},
    {"fp32_gaps", {1, 4, 13, 17}, {16, 4, 3, 3}, kTwo, {3, 3}, kPadded},
    {"fp32_rows", {1, 8, 12, 10}, {16, 8, 3, 3}, {3, 1}, {3, 1}, kPadded},
    {"fp32_strided", {1, 3, 33, 29}, {16, 3, 5, 5}, kTwo, kTwo, {{"strides", kTwo}}},
    {"fp32_line", {2, 8, 61}, {16, 8, 5}, {4}, {4}, {{"pads", Ints{2, 2}}}},
    {"fp32_long_sums", {1, 70, 6, 8}, {16, 70, 3, 3}, kTwo, kTwo, kPadded},
    {"fp32_groups",
     {1, 16, 8, 10},
     {32, 8, 3, 3},
     kTwo,
     kTwo,
     {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{2}}}},
    {"tf32", {1, 8, 12, 18}, {32, 8, 3, 3}, {3, 3}, {3, 3}, kPadded, Dtype::f32, Track::tf32},
    {"half", {1, 16, 10, 20}, {16, 16, 3, 3}, kTwo, kTwo, kPadded, Dtype::f16, Track::tolerance},
    {"half_beside",
     {2, 16, 9, 13},
     {40, 16, 3, 3},
     kTwo,
     kTwo,
     kPadded,
     Dtype::f16,
     Track::tolerance,
     OpKind::MaxPool,
     true},
    {"brain",
     {1, 20, 9, 20},
     {16, 20, 3, 3},
     kTwo,
     kTwo,
     kPadded,
     Dtype::bf16,
     Track::tolerance,
     OpKind::MaxPool,
     true},
};

target::Capabilities gpu(const std::string& target) {
  auto capabilities = *target::capabilities_of(target);
  capabilities.num_sms = 16;
  return capabilities;
}

// What the kernel of some config leaves of NaN, emulated.
Result<std::vector<std::byte>> emulated(const LaunchList& list,
                                        std::vector<std::vector<std::byte>>& inputs) {
  runtime::EmulatedBuffers buffers;
  for (size_t b = 0; b < inputs.size(); ++b)
    buffers[list.inputs[b].name] = inputs[b];
  std::vector<std::byte> output(static_cast<size_t>(list.outputs[0].bytes()), std::byte{0xff});
  buffers[list.outputs[0].name] = output;
  WARPLOOM_TRY(const auto used, runtime::emulate(list, buffers));
  (void)used;
  return output;
}

class PooledConvolutions : public testing::TestWithParam<Pooled> {};

TEST_P(PooledConvolutions, AgreeWithFp64AndHaveNoHazard) {
  const Pooled& one = GetParam();
  Random random(5, one.name);
  const Region region{one.graph(), one.track};
  int tried = 0;
  for (const std::string target : {"sm_80", "sm_90a"}) {
    const auto capabilities = gpu(target);
    for (Bind* bind : {&matmul_mma_family, &matmul_mma_family, &matmul_simt_family}) {
      const FamilyPtr family = bind(region, capabilities);
      if (!family) continue;
      auto schedule = test::random_schedule(*family, random);
      ASSERT_TRUE(schedule) << family->name();
      if (schedule->get("layout_candidate")) test::set_field(*schedule, "layout_candidate", 0);
      const auto list = build(region, *schedule, capabilities);
      ASSERT_TRUE(list) << schedule->text() << describe(list.error());
      auto inputs = test::random_inputs(region.graph, 1);
      const auto output = emulated(*list, inputs);
      ASSERT_TRUE(output) << schedule->text() << describe(output.error());
      const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
      const auto want = graph::evaluate(region.graph, views, 1);
      const double allowed = one.track == Track::tf32 ? 1e-3 : test::allowed(one.dtype);
      EXPECT_LT(test::error_of((*want)[0], one.dtype, *output), allowed) << schedule->text();
      ++tried;
    }
  }
  EXPECT_GE(tried, 2);
}

INSTANTIATE_TEST_SUITE_P(Emulated, PooledConvolutions, testing::ValuesIn(kCases),
                         [](const auto& one) { return one.param.name; });

TEST(PooledConvolutionsOnAGpu, WhoseWindowsOverlapAreNoneOfTheFamily) {
  const Pooled overlapping{"", {1, 8, 13, 13}, {16, 8, 3, 3}, {3, 3}, kTwo, kPadded};
  const Pooled unpadded{"", {1, 8, 13, 13}, {16, 8, 3, 3}, {3, 3}, kTwo};
  for (const Pooled& one : {overlapping, unpadded})
    EXPECT_FALSE(matmul_mma_family({one.graph(), Track::fp32}, gpu("sm_80")));
}

TEST(PooledConvolutionsOnAGpu, CountAllPlacesAmongTheRegistersOfAThread) {
  const Region region{kCases[0].graph(), Track::fp32};
  const FamilyPtr family = matmul_simt_family(region, gpu("sm_80"));
  ASSERT_TRUE(family);
  MatmulSimtConfig config{.block_m = 64, .block_n = 16, .block_k = 8, .stages = 2, .warps = 4};
  config.tile_p = 2;
  EXPECT_TRUE(family->legal(config));  // 16 of each of four places
  config.tile_p = 8;
  EXPECT_FALSE(family->legal(config));  // 64 of each
}
}  // namespace
}  // namespace warploom::kernels
