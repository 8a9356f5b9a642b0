// Every GPU schedule family, built from a graph, emitted as CUDA text and run on the emulator with hazard rules on, against FP64.

#include <gtest/gtest.h>
#include "kernels/families.h"
#include "problems.h"
#include "runtime/emulate.h"

namespace warploom {
namespace {

using kernels::Region;
using kernels::Schedule;
using test::MatmulShape;

// Relative Frobenius error of the emulated launch list, or the error's code in a failed Result.
Result<double> emulated_error(const Region& region, const Schedule& schedule, const std::string& target,
                              std::uint64_t seed, std::vector<runtime::BankUse>* banks = nullptr) {
  WARPLOOM_TRY(const target::Capabilities capabilities, target::capabilities_of(target));
  WARPLOOM_TRY(const LaunchList list, kernels::build(region, schedule, capabilities));
  auto inputs = test::random_inputs(region.graph, seed);
  runtime::EmulatedBuffers buffers;
  std::vector<graph::Bytes> views;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    buffers[list.inputs[i].name] = inputs[i];
    views.emplace_back(inputs[i]);
  }
  std::vector<std::byte> output(static_cast<std::size_t>(list.outputs[0].bytes()), std::byte{0xff});  // poison: NaN
  buffers[list.outputs[0].name] = output;
  runtime::EmulateOptions options;
  options.seed = seed;
  options.count_banks = banks != nullptr;
  WARPLOOM_TRY(runtime::Emulation emulation, runtime::emulate(list, buffers, options));
  if (banks) *banks = std::move(emulation.banks);
  WARPLOOM_TRY(const auto expected, graph::evaluate(region.graph, views, 1));
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected[0].size(); ++i) {
    const double got = load_as_double(list.outputs[0].dtype, output.data(), i);
    difference += (got - expected[0][i]) * (got - expected[0][i]);
    size += expected[0][i] * expected[0][i];
  }
  return std::sqrt(difference / size);
}

