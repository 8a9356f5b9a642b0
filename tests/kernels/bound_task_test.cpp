// A region analysed once: what is asked of a task is what is asked of the region.
#include "kernels/bound_task.h"
#include <gtest/gtest.h>
#include <cstdint>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "support/problems.h"
#include "target/capabilities.h"

namespace warploom::kernels {
namespace {
const MatmulWgmmaConfig kConfig{.block_n = 64, .stages = 3};

Region region() {
  return {test::matmul_graph({256, 256, 320}, Dtype::bf16), Track::bf16};
}

TEST(BoundTask, BuildsTheSameWhetherOrNotItWasAskedForAPrediction) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  const auto alone = build(region(), kConfig, capabilities);
  ASSERT_TRUE(alone) << describe(alone.error());
  const BoundTask task(region(), capabilities);
  const auto us = task.predicted_us(kConfig);
  ASSERT_TRUE(us) << describe(us.error());
  EXPECT_GT(*us, 0);
  for (int time = 0; time < 2; ++time) {  // what was kept is used up by the first
    const auto list = task.build(kConfig);
    ASSERT_TRUE(list) << describe(list.error());
    EXPECT_EQ(to_json(*list), to_json(*alone));
    EXPECT_EQ(list->predicted_us, *us);
  }
}

TEST(BoundTask, KeepsWhatItWasAskedForPastItsRoom) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  const BoundTask task(region(), capabilities);
  std::vector<KernelConfig> asked;
  for (const int64_t width : {16, 32, 48, 64, 80, 96, 112, 128})
    for (const int64_t group : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
      MatmulWgmmaConfig config = kConfig;
      config.block_n = width;
      config.raster_group_m = group;
      ASSERT_TRUE(task.predicted_us(config)) << KernelConfig(config).text();
      asked.emplace_back(config);
    }
  for (const KernelConfig& config : {asked.front(), asked.back()})
    EXPECT_EQ(to_json(*task.build(config)), to_json(*build(region(), config, capabilities)));
}

TEST(BoundTask, KnowsItsFamiliesAlone) {
  const BoundTask task(region(), *target::capabilities_of("sm_80"));
  EXPECT_EQ(task.families().size(),
            families_for(region(), *target::capabilities_of("sm_80")).size());
  const auto list = task.build(kConfig);
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().code, ErrorCode::kNoSchedule);
  const auto illegal = BoundTask(region(), *target::capabilities_of("sm_90a"))
                           .build(MatmulWgmmaConfig{.block_m = 96});
  ASSERT_FALSE(illegal);
  EXPECT_EQ(illegal.error().code, ErrorCode::kScheduleIllegal);
}
}  // namespace
}  // namespace warploom::kernels
