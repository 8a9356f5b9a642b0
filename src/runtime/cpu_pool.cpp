#include "runtime/cpu_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace warploom::runtime {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::shared_ptr<void> allocate_pages(std::int64_t bytes) {
  constexpr std::size_t kPage = 4096, kHuge = std::size_t{2} << 20;
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  const std::size_t alignment = wanted >= 2 * kHuge ? kHuge : kPage;
  const std::size_t rounded = (wanted + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory && alignment == kHuge) ::madvise(memory, rounded, MADV_HUGEPAGE);
  return {memory, [](void* p) { std::free(p); }};
}

// A run is open to late comers: workers join by counting themselves in at the gate, and the caller, when the tasks have run out,
// closes it and waits for those who are inside. A worker that sleeps through a short run costs nothing.
struct CpuPool::State {
  static constexpr std::int32_t kClosed = 1 << 30;
  static constexpr auto kSpin = std::chrono::microseconds(60);

  alignas(64) std::atomic<std::int32_t> gate{kClosed};  // workers inside, plus kClosed
  alignas(64) std::atomic<std::uint32_t> run_number{0};
  alignas(64) std::atomic<std::int64_t> next{0};
  std::int64_t count = 0, chunk = 1;
  Task task = nullptr;
  void* context = nullptr;
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
  struct Scratch {
    std::shared_ptr<void> memory;
    std::int64_t bytes = 0;
  };
  std::vector<Scratch> scratch;

  void work(int worker) {
    while (true) {
      const std::int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) return;
      const std::int64_t end = std::min(begin + chunk, count);
      for (std::int64_t i = begin; i < end; ++i) task(context, i, worker);
    }
  }

  void serve(int worker) {
    std::uint32_t seen = 0;
    while (true) {
      const auto until = std::chrono::steady_clock::now() + kSpin;
      while (run_number.load(std::memory_order_acquire) == seen) {
        for (int i = 0; i < 32; ++i) _mm_pause();
        if (std::chrono::steady_clock::now() >= until) run_number.wait(seen, std::memory_order_acquire);
      }
      seen = run_number.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_relaxed)) return;
      if (!(gate.fetch_add(1, std::memory_order_acq_rel) & kClosed)) work(worker);
      gate.fetch_sub(1, std::memory_order_release);
    }
  }
};

CpuPool::CpuPool(int threads) : state_(std::make_unique<State>()) {
  const std::vector<int> cores = allowed_cores();
  if (threads <= 0) threads = static_cast<int>(cores.size());
  state_->scratch.resize(static_cast<std::size_t>(threads));
  const bool pin = threads <= static_cast<int>(cores.size());
  for (int worker = 1; worker < threads; ++worker) {
    state_->workers.emplace_back([state = state_.get(), worker] { state->serve(worker); });
    if (!pin) continue;  // the caller keeps its own affinity: it lands on the core that is left
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cores[static_cast<std::size_t>(worker)], &set);
    ::pthread_setaffinity_np(state_->workers.back().native_handle(), sizeof set, &set);
  }
}

CpuPool::~CpuPool() {
  state_->stop = true;
  state_->run_number.fetch_add(1);
  state_->run_number.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

int CpuPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void CpuPool::run(std::int64_t count, Task task, void* context, std::int64_t chunk) {
  State& s = *state_;
  if (count <= 0) return;
  if (count == 1 || s.workers.empty()) {
    for (std::int64_t i = 0; i < count; ++i) task(context, i, 0);
    return;
  }
  s.count = count;
  s.chunk = chunk > 0 ? chunk : std::max<std::int64_t>(1, count / (8 * threads()));
  s.task = task;
  s.context = context;
  s.next.store(0, std::memory_order_relaxed);
  s.gate.fetch_and(~State::kClosed, std::memory_order_acq_rel);  // publishes the fields above
  s.run_number.fetch_add(1, std::memory_order_release);
  s.run_number.notify_all();
  s.work(0);
  s.gate.fetch_or(State::kClosed, std::memory_order_acq_rel);
  for (int spins = 0; s.gate.load(std::memory_order_acquire) != State::kClosed; ++spins) {
    if (spins < 20000) _mm_pause();
    else std::this_thread::yield();
  }
}

void* CpuPool::scratch(int worker, std::int64_t bytes) {
  State::Scratch& own = state_->scratch[static_cast<std::size_t>(worker)];
  if (own.bytes < bytes || !own.memory) {
    own.memory = nullptr;
    own.memory = allocate_pages(bytes);
    own.bytes = own.memory ? bytes : 0;
  }
  return own.memory.get();
}

}  // namespace warploom::runtime
