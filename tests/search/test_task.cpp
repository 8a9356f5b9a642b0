// What a candidate's time is held against before it is believed.
#include <gtest/gtest.h>
#include <cstdint>
#include "../graph/builder.h"
#include "../support/fixed_cpu.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "search/task.h"

namespace warploom::search {
namespace {
double floor_of(Dtype dtype, graph::OpKind product) {
  constexpr int64_t n = 1024;
  graph::Builder b("product");
  const auto x = b.input("x", dtype, {n, n});
  b.output(b.add(product, {x, b.input("w", dtype, {n, n})}));
  const kernels::Region region(*graph::decompose(*b.finish()), Track::fp32);
  return make_task(region, test::fixed_cpu(), 1, {}).setup.floor_us;
}

TEST(Task, ProductsOfIntegersMayBeFourTimesAsFastAsThoseOfFloats) {
  const double of_floats = floor_of(Dtype::f32, graph::OpKind::MatMul);
  const double of_integers = floor_of(Dtype::u8, graph::OpKind::MatMulInteger);
  EXPECT_GT(of_integers, 0);
  EXPECT_NEAR(of_integers, of_floats / 4, 1e-6 * of_floats);
}
}  // namespace
}  // namespace warploom::search
