#include <gtest/gtest.h>
#include "graph/track.h"
#include "target/capabilities.h"
#include "verify/setup.h"

namespace warploom::verify {
namespace {
constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

target::Capabilities card(const char* name) {
  return *target::capabilities_of(name);
}

TEST(Floor, OfACardIsThatOfItsOwnMemory) {
  const double bytes = 10 * kGiga;
  const double h100 = roofline_us(card("H100 SXM"), Track::fp32, 0, bytes);
  EXPECT_NEAR(h100, 1e6 * 10 / 3350, 1);
  EXPECT_NEAR(roofline_us(card("H200"), Track::fp32, 0, bytes), 1e6 * 10 / 4800, 1);
}

TEST(Floor, AllowsForSumsInHalvesWhereTheyAreFaster) {
  const target::Capabilities geforce = card("RTX 4090");
  const double bound = roofline_us(geforce, Track::fp16, kTera, 0);
  EXPECT_NEAR(floor_us(geforce, Track::fp16, kTera, 0), bound / 2, 1e-6 * bound);
  const target::Capabilities other = card("L40S");
  const double same = roofline_us(other, Track::fp16, kTera, 0);
  EXPECT_EQ(floor_us(other, Track::fp16, kTera, 0), same);
}

TEST(Floor, AllowsForWholeNumbersOfEightBits) {
  EXPECT_NEAR(floor_us(card("A100 80GB SXM"), Track::fp8, 624 * kTera, 0), 1e6, 1e3);
}

TEST(Floor, OfUnknownRatesIsNone) {
  target::Capabilities unknown = card("H100 SXM");
  unknown.dram_gbs = 0;
  EXPECT_EQ(floor_us(unknown, Track::fp32, 0, 10 * kGiga), 0);
}

TEST(Floor, IsNotMovedByWhatWasMeasured) {
  const target::Capabilities stated = card("H100 SXM");
  const target::Capabilities measured = target::with_measured(stated, {2000, 30, 300});
  for (const double flops : {0.0, kTera})
    EXPECT_EQ(floor_us(measured, Track::bf16, flops, 10 * kGiga),
              floor_us(stated, Track::bf16, flops, 10 * kGiga));
}

TEST(Bounds, KnowWhatWasMeasuredBesideThem) {
  const target::Capabilities measured =
      target::with_measured(card("H100 SXM"), {3000, 60, 989.4 / 2});
  const Bound memory = bound_of(measured, Track::fp32, 0, 3000 * kGiga);
  EXPECT_EQ(memory.of, "DRAM");
  EXPECT_NEAR(memory.measured_us, 1e6, 1);
  const Bound products = bound_of(measured, Track::tf32, kTera, 0);
  EXPECT_NEAR(products.measured_us, 2 * products.us, 0.01 * products.us);
}

TEST(Bounds, AreUnmeasuredWhereNothingWas) {
  EXPECT_EQ(bound_of(card("H100 SXM"), Track::fp32, 0, kGiga).measured_us, 0);
}
}  // namespace
}  // namespace warploom::verify
