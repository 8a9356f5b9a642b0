#include "runtime/rates.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/rendered.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "runtime/timing.h"
#include "target/capabilities.h"
#include "target/card.h"

namespace warploom::runtime {
namespace {
using Clock = std::chrono::steady_clock;

constexpr int kVersion = 3;          // of the loops: other ones measure anew
constexpr int64_t kOperands = 4096;  // numbers that loops of arithmetic begin with
constexpr int64_t kMostCopied = 1 << 30;
constexpr int kGpuThreads = 256;  // a block

// One loop: what runs, on buffers of how many bytes, and how much a call does.
struct Loop {
  LaunchList list;
  double amount = 0;  // bytes moved or operations
};

Kernel kernel_of(const char* name, std::string source, int64_t blocks, int threads) {
  Kernel kernel{name, std::move(source), {blocks, 1, 1}};
  kernel.threads = threads;
  kernel.args = {{.buffer = "from"}, {.buffer = "to"}};
  return kernel;
}

// Of buffers of so many floats.
LaunchList list_of(const Executor& device, Kernel kernel, int64_t from, int64_t to) {
  LaunchList list{device.engine(), device.info().arch};
  list.inputs = {{"from", Dtype::f32, {from}}};
  list.outputs = {{"to", Dtype::f32, {to}}};
  list.kernels = {std::move(kernel)};
  return list;
}

// Bytes of each buffer of a copy: far more than caches hold, and on a GPU so many that a launch is
// nothing beside them; no more than a quarter of what is free.
Result<int64_t> copied_bytes(Executor& device) {
  WARPLOOM_TRY(const int64_t room, device.free_memory());
  const int64_t least = device.engine() == Engine::cuda ? kMostCopied : int64_t{128} << 20;
  const int64_t enough = std::max(least, 4 * device.info().cache_bytes);
  return std::min({kMostCopied, enough, room / 4});
}

std::string turning(int64_t turns, const char* file) {
  return fmt::format("#define TURNS {}\n{}", turns, resource(file));
}

constexpr int64_t kFmaTurns = 1000;

// The plain loops are one text, which is compiled once.
std::string plain_text() {
  return turning(kFmaTurns, "rates/plain.cu");
}

// A kernel of plain.cu that copies, and the vectors that a thread of it does.
struct CopyKernel {
  const char* name;
  int vectors;
};

constexpr CopyKernel kCopies[] = {
    {"copy_1", 1}, {"copy_4", 4}, {"copy_1_streamed", 1}, {"copy_4_streamed", 4}};

Result<Loop> gpu_copy(Executor& device, const CopyKernel& copy) {
  WARPLOOM_TRY(const int64_t bytes, copied_bytes(device));
  const int64_t block_bytes = int64_t{16} * kGpuThreads * copy.vectors;
  const int64_t blocks = std::max<int64_t>(1, bytes / block_bytes);
  const int64_t floats = blocks * block_bytes / 4;
  Kernel kernel = kernel_of(copy.name, plain_text(), blocks, kGpuThreads);
  return Loop{list_of(device, std::move(kernel), floats, floats),
              8.0 * static_cast<double>(floats)};
}

Loop gpu_fma(const Executor& device) {
  constexpr double kOperations = 2.0 * 8 * 16 * kFmaTurns;  // of a thread
  const int64_t blocks = 8 * device.info().num_sms;
  Kernel kernel = kernel_of("fma_rate", plain_text(), blocks, kGpuThreads);
  LaunchList list = list_of(device, std::move(kernel), kOperands, 1);
  return {std::move(list), kOperations * kGpuThreads * static_cast<double>(blocks)};
}

// By the fastest instructions that there are.
Loop gpu_half(const Executor& device, bool warpgroups) {
  constexpr int64_t kTurns = 500;
  constexpr double kWarpgroup = 2.0 * 64 * 256 * 64 * kTurns;  // operations of one
  constexpr double kWarp = 2.0 * 64 * 32 * 16 * kTurns;
  const int64_t blocks = (warpgroups ? 4 : 8) * device.info().num_sms;
  const char* const file = warpgroups ? "rates/wgmma.cu" : "rates/mma.cu";
  Kernel kernel = kernel_of("half_rate", turning(kTurns, file), blocks, kGpuThreads);
  LaunchList list = list_of(device, std::move(kernel), kOperands, 1);
  const double block = warpgroups ? 2 * kWarpgroup : 8 * kWarp;
  return {std::move(list), block * static_cast<double>(blocks)};
}

constexpr int64_t kCpuTurns = 20'000;

// The text of the CPU's loops, and the floats that a task copies.
std::string cpu_text(int64_t floats) {
  return fmt::format("#define FLOATS {}l\n#define TURNS {}l\n{}", floats, kCpuTurns,
                     resource("rates/cpu.cpp"));
}

Result<Loop> cpu_copy(Executor& device) {
  constexpr int64_t kFloats = 1 << 18;  // of a task
  WARPLOOM_TRY(const int64_t bytes, copied_bytes(device));
  const int64_t tasks = std::max<int64_t>(1, bytes / (4 * kFloats));
  const int64_t floats = tasks * kFloats;
  Kernel kernel = kernel_of("copy_rate", cpu_text(kFloats), tasks, 1);
  return Loop{list_of(device, std::move(kernel), floats, floats),
              8.0 * static_cast<double>(floats)};
}

Loop cpu_fma(const Executor& device, int vector_bytes) {
  constexpr double kChains = 12;
  const int64_t tasks = 4 * device.info().num_sms;
  Kernel kernel = kernel_of("fma_rate", cpu_text(1 << 18), tasks, 1);
  const double lanes = vector_bytes / 4.0;
  const double amount = 2 * kChains * lanes * kCpuTurns * static_cast<double>(tasks);
  return {list_of(device, std::move(kernel), kOperands, tasks), amount};
}

// By tiles where there are some, else by dot products.
Loop cpu_half(const Executor& device, const target::Capabilities& capabilities) {
  constexpr double kTiles = 4 * 2.0 * 16 * 16 * 32;  // operations of a turn
  constexpr double kChains = 12;
  const double pairs = 2 * 2 * kChains * capabilities.vector_bytes / 4.0;
  const int64_t tasks = 4 * device.info().num_sms;
  Kernel kernel = kernel_of("half_rate", cpu_text(1 << 18), tasks, 1);
  const double amount = (capabilities.has_bf16_tiles ? kTiles : pairs) * kCpuTurns;
  return {list_of(device, std::move(kernel), kOperands, tasks),
          amount * static_cast<double>(tasks)};
}

// Small numbers of either sign.
std::vector<float> operands(int64_t count) {
  Random random(1, "rates");
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out)
    x = static_cast<float>(random.next() % 2001) * 1e-3F - 1;
  return out;
}

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a loop reaches a second, in units of `unit`: the median over `seconds`, of which the first
// third only warms up, so that clocks have come down to what the load lets them be.
Result<double> rate_of(Executor& device, const Loop& loop, double unit, double seconds) {
  WARPLOOM_TRY(const Binary binary, compile(loop.list, {.most_spills = kAnySpills}));
  WARPLOOM_TRY(const Runnable loaded, device.load(loop.list, binary));
  Bindings buffers;
  WARPLOOM_TRY(buffers["from"], device.allocate(loop.list.inputs[0].bytes()));
  WARPLOOM_TRY(buffers["to"], device.allocate(loop.list.outputs[0].bytes()));
  WARPLOOM_CHECK(device.fill(buffers["from"], 0));
  const std::vector<float> numbers = operands(kOperands);
  WARPLOOM_CHECK(device.upload(buffers["from"], numbers.data(), 4 * kOperands));
  WARPLOOM_CHECK(device.fill(buffers["to"], 0));
  WARPLOOM_TRY(const Call call, loaded.bind(buffers));
  WARPLOOM_CHECK(call());
  WARPLOOM_CHECK(device.synchronize());
  constexpr size_t kLeast = 5;
  std::vector<double> samples;
  const auto start = Clock::now();
  while (samples.size() < kLeast || since(start) < seconds) {
    const bool warming = since(start) < seconds / 3;
    WARPLOOM_TRY(const double us, device.time_us(call, 1));
    if (!warming) samples.push_back(us);
  }
  return loop.amount / (median_interval(samples).median_us * 1e-6) / unit;
}

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

// Of the fastest of several copies: which it is differs from card to card.
Result<double> gpu_copy_rate(Executor& device, double seconds) {
  double best = 0;
  for (const CopyKernel& kernel : kCopies) {
    WARPLOOM_TRY(const Loop copy, gpu_copy(device, kernel));
    WARPLOOM_TRY(const double rate, rate_of(device, copy, kGiga, seconds / std::size(kCopies)));
    best = std::max(best, rate);
  }
  return best;
}

Result<target::Measured> gpu_rates(Executor& device, const target::Capabilities& capabilities,
                                   const RateOptions& options) {
  target::Measured out;
  WARPLOOM_TRY(out.copy_gbs, gpu_copy_rate(device, options.seconds));
  WARPLOOM_TRY(out.fp32_tflops, rate_of(device, gpu_fma(device), kTera, options.seconds));
  if (!options.tensor) return out;
  const Loop half = gpu_half(device, capabilities.has_wgmma);
  WARPLOOM_TRY(out.half_tflops, rate_of(device, half, kTera, options.seconds));
  return out;
}

Result<target::Measured> cpu_rates(Executor& device, const target::Capabilities& capabilities,
                                   const RateOptions& options) {
  target::Measured out;
  WARPLOOM_TRY(const Loop copy, cpu_copy(device));
  WARPLOOM_TRY(out.copy_gbs, rate_of(device, copy, kGiga, options.seconds));
  const Loop fma = cpu_fma(device, capabilities.vector_bytes);
  WARPLOOM_TRY(out.fp32_tflops, rate_of(device, fma, kTera, options.seconds));
  if (!capabilities.has_bf16_dot) return out;
  const Loop half = cpu_half(device, capabilities);
  WARPLOOM_TRY(out.half_tflops, rate_of(device, half, kTera, options.seconds));
  return out;
}

// What stored rates hold for.
nlohmann::json identity_of(const DeviceInfo& device) {
  nlohmann::json out;
  out["version"] = kVersion;
  out["device"] = device.name;
  out["driver"] = device.driver;
  out["num_sms"] = device.num_sms;
  out["ghz"] = device.ghz;
  out["memory_ghz"] = device.memory_ghz;
  return out;
}

std::filesystem::path file_of(const DeviceInfo& device) {
  const std::string name = hash_hex(identity_of(device).dump());
  return cache_folder() / "rates" / (name + ".json");
}

Result<DeviceInfo> info_of(Engine engine) {
  return engine == Engine::cuda ? gpu_info() : cpu_info();
}

Result<target::Capabilities> capabilities_of(Engine engine, const DeviceInfo& device) {
  if (engine == Engine::cuda) return target::capabilities_of_device(facts_of(device));
  WARPLOOM_TRY(target::Capabilities cpu, target::capabilities_of("cpu"));
  cpu.card = device.name;
  return cpu;
}
}  // namespace

