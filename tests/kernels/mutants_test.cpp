// The emulator as judge of emitted kernels: every synchronisation of a text is removed or weakened, one at a time, and the
// emulator must notice, by a hazard, a deadlock or wrong numbers. What it lets through must be in the table of equivalent
// mutants, with the reason.
//
// Ordinarily a sample of the kernels runs, another one with another WARPLOOM_MUTANTS_SEED. With WARPLOOM_MUTANTS=FILE all
// kernels run, each mutant with asynchronous effects early, late and at random, and FILE gets one line of JSON a mutant;
// tools/mutants.py does that and writes docs/mutation.md.

#include <gtest/gtest.h>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include "equivalent_mutants.h"
#include "kernels/families.h"
#include "problems.h"
#include "runtime/emulate.h"

namespace warploom {
namespace {

using kernels::Region;
using kernels::Schedule;
using test::MatmulShape;
using test::Mutant;

struct Case {
  std::string name, target;
  Region region;
  Schedule schedule;
  double tolerance;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

std::vector<Case> cases() {
  constexpr double kHalf = 4e-3, kTf32 = 1e-3, kSplit = 4.8e-7, kFloat = 1e-6;
  struct Matmul {
    const char *name, *target, *family;
    Track track;
    MatmulShape shape;
    std::vector<std::int64_t>
        fields;  // block_m, block_n, block_k, stages; wgmma: consumers, through_shared; others: warps
    double tolerance;
    std::map<std::string, std::int64_t> more = {};  // further fields
  };
  // Two blocks share the tiles (see below), and K has more steps than the ring has slots.
  const Track bf16 = Track::bf16, fp16 = Track::fp16, tf32 = Track::tf32, fp32 = Track::fp32;
  const Matmul matmuls[] = {
      {"wgmma_bf16", "sm_90a", "matmul_wgmma", bf16, {256, 256, 320}, {128, 128, 64, 3, 2, 1}, kHalf},
      {"wgmma_bf16_from_registers", "sm_90a", "matmul_wgmma", bf16, {256, 128, 320}, {128, 64, 64, 3, 2, 0}, kHalf},
      {"wgmma_bf16_one_consumer", "sm_90a", "matmul_wgmma", bf16, {128, 256, 448}, {64, 128, 64, 4, 1, 1}, kHalf},
      {"wgmma_bf16_one_consumer_from_registers",
       "sm_90a",
       "matmul_wgmma",
       bf16,
       {128, 128, 256},
       {64, 64, 64, 2, 1, 0},
       kHalf},
      {"wgmma_bf16_two_atoms", "sm_90a", "matmul_wgmma", bf16, {512, 128, 256}, {256, 64, 64, 2, 2, 1}, kHalf},
      {"wgmma_bf16_deep_slots", "sm_90a", "matmul_wgmma", bf16, {256, 128, 512}, {128, 64, 128, 2, 2, 1}, kHalf},
      {"wgmma_bf16_k_major_b",
       "sm_90a",
       "matmul_wgmma",
       bf16,
       {256, 128, 320, {}, false, true},
       {128, 64, 64, 3, 2, 1},
       kHalf},
      {"wgmma_bf16_both_transposed",
       "sm_90a",
       "matmul_wgmma",
       bf16,
       {256, 256, 256, {}, true, true},
       {128, 128, 64, 3, 2, 1},
       kHalf},
      {"wgmma_bf16_batched", "sm_90a", "matmul_wgmma", bf16, {72, 64, 256, {3}}, {64, 64, 64, 3, 1, 1}, kHalf},
      {"wgmma_fp16_bias_gelu",
       "sm_90a",
       "matmul_wgmma",
       fp16,
       {200, 136, 296, {}, false, false, true, true},
       {128, 64, 64, 3, 2, 1},
       kHalf},
      {"wgmma_fp16_one_consumer", "sm_90a", "matmul_wgmma", fp16, {128, 128, 320}, {64, 64, 64, 3, 1, 0}, kHalf},
      {"wgmma_bf16_split_k",
       "sm_90a",
       "matmul_wgmma",
       bf16,
       {64, 128, 640},
       {64, 64, 64, 3, 1, 0},
       kHalf,
       {{"split", 2}}},
      {"wgmma_bf16_exchanged",
       "sm_90a",
       "matmul_wgmma",
       bf16,
       {5, 512, 320},
       {128, 16, 64, 3, 2, 0},
       kHalf,
       {{"exchange", 1}}},
      {"wgmma_bf16_exchanged_shared",
       "sm_90a",
       "matmul_wgmma",
       bf16,
       {64, 512, 320},
       {128, 64, 64, 3, 2, 1},
       kHalf,
       {{"exchange", 1}}},
      {"wgmma_bf16_odd", "sm_90a", "matmul_wgmma", bf16, {130, 77, 331}, {128, 64, 64, 3, 2, 1}, kHalf},
      {"wgmma_tf32", "sm_90a", "matmul_wgmma", tf32, {256, 128, 160}, {128, 64, 32, 3, 2, 0}, kTf32},
      {"wgmma_tf32_one_consumer", "sm_90a", "matmul_wgmma", tf32, {128, 128, 128}, {64, 64, 32, 2, 1, 0}, kTf32},
      {"wgmma_fp32_split", "sm_90a", "matmul_wgmma", fp32, {256, 128, 128}, {128, 64, 32, 2, 2, 0}, kSplit},
      {"wgmma_fp32_split_odd", "sm_90a", "matmul_wgmma", fp32, {130, 77, 139}, {64, 64, 32, 3, 1, 0}, kSplit},
      {"mma_bf16", "sm_80", "matmul_mma", bf16, {128, 256, 160}, {128, 128, 32, 3, 8}, kHalf},
      {"mma_bf16_two_stages", "sm_80", "matmul_mma", bf16, {128, 64, 128}, {64, 64, 32, 2, 4}, kHalf},
      {"mma_bf16_odd", "sm_80", "matmul_mma", bf16, {70, 77, 131}, {64, 64, 32, 2, 4}, kHalf},
      {"mma_bf16_both_transposed",
       "sm_89",
       "matmul_mma",
       bf16,
       {128, 128, 256, {}, true, true},
       {64, 128, 64, 3, 8},
       kHalf},
      {"mma_fp16_bias_gelu",
       "sm_89",
       "matmul_mma",
       fp16,
       {128, 64, 160, {}, false, false, true, true},
       {64, 64, 32, 4, 4},
       kHalf},
      {"mma_tf32", "sm_89", "matmul_mma", tf32, {100, 72, 136}, {64, 64, 32, 3, 4}, kTf32},
      {"mma_fp32_split", "sm_80", "matmul_mma", fp32, {128, 64, 96}, {64, 64, 16, 3, 8}, kSplit},
      {"simt_fp32", "sm_80", "matmul_simt", fp32, {128, 64, 96}, {64, 64, 16, 3, 4}, kFloat},
      {"simt_fp32_odd", "sm_80", "matmul_simt", fp32, {70, 65, 41}, {64, 64, 8, 2, 4}, kFloat},
      {"simt_fp32_both_transposed",
       "sm_89",
       "matmul_simt",
       fp32,
       {128, 64, 48, {}, true, true},
       {128, 64, 8, 2, 8},
       kFloat},
  };
  std::vector<Case> all;
  for (const Matmul& m : matmuls) {
    const bool wgmma = m.fields.size() == 6;
    Schedule schedule{m.family, {{"group", 2}}};
    const char* const names[] = {"block_m",       "block_n", "block_k", "stages", wgmma ? "consumers" : "warps",
                                 "through_shared"};
    for (std::size_t i = 0; i < m.fields.size(); ++i) schedule.fields[names[i]] = m.fields[i];
    schedule.fields.insert(m.more.begin(), m.more.end());
    const Dtype dtype = m.track == bf16 ? Dtype::bf16 : m.track == fp16 ? Dtype::f16 : Dtype::f32;
    all.push_back({m.name, m.target, {test::matmul_graph(m.shape, dtype), m.track}, schedule, m.tolerance});
  }
  struct Softmax {
    const char *name, *target;
    std::int64_t rows, columns, place, cluster, warps, together, chunk, stages = 2, blocks = 2;
  };
  const Softmax softmaxes[] = {
      {"softmax_registers", "sm_90a", 4, 1024, 0, 1, 8, 1, 4},
      {"softmax_registers_ragged", "sm_80", 3, 777, 0, 1, 4, 1, 4},
      {"softmax_registers_rows_of_two_warps", "sm_89", 10, 256, 0, 1, 4, 2, 4},
      {"softmax_registers_cluster", "sm_90a", 2, 4096, 0, 4, 4, 1, 4},
      {"softmax_registers_cluster_ragged", "sm_90a", 2, 2050, 0, 2, 4, 1, 4},
      {"softmax_ring", "sm_80", 9, 512, 3, 1, 4, 1, 4, 3, 1},
      {"softmax_ring_cluster", "sm_90a", 4, 2048, 3, 2, 4, 1, 4, 2, 1},
      {"softmax_shared", "sm_80", 3, 2048, 1, 1, 4, 1, 4},
      {"softmax_shared_cluster", "sm_90a", 2, 8191, 1, 4, 4, 1, 8},
      {"softmax_streamed", "sm_89", 3, 3000, 2, 1, 4, 1, 4},
  };
  for (const Softmax& s : softmaxes)
    all.push_back({s.name,
                   s.target,
                   {test::softmax_graph(s.rows, s.columns, Dtype::f32), fp32},
                   {"softmax_rows",
                    {{"place", s.place},
                     {"cluster", s.cluster},
                     {"warps", s.warps},
                     {"rows", s.together},
                     {"chunk", s.chunk},
                     {"stages", s.stages},
                     {"blocks", s.blocks}}},
                   kFloat});
  return all;
}

// One case made ready: the launch list with its mutants planted, inputs, the answer.
struct Planted {
  LaunchList list;
  std::map<std::string, std::string> texts;  // of the kernels as they were
  std::vector<Mutant> mutants;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<double> expected;
  double tolerance = 0;

