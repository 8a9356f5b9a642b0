// How results of the family `direct` leave on a CPU.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "support/nets.h"
#include "target/capabilities.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Net;

TEST(Direct, ResultsThatNoCacheHoldsAreWrittenPastThemOnACpu) {
  const auto cpu = *target::capabilities_of("cpu");
  const auto text_of = [&](int64_t rows, bool streaming) {
    Net n;
    const Region region{n.with({n.add(OpKind::Add, {n.x({rows, 1024}), n.x({1024})})}),
                        Track::fp32};
    const FamilyPtr family = direct_family(region, cpu);
    KernelConfig schedule = DirectConfig{
        .tile_x = 1024, .tile_y = 4, .nontemporal_store = streaming, .row_by_row = true};
    EXPECT_EQ(std::ranges::count(family->space().fields, "nontemporal_store", &Field::name),
              rows > 8000);
    const auto list = build(region, schedule, cpu);
    return list ? list->kernels[0].source : describe(list.error());
  };
  EXPECT_NE(text_of(16384, 1).find("wl::stream("), std::string::npos);
  EXPECT_EQ(text_of(16384, 0).find("wl::stream("), std::string::npos);
  text_of(64, 0);
}
}  // namespace
}  // namespace warploom::kernels