struct Case {
  std::string name, target;
  Region region;
  Schedule schedule;
  double tolerance;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

Case matmul(const std::string& name, const std::string& target, const MatmulShape& shape, Dtype dtype, Track track,
            Schedule schedule, double tolerance) {
  return {name, target, {test::matmul_graph(shape, dtype), track}, std::move(schedule), tolerance};
}
Schedule wgmma(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t stages, std::int64_t consumers,
               std::int64_t through_shared) {
  return {"matmul_wgmma",
          {{"block_m", m},
           {"block_n", n},
           {"block_k", k},
           {"stages", stages},
           {"consumers", consumers},
           {"group", 2},
           {"through_shared", through_shared}}};
}
Schedule with(Schedule schedule, const std::map<std::string, std::int64_t>& fields) {
  for (const auto& [name, value] : fields) schedule.fields[name] = value;
  return schedule;
}
Schedule threads(const std::string& family, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t stages,
                 std::int64_t warps) {
  return {family, {{"block_m", m}, {"block_n", n}, {"block_k", k}, {"stages", stages}, {"warps", warps}, {"group", 2}}};
}
Schedule softmax(std::int64_t place, std::int64_t cluster, std::int64_t warps, std::int64_t rows,
                 std::int64_t chunk = 4) {
  return {"softmax_rows", {{"place", place}, {"cluster", cluster}, {"warps", warps}, {"rows", rows}, {"chunk", chunk}}};
}

std::vector<Case> cases() {
  constexpr double kHalf = 4e-3, kTf32 = 1e-3, kSplit = 4.8e-7, kFloat = 1e-6;
  const MatmulShape even{256, 256, 256}, ragged{200, 136, 104}, odd{130, 77, 51}, deep{64, 64, 1000},
      skinny{5, 256, 320};
  MatmulShape fused = ragged, turned = even, both = even, batched{72, 64, 64, {3}}, batched_deep{40, 64, 200, {3}};
  fused.bias = fused.gelu = true;
  turned.transpose_b = true;
  both.transpose_a = both.transpose_b = true;
  std::vector<Case> all = {
      matmul("wgmma_bf16", "sm_90a", even, Dtype::bf16, Track::bf16, wgmma(128, 128, 64, 3, 2, 1), kHalf),
      matmul("wgmma_bf16_one_consumer_from_registers", "sm_90a", even, Dtype::bf16, Track::bf16,
             wgmma(64, 128, 64, 4, 1, 0), kHalf),
      matmul("wgmma_bf16_two_atoms_a_warpgroup", "sm_90a", even, Dtype::bf16, Track::bf16, wgmma(256, 64, 64, 2, 2, 1),
             kHalf),
      matmul("wgmma_bf16_deep_slots", "sm_90a", even, Dtype::bf16, Track::bf16, wgmma(128, 64, 128, 2, 2, 1), kHalf),
      matmul("wgmma_fp16_ragged", "sm_90a", ragged, Dtype::f16, Track::fp16, wgmma(128, 64, 64, 3, 2, 1), kHalf),
      matmul("wgmma_bf16_bias_gelu", "sm_90a", fused, Dtype::bf16, Track::bf16, wgmma(128, 64, 64, 3, 2, 1), kHalf),
      matmul("wgmma_bf16_k_major_b", "sm_90a", turned, Dtype::bf16, Track::bf16, wgmma(128, 128, 64, 3, 2, 1), kHalf),
      matmul("wgmma_bf16_both_transposed", "sm_90a", both, Dtype::bf16, Track::bf16, wgmma(128, 128, 64, 3, 2, 1),
             kHalf),
      matmul("wgmma_bf16_batched", "sm_90a", batched, Dtype::bf16, Track::bf16, wgmma(64, 64, 64, 3, 1, 1), kHalf),
      matmul("wgmma_bf16_odd", "sm_90a", odd, Dtype::bf16, Track::bf16, wgmma(64, 64, 64, 3, 1, 0), kHalf),
      matmul("wgmma_bf16_odd_through_shared", "sm_90a", odd, Dtype::bf16, Track::bf16, wgmma(128, 64, 64, 3, 2, 1),
             kHalf),
      matmul("wgmma_bf16_split_k", "sm_90a", deep, Dtype::bf16, Track::bf16,
             with(wgmma(64, 64, 64, 3, 1, 0), {{"split", 3}}), kHalf),
      matmul("wgmma_bf16_split_k_through_shared_bias_gelu", "sm_90a", fused, Dtype::bf16, Track::bf16,
             with(wgmma(128, 64, 64, 2, 2, 1), {{"split", 2}}), kHalf),
      matmul("wgmma_bf16_skinny_exchanged", "sm_90a", skinny, Dtype::bf16, Track::bf16,
             with(wgmma(128, 16, 64, 4, 2, 0), {{"exchange", 1}}), kHalf),
      matmul("wgmma_bf16_skinny_exchanged_split_k", "sm_90a", skinny, Dtype::bf16, Track::bf16,
             with(wgmma(128, 8, 64, 4, 2, 0), {{"exchange", 1}, {"split", 2}}), kHalf),
      matmul("wgmma_bf16_exchanged_through_shared", "sm_90a", fused, Dtype::bf16, Track::bf16,
             with(wgmma(128, 64, 64, 2, 2, 1), {{"exchange", 1}}), kHalf),
      matmul("wgmma_bf16_batched_split_k", "sm_90a", batched_deep, Dtype::bf16, Track::bf16,
             with(wgmma(64, 64, 64, 3, 1, 0), {{"split", 2}}), kHalf),
      matmul("wgmma_tf32_exchanged", "sm_90a", ragged, Dtype::f32, Track::tf32,
             with(wgmma(128, 64, 32, 3, 2, 0), {{"exchange", 1}}), kTf32),
      matmul("wgmma_tf32", "sm_90a", ragged, Dtype::f32, Track::tf32, wgmma(128, 64, 32, 3, 2, 0), kTf32),
      matmul("wgmma_fp32_split", "sm_90a", fused, Dtype::f32, Track::fp32, wgmma(128, 64, 32, 2, 2, 0), kSplit),
      matmul("wgmma_fp32_split_odd", "sm_90a", odd, Dtype::f32, Track::fp32, wgmma(64, 64, 32, 3, 1, 0), kSplit),
      matmul("mma_bf16", "sm_80", even, Dtype::bf16, Track::bf16, threads("matmul_mma", 128, 128, 32, 3, 8), kHalf),
      matmul("mma_bf16_odd", "sm_80", odd, Dtype::bf16, Track::bf16, threads("matmul_mma", 64, 64, 32, 2, 4), kHalf),
      matmul("mma_fp16_bias_gelu", "sm_80", fused, Dtype::f16, Track::fp16, threads("matmul_mma", 64, 64, 32, 4, 4),
             kHalf),
      matmul("mma_bf16_both_transposed", "sm_80", both, Dtype::bf16, Track::bf16,
             threads("matmul_mma", 64, 128, 64, 3, 8), kHalf),
      matmul("mma_bf16_batched", "sm_80", batched, Dtype::bf16, Track::bf16, threads("matmul_mma", 64, 64, 32, 3, 4),
             kHalf),
      matmul("mma_tf32", "sm_80", ragged, Dtype::f32, Track::tf32, threads("matmul_mma", 64, 64, 32, 3, 4), kTf32),
      matmul("mma_fp32_split", "sm_80", fused, Dtype::f32, Track::fp32, threads("matmul_mma", 64, 64, 16, 3, 8),
             kSplit),
      matmul("simt_fp32", "sm_80", even, Dtype::f32, Track::fp32, threads("matmul_simt", 64, 64, 16, 3, 4), kFloat),
      matmul("simt_fp32_odd", "sm_80", odd, Dtype::f32, Track::fp32, threads("matmul_simt", 64, 64, 8, 2, 4), kFloat),
      matmul("simt_fp32_both_transposed", "sm_80", both, Dtype::f32, Track::fp32,
             threads("matmul_simt", 128, 64, 8, 2, 8), kFloat),
  };
  const std::tuple<const char*, std::int64_t, std::int64_t, Schedule> rows[] = {
      {"softmax_registers", 6, 1024, softmax(0, 1, 8, 1)},
      {"softmax_registers_ragged", 5, 777, softmax(0, 1, 4, 1)},
      {"softmax_registers_many_rows", 10, 64, softmax(0, 1, 4, 4)},
      {"softmax_registers_cluster", 2, 4096, softmax(0, 4, 4, 1)},
      {"softmax_registers_cluster_ragged", 3, 2050, softmax(0, 2, 4, 1)},
      {"softmax_ring", 300, 512, with(softmax(3, 1, 4, 1), {{"stages", 2}, {"blocks", 2}})},
      {"softmax_ring_cluster", 140, 2048, with(softmax(3, 2, 4, 1), {{"stages", 3}, {"blocks", 1}})},
      {"softmax_shared", 3, 4096, softmax(1, 1, 4, 1)},
      {"softmax_shared_cluster", 2, 8191, softmax(1, 4, 4, 1, 8)},
      {"softmax_streamed", 3, 3000, softmax(2, 1, 4, 1)},
  };
  for (const auto& [name, r, c, schedule] : rows)
    all.push_back({name, "sm_90a", {test::softmax_graph(r, c, Dtype::f32), Track::fp32}, schedule, kFloat});
  all.push_back({"log_softmax_bf16",
                 "sm_90a",
                 {test::softmax_graph(3, 1024, Dtype::bf16, true), Track::bf16},
                 softmax(0, 1, 4, 1),
                 kHalf});
  return all;
}

class Emulated : public testing::TestWithParam<Case> {};

TEST_P(Emulated, AgreesWithFp64AndHasNoHazard) {
  const Case& c = GetParam();
  for (const std::uint64_t seed : {1, 2}) {
    const auto error = emulated_error(c.region, c.schedule, c.target, seed);
    ASSERT_TRUE(error.has_value()) << describe(error.error());
    EXPECT_LE(*error, c.tolerance);
  }
}

TEST(EmulatedBanks, MatrixKernelsHaveNoConflicts) {
  for (const Case& c : cases()) {
    if (!c.name.starts_with("mma_") && !c.name.starts_with("wgmma_bf16")) continue;
    if (c.name.find("split_k_through_shared") != std::string::npos) continue;  // fp32 in the engine's swizzle: 2 ways
    std::vector<runtime::BankUse> banks;
    const auto error = emulated_error(c.region, c.schedule, c.target, 1, &banks);
    ASSERT_TRUE(error.has_value()) << describe(error.error());
    for (const auto& line : banks)
      EXPECT_EQ(line.wavefronts, line.least) << c.name << ", " << line.kernel << ", line " << line.line;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Emulated, testing::ValuesIn(cases()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace warploom
