// What a region must do at the least, and that no family covers axes that no GPU counts.
#include <gtest/gtest.h>
#include <cstdint>
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "support/nets.h"
#include "target/capabilities.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Net;

TEST(Work, OfAProductThatIsCutIsThatOfThePart) {
  Net whole;
  Net cut;
  const auto product = [](Net& n) { return n.add(OpKind::MatMul, {n.x({64, 32}), n.x({32, 16})}); };
  const auto row =
      cut.add(OpKind::Slice, {product(cut), cut.ints({5}), cut.ints({6}), cut.ints({0})});
  const Work all = work_of({whole.with({product(whole)}), Track::fp32});
  const Work part = work_of({cut.with({row}), Track::fp32});
  EXPECT_EQ(all.flops, 2 * 64 * 32 * 16);
  EXPECT_EQ(part.flops, 2 * 32 * 16);
  EXPECT_EQ(all.bytes, 4 * (64 * 32 + 32 * 16 + 64 * 16));
  EXPECT_EQ(part.bytes, 4 * (32 + 32 * 16 + 16));
}

TEST(Families, OfGpusCoverNoAxisThatTheyDoNotCount) {
  constexpr int64_t kLong = int64_t{1} << 32;
  Net n;
  const Region odd{n.with({n.add(OpKind::Exp, {n.x({kLong + 1})})}), Track::fp32};
  EXPECT_TRUE(families_for(odd, *target::capabilities_of("sm_90a")).empty());
  EXPECT_FALSE(families_for(odd, *target::capabilities_of("cpu")).empty());
}
}  // namespace
}  // namespace warploom::kernels
