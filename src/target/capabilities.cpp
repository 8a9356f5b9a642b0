#include "target/capabilities.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "cpu/pool.h"
#include "layout/tv_layout.h"
#include "target/card.h"
#include "target/instruction.h"
#include "target/instruction_set.h"
#include "tile/program.h"

namespace warploom::target {
namespace {
using layout::TvLayout;

// Limits and calibrated rates of the architectures. What cards differ in is left out
// (with_figures).
const std::vector<Capabilities>& architectures() {
  constexpr int64_t kKiB = 1 << 10;
  // clang-format off
  static const std::vector<Capabilities> all = {
      {.arch = "sm_90a", .gpu = true, .shared_bytes = 227 * kKiB, .registers = 65536,
       .max_cluster = 16, .has_wgmma = true, .has_tma = true, .has_cp_async = true,
       .has_pdl = true, .rates = {.clock_ghz = 1.75, .loop_ghz = 1.915}},
      {.arch = "sm_89", .gpu = true, .shared_bytes = 99 * kKiB, .registers = 65536,
       .threads_per_sm = 1536, .has_cp_async = true,
       .rates = {.clock_ghz = 2.5, .warp_matrix_cycles = 16, .l2_total_bytes = 2000,
                 .memory_latency = 900}},
      {.arch = "sm_86", .gpu = true, .shared_bytes = 99 * kKiB, .registers = 65536,
       .threads_per_sm = 1536, .has_cp_async = true,
       .rates = {.clock_ghz = 1.69, .warp_matrix_cycles = 16, .l2_total_bytes = 1700,
                 .memory_latency = 600}},
      {.arch = "sm_80", .gpu = true, .shared_bytes = 163 * kKiB, .registers = 65536,
       .has_cp_async = true,
       .rates = {.clock_ghz = 1.41, .l2_total_bytes = 2600, .memory_latency = 600}}};
  // clang-format on
  return all;
}

const Capabilities* architecture(std::string_view arch) {
  const auto found = std::ranges::find(architectures(), arch, &Capabilities::arch);
  return found == architectures().end() ? nullptr : &*found;
}

// A card's figures, as with_figures() takes them.
struct Figures {
  const Units* units;  // null: unknown
  int num_sms;
  double ghz;
  double tensor_ghz;
  double gbs;
  int64_t l2_bytes;
};

Figures figures_of(const Card& card) {
  const int64_t l2_bytes = int64_t{card.l2_mib} << 20;
  return {card.units, card.num_sms, card.ghz, card.tensor_ghz, card.gbs, l2_bytes};
}

// An architecture's capabilities on a card. Calibrated rates are of the architecture's first card,
// and follow the clock and the number of multiprocessors.
Capabilities with_figures(Capabilities out, const Figures& figures) {
  const Card& first = *default_card(out.arch);
  out.num_sms = figures.num_sms;
  out.dram_gbs = figures.gbs;
  out.l2_bytes = figures.l2_bytes;
  if (figures.ghz > 0) out.rates.clock_ghz *= figures.ghz / first.ghz;
  out.rates.l2_total_bytes *= static_cast<double>(figures.num_sms) / first.num_sms;
  if (!figures.units) return out;
  const Units& units = *figures.units;
  const double teracycles = figures.num_sms * figures.ghz * 1e-3;  // a second, of all together
  const double tensor_teracycles = figures.num_sms * figures.tensor_ghz * 1e-3;
  out.rates.warp_matrix_cycles *= first.units->half / units.half;
  out.fp32_tflops = teracycles * units.fp32;
  out.tf32_tflops = tensor_teracycles * units.tf32;
  out.half_tflops = tensor_teracycles * units.half;
  out.fp8_tflops = tensor_teracycles * units.fp8;
  out.int8_tops = tensor_teracycles * units.int8;
  out.narrow_sums = units.narrow;
  return out;
}

Capabilities planned_for(const Card& card) {
  Capabilities out = with_figures(*architecture(card.units->arch), figures_of(card));
  out.card = card.name;
  return out;
}

// What a driver says of a listed card is believed where it is more than the vendor states: another
// variant, or clocks that were raised. A floor must not be above what the card can do.
Figures listed_figures(const Card& card, const DeviceFacts& device) {
  constexpr double kRounding = 1.05;  // data sheets round, and drivers state 4917 GB/s for 4800
  Figures out = figures_of(card);
  if (device.gbs() > kRounding * out.gbs) out.gbs = device.gbs();
  if (device.ghz <= out.ghz) return out;
  out.tensor_ghz *= device.ghz / out.ghz;
  out.ghz = device.ghz;
  return out;
}

// By the fastest units of its architecture. Memory that nobody states stays unknown.
Figures estimated_figures(const Capabilities& base, const DeviceFacts& device) {
  const Card& first = *default_card(base.arch);
  const bool is_known = architecture(device.arch);
  Figures out = figures_of(first);
  out.units = is_known ? &*std::ranges::find(all_units(), device.arch, &Units::arch) : nullptr;
  out.gbs = device.gbs();
  if (device.ghz > 0) out.ghz = device.ghz;
  out.tensor_ghz = out.ghz;
  return out;
}

// The architecture to plan for: its own, else the newest of the same major version before it, whose
// binaries it runs, else the oldest.
const Capabilities& base_of(const std::string& arch) {
  const Capabilities* best = architecture("sm_80");
  for (const Capabilities& one : architectures()) {
    if (one.arch == arch) return one;
    const bool runs = one.arch.size() == arch.size() && one.arch.starts_with("sm_8") &&
                      arch.starts_with("sm_8") && one.arch < arch;
    if (runs && one.arch > best->arch) best = &one;
  }
  return *best;
}

// A cache's size by the C library or, where that does not know it, as on an Arm, by the kernel's
// files, which say "1024K"; 0: neither.
int64_t cache_bytes(int name, int index) {
  const long known = sysconf(name);
  if (known > 0) return known;
  const auto text =
      read_file(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
  return text ? int64_t{std::strtoll(text->c_str(), nullptr, 10)} << 10 : 0;
}

// Of this machine's own set alone: the others' rows count on no more than their names say.
bool has_bf16_dot([[maybe_unused]] const InstructionSet& set) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool is_here = &set == &instruction_set_here();
  return is_here && set.vector_bytes == 64 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// Of this machine's own set, and where the operating system lets a process use them.
bool has_bf16_tiles([[maybe_unused]] const InstructionSet& set) {
#if defined(__x86_64__)
  return has_bf16_dot(set) && __builtin_cpu_supports("amx-bf16") && wl::allow_tiles();
#else
  return false;
#endif
}

// A CPU with an instruction set: this machine's cores and caches, also where the set is of another
// processor, of which nothing is known.
Capabilities cpu_with(const InstructionSet& set) {
  const auto cores = as_int(wl::allowed_cores().size());
  const bool is_here = set.processor == instruction_set_here().processor;
  const int64_t l2 = is_here ? cache_bytes(_SC_LEVEL2_CACHE_SIZE, 2) : 0;
  const int64_t l3 = is_here ? cache_bytes(_SC_LEVEL3_CACHE_SIZE, 3) : 0;
  // Bounds no core of today exceeds: 5 GHz, with dot products of two halves or four integers, or
  // with tiles, which multiply eight times as many of either; 50 GB/s of memory a core, 800 in all.
  const double flops = 2.0 * set.multiply_adds * set.vector_bytes / 4;  // of a core and cycle
  const double tflops = cores * flops * 5e9 * 1e-12;
  const bool has_tiles = has_bf16_tiles(set);
  const double by_tiles = has_tiles ? 8 : 1;
  return {.arch = std::string(set.name),
          .gpu = false,
          .estimated = !is_here,
          .num_sms = cores,
          .shared_bytes = l2 > 0 ? l2 : 1 << 20,
          .registers = set.registers,
          .has_bf16_dot = has_bf16_dot(set),
          .has_bf16_tiles = has_tiles,
          .vector_bytes = set.vector_bytes,
          .dram_gbs = std::min(50.0 * cores, 800.0),
          .l2_bytes = l3 > 0 ? l3 : 32 << 20,
          .fp32_tflops = tflops,
          .tf32_tflops = tflops,
          .half_tflops = 2 * by_tiles * tflops,
          .int8_tops = 4 * by_tiles * tflops};
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
    for (const Dtype operand : {Dtype::e4m3, Dtype::e5m2})
      rows.push_back(warp_mma(operand));
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
  for (const Capabilities& one : architectures())
    names.push_back(one.arch);
  names.emplace_back("cpu");
  for (const InstructionSet& set : instruction_sets())
    names.emplace_back(set.name);
  return names;
}

Result<Capabilities> capabilities_of(const std::string& target) {
  if (target == "cpu") return cpu_with(instruction_set_here());
  if (const InstructionSet* set = instruction_set(target)) return cpu_with(*set);
  if (const Card* card = default_card(target)) return planned_for(*card);
  if (const Card* card = card_named(target)) return planned_for(*card);
  std::vector<std::string> known = known_targets();
  std::vector<std::string> described;
  for (const std::string& name : known) {
    const InstructionSet* const set = instruction_set(name);
    described.push_back(set ? fmt::format("{} ({})", name, set->vectors) : name);
  }
  const std::string targets = fmt::format("{}", fmt::join(described, ", "));
  for (const Card& card : cards())
    known.emplace_back(card.name);
  const std::vector<std::string> names(known.begin() + std::ssize(known_targets()), known.end());
  const std::string expected = fmt::format("{}, or a card: {}", targets, fmt::join(names, ", "));
  const std::string remedy = did_you_mean(target, known, "name one of these, or `auto`");
  return fail({ErrorCode::kUnknownTarget, "the target is unknown", "--target", "one of " + expected,
               target, remedy});
}

Result<Capabilities> capabilities_of_device(const DeviceFacts& device) {
  const Capabilities& base = base_of(device.arch);
  const Card* card = card_of_device(device.name);
  Figures figures = card ? listed_figures(*card, device) : estimated_figures(base, device);
  if (device.num_sms > 0) figures.num_sms = device.num_sms;
  if (device.l2_bytes > 0) figures.l2_bytes = device.l2_bytes;
  Capabilities out = with_figures(base, figures);
  out.card = card ? std::string(card->name) : device.name;
  out.estimated = !card;
  if (!device.arch.starts_with("sm_8")) out.arch = device.arch;
  if (device.shared_bytes > 0) out.shared_bytes = std::min(out.shared_bytes, device.shared_bytes);
  if (device.threads_per_sm > 0) out.threads_per_sm = device.threads_per_sm;
  return out;
}

Capabilities with_measured(Capabilities capabilities, const Measured& measured) {
  capabilities.measured = measured;
  Rates& rates = capabilities.rates;
  const Card* const first = default_card(capabilities.arch);
  if (!first || rates.loop_ghz <= 0 || measured.fp32_tflops <= 0) return capabilities;
  const double per_ghz = capabilities.num_sms * first->units->fp32 * 1e-3;
  const double loop_ghz = measured.fp32_tflops / per_ghz;
  rates.clock_ghz = architecture(capabilities.arch)->rates.clock_ghz * loop_ghz / rates.loop_ghz;
  return capabilities;
}

namespace {
// The figures of a card by their keys in a record.
struct CardFigure {
  const char* key;
  double Capabilities::* value;
};

constexpr CardFigure kCardFigures[] = {
    {"dram_gbs", &Capabilities::dram_gbs},       {"fp32_tflops", &Capabilities::fp32_tflops},
    {"tf32_tflops", &Capabilities::tf32_tflops}, {"half_tflops", &Capabilities::half_tflops},
    {"fp8_tflops", &Capabilities::fp8_tflops},   {"int8_tops", &Capabilities::int8_tops},
    {"narrow_sums", &Capabilities::narrow_sums}};

struct MeasuredFigure {
  const char* key;
  double Measured::* value;
};

constexpr MeasuredFigure kMeasuredFigures[] = {{"copy_gbs", &Measured::copy_gbs},
                                               {"fp32_tflops", &Measured::fp32_tflops},
                                               {"half_tflops", &Measured::half_tflops}};

nlohmann::json known(double figure) {
  return figure > 0 ? nlohmann::json(figure) : nlohmann::json();
}

// A figure of a record, or the one that there is.
double number_at(const nlohmann::json& record, const char* key, double there) {
  const auto found = record.find(key);
  return found != record.end() && found->is_number() ? found->get<double>() : there;
}
}  // namespace

nlohmann::json to_json(const Measured& measured) {
  nlohmann::json out;
  for (const MeasuredFigure& figure : kMeasuredFigures)
    out[figure.key] = known(measured.*figure.value);
  return out;
}

Measured measured_from(const nlohmann::json& record) {
  Measured out;
  if (!record.is_object()) return out;
  for (const MeasuredFigure& figure : kMeasuredFigures)
    out.*figure.value = number_at(record, figure.key, 0);
  return out;
}

nlohmann::json card_to_json(const Capabilities& capabilities) {
  nlohmann::json out;
  out["name"] = capabilities.card;
  out["estimated"] = capabilities.estimated;
  out["num_sms"] = capabilities.num_sms;
  out["l2_bytes"] = capabilities.l2_bytes;
  for (const CardFigure& figure : kCardFigures)
    out[figure.key] = known(capabilities.*figure.value);
  out["measured"] = to_json(capabilities.measured);
  return out;
}

Capabilities with_card(Capabilities capabilities, const nlohmann::json& card) {
  if (!card.is_object()) return capabilities;
  const auto num_sms = number_at(card, "num_sms", capabilities.num_sms);
  const auto l2_bytes = number_at(card, "l2_bytes", static_cast<double>(capabilities.l2_bytes));
  capabilities.card = card.value("name", capabilities.card);
  capabilities.estimated = card.value("estimated", false);
  capabilities.num_sms = static_cast<int>(num_sms);
  capabilities.l2_bytes = static_cast<int64_t>(l2_bytes);
  for (const CardFigure& figure : kCardFigures)
    capabilities.*figure.value = number_at(card, figure.key, capabilities.*figure.value);
  capabilities.measured = measured_from(card.value("measured", nlohmann::json()));
  return capabilities;
}

const std::vector<Instruction>& instructions_of(const std::string& arch) {
  static const std::map<std::string, std::vector<Instruction>> all = {{"sm_80", rows_up_to(80)},
                                                                      {"sm_86", rows_up_to(86)},
                                                                      {"sm_89", rows_up_to(89)},
                                                                      {"sm_90a", rows_up_to(90)}};
  static const std::vector<Instruction> none;
  const auto found = all.find(arch);
  return found == all.end() ? none : found->second;
}
}  // namespace warploom::target
