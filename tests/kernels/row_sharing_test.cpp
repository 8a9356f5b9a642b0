// Rows of several axes that CTAs share, on the emulator.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "runtime/emulate.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Net;

// Rows of several axes, as of a GroupNorm whose channels have weights: each CTA has a part of the
// last axis, of every channel.
TEST(RowsOfSeveralAxes, SurviveALargeMeanWhereCtasShareThem) {
  Net n;
  const auto x = n.x({2, 4, 60, 80});
  const auto normal =
      n.add(OpKind::GroupNormalization, {x, n.x({4}), n.x({4})}, {{"num_groups", int64_t{2}}});
  const Region region{n.with({normal}), Track::fp32};
  auto inputs = test::random_inputs(region.graph, 3, 0.1);
  for (size_t i = 0; i < 2 * 4 * 60 * 80; ++i)
    store_from_double(Dtype::f32, inputs[0].data(), i,
                      1000 + load_as_double(Dtype::f32, inputs[0].data(), i));
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto rows = graph::rows_of(region.graph, 0);
  const auto want = graph::evaluate_magnitude_rows(region.graph, views, 0, 0, rows.count, 1);
  ASSERT_TRUE(want) << describe(want.error());
  for (const RowResidency place : {RowResidency::registers, RowResidency::smem})
    for (const char* target : {"sm_80", "sm_90a"})
      for (const int64_t ctas : {2, 8}) {
        const KernelConfig schedule = RowwiseConfig{
            .row_residency = place, .ctas_per_row = ctas, .warps = 8, .elems_per_thread = 4};
        const auto list = build(region, schedule, *target::capabilities_of(target));
        ASSERT_TRUE(list) << schedule.text() << describe(list.error());
        std::vector<std::vector<std::byte>> outputs(1);
        outputs[0].assign(inputs[0].size(), std::byte{0xff});
        runtime::EmulatedBuffers buffers{{list->outputs[0].name, outputs[0]}};
        for (size_t i = 0; i < inputs.size(); ++i)
          buffers[list->inputs[i].name] = inputs[i];
        const auto done = runtime::emulate(*list, buffers);
        ASSERT_TRUE(done) << schedule.text() << describe(done.error()) << list->kernels[0].source;
        for (size_t i = 0; i < want->value.size(); ++i)
          ASSERT_NEAR(load_as_double(Dtype::f32, outputs[0].data(), i), want->value[i],
                      0x1p-24 * 8 * want->magnitude[i])
              << schedule.text() << " on " << target << " element " << i;
      }
}
}  // namespace
}  // namespace warploom::kernels
