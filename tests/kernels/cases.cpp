#include "cases.h"
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "support/nets.h"
#include "support/problems.h"
#include "trials.h"

namespace warploom::test {
namespace {
using kernels::Emulation, kernels::OperandSource, kernels::Region, kernels::Scheduler;
using Fields = std::map<std::string, int64_t>;

constexpr auto kSplitK = static_cast<int64_t>(Scheduler::split_k);
constexpr auto kRegisters = static_cast<int64_t>(OperandSource::registers);
constexpr auto kTf32x3 = static_cast<int64_t>(Emulation::tf32x3);
constexpr auto kFp16x3 = static_cast<int64_t>(Emulation::fp16x3);

constexpr Track bf16 = Track::bf16;
constexpr Track fp16 = Track::fp16;
constexpr Track tf32 = Track::tf32;
constexpr Track fp32 = Track::fp32;
constexpr Track fp8 = Track::fp8;

// A config as it is put together.
struct Choice {
  std::string family;
  Fields fields;
  std::string target = "sm_90a";
};

double tolerance_of(Track track, const std::string& family) {
  if (track == bf16 || track == fp16) return 4e-3;
  if (track == tf32) return 1e-3;
  if (track == fp8) return 4e-4;  // tensor cores keep 13 digits of a sum
  return family == "matmul_wgmma" || family == "matmul_mma" || family == "im2win"
             ? 4.8e-7
             : 1e-6;  // operands split into three parts: finer
}

// With further fields; fp32 products by tf32 where nothing else is said.
Case case_of(const std::string& name, const Region& region, Choice choice, const Fields& more) {
  if (choice.family != "im2win") choice.fields["raster_group_m"] = 2;
  choice.fields.insert(more.begin(), more.end());
  if (choice.family == "matmul_wgmma" && region.track == fp32)
    choice.fields.try_emplace("fp32_emulation", kTf32x3);
  return {name, choice.target, region, config_of(choice.family, choice.fields),
          tolerance_of(region.track, choice.family)};
}

Dtype operands_of(Track track) {
  if (track == bf16) return Dtype::bf16;
  return track == fp16 ? Dtype::f16 : Dtype::f32;
}

Case matmul(const std::string& name, Dtype dtype, Track track, const MatmulShape& shape,
            const Choice& schedule, const Fields& more = {}) {
  Case made = case_of(name, {matmul_graph(shape, dtype), track}, schedule, more);
  if (shape.result == Dtype::bf16) made.tolerance = tolerance_of(bf16, schedule.family);
  return made;
}

Case matmul(const std::string& name, Track track, const MatmulShape& shape, const Choice& schedule,
            const Fields& more = {}) {
  return matmul(name, operands_of(track), track, shape, schedule, more);
}

Choice wgmma(int64_t m, int64_t n, int64_t k, int64_t stages, int64_t consumers,
             int64_t through_shared) {
  return {"matmul_wgmma",
          {{"block_m", m},
           {"block_n", n},
           {"block_k", k},
           {"stages", stages},
           {"num_math_warpgroups", consumers},
           {"epilogue", through_shared}}};
}

// The same tile of a convolution in window order.
Choice windows(Choice choice) {
  choice.family = "conv_wgmma";
  return choice;
}

// Stream-K on a GPU of four multiprocessors.
Case stream(Case c) {
  set_field(c.schedule, "scheduler", static_cast<int64_t>(Scheduler::stream_k));
  c.num_sms = 4;
  return c;
}

Choice im2win(int64_t x, int64_t y, int64_t n, int64_t channels, int64_t taps, int64_t stages,
              int64_t consumers) {
  return {"im2win",
          {{"tile_q", x},
           {"tile_p", y},
           {"block_n", n},
           {"block_c", channels},
           {"filter_rows_per_stage", taps},
           {"stages", stages},
           {"num_math_warpgroups", consumers}}};
}

Choice threads(const std::string& family, int64_t m, int64_t n, int64_t k, int64_t stages,
               int64_t warps) {
  return {family,
          {{"block_m", m}, {"block_n", n}, {"block_k", k}, {"stages", stages}, {"warps", warps}},
          "sm_80"};
}

Choice ada(Choice choice) {
  choice.target = "sm_89";
  return choice;
}

Choice mma(int64_t m, int64_t n, int64_t k, int64_t stages, int64_t warps) {
  return threads("matmul_mma", m, n, k, stages, warps);
}

Choice simt(int64_t m, int64_t n, int64_t k, int64_t stages, int64_t warps) {
  return threads("matmul_simt", m, n, k, stages, warps);
}

// With a bias and a relu.
Case convolution(const std::string& name, Track track, const graph::Shape& x, const graph::Shape& w,
                 const Attributes& attributes, Choice schedule, const Fields& more = {}) {
  const Dtype dtype = track == bf16 ? Dtype::bf16 : Dtype::f32;
  Net net;
  const auto y = net.add(graph::OpKind::Conv,
                         {net.x(x, dtype), net.x(w, dtype), net.x({w[0]}, dtype)}, attributes);
  const Region region{net.with({net.add(graph::OpKind::Relu, {y})}), track};
  return case_of(name, region, std::move(schedule), more);
}

struct Softmax {
  int64_t rows;
  int64_t columns;
  int64_t place;
  int64_t cluster;
  int64_t warps;
  int64_t together = 1;
  int64_t chunk = 4;
  int64_t stages = 2;
  int64_t blocks = 2;
  Dtype dtype = Dtype::f32;
  bool log = false;
};

Case softmax(const std::string& name, const std::string& target, const Softmax& s) {
  const Track track = s.dtype == Dtype::f32 ? fp32 : bf16;
  const Choice schedule{"rowwise",
                        {{"row_residency", s.place},
                         {"ctas_per_row", s.cluster},
                         {"warps", s.warps},
                         {"rows_per_cta", s.together},
                         {"elems_per_thread", s.chunk},
                         {"stages", s.stages},
                         {"ctas_per_sm", s.blocks}}};
  const Region region{softmax_graph(s.rows, s.columns, s.dtype, s.log), track};
  return {name, target, region, config_of(schedule.family, schedule.fields),
          tolerance_of(track, schedule.family)};
}

Case prefixes(const std::string& name, const std::string& target, const graph::Shape& shape,
              int64_t axis, int64_t reverse, Fields fields) {
  Net net;
  const auto y =
      net.add(graph::OpKind::CumSum, {net.x(shape), net.ints({axis})}, {{"reverse", reverse}});
  fields.insert({{"reduction_tile", 1}, {"unroll", 1}});
  const Region region{net.with({y}), fp32};
  return {name, target, region, config_of("direct", fields), tolerance_of(fp32, "direct"), 4};
}

// The product, whose rows an operator then goes over.
Case rows_of(graph::OpKind op, const std::string& name, Track track, const MatmulShape& s,
             Choice schedule, const Fields& more = {}) {
  using graph::OpKind;
  const Dtype dtype = track == bf16 ? Dtype::bf16 : Dtype::f32;
  Net net;
  auto y = net.add(OpKind::MatMul, {net.x({s.m, s.k}, dtype), net.x({s.k, s.n}, dtype)});
  if (op == OpKind::LayerNormalization)
    y = net.add(op, {y, net.x({s.n}, dtype), net.x({s.n}, dtype)});
  else if (op == OpKind::ReduceLogSumExp)
    y = net.add(op, {net.add(OpKind::Mul, {y, net.number(0.25)}), net.ints({1})},
                {{"keepdims", int64_t{0}}});
  else
    y = net.add(op, {net.add(OpKind::Add, {y, net.x({s.n}, dtype)})});
  Case made = case_of(name, {net.with({y}), track}, std::move(schedule), more);
  made.num_sms = 4;
  return made;
}

enum class Kept : uint8_t { a, b, product };

// The product, of which, or of a factor of which, a triangle is kept.
Case triangle(const std::string& name, Track track, const MatmulShape& s, int64_t upper,
              int64_t diagonal, Choice schedule, const Fields& more = {},
              Kept kept = Kept::product) {
  const Dtype dtype = track == bf16 ? Dtype::bf16 : Dtype::f32;
  Net net;
  const auto of = [&](Kept which, graph::TensorId x) {
    if (which != kept) return x;
    return net.add(graph::OpKind::Trilu, {x, net.reshape(net.ints({diagonal}), {})},
                   {{"upper", upper}});
  };
  const auto a = of(Kept::a, net.x({s.m, s.k}, dtype));
  const auto b = of(Kept::b, net.x({s.k, s.n}, dtype));
  const auto y = of(Kept::product, net.add(graph::OpKind::MatMul, {a, b}));
  return case_of(name, {net.with({y}), track}, std::move(schedule), more);
}

MatmulShape turned(MatmulShape shape, bool a, bool b) {
  shape.transpose_a = a;
  shape.transpose_b = b;
  return shape;
}

MatmulShape scaled(MatmulShape shape, int64_t block, int64_t columns, Dtype result = Dtype::f32) {
  shape.block = block;
  shape.columns = columns;
  shape.result = result;
  return shape;
}

MatmulShape fused(MatmulShape shape) {
  shape.bias = shape.gelu = true;
  return shape;
}

Fields split_k(int64_t parts, Fields more = {}) {
  more.insert({{"split_k", parts}, {"scheduler", kSplitK}});
  return more;
}

Attributes padded(int64_t by, int64_t stride = 1) {
  Attributes all{{"pads", Ints{by, by, by, by}}};
  if (stride > 1) all["strides"] = Ints{stride, stride};
  return all;
}

std::vector<Case> wgmma_products_and_convolutions() {
  return {
      matmul("wgmma_bf16", bf16, {256, 256, 320}, wgmma(128, 128, 64, 3, 2, 1)),
      matmul("wgmma_bf16_from_registers", bf16, {256, 128, 320}, wgmma(128, 64, 64, 3, 2, 0)),
      matmul("wgmma_bf16_one_consumer", bf16, {128, 256, 448}, wgmma(64, 128, 64, 4, 1, 1)),
      matmul("wgmma_bf16_one_consumer_from_registers", bf16, {128, 128, 256},
             wgmma(64, 64, 64, 2, 1, 0)),
      matmul("wgmma_bf16_two_atoms", bf16, {512, 128, 256}, wgmma(256, 64, 64, 2, 2, 1)),
      matmul("wgmma_bf16_deep_stages", bf16, {256, 128, 512}, wgmma(128, 64, 128, 2, 2, 1)),
      matmul("wgmma_bf16_k_major_b", bf16, turned({256, 128, 320}, false, true),
             wgmma(128, 64, 64, 3, 2, 1)),
      matmul("wgmma_bf16_both_transposed", bf16, turned({256, 256, 256}, true, true),
             wgmma(128, 128, 64, 3, 2, 1)),
      matmul("wgmma_bf16_batched", bf16, {72, 64, 256, {3}}, wgmma(64, 64, 64, 3, 1, 1)),
      matmul("wgmma_fp16_bias_gelu", fp16, fused({200, 136, 296}), wgmma(128, 64, 64, 3, 2, 1)),
      matmul("wgmma_fp16_one_consumer", fp16, {128, 128, 320}, wgmma(64, 64, 64, 3, 1, 0)),
      matmul("wgmma_bf16_split_k", bf16, {64, 128, 640}, wgmma(64, 64, 64, 3, 1, 0), split_k(2)),
      stream(matmul("wgmma_bf16_stream", bf16, {192, 192, 320}, wgmma(64, 64, 64, 3, 1, 0))),
      matmul("wgmma_bf16_exchanged", bf16, {5, 512, 320}, wgmma(128, 16, 64, 3, 2, 0),
             {{"swap_ab", 1}}),
      matmul("wgmma_bf16_exchanged_shared", bf16, {64, 512, 320}, wgmma(128, 64, 64, 3, 2, 1),
             {{"swap_ab", 1}}),
      matmul("wgmma_bf16_cluster", bf16, {256, 128, 320}, wgmma(128, 64, 64, 3, 2, 1),
             {{"cluster_m", 2}}),
      matmul("wgmma_bf16_cluster_k_major_b", bf16, turned({256, 128, 320}, false, true),
             wgmma(64, 64, 64, 3, 1, 0), {{"cluster_m", 2}}),
      matmul("wgmma_bf16_odd", bf16, {130, 77, 331}, wgmma(128, 64, 64, 3, 2, 1)),
      matmul("wgmma_tf32", tf32, {256, 128, 160}, wgmma(128, 64, 32, 3, 2, 0)),
      matmul("wgmma_tf32_one_consumer", tf32, {128, 128, 128}, wgmma(64, 64, 32, 2, 1, 0)),
      matmul("wgmma_tf32_across", tf32, turned({256, 128, 160}, true, true),
             wgmma(128, 64, 32, 3, 2, 0), {{"a_source", kRegisters}}),
      matmul("wgmma_fp32_split", fp32, {256, 128, 128}, wgmma(128, 64, 32, 2, 2, 0)),
      matmul("wgmma_fp32_split_odd", fp32, {130, 77, 139}, wgmma(64, 64, 32, 3, 1, 0)),
      matmul("wgmma_fp32_halves", fp32, {256, 128, 448}, wgmma(128, 64, 64, 2, 2, 0),
             {{"fp32_emulation", kFp16x3}}),
      convolution("wgmma_bf16_windows", bf16, {2, 16, 12, 20}, {64, 16, 3, 3}, padded(1),
                  windows(wgmma(64, 64, 16, 3, 1, 1)), {{"tile_p", 4}, {"ctas_per_sm", 2}}),
      convolution("wgmma_tf32_windows_of_few_channels", tf32, {2, 3, 19, 35}, {24, 3, 5, 5},
                  padded(2, 2), windows(wgmma(128, 24, 16, 3, 2, 0)),
                  {{"tile_p", 8}, {"swap_ab", 1}}),
      convolution("im2win_fp32_few_channels", fp32, {1, 3, 35, 36}, {24, 3, 5, 5}, padded(2, 2),
                  im2win(16, 8, 24, 1, 8, 4, 2)),
      convolution("im2win_fp32_tiles_of_their_own", fp32, {1, 3, 35, 36}, {24, 3, 5, 5},
                  padded(2, 2), im2win(8, 8, 24, 1, 4, 7, 2)),
      convolution("im2win_fp32_channels", fp32, {1, 48, 12, 20}, {64, 48, 3, 3}, padded(1),
                  im2win(8, 8, 64, 16, 1, 5, 2)),
      convolution("im2win_tf32_weights_stay", tf32, {3, 3, 35, 36}, {24, 3, 11, 11}, padded(2, 4),
                  im2win(16, 4, 24, 1, 4, 5, 1), {{"weights_stationary", 1}}),
      convolution("im2win_tf32_tiles_beyond_the_last", tf32, {5, 3, 12, 24}, {32, 3, 2, 6},
                  padded(1, 3), im2win(8, 8, 32, 1, 2, 4, 1), {{"weights_stationary", 1}}),
      convolution("im2win_fp32_consumers_apart", fp32, {5, 3, 35, 36}, {24, 3, 5, 5}, padded(2, 2),
                  im2win(8, 8, 24, 1, 4, 5, 3),
                  {{"weights_stationary", 1}, {"staggered_consumers", 1}}),
      convolution("im2win_tf32_consumers_apart", tf32, {7, 3, 35, 36}, {24, 3, 11, 11},
                  padded(2, 4), im2win(16, 4, 24, 1, 6, 5, 2),
                  {{"weights_stationary", 1}, {"staggered_consumers", 1}}),
      convolution("im2win_tf32_channels", tf32, {2, 16, 12, 20}, {64, 16, 3, 3}, padded(1),
                  im2win(32, 2, 64, 8, 1, 5, 1)),
      convolution("im2win_tf32_cluster", tf32, {3, 16, 12, 20}, {64, 16, 3, 3}, padded(1),
                  im2win(8, 8, 64, 8, 3, 3, 2), {{"cluster_m", 2}}),
  };
}

std::vector<Case> rows_and_products_of_warps() {
  return {
      rows_of(graph::OpKind::Softmax, "wgmma_bf16_softmax", bf16, {256, 200, 320},
              wgmma(64, 64, 64, 3, 1, 1)),
      rows_of(graph::OpKind::LayerNormalization, "wgmma_bf16_layernorm", bf16, {512, 128, 192},
              wgmma(128, 64, 64, 2, 2, 0)),
      rows_of(graph::OpKind::ReduceLogSumExp, "wgmma_tf32_logsumexp", tf32, {384, 192, 128},
              wgmma(128, 96, 32, 3, 2, 0)),
      rows_of(graph::OpKind::LayerNormalization, "mma_fp32_layernorm", fp32, {70, 76, 132},
              mma(64, 128, 32, 2, 8)),
      triangle("wgmma_bf16_upper_triangle", bf16, {256, 256, 320}, 1, 0,
               wgmma(64, 64, 64, 3, 1, 1)),
      matmul("mma_bf16", bf16, {128, 256, 160}, mma(128, 128, 32, 3, 8)),
      triangle("mma_bf16_lower_triangle", bf16, {128, 256, 160}, 0, 0, mma(64, 64, 32, 3, 4)),
      matmul("mma_bf16_two_stages", bf16, {128, 64, 128}, mma(64, 64, 32, 2, 4)),
      matmul("mma_bf16_odd", bf16, {70, 77, 131}, mma(64, 64, 32, 2, 4)),
      matmul("mma_bf16_both_transposed", bf16, turned({128, 128, 256}, true, true),
             ada(mma(64, 128, 64, 3, 8))),
      matmul("mma_fp16_bias_gelu", fp16, fused({128, 64, 160}), ada(mma(64, 64, 32, 4, 4))),
      matmul("mma_tf32", tf32, {100, 72, 136}, ada(mma(64, 64, 32, 3, 4))),
      matmul("wgmma_e4m3_run", Dtype::e4m3, fp8, turned({136, 72, 320}, false, true),
             wgmma(64, 64, 64, 3, 1, 0), {{"promotion_interval", 4}}),
      matmul("mma_fp32_split", fp32, {128, 64, 96}, mma(64, 64, 16, 3, 8)),
      matmul("simt_fp32", fp32, {128, 64, 96}, simt(64, 64, 16, 3, 4)),
      matmul("simt_fp32_odd", fp32, {70, 65, 47}, simt(64, 32, 8, 2, 4)),
      matmul("simt_fp32_both_transposed", fp32, turned({128, 64, 48}, true, true),
             ada(simt(128, 64, 8, 2, 8))),
      softmax("softmax_registers", "sm_90a", {4, 1024, 0, 1, 8}),
      softmax("softmax_registers_ragged", "sm_80", {3, 777, 0, 1, 4}),
      softmax("softmax_registers_rows_of_two_warps", "sm_89", {10, 256, 0, 1, 4, 2}),
      softmax("softmax_registers_cluster", "sm_90a", {2, 4096, 0, 4, 4}),
      softmax("softmax_registers_cluster_ragged", "sm_90a", {2, 2050, 0, 2, 4}),
      softmax("softmax_ring", "sm_80", {9, 512, 3, 1, 4, 1, 4, 3, 1}),
      softmax("softmax_ring_cluster", "sm_90a", {4, 2048, 3, 2, 4, 1, 4, 2, 1}),
      softmax("softmax_ring_cluster_in_pieces", "sm_90a", {4, 4096, 3, 2, 2, 1, 8, 2, 1}),
      softmax("softmax_shared", "sm_80", {3, 2048, 1, 1, 4}),
      softmax("softmax_shared_cluster", "sm_90a", {2, 8191, 1, 4, 4, 1, 8}),
      softmax("softmax_streamed", "sm_89", {3, 3000, 2, 1, 4}),
      softmax("softmax_ring_in_memory", "sm_80", {3, 2048, 3, 2, 2, 1, 4, 1, 1}),
      prefixes("prefixes_of_rows", "sm_90a", {2, 1300}, 1, 0,
               {{"tile_x", 512}, {"tile_y", 1}, {"warps", 4}}),
      prefixes("prefixes_of_columns_from_the_end", "sm_80", {70, 100}, 0, 1,
               {{"tile_x", 64}, {"tile_y", 16}, {"warps", 4}}),
      prefixes("prefixes_of_a_line_together", "sm_90a", {2, 2050}, 1, 0,
               {{"tile_x", 256}, {"tile_y", 1}, {"warps", 2}, {"ctas_per_scan", 4}}),
  };
}

std::vector<Case> triangles() {
  return {
      convolution("mma_bf16_windows", bf16, {1, 16, 10, 16}, {32, 16, 3, 3}, padded(1),
                  mma(32, 16, 16, 3, 4),
                  {{"tile_p", 4}, {"filter_taps_per_stage", 1}, {"pack_weights", 1}}),
      triangle("wgmma_bf16_upper_triangle_cluster", bf16, {330, 200, 104}, 1, 17,
               wgmma(64, 64, 64, 3, 1, 0), {{"cluster_m", 2}}),
      triangle("wgmma_bf16_lower_triangle_exchanged_split_k", bf16, {136, 200, 328}, 0, -30,
               wgmma(64, 64, 64, 3, 1, 0), split_k(2, {{"swap_ab", 1}})),
      triangle("wgmma_tf32_lower_triangle_across", tf32, {200, 136, 104}, 0, 3,
               wgmma(64, 64, 32, 2, 1, 0), {{"a_source", kRegisters}, {"swap_ab", 1}}),
      triangle("mma_fp32_upper_triangle", fp32, {90, 200, 44}, 1, 50, mma(64, 64, 16, 3, 8)),
      triangle("wgmma_fp32_upper_triangle_run", fp32, {136, 200, 300}, 1, 5,
               wgmma(64, 64, 32, 2, 1, 0), {{"promotion_interval", 4}}),
      triangle("wgmma_fp32_lower_triangle_times_run_split_k", fp32, {130, 72, 700}, 0, 150,
               wgmma(64, 64, 32, 2, 1, 0), split_k(2, {{"promotion_interval", 4}}), Kept::a),
      triangle("wgmma_bf16_lower_triangle_times", bf16, {131, 77, 333}, 0, 100,
               wgmma(64, 64, 64, 3, 1, 1), {}, Kept::a),
      triangle("wgmma_bf16_times_lower_triangle_cluster", bf16, {330, 200, 328}, 0, -30,
               wgmma(64, 64, 64, 3, 1, 1), {{"cluster_m", 2}}, Kept::b),
      triangle("wgmma_tf32_times_upper_triangle", tf32, {70, 137, 133}, 1, 3,
               wgmma(64, 64, 32, 2, 1, 0), {}, Kept::b),
      triangle("wgmma_tf32_upper_triangle_times_exchanged", tf32, {200, 136, 104}, 1, -20,
               wgmma(64, 64, 32, 2, 1, 0), {{"swap_ab", 1}}, Kept::a),
      triangle("mma_bf16_times_lower_triangle", bf16, {70, 131, 133}, 0, 0, mma(64, 64, 32, 3, 4),
               {}, Kept::b),
      triangle("mma_bf16_upper_triangle_times", bf16, {133, 77, 131}, 1, 2,
               ada(mma(64, 64, 32, 2, 4)), {}, Kept::a),
      triangle("mma_fp32_odd_upper_triangle", fp32, {90, 197, 45}, 1, 50, mma(32, 32, 16, 3, 4)),
      matmul("mma_fp32_odd", fp32, {90, 197, 45}, mma(32, 32, 16, 3, 4)),
      triangle("simt_fp32_lower_triangle_times", fp32, {131, 70, 133}, 0, 0, simt(32, 32, 8, 3, 4),
               {}, Kept::a),
      triangle("simt_fp32_times_upper_triangle", fp32, {70, 133, 129}, 1, 1, simt(32, 32, 8, 2, 4),
               {}, Kept::b),
      triangle("simt_fp32_upper_triangle", fp32, {130, 150, 41}, 1, -1, simt(32, 32, 8, 2, 4)),
      triangle("simt_fp32_lower_triangle_of_one_stage", fp32, {130, 129, 8}, 0, 0,
               ada(simt(32, 32, 8, 3, 4))),
  };
}

std::vector<Case> ragged_products() {
  const MatmulShape ragged{200, 136, 104};
  return {
      matmul("wgmma_bf16_ragged", bf16, ragged, wgmma(128, 64, 64, 3, 2, 1)),
      matmul("wgmma_bf16_odd_from_registers", bf16, {130, 77, 51}, wgmma(64, 64, 64, 3, 1, 0)),
      matmul("wgmma_bf16_cluster_ragged_exchanged", bf16, fused({330, 200, 104}),
             wgmma(64, 64, 64, 3, 1, 0), {{"cluster_m", 2}, {"swap_ab", 1}}),
      matmul("wgmma_fp32_split_cluster", fp32, ragged, wgmma(64, 64, 32, 3, 1, 0),
             {{"cluster_m", 2}}),
      matmul("wgmma_fp32_halves_odd", fp32, {130, 77, 139}, wgmma(64, 64, 64, 3, 1, 0),
             {{"fp32_emulation", kFp16x3}}),
      matmul("wgmma_fp32_halves_along_rows_split_k", fp32, turned({136, 72, 500}, true, true),
             wgmma(128, 64, 32, 3, 2, 0), split_k(2, {{"fp32_emulation", kFp16x3}})),
      matmul("wgmma_fp32_halves_exchanged_cluster_bias_gelu", fp32, fused({260, 136, 200}),
             wgmma(64, 64, 64, 2, 1, 1),
             {{"fp32_emulation", kFp16x3}, {"cluster_m", 2}, {"swap_ab", 1}}),
      matmul("wgmma_fp32_halves_batched_run", fp32, {40, 64, 700, {3}}, wgmma(64, 64, 64, 2, 1, 0),
             {{"fp32_emulation", kFp16x3}, {"promotion_interval", 4}}),
      triangle("wgmma_fp32_halves_lower_triangle_times", fp32, {130, 72, 300}, 0, 150,
               wgmma(64, 64, 64, 2, 1, 0), {{"fp32_emulation", kFp16x3}}, Kept::a),
      matmul("wgmma_bf16_split_k_ragged", bf16, {64, 64, 1000}, wgmma(64, 64, 64, 3, 1, 0),
             split_k(3)),
      matmul("wgmma_bf16_split_k_through_shared_bias_gelu", bf16, fused(ragged),
             wgmma(128, 64, 64, 2, 2, 1), split_k(2)),
      matmul("wgmma_bf16_exchanged_split_k", bf16, {5, 256, 320}, wgmma(128, 8, 64, 4, 2, 0),
             split_k(2, {{"swap_ab", 1}})),
      matmul("wgmma_bf16_exchanged_through_shared_bias_gelu", bf16, fused(ragged),
             wgmma(128, 64, 64, 2, 2, 1), {{"swap_ab", 1}}),
      matmul("wgmma_bf16_batched_split_k", bf16, {40, 64, 200, {3}}, wgmma(64, 64, 64, 3, 1, 0),
             split_k(2)),
      matmul("wgmma_tf32_ragged", tf32, ragged, wgmma(128, 64, 32, 3, 2, 0)),
      matmul("wgmma_tf32_exchanged", tf32, ragged, wgmma(128, 64, 32, 3, 2, 0), {{"swap_ab", 1}}),
      matmul("wgmma_tf32_across_exchanged", tf32, ragged, wgmma(64, 64, 32, 2, 1, 0),
             {{"a_source", kRegisters}, {"swap_ab", 1}}),
      matmul("wgmma_tf32_across_split_k", tf32, turned({136, 64, 500}, true, false),
             wgmma(128, 64, 32, 3, 2, 0), split_k(3, {{"a_source", kRegisters}})),
      matmul("wgmma_tf32_across_cluster", tf32, turned({260, 136, 72}, true, true),
             wgmma(64, 64, 32, 3, 1, 0), {{"a_source", kRegisters}, {"cluster_m", 2}}),
      matmul("wgmma_fp32_split_bias_gelu", fp32, fused(ragged), wgmma(128, 64, 32, 2, 2, 0)),
      matmul("mma_bf16_batched", bf16, {72, 64, 64, {3}}, mma(64, 64, 32, 3, 4)),
      matmul("mma_fp16_ragged_bias_gelu", fp16, fused(ragged), mma(64, 64, 32, 4, 4)),
      matmul("mma_fp32_split_bias_gelu", fp32, fused(ragged), mma(64, 64, 16, 3, 8)),
  };
}

std::vector<Case> eight_bit_products_and_long_rows() {
  const MatmulShape ragged{200, 136, 104};
  return {
      matmul("wgmma_e4m3", Dtype::e4m3, fp8, turned(ragged, false, true),
             wgmma(128, 64, 64, 3, 2, 0)),
      matmul("wgmma_e5m2_bias_gelu", Dtype::e5m2, fp8, fused(ragged), wgmma(128, 64, 64, 3, 2, 0)),
      matmul("wgmma_i8", Dtype::i8, fp8, turned(ragged, false, true), wgmma(128, 64, 64, 3, 2, 0)),
      stream(matmul("wgmma_bf16_stream_through_shared", bf16, {320, 192, 448},
                    wgmma(64, 64, 64, 3, 1, 1))),
      stream(matmul("wgmma_e4m3_stream_blocks", Dtype::e4m3, fp8,
                    fused(scaled({300, 192, 384}, 128, 64)), wgmma(64, 64, 128, 2, 1, 0))),
      stream(matmul("wgmma_i8_stream", Dtype::i8, fp8, turned({1100, 70, 224}, false, true),
                    wgmma(128, 64, 64, 3, 2, 0))),
      stream(matmul("wgmma_tf32_stream_across", tf32, turned({300, 72, 160}, true, true),
                    wgmma(64, 32, 32, 3, 1, 0), {{"a_source", kRegisters}})),
      matmul("wgmma_fp32_run_split_k", fp32, {130, 72, 700}, wgmma(128, 64, 32, 2, 2, 0),
             split_k(2, {{"promotion_interval", 4}})),
      stream(matmul("wgmma_e4m3_run_stream_blocks", Dtype::e4m3, fp8,
                    fused(scaled({300, 192, 640}, 128, 64)), wgmma(64, 64, 128, 2, 1, 0),
                    {{"promotion_interval", 4}})),
      matmul("wgmma_e4m3_blocks", Dtype::e4m3, fp8, scaled({200, 256, 512}, 128, 128, Dtype::bf16),
             wgmma(128, 128, 128, 2, 2, 1)),
      matmul("wgmma_e4m3_blocks_of_columns", Dtype::e4m3, fp8, fused(scaled({72, 136, 384}, 64, 1)),
             wgmma(64, 64, 64, 3, 1, 0)),
      matmul("wgmma_e5m2_blocks_exchanged", Dtype::e5m2, fp8, scaled({72, 128, 384}, 96, 64),
             wgmma(64, 32, 32, 3, 1, 0), {{"swap_ab", 1}}),
      matmul("wgmma_i8_blocks_split_k", Dtype::i8, fp8, scaled({72, 128, 512}, 128, 32),
             wgmma(64, 32, 64, 3, 1, 1), split_k(2)),
      matmul("mma_e4m3_blocks", Dtype::e4m3, fp8, scaled({72, 128, 384}, 128, 64),
             ada(mma(64, 64, 64, 3, 4))),
      matmul("mma_i8_blocks", Dtype::i8, fp8, scaled({40, 96, 192}, 64, 1), mma(64, 32, 32, 3, 4)),
      matmul("mma_e4m3", Dtype::e4m3, fp8, turned(ragged, false, true), ada(mma(64, 64, 64, 3, 4))),
      matmul("mma_i8", Dtype::i8, fp8, turned(ragged, false, true), mma(64, 64, 64, 3, 4)),
      prefixes("prefixes_of_a_line_together_from_the_end", "sm_80", {2048}, 0, 1,
               {{"tile_x", 128}, {"tile_y", 1}, {"warps", 1}, {"ctas_per_scan", 8}}),
      prefixes("prefixes_of_columns_together", "sm_90a", {500, 40}, 0, 0,
               {{"tile_x", 32}, {"tile_y", 16}, {"warps", 2}, {"ctas_per_scan", 4}}),
      softmax("softmax_shared_in_memory", "sm_90a", {2, 32768, 1, 32, 1, 1, 8}),
      softmax("softmax_registers_many_rows", "sm_90a", {10, 64, 0, 1, 4, 4}),
      softmax("softmax_ring_of_many_rows", "sm_90a", {300, 512, 3, 1, 4, 1, 4, 2, 2}),
      softmax("softmax_ring_cluster_of_many_rows", "sm_90a", {140, 2048, 3, 2, 4, 1, 4, 3, 1}),
      softmax("log_softmax_bf16", "sm_90a", {3, 1024, 0, 1, 4, 1, 4, 2, 2, Dtype::bf16, true}),
  };
}
}  // namespace

std::vector<Case> mutated_cases() {
  return joined({wgmma_products_and_convolutions(), rows_and_products_of_warps()});
}

std::vector<Case> all_cases() {
  return joined({mutated_cases(), long_sums(), triangles(), ragged_products(),
                 eight_bit_products_and_long_rows()});
}
}  // namespace warploom::test
