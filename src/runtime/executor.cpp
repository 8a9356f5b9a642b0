// What the executors of both engines share, and the executor of this machine's cores.
#include "runtime/executor.h"
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <ratio>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "codegen/memory_plan.h"
#include "codegen/prepare.h"
#include "cpu/pool.h"
#include "runtime/compile.h"
#include "runtime/library.h"
#include "target/capabilities.h"

namespace warploom::runtime {
Call in_order(std::vector<Call> calls) {
  return [calls = std::move(calls)]() -> Status {
    for (const Call& call : calls)
      WARPLOOM_CHECK(call());
    return ok();
  };
}

namespace {
tl::unexpected<Error> unbound(const std::string& name) {
  return fail({ErrorCode::kPlanInvalid, "a buffer is not bound", name, "a buffer of that name",
               "none", "bind every constant and workspace"});
}
}  // namespace

Result<Buffer> named_buffer(const Bindings& buffers, const BufferSpec& spec) {
  const auto found = buffers.find(spec.name);
  const bool bound = found != buffers.end();
  if (bound && found->second.bytes() >= spec.bytes()) return found->second;
  Error error{ErrorCode::kPlanInvalid, "a buffer is not bound", spec.name};
  error.expected = fmt::format("{} bytes", spec.bytes());
  error.found = "none";
  error.remedy = "bind every input and output";
  if (bound) {
    error.message = "a bound buffer is too small";
    error.found = fmt::format("{} bytes", found->second.bytes());
  }
  return fail(error);
}

Result<Buffer> host_buffer(int64_t bytes, int64_t room,
                           const std::function<std::shared_ptr<void>(int64_t)>& allocate) {
  auto memory = bytes <= room ? allocate(bytes) : nullptr;
  void* const address = memory.get();
  if (address) return Buffer(std::move(memory), address, bytes);
  Error error{ErrorCode::kOutOfMemory, "a buffer does not fit in memory"};
  error.expected = fmt::format("{} bytes", bytes);
  error.found = fmt::format("{} bytes free", room);
  error.remedy = "take a smaller problem";
  return fail(error);
}

Result<CpuKernel> cpu_kernel(const std::string& image, const std::string& name) {
  const Library library{image.c_str()};
  const CpuKernel function = library[name.c_str()];
  if (library.complete()) return function;
  Error error{ErrorCode::kCompileFailed, "a compiled kernel cannot be loaded", name};
  error.expected = "a shared object with the kernel";
  error.found = library ? image : library.why_not();
  error.remedy = "clear the cache folder and compile again";
  return fail(error);
}

Result<std::shared_ptr<void>> Executor::host_memory(int64_t bytes) {
  return std::shared_ptr<std::byte[]>(new std::byte[bytes]);
}

Status Executor::upload(const Buffer& to, const void* from, int64_t bytes, int64_t offset) {
  std::memcpy(static_cast<char*>(to.address()) + offset, from, bytes);
  return ok();
}

Status Executor::download(const Buffer& from, void* to, int64_t bytes, int64_t offset) {
  std::memcpy(to, static_cast<const char*>(from.address()) + offset, bytes);
  return ok();
}

Result<std::unique_ptr<Executor>> Executor::open(Engine engine) {
  return engine == Engine::cuda ? open_gpu() : open_cpu();
}

Result<DeviceInfo> Executor::describe(Engine engine) {
  return engine == Engine::cuda ? gpu_info() : cpu_info();
}

Status Executor::flush_caches() {
  constexpr int64_t kMore = 16 << 20;
  constexpr int64_t kMost = 256 << 20;
  if (!flush_) WARPLOOM_TRY(flush_, allocate(std::min(2 * info_.cache_bytes + kMore, kMost)));
  return fill(flush_, ++flush_word_);
}

Status Executor::clocks_agree() {
  const int samples = std::exchange(samples_, 0);
  const int agreeing = std::exchange(agreeing_, 0);
  if (4 * agreeing >= quarters_ * samples) return ok();
  Error error{ErrorCode::kCandidateClock};
  error.message = "the clock beside a candidate contradicts the one outside";
  error.expected = "the same times but for now and then";
  error.found = fmt::format("{} of {} samples differ", samples - agreeing, samples);
  return fail(error);
}

Status Executor::add_workspaces(const LaunchList& list, Bindings& buffers) {
  const auto given = [&](const BufferSpec& spec) { return buffers.contains(spec.name); };
  if (std::ranges::all_of(list.workspaces, given)) return ok();
  const MemoryPlan plan = memory_plan(list);
  WARPLOOM_TRY(const Buffer arena, allocate(plan.arena_bytes));
  WARPLOOM_CHECK(fill(arena, kPoison));
  for (const PlacedBuffer& placed : plan.buffers)
    buffers.try_emplace(placed.name, arena.slice(placed.offset, placed.bytes));
  return ok();
}

namespace {
// One image for each kernel.
Status check_images(const LaunchList& list, Engine engine, const Binary& binary,
                    const std::string& name) {
  const size_t images = binary.images.size();
  if (list.engine == engine && images == list.kernels.size()) return ok();
  Error error{ErrorCode::kPlanInvalid, "the binary is not of this launch list", name};
  error.expected = fmt::format("{} images", list.kernels.size());
  error.found = fmt::format("{} images", images);
  error.remedy = "compile the list again";
  return fail(error);
}

// Whoever binds buffers passes inputs as they are, row by row.
Status check_nothing_packed(const Kernel& kernel) {
  for (const Argument& arg : kernel.args) {
    if (arg.prepacked.empty()) continue;
    Error error{ErrorCode::kPlanInvalid, "a kernel wants an input packed", kernel.name};
    error.expected = "inputs row by row";
    error.found = arg.buffer;
    error.remedy = "lay it out before, and name it as an input without `packed`";
    return fail(error);
  }
  return ok();
}

// Every input and output is bound, to a buffer that is large enough.
Status check_bound(const LaunchList& list, const Bindings& buffers) {
  for (const auto* specs : {&list.inputs, &list.outputs})
    for (const BufferSpec& spec : *specs)
      WARPLOOM_CHECK(named_buffer(buffers, spec));
  return ok();
}
}  // namespace

Result<Runnable> Executor::load(const LaunchList& given, const Binary& binary) {
  const auto list = std::make_shared<LaunchList>(given);
  const std::string name = list->kernels.empty() ? "nothing" : list->kernels.back().name;
  WARPLOOM_CHECK(check_images(*list, engine_, binary, name));
  for (const Kernel& kernel : list->kernels)
    WARPLOOM_CHECK(check_nothing_packed(kernel));
  std::vector<LoadedKernel> kernels;
  for (size_t i = 0; i < binary.images.size(); ++i)
    WARPLOOM_TRY(kernels.emplace_back(), load_kernel(list->kernels[i], binary.images[i]));
  const auto prepare = [this, list, kernels](const Bindings& buffers) -> Result<Call> {
    return bound(list, kernels, list->prepare, buffers);
  };
  const auto bind = [this, list, kernels, prepare](const Bindings& tensors) -> Result<Call> {
    Bindings buffers = tensors;
    WARPLOOM_CHECK(check_bound(*list, buffers));
    WARPLOOM_CHECK(add_workspaces(*list, buffers));
    if (buffers.size() > tensors.size() && !list->prepare.empty()) {
      WARPLOOM_TRY(const Call preparation, prepare(buffers));
      WARPLOOM_CHECK(preparation());
    }
    return bound(list, kernels, called_kernels(*list), buffers);
  };
  if (list->prepare.empty()) return Runnable{name, bind};
  return Runnable{name, bind, prepare};
}

Result<Call> Executor::bound(const std::shared_ptr<const LaunchList>& list,
                             const std::vector<LoadedKernel>& kernels,
                             const std::vector<size_t>& numbers, const Bindings& buffers) {
  std::vector<Call> calls;
  for (const size_t number : numbers) {
    std::vector<void*> addresses;
    for (const Argument& argument : list->kernels[number].args) {
      const auto found = buffers.find(argument.buffer);
      if (found == buffers.end()) return unbound(argument.buffer);
      const Buffer& whole = found->second;
      const int64_t rest = whole.bytes() - argument.offset;
      const Buffer buffer =
          whole.slice(argument.offset, argument.bytes != 0 ? argument.bytes : rest);
      addresses.push_back(buffer.address());
      if (argument.zeroed) calls.push_back([this, buffer] { return fill(buffer, 0); });
    }
    WARPLOOM_TRY(calls.emplace_back(), kernels[number](addresses));
  }
  // What was loaded and bound is kept as long as the call is.
  return Call([list, kernels, buffers, all = in_order(std::move(calls))] { return all(); });
}

std::string proc_value(const char* path, const char* field) {
  const auto text = read_file(path);
  const size_t at = text ? text->find(field) : std::string::npos;
  if (at == std::string::npos) return "";
  const size_t begin = text->find_first_not_of(" \t:", at + std::strlen(field));
  return text->substr(begin, text->find('\n', begin) - begin);
}

namespace {
class CpuExecutor final : public Executor {
 public:
  explicit CpuExecutor(DeviceInfo info) : Executor(Engine::cpu, std::move(info)) {}

