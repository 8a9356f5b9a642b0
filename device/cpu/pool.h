// wl::Pool: one thread for each core this process may use, the caller among them, and tasks handed
// out by a counter. The executor of this machine's cores runs kernels on it, and so do the
// launchers of bundles.
//
//   wl::Pool pool;                                              // threads pinned one to a core
//   pool.run(tasks, [&](long long task, int worker) { … });     // returns when all tasks are done
//
// One core is left for the caller, who keeps its own affinity. A worker whose core the caller turns
// out to run on moves to the one that was left: two on one core would take up to twice as long.
//
// Workers spin for a moment after a run, so a run that follows at once starts within a microsecond
// or so; then they sleep. run() is called from one thread at a time and does not nest. Where the
// system has no more threads there are fewer workers.
#pragma once
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace wl {
// The cores of this process's affinity mask.
inline std::vector<int> allowed_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

// What a thread that spins says to its core between two looks.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" : : : "memory");  // `yield` does nothing on most cores; this takes as long
#endif
}

// Whether this process may use its processor's tiles (AMX): Linux keeps their registers only for
// who asked. The threads of a process that asked may, those to come as well.
inline bool allow_tiles() {
#if defined(__x86_64__) && defined(SYS_arch_prctl)
  constexpr int kRequest = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
#else
  return false;
#endif
}

// Memory aligned to 4096; from 4 MiB on aligned to 2 MiB and huge pages asked for. Null when there
// is none.
inline std::shared_ptr<void> allocate_pages(int64_t bytes) {
  constexpr size_t kPage = 4096;
  constexpr size_t kHuge = size_t{2} << 20;
  const auto wanted = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  const size_t alignment = wanted >= 2 * kHuge ? kHuge : kPage;
  const size_t rounded = (wanted + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory && alignment == kHuge) ::madvise(memory, rounded, MADV_HUGEPAGE);
  return {memory, [](void* p) { std::free(p); }};
}

// A run is open to late comers: workers join by counting themselves in at the gate, and the caller,
// when the tasks have run out, closes it and waits for those who are inside. A worker that sleeps
// through a short run costs nothing.
class Pool {
 public:
  explicit Pool(int threads = 0) {  // 0: one for each allowed core
    allow_tiles();                  // kernels that use them are made where there are some
    const std::vector<int> cores = allowed_cores();
    if (threads <= 0) threads = static_cast<int>(cores.size());
    const bool pinned = threads <= static_cast<int>(cores.size());
    free_core_ = pinned ? cores[0] : -1;
    for (int worker = 1; worker < threads; ++worker) {
      try {
        workers_.emplace_back([this, worker] { serve(worker); });
      } catch (const std::system_error&) {
        break;
      }
      if (!pinned) continue;
      core_of_.push_back(cores[static_cast<size_t>(worker)]);
      pin(workers_.size() - 1);
    }
    scratch_.resize(workers_.size() + 1);
  }

  ~Pool() {
    stop_ = true;
    run_number_.fetch_add(1);
    run_number_.notify_all();
    for (std::thread& worker : workers_)
      worker.join();
  }

  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(scratch_.size()); }

  // Tasks 0 … count-1, in any order, each once, as task(index, worker).
  void run(int64_t count, const std::function<void(int64_t, int)>& task) {
    if (count == 1 || workers_.empty()) {
      for (int64_t i = 0; i < count; ++i)
        task(i, 0);
      return;
    }
    if (count <= 0) return;
    make_way();
    count_ = count;
    chunk_ = std::max<int64_t>(1, count / (8 * threads()));
    task_ = &task;
    next_.store(0, std::memory_order_relaxed);
    gate_.fetch_and(~kClosed, std::memory_order_acq_rel);  // publishes the fields above
    run_number_.fetch_add(1, std::memory_order_release);
    run_number_.notify_all();
    work(0);
    gate_.fetch_or(kClosed, std::memory_order_acq_rel);
    for (int spins = 0; gate_.load(std::memory_order_acquire) != kClosed; ++spins) {
      if (spins < 20000)
        pause();
      else
        std::this_thread::yield();
    }
  }

  // `bytes` of memory of worker `worker`'s own, kept between runs; null when there is none.
  void* scratch(int worker, int64_t bytes) {
    Scratch& own = scratch_[static_cast<size_t>(worker)];
    if (own.bytes < bytes || !own.memory) {
      own.memory = nullptr;
      own.memory = allocate_pages(bytes);
      own.bytes = own.memory ? bytes : 0;
    }
    return own.memory.get();
  }

 private:
  static constexpr int32_t kClosed = 1 << 30;
  static constexpr auto kSpin = std::chrono::microseconds(60);

  struct Scratch {
    std::shared_ptr<void> memory;
    int64_t bytes = 0;
  };

  void pin(size_t worker) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core_of_[worker], &set);
    ::pthread_setaffinity_np(workers_[worker].native_handle(), sizeof set, &set);
  }

  // The worker that the caller meets on its core, if there is one, takes the core that was left.
  void make_way() {
    const int here = ::sched_getcpu();
    if (here == free_core_) return;
    const auto met = std::find(core_of_.begin(), core_of_.end(), here);
    if (met == core_of_.end()) return;
    std::swap(*met, free_core_);
    pin(static_cast<size_t>(met - core_of_.begin()));
  }

  void work(int worker) {
    for (int64_t begin; (begin = next_.fetch_add(chunk_, std::memory_order_relaxed)) < count_;)
      for (int64_t i = begin; i < std::min(begin + chunk_, count_); ++i)
        (*task_)(i, worker);
  }

  void serve(int worker) {
    for (uint32_t seen = 0; !stop_.load(std::memory_order_relaxed);) {
      const auto until = std::chrono::steady_clock::now() + kSpin;
      while (run_number_.load(std::memory_order_acquire) == seen) {
        for (int i = 0; i < 32; ++i)
          pause();
        if (std::chrono::steady_clock::now() >= until)
          run_number_.wait(seen, std::memory_order_acquire);
      }
      seen = run_number_.load(std::memory_order_acquire);
      if (!(gate_.fetch_add(1, std::memory_order_acq_rel) & kClosed)) work(worker);
      gate_.fetch_sub(1, std::memory_order_release);
    }
  }

  alignas(64) std::atomic<int32_t> gate_{kClosed};  // workers inside, plus kClosed
  alignas(64) std::atomic<uint32_t> run_number_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  int64_t count_ = 0;
  int64_t chunk_ = 1;
  const std::function<void(int64_t, int)>* task_ = nullptr;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
  std::vector<int> core_of_;  // of each worker; empty where they are not pinned
  int free_core_ = -1;        // where no worker is
  std::vector<Scratch> scratch_;
};

// Runs a kernel's blocks, each on a worker with `scratch_bytes` of memory of its own. False when
// there is no such memory. Their order must not matter: who checks that has them begin with the
// last.
inline bool run_blocks(Pool& pool,
                       void (*kernel)(void* const* buffers, long long task, void* scratch),
                       void* const* buffers, int64_t blocks, int64_t scratch_bytes,
                       bool backwards = false) {
  for (int worker = 0; worker < pool.threads(); ++worker)
    if (scratch_bytes > 0 && pool.scratch(worker, scratch_bytes) == nullptr) return false;
  pool.run(blocks, [&](int64_t block, int worker) {
    const int64_t number = backwards ? blocks - 1 - block : block;
    void* const scratch = scratch_bytes > 0 ? pool.scratch(worker, scratch_bytes) : nullptr;
    kernel(buffers, number, scratch);
  });
  return true;
}
}  // namespace wl