target::DeviceFacts facts_of(const DeviceInfo& device) {
  target::DeviceFacts facts;
  facts.name = device.name;
  facts.arch = device.arch;
  facts.num_sms = device.num_sms;
  facts.l2_bytes = device.cache_bytes;
  facts.shared_bytes = device.shared_bytes;
  facts.threads_per_sm = device.threads_per_sm;
  facts.ghz = device.ghz;
  facts.memory_ghz = device.memory_ghz;
  facts.bus_bits = device.bus_bits;
  return facts;
}

Result<target::Capabilities> capabilities_here(Engine engine) {
  WARPLOOM_TRY(const DeviceInfo device, info_of(engine));
  WARPLOOM_TRY(target::Capabilities capabilities, capabilities_of(engine, device));
  return target::with_measured(std::move(capabilities), stored_rates(device));
}

Result<target::Measured> measure_rates(Executor& device, const RateOptions& options) {
  WARPLOOM_TRY(const auto capabilities, capabilities_of(device.engine(), device.info()));
  return device.engine() == Engine::cuda ? gpu_rates(device, capabilities, options)
                                         : cpu_rates(device, capabilities, options);
}

target::Measured stored_rates(const DeviceInfo& device) {
  const Result<std::string> text = read_file(file_of(device));
  if (!text) return {};
  const nlohmann::json stored = nlohmann::json::parse(*text, nullptr, false);
  const bool is_of_device =
      stored.is_object() && stored.value("of", nlohmann::json()) == identity_of(device);
  return is_of_device ? target::measured_from(stored["measured"]) : target::Measured{};
}

Status store_rates(const DeviceInfo& device, const target::Measured& measured) {
  const std::filesystem::path file = file_of(device);
  WARPLOOM_CHECK(make_folders(file.parent_path()));
  const nlohmann::json stored = {{"of", identity_of(device)},
                                 {"measured", target::to_json(measured)}};
  return write_file(file, stored.dump(1) + "\n");
}

Result<target::Measured> rates_within(Engine engine, double seconds) {
  WARPLOOM_TRY(const DeviceInfo info, info_of(engine));
  const target::Measured stored = stored_rates(info);
  if (stored.copy_gbs > 0) return stored;
  WARPLOOM_TRY(const std::unique_ptr<Executor> device, Executor::open(engine));
  // Opening, compiling and buffers take the rest.
  WARPLOOM_TRY(const target::Measured measured,
               measure_rates(*device, {.seconds = 0.1 * seconds, .tensor = false}));
  WARPLOOM_CHECK(store_rates(info, measured));
  return measured;
}
}  // namespace warploom::runtime
