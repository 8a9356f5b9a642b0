#include <unistd.h>
#include "base/file.h"
#include "cpu/pool.h"
#include "runtime/bound.h"
#include "target/capabilities.h"
namespace warploom::runtime {
std::string proc_value(const char* path, const char* field) {
  const auto text = read_file(path);
  const std::size_t at = text ? text->find(field) : std::string::npos;
  if (at == std::string::npos) return "";
  const std::size_t begin = text->find_first_not_of(" \t:", at + std::strlen(field));
  return text->substr(begin, text->find('\n', begin) - begin);
}
namespace {
class CpuExecutor final : public Executor {
 public:
  CpuExecutor(int threads, DeviceInfo info) : Executor(Engine::cpu, std::move(info)), pool_(threads) {}

  Result<std::int64_t> free_memory() override {
    const std::string kilobytes = proc_value("/proc/meminfo", "MemAvailable:");
    return kilobytes.empty() ? info_.memory_bytes : std::atoll(kilobytes.c_str()) * 1024;
  }

  Result<Buffer> allocate(std::int64_t bytes) override {
    WARPLOOM_TRY(const std::int64_t room, free_memory());
    // malloc promises more than there is; the kernel would kill the process at the first touch.
    return host_buffer(bytes, room, wl::allocate_pages);
  }
  Status fill(const Buffer& buffer, std::uint32_t word) override {
    constexpr std::int64_t kPiece = 1 << 18;
    auto* bytes = static_cast<char*>(buffer.address());
    const std::int64_t size = buffer.bytes();
    pool_.run((size + kPiece - 1) / kPiece, [&](std::int64_t piece, int) {
      const std::int64_t begin = piece * kPiece, end = std::min(begin + kPiece, size);
      std::fill_n(reinterpret_cast<std::uint32_t*>(bytes + begin), (end - begin) / 4, word);
      std::memcpy(bytes + end - (end - begin) % 4, &word, static_cast<std::size_t>((end - begin) % 4));
    });
    return ok();
  }

  Result<LoadedKernel> load_kernel(const Kernel& kernel, const std::string& image) override {
    WARPLOOM_TRY(const CpuKernel function, cpu_kernel(image, kernel.name));
    return [this, &kernel, function](const std::vector<void*>& addresses) -> Result<Call> {
      return [this, &kernel, function, addresses]() -> Status {
        const std::int64_t blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
        if (wl::run_blocks(pool_, function, addresses.data(), blocks, kernel.shared_bytes)) return ok();
        return fail({ErrorCode::kOutOfMemory, "no memory for a kernel's scratch", kernel.name,
                     fmt::format("{} bytes a thread", kernel.shared_bytes), "no room", "take a smaller schedule"});
      };
    };
  }

  Status synchronize() override { return ok(); }
  Result<double> time_us(const Call& work, int times) override {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) WARPLOOM_CHECK(work());
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / times;
  }

 private:
  wl::Pool pool_;
};
}  // namespace
Result<std::unique_ptr<Executor>> open_cpu(int threads) {
  WARPLOOM_TRY(const target::Capabilities capabilities, target::capabilities_of("cpu"));
  DeviceInfo info;
  info.name = proc_value("/proc/cpuinfo", "model name");
  if (info.name.empty()) info.name = "CPU";
  info.arch = capabilities.arch;
  info.processors = threads > 0 ? threads : static_cast<int>(wl::allowed_cores().size());
  info.memory_bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  info.cache_bytes = std::max<std::int64_t>(::sysconf(_SC_LEVEL3_CACHE_SIZE), std::int64_t{8} << 20);
  info.shared_bytes = capabilities.shared_bytes;
  return std::make_unique<CpuExecutor>(threads, std::move(info));
}
}  // namespace warploom::runtime