  static Result<Planted> make(const Case& c) {
    Planted p;
    WARPLOOM_TRY(target::Capabilities capabilities, target::capabilities_of(c.target));
    capabilities.processors = 2;  // so that a persistent block takes several tiles
    WARPLOOM_TRY(p.list, kernels::build(c.region, c.schedule, capabilities));
    for (const Kernel& kernel : p.list.kernels) p.texts[kernel.name] = kernel.source;
    p.mutants = test::plant_mutants(p.list);
    p.inputs = test::random_inputs(c.region.graph, 7);
    const std::vector<graph::Bytes> views(p.inputs.begin(), p.inputs.end());
    WARPLOOM_TRY(auto expected, graph::evaluate(c.region.graph, views, 1));
    p.expected = std::move(expected[0]);
    p.tolerance = c.tolerance;
    return p;
  }

  // What gave the mutant away: a hazard's kind, "deadlock", "numbers"; "" if nothing did.
  std::string caught(int mutant, int timing) {
    wl_mutant = mutant;
    runtime::EmulatedBuffers buffers;
    for (std::size_t i = 0; i < inputs.size(); ++i) buffers[list.inputs[i].name] = inputs[i];
    std::vector<std::byte> output(static_cast<std::size_t>(list.outputs[0].bytes()), std::byte{0xff});  // NaN
    buffers[list.outputs[0].name] = output;
    runtime::EmulateOptions options;
    options.seed = static_cast<std::uint64_t>(mutant);
    options.timing = timing;
    const auto ran = runtime::emulate(list, buffers, options);
    wl_mutant = 0;
    if (!ran && ran.error().code == ErrorCode::kEmulatorDeadlock) return "deadlock";
    if (!ran && ran.error().code == ErrorCode::kEmulatorHazard) {
      const std::string& found = ran.error().found;  // "line 12: race: …"
      const std::size_t kind = found.find(": ") + 2;
      return found.substr(kind, found.find(':', kind) - kind);
    }
    if (!ran) return "error " + describe(ran.error());
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double d = load_as_double(list.outputs[0].dtype, output.data(), i) - expected[i];
      difference += d * d, size += expected[i] * expected[i];
    }
    return std::sqrt(difference / size) <= tolerance ? "" : "numbers";
  }
};

const char* record_file() { return std::getenv("WARPLOOM_MUTANTS"); }

class Mutants : public testing::TestWithParam<Case> {};

TEST_P(Mutants, NoneGoesUnnoticed) {
  auto made = Planted::make(GetParam());
  ASSERT_TRUE(made.has_value()) << describe(made.error());
  Planted& planted = *made;
  ASSERT_FALSE(planted.mutants.empty());
  for (int timing = 0; timing < 3; ++timing) ASSERT_EQ(planted.caught(0, timing), "") << "the text as it is";
  const bool all = record_file() != nullptr;
  std::ofstream record(all ? record_file() : "/dev/null", std::ios::app);
  for (const Mutant& m : planted.mutants) {
    std::vector<std::string> caught;
    for (const int timing : {2, 1, 0})
      if (all || timing == 2) caught.push_back(planted.caught(m.number, timing));
    const bool missed = std::find(caught.begin(), caught.end(), "") != caught.end();
    const std::string reason = missed ? test::why_equivalent(planted.texts[m.kernel], m) : "";
    EXPECT_TRUE(!missed || !reason.empty())
        << m.kernel << ", line " << m.line << ", " << m.call << " " << m.change << ": " << m.text;
    record << nlohmann::json{{"case", GetParam().name}, {"target", GetParam().target},
                             {"kernel", m.kernel},      {"family", GetParam().schedule.family},
                             {"line", m.line},          {"call", m.call},
                             {"change", m.change},      {"text", m.text},
                             {"caught", caught},        {"equivalent", reason}}
                  .dump()
           << "\n";
  }
}

// All cases, or every kSample-th from a seed on.
std::vector<Case> chosen() {
  constexpr std::size_t kSample = 3;
  const char* text = std::getenv("WARPLOOM_MUTANTS_SEED");
  const std::size_t seed = text ? std::strtoul(text, nullptr, 10) : 0;
  std::vector<Case> out, every = cases();
  for (std::size_t i = 0; i < every.size(); ++i)
    if (record_file() || i % kSample == seed % kSample) out.push_back(every[i]);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Families, Mutants, testing::ValuesIn(chosen()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace warploom
