// What the predicted time counts of loads and stores by the threads themselves.
#include <gtest/gtest.h>
#include "base/dtype.h"
#include "base/error.h"
#include "synth/synthesize.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
using tile::Builder;
using tile::TensorId;

// y = a + b with both loaded first, or each used before the next is loaded.
double chain(bool ahead, bool stored_twice = false) {
  const target::Capabilities h200 = *target::capabilities_of("sm_90a");
  Builder b("sum");
  b.warps(4);
  const TensorId A = b.global("A", Dtype::f32, {512});
  const TensorId B = b.global("B", Dtype::f32, {512});
  const TensorId Y = b.output("Y", Dtype::f32, {512});
  const TensorId Z = b.output("Z", Dtype::f32, {512});
  const TensorId x = b.reg("x", Dtype::f32, {512});
  const TensorId z = b.reg("z", Dtype::f32, {512});
  const TensorId y = b.reg("y", Dtype::f32, {512});
  b.copy(b.all(A), b.all(x));
  if (ahead) b.copy(b.all(B), b.all(z));
  b.map(y, b.value(x) * tile::constant(2));
  if (!ahead) b.copy(b.all(B), b.all(z));
  b.map(y, b.value(y) + b.value(z));
  if (stored_twice) b.copy(b.all(y), b.all(Z));
  b.copy(b.all(y), b.all(Y));
  const auto found = synthesize_best(b.finish(), h200, 1);
  EXPECT_TRUE(found.has_value()) << describe(found.error());
  return found ? found->front().cost.chain : 0;
}

TEST(Cost, LoadsAreWaitedForWhereTheyAreFirstNeeded) {
  const double latency = target::capabilities_of("sm_90a")->rates.memory_latency;
  EXPECT_NEAR(chain(false) - chain(true), latency, 0.1 * latency);
}

TEST(Cost, NobodyWaitsForAStoreButTheLast) {
  const double latency = target::capabilities_of("sm_90a")->rates.store_latency;
  EXPECT_LT(chain(true, true) - chain(true), 0.5 * latency);
}
}  // namespace
}  // namespace warploom::synth