  Result<int64_t> free_memory() override {
    const std::string kilobytes = proc_value("/proc/meminfo", "MemAvailable:");
    return kilobytes.empty() ? info_.memory_bytes : std::atoll(kilobytes.c_str()) * 1024;
  }

  Result<Buffer> allocate(int64_t bytes) override {
    WARPLOOM_TRY(const int64_t room, free_memory());
    // malloc promises more than there is; the kernel would kill the process at the first touch.
    return host_buffer(bytes, room, wl::allocate_pages);
  }

  Status fill(const Buffer& buffer, uint32_t word) override {
    constexpr int64_t kPiece = 1 << 18;
    auto* bytes = static_cast<char*>(buffer.address());
    const int64_t size = buffer.bytes();
    pool_.run(ceil_div(size, kPiece), [&](int64_t piece, int) {
      const int64_t begin = piece * kPiece;
      const int64_t end = std::min(begin + kPiece, size);
      const int64_t count = end - begin;
      const int64_t rest = count % 4;
      std::fill_n(reinterpret_cast<uint32_t*>(bytes + begin), count / 4, word);
      std::memcpy(bytes + end - rest, &word, rest);
    });
    return ok();
  }

  Result<LoadedKernel> load_kernel(const Kernel& kernel, const std::string& image) override {
    WARPLOOM_TRY(const CpuKernel function, cpu_kernel(image, kernel.name));
    return [this, &kernel, function](const std::vector<void*>& addresses) -> Result<Call> {
      return [this, &kernel, function, addresses]() -> Status {
        const int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
        if (wl::run_blocks(pool_, function, addresses.data(), blocks, kernel.shared_bytes))
          return ok();
        Error error{ErrorCode::kOutOfMemory, "no memory for a kernel's scratch", kernel.name};
        error.expected = fmt::format("{} bytes a thread", kernel.shared_bytes);
        error.found = "no room";
        error.remedy = "take a smaller schedule";
        return fail(error);
      };
    };
  }

