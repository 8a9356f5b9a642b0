// fp32 products by pairs of 16-bit floats: rows and columns of any magnitude are as exact as
// others.
#include <gtest/gtest.h>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "runtime/emulate.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Net;
constexpr size_t kM = 70;
constexpr size_t kN = 72;
constexpr size_t kK = 200;

// What the kernel makes of a · b, and the same in FP64.
struct Product {
  std::vector<double> a = std::vector<double>(kM * kK);
  std::vector<double> b = std::vector<double>(kK * kN);
  std::vector<double> want = std::vector<double>(kM * kN);
  std::vector<double> got = std::vector<double>(kM * kN);

  explicit Product(const std::function<double(size_t, size_t)>& scale_a,
                   const std::function<double(size_t, size_t)>& scale_b) {
    Net n;
    const Region region{n.with({n.add(OpKind::MatMul, {n.x({kM, kK}), n.x({kK, kN})})}),
                        Track::fp32};
    auto inputs = test::random_inputs(region.graph, 3);
    const auto fill = [&](size_t which, std::vector<double>& to, size_t columns,
                          const auto& scale) {
      for (size_t i = 0; i < to.size(); ++i) {
        const double value =
            load_as_double(Dtype::f32, inputs[which].data(), i) * scale(i / columns, i % columns);
        store_from_double(Dtype::f32, inputs[which].data(), i, value);
        to[i] = load_as_double(Dtype::f32, inputs[which].data(), i);
      }
    };
    fill(0, a, kK, scale_a);
    fill(1, b, kN, scale_b);
    for (size_t i = 0; i < kM; ++i)
      for (size_t k = 0; k < kK; ++k)
        for (size_t j = 0; j < kN; ++j)
          want[i * kN + j] += a[i * kK + k] * b[k * kN + j];
    auto capabilities = *target::capabilities_of("sm_90a");
    capabilities.num_sms = 4;
    const KernelConfig schedule = test::config_of(
        "matmul_wgmma", {{"block_m", 64},
                         {"block_n", 64},
                         {"block_k", 64},
                         {"stages", 2},
                         {"num_math_warpgroups", 1},
                         {"raster_group_m", 1},
                         {"fp32_emulation", static_cast<int64_t>(Emulation::fp16x3)}});
    const auto list = build(region, schedule, capabilities);
    if (!list) throw std::runtime_error(describe(list.error()));
    runtime::EmulatedBuffers buffers;
    for (size_t i = 0; i < inputs.size(); ++i)
      buffers[list->inputs[i].name] = inputs[i];
    std::vector<std::byte> output(kM * kN * 4, std::byte{0xff});
    buffers[list->outputs[0].name] = output;
    const auto ran = runtime::emulate(*list, buffers);
    if (!ran) throw std::runtime_error(describe(ran.error()));
    for (size_t i = 0; i < got.size(); ++i)
      got[i] = load_as_double(Dtype::f32, output.data(), i);
  }

  // The greatest error of an element in units of its row's and its column's norms.
  double worst() const {
    const auto norm = [](const std::vector<double>& x, size_t first, size_t step) {
      double sum = 0;
      for (size_t k = 0; k < kK; ++k)
        sum += x[first + k * step] * x[first + k * step];
      return std::sqrt(sum);
    };
    double found = 0;
    for (size_t i = 0; i < kM; ++i)
      for (size_t j = 0; j < kN; ++j) {
        const double size = norm(a, i * kK, 1) * norm(b, j, kN);
        const double error = std::fabs(got[i * kN + j] - want[i * kN + j]);
        if (!(error <= size * found)) found = size > 0 ? error / size : HUGE_VAL;
      }
    return found;
  }
};

constexpr double kBound = 0x1p-22;  // 22 bits: what fp32 itself loses in such sums is half of it

double one(size_t, size_t) {
  return 1;
}

TEST(Halves, RowsAndColumnsOfAnyMagnitudeKeep22Bits) {
  const Product p([](size_t i, size_t) { return std::ldexp(1.0, static_cast<int>(i % 41) - 20); },
                  [](size_t, size_t j) { return std::ldexp(1.0, static_cast<int>(j % 61) - 30); });
  EXPECT_LT(p.worst(), kBound);
}

TEST(Halves, OutliersInARowLeaveTheOthersExact) {
  // One element of each row is 2^12 times the others; b is 0 there, so that the small ones alone
  // count.
  Product p([](size_t i, size_t k) { return k == i ? 4096.0 : 1.0; },
            [](size_t k, size_t) { return k < kM ? 0.0 : 1.0; });
  for (size_t i = 0; i < kM; ++i)
    p.a[i * kK + i] = 0;  // of the norm
  EXPECT_LT(p.worst(), kBound);
}

TEST(Halves, RowsOfZerosAndOfTheLeastNumbersCount) {
  constexpr std::array kRows = {0.0, 0x1p-100, 1.0};
  const Product p([&](size_t i, size_t) { return kRows[i % 3]; }, one);
  EXPECT_LT(p.worst(), kBound);
}

TEST(Halves, TheGreatestNumbersDoNotOverflow) {
  const Product p([](size_t i, size_t) { return i % 2 ? 0x1p124 : 1.0; },
                  [](size_t, size_t) { return 0x1p-20; });
  EXPECT_LT(p.worst(), kBound);
}

// A fault of one half would stand out: this is what dropping the low one of either operand comes
// to.
TEST(Halves, AreFinerThanOneHalf) {
  const Product p(one, one);
  EXPECT_LT(p.worst(), kBound);
  EXPECT_GT(p.worst(), 0x1p-30);
}
}  // namespace
}  // namespace warploom::kernels
