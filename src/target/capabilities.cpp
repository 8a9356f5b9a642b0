#include "target/capabilities.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/nearest.h"
#include "cpu/pool.h"
#include "layout/tv_layout.h"
#include "target/instruction.h"
#include "tile/program.h"

namespace warploom::target {
namespace {
using layout::TvLayout;

// Datasheet figures of the part each architecture is planned for: H200 SXM, L40S, A100 80 GB SXM.
const std::vector<Capabilities>& gpus() {
  constexpr int64_t kKiB = 1 << 10;
  constexpr int64_t kMiB = 1 << 20;
  // clang-format off
  static const std::vector<Capabilities> all = {
      {.arch = "sm_90a", .gpu = true, .num_sms = 132, .shared_bytes = 227 * kKiB,
       .registers = 65536, .max_cluster = 16, .has_wgmma = true, .has_tma = true,
       .has_cp_async = true, .has_pdl = true, .dram_gbs = 4800, .l2_bytes = 50 * kMiB,
       .fp32_tflops = 66.9, .tf32_tflops = 494.7, .half_tflops = 989.4, .fp8_tflops = 1979,
       .rates = {.clock_ghz = 1.75}},
      {.arch = "sm_89", .gpu = true, .num_sms = 142, .shared_bytes = 99 * kKiB,
       .registers = 65536, .has_cp_async = true, .dram_gbs = 864, .l2_bytes = 96 * kMiB,
       .fp32_tflops = 91.6, .tf32_tflops = 183, .half_tflops = 362, .fp8_tflops = 733,
       .rates = {.clock_ghz = 2.5, .warp_matrix_cycles = 16, .l2_total_bytes = 2000,
                 .memory_latency = 900}},
      {.arch = "sm_80", .gpu = true, .num_sms = 108, .shared_bytes = 163 * kKiB,
       .registers = 65536, .has_cp_async = true, .dram_gbs = 2039, .l2_bytes = 40 * kMiB,
       .fp32_tflops = 19.5, .tf32_tflops = 156, .half_tflops = 312,
       .rates = {.clock_ghz = 1.41, .l2_total_bytes = 2600, .memory_latency = 600}}};
  // clang-format on
  return all;
}

// This machine: cores that the process may use, the widest vectors the processor has.
Capabilities this_cpu() {
  const auto cores = as_int(wl::allowed_cores().size());
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  // Bounds no core of today exceeds: 5 GHz with two fused multiply-adds a cycle; 50 GB/s of memory
  // a core, 800 in all.
  double lanes = 4;
  std::string arch = "x86-64-v2";
  if (avx512) {
    lanes = 16;
    arch = "x86-64-v4";
  } else if (avx2) {
    lanes = 8;
    arch = "x86-64-v3";
  }
  return {.arch = std::move(arch),
          .gpu = false,
          .num_sms = cores,
          .shared_bytes = l2 > 0 ? l2 : 1 << 20,
          .registers = avx512 ? 32 : 16,
          .vector_bytes = as_int(lanes * 4),
          .dram_gbs = std::min(50.0 * cores, 800.0),
          .l2_bytes = l3 > 0 ? l3 : 32 << 20,
          .fp32_tflops = cores * lanes * 4 * 5e9 * 1e-12,
          .tf32_tflops = cores * lanes * 4 * 5e9 * 1e-12,
          .half_tflops = cores * lanes * 8 * 5e9 * 1e-12};
}

// Instructions: the tables of the architectures, each of what it adds to those before.
//   sm_80    mma.sync, ldmatrix, cp.async, and plain vector accesses
//   sm_89    mma.sync of 8-bit floats
//   sm_90a   wgmma, tma, stmatrix
using tile::Scope;

// The name of a row is its function's; what the functions' templates tell apart is added.
Instruction copy(const std::string& name, Method method, Scope from, Scope to,
                 bool transpose = false) {
  Instruction row{name + (transpose ? "_trans" : ""), method, "wl::" + name};
  row.from = from;
  row.to = to;
  row.transpose = transpose;
  return row;
}

// Fragments of mma.sync. A thread, lane = 4·group + member, holds runs of `e` neighbours along k, 4
// bytes in all; k is 8 of them.
TvLayout fragment_a(int e, int warps) {
  TvLayout out{{16 * warps, 8 * e}, {}, {}};
  out.thread = {{4, {0, e}}, {8, {1, 0}}, {warps, {16, 0}}};
  out.value = {{e, {0, 1}}, {2, {8, 0}}, {2, {0, 4 * e}}};
  return layout::coalesce(out);
}

TvLayout fragment_b(int e) {
  TvLayout out{{8 * e, 8}, {}, {}};
  out.thread = {{4, {e, 0}}, {8, {0, 1}}};
  out.value = {{e, {1, 0}}, {2, {4 * e, 0}}};
  return layout::coalesce(out);
}

// The accumulator of mma.sync and, over four warps, of wgmma.
TvLayout fragment_c(int warps) {
  TvLayout out{{16 * warps, 8}, {}, {}};
  out.thread = {{4, {0, 2}}, {8, {1, 0}}, {warps, {16, 0}}};
  out.value = {{2, {0, 1}}, {2, {8, 0}}};
  return layout::coalesce(out);
}

Dtype accumulator_of(Dtype operand) {
  return is_float(operand) ? Dtype::f32 : Dtype::i32;
}

Instruction warp_mma(Dtype operand) {
  const int e = 4 / bytes_of(operand);
  Instruction row;
  row.call = fmt::format("wl::mma_m16n8k{}", 8 * e);
  row.name = row.call.substr(4) + "_" + std::string(name_of(operand));
  row.method = Method::mma_sync;
  row.m = 16;
  row.n = 8;
  row.k = 8 * e;
  row.threads = 32;
  row.operand = operand;
  row.accumulator = accumulator_of(operand);
  row.a = fragment_a(e, 1);
  row.b = fragment_b(e);
  row.c = fragment_c(1);
  return row;
}

// Four warps of 16 rows each; an 8-column slice of the accumulator, which wider N repeats over
// values. Operands come from shared memory, or the first from registers, in the fragments of
// mma.sync.
Instruction wgmma(Dtype operand, bool a_in_registers) {
  const int e = 4 / bytes_of(operand);
  Instruction row;
  row.call = a_in_registers ? "wl::wgmma_rs" : "wl::wgmma";
  row.name = row.call.substr(4) + "_" + std::string(name_of(operand));
  row.method = Method::wgmma;
  row.m = 64;
  row.k = 8 * e;
  row.threads = 128;
  row.cycles = 128;
  if (operand == Dtype::i8) row.n_step = 16;
  row.operand = operand;
  row.accumulator = accumulator_of(operand);
  if (a_in_registers) row.a = fragment_a(e, 4);
  row.c = fragment_c(4);
  row.a_shared = !a_in_registers;
  row.b_shared = true;
  row.transposable = bytes_of(operand) == 2;
  return row;
}

// Newest first: what is preferred where several fit.
std::vector<Instruction> rows_up_to(int sm) {
  std::vector<Instruction> rows;
  if (sm >= 90) {
    rows.push_back(copy("tma_load", Method::tma, Scope::global, Scope::shared));
    rows.push_back(copy("tma_store", Method::tma, Scope::shared, Scope::global));
    rows.push_back(copy("stmatrix", Method::ldmatrix, Scope::reg, Scope::shared));
    rows.push_back(copy("stmatrix", Method::ldmatrix, Scope::reg, Scope::shared, true));
    for (const bool a_in_registers : {false, true})
      for (const Dtype operand :
           {Dtype::bf16, Dtype::f16, Dtype::tf32, Dtype::e4m3, Dtype::e5m2, Dtype::i8})
        rows.push_back(wgmma(operand, a_in_registers));
  }
  if (sm >= 89)
    for (const Dtype operand : {Dtype::e4m3, Dtype::e5m2}) rows.push_back(warp_mma(operand));
  for (const Dtype operand : {Dtype::bf16, Dtype::f16, Dtype::tf32, Dtype::i8})
    rows.push_back(warp_mma(operand));
  Instruction& fma = rows.emplace_back();
  fma.name = "fma_f32";
  fma.call = "wl::fma";
  fma.method = Method::simt;
  fma.m = fma.n = fma.k = 1;
  fma.a = fma.b = fma.c = {{1, 1}, {}, {}};
  rows.push_back(copy("cp_async", Method::cp_async, Scope::global, Scope::shared));
  rows.push_back(copy("ldmatrix", Method::ldmatrix, Scope::shared, Scope::reg));
  rows.push_back(copy("ldmatrix", Method::ldmatrix, Scope::shared, Scope::reg, true));
  rows.push_back(copy("ld_shared", Method::plain, Scope::shared, Scope::reg));
  rows.push_back(copy("st_shared", Method::plain, Scope::reg, Scope::shared));
  rows.push_back(copy("ld_global", Method::plain, Scope::global, Scope::reg));
  rows.push_back(copy("st_global", Method::plain, Scope::reg, Scope::global));
  return rows;
}
}  // namespace

std::vector<std::string> known_targets() {
  std::vector<std::string> names;
  for (const Capabilities& gpu : gpus()) names.push_back(gpu.arch);
  names.emplace_back("cpu");
  return names;
}

Result<Capabilities> capabilities_of(const std::string& target) {
  if (target == "cpu") return this_cpu();
  for (const Capabilities& gpu : gpus())
    if (target == gpu.arch) return gpu;
  const auto known = known_targets();
  const std::string expected = fmt::format("one of {}", fmt::join(known, ", "));
  const std::string remedy = did_you_mean(target, known, "name one of these, or `auto`");
  return fail(
      {ErrorCode::kUnknownTarget, "the target is unknown", "--target", expected, target, remedy});
}

const std::vector<Instruction>& instructions_of(const std::string& arch) {
  static const std::map<std::string, std::vector<Instruction>> all = {
      {"sm_80", rows_up_to(80)}, {"sm_89", rows_up_to(89)}, {"sm_90a", rows_up_to(90)}};
  static const std::vector<Instruction> none;
  const auto found = all.find(arch);
  return found == all.end() ? none : found->second;
}
}  // namespace warploom::target