  Status synchronize() override { return ok(); }

  Result<double> time_us(const Call& work, int times) override {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i)
      WARPLOOM_CHECK(work());
    const auto end = std::chrono::steady_clock::now();
    const std::chrono::duration<double, std::micro> took = end - begin;
    return took.count() / times;
  }

 private:
  wl::Pool pool_;
};

// As the system calls it; of an Arm, which has no such words there, its numbers.
std::string cpu_name() {
  const std::string model = proc_value("/proc/cpuinfo", "model name");
  if (!model.empty()) return model;
  const std::string maker = proc_value("/proc/cpuinfo", "CPU implementer");
  const std::string part = proc_value("/proc/cpuinfo", "CPU part");
  return part.empty() ? "CPU" : fmt::format("CPU {} {}", maker, part);
}
}  // namespace

Result<DeviceInfo> cpu_info() {
  WARPLOOM_TRY(const target::Capabilities capabilities, target::capabilities_of("cpu"));
  DeviceInfo info;
  info.name = cpu_name();
  info.arch = capabilities.arch;
  info.num_sms = as_int(wl::allowed_cores().size());
  info.memory_bytes = as_int64(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  info.cache_bytes = std::max<int64_t>(::sysconf(_SC_LEVEL3_CACHE_SIZE), int64_t{8} << 20);
  return info;
}

Result<std::unique_ptr<Executor>> open_cpu() {
  WARPLOOM_TRY(DeviceInfo info, cpu_info());
  return std::make_unique<CpuExecutor>(std::move(info));
}
}  // namespace warploom::runtime
