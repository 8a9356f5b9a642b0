// The host side of a CPU bundle: a pool of threads that hands out a kernel's blocks.
#include <fmt/format.h>

#include <algorithm>

#include "export/launcher.h"
#include "export/text.h"

namespace warploom::export_ {
namespace {

constexpr std::string_view kHeader = R"(@SUMMARY@//
// Every tensor is packed, row-major, and aligned to 64 bytes; 16- and 8-bit floats are passed by their bits:
@PARAMETERS@#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Bytes of memory that @NAME@_run needs as its workspace; 0: none, and it may be null.
std::size_t @NAME@_workspace_bytes(void);

// Computes on all cores and returns when the outputs are written. The workspace is aligned to 64 bytes. Returns 0, or 1 where
// a workspace is needed and null was given, or 2 when there is no memory to be had. Calls take turns.
int @NAME@_run(@DECLARED@void* workspace);

}  // extern "C"
)";

constexpr std::string_view kSource = R"(@SUMMARY@#include "@NAME@.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

@KERNELS@
namespace {

using Kernel = void (*)(void* const* buffers, long long task, void* scratch);
constexpr int kSpins = 20000;  // looks at a counter before a thread sleeps: some ten microseconds
constexpr std::size_t kScratchBytes = @SCRATCH_BYTES@;  // a thread, aligned to 4096

// One thread for each core this process may use, the caller among them. Tasks are taken from a counter, some at a time.
class Pool {
 public:
  Pool() {
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 0;
    const int cores = allowed > 0 ? allowed : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (int i = 0; i < cores; ++i) {
      scratch_.push_back(std::aligned_alloc(4096, (kScratchBytes + 4095) / 4096 * 4096 + 4096));
      if (scratch_.back() == nullptr) throw std::bad_alloc();
    }
    for (int i = 1; i < cores; ++i) {
      try {
        threads_.emplace_back([this, i] { serve(scratch_[static_cast<std::size_t>(i)]); });
      } catch (const std::system_error&) {
        break;  // fewer threads compute the same
      }
    }
  }
  ~Pool() {
    stop_ = true;
    generation_.fetch_add(1);
    generation_.notify_all();
    for (auto& thread : threads_) thread.join();
    for (void* memory : scratch_) std::free(memory);
  }
  void run(Kernel kernel, void* const* buffers, long long tasks) {
    if (tasks == 1) return kernel(buffers, 0, scratch_[0]);
    kernel_ = kernel;
    buffers_ = buffers;
    tasks_ = tasks;
    chunk_ = std::max(1LL, tasks / (8 * static_cast<long long>(scratch_.size())));
    next_ = 0;
    busy_ = static_cast<int>(threads_.size());
    generation_.fetch_add(1);
    generation_.notify_all();
    work(scratch_[0]);
    for (int spins = 0; busy_.load() != 0 && spins < kSpins; ++spins) {
    }
    for (int busy; (busy = busy_.load()) != 0;) busy_.wait(busy);
  }

 private:
  void work(void* scratch) {
    for (long long begin; (begin = next_.fetch_add(chunk_)) < tasks_;)
      for (long long task = begin; task < std::min(begin + chunk_, tasks_); ++task) kernel_(buffers_, task, scratch);
  }
  void serve(void* scratch) {
    for (unsigned seen = 0;;) {
      for (int spins = 0; generation_.load() == seen && spins < kSpins; ++spins) {
      }
      generation_.wait(seen);
      seen = generation_.load();
      if (stop_) return;
      work(scratch);
      if (busy_.fetch_sub(1) == 1) busy_.notify_one();
    }
  }

  std::vector<void*> scratch_;
  std::vector<std::thread> threads_;
  Kernel kernel_ = nullptr;
  void* const* buffers_ = nullptr;
  long long tasks_ = 0, chunk_ = 1;
  std::atomic<long long> next_{0};
  std::atomic<int> busy_{0};
  std::atomic<unsigned> generation_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace

std::size_t @NAME@_workspace_bytes(void) { return @WORKSPACE_BYTES@; }

int @NAME@_run(@DECLARED@void* workspace) {
@CHECK@  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  try {
    static Pool pool;
@BODY@  } catch (const std::bad_alloc&) {
    return 2;
  }
  return 0;
}
)";

}  // namespace

Result<std::vector<BundleFile>> cpu_launcher(const Frame& frame) {
  std::string kernels, body;
  std::int64_t scratch = 0;
  for (const auto& kernel : frame.list.kernels) {
    kernels += fmt::format("extern \"C\" void {}(void* const* buffers, long long task, void* scratch);\n", kernel.name);
    std::string buffers;
    for (const auto& arg : kernel.args) {
      WARPLOOM_TRY(const std::string address, address_of(frame, arg.buffer));
      const bool parameter =
          std::ranges::any_of(frame.parameters, [&](const Parameter& p) { return p.variable == address; });
      buffers += (buffers.empty() ? "" : ", ") +
                 (parameter ? fmt::format("const_cast<void*>(static_cast<const void*>({}))", address) : address);
    }
    body += fmt::format("    {{\n      void* const buffers[] = {{{}}};\n      pool.run({}, buffers, {});\n    }}\n",
                        buffers, kernel.name, block_count(kernel));
    scratch = std::max(scratch, kernel.shared_bytes);
  }
  const std::int64_t bytes = workspace_offsets(frame.list).back();
  const Values values = {
      {"NAME", frame.name},
      {"SUMMARY", comment(frame.summary)},
      {"PARAMETERS", describe_parameters(frame)},
      {"DECLARED", declare_parameters(frame)},
      {"KERNELS", kernels},
      {"SCRATCH_BYTES", std::to_string(scratch)},
      {"WORKSPACE_BYTES", std::to_string(bytes)},
      {"CHECK", bytes > 0 ? "  if (workspace == nullptr) return 1;\n" : "  static_cast<void>(workspace);\n"},
      {"BODY", body}};
  return std::vector<BundleFile>{{frame.name + ".h", fill_in(kHeader, values)},
                                 {frame.name + "_host.cpp", fill_in(kSource, values)}};
}

}  // namespace warploom::export_
