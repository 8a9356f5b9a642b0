#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "cases.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "support/nets.h"
#include "support/problems.h"
#include "trials.h"

namespace warploom::test {
namespace {
using kernels::Emulation;
using Fields = std::map<std::string, int64_t>;

constexpr auto kTf32x3 = static_cast<int64_t>(Emulation::tf32x3);
constexpr auto kFp16x3 = static_cast<int64_t>(Emulation::fp16x3);

Fields tile(int64_t m, int64_t n, int64_t k, int64_t stages, const Fields& more) {
  Fields all = {{"block_m", m}, {"block_n", n}, {"block_k", k}, {"stages", stages}};
  all["raster_group_m"] = 2;
  all.insert(more.begin(), more.end());
  return all;
}

Case product(const std::string& name, const std::string& target, const MatmulShape& shape,
             const std::string& family, const Fields& fields) {
  const kernels::Region region{matmul_graph(shape, Dtype::f32), Track::fp32};
  return {name, target, region, config_of(family, fields), 4.8e-7};
}

// 3 by 3 windows of 704 channels: 132 stages of 48 terms.
Case windows(const std::string& name, int64_t images, int64_t filters, int64_t stages,
             int64_t warpgroups) {
  Net net;
  const auto x = net.x({images, 704, 4, 20});
  const auto w = net.x({filters, 704, 3, 3});
  const auto y = net.add(graph::OpKind::Conv, {x, w}, {{"pads", Ints{1, 1, 1, 1}}});
  const Fields fields = {{"tile_q", 16},
                         {"tile_p", 4},
                         {"block_n", filters},
                         {"block_c", 16},
                         {"filter_rows_per_stage", 1},
                         {"stages", stages},
                         {"num_math_warpgroups", warpgroups}};
  return {name, "sm_90a", {net.with({y}), Track::fp32}, config_of("im2win", fields), 4.8e-7};
}
}  // namespace

std::vector<Case> long_sums() {
  const Fields two = {{"num_math_warpgroups", 2}, {"fp32_emulation", kFp16x3}};
  const Fields rounds = {
      {"num_math_warpgroups", 1}, {"fp32_emulation", kTf32x3}, {"promotion_interval", 4}};
  return {
      product("wgmma_fp32_long_sums", "sm_90a", {128, 128, 4160}, "matmul_wgmma",
              tile(128, 128, 32, 4, two)),
      product("wgmma_fp32_long_sums_run", "sm_90a", {64, 96, 4160}, "matmul_wgmma",
              tile(64, 96, 32, 3, rounds)),
      windows("im2win_fp32_long_sums", 1, 64, 4, 1),
      windows("im2win_fp32_long_sums_apart", 2, 24, 3, 2),
      product("mma_fp32_long_sums", "sm_80", {64, 128, 4160}, "matmul_mma",
              tile(64, 128, 32, 3, {{"warps", 8}})),
      product("simt_fp32_long_sums", "sm_80", {64, 128, 1040}, "matmul_simt",
              tile(64, 128, 16, 3, {{"warps", 4}})),
  };
}
}  // namespace warploom::test
