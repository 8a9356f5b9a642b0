// CpuPool: one thread for each core this process may use, the caller among them, and tasks handed out by a counter.
//
//   CpuPool pool;                                     // threads pinned one to a core
//   pool.run(tasks, [&](std::int64_t task, int worker) { … });   // returns when all tasks are done
//
// Workers spin for a moment after a run, so a run that follows at once starts within a microsecond or so; then they sleep.
// run() is called from one thread at a time and does not nest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace warploom::runtime {

// The cores of this process's affinity mask.
std::vector<int> allowed_cores();

// Memory aligned to 4096; from 4 MiB on aligned to 2 MiB and huge pages asked for. Null when there is none.
std::shared_ptr<void> allocate_pages(std::int64_t bytes);

class CpuPool {
 public:
  explicit CpuPool(int threads = 0);  // 0: one for each allowed core
  ~CpuPool();
  CpuPool(const CpuPool&) = delete;
  CpuPool& operator=(const CpuPool&) = delete;

  int threads() const;
  using Task = void (*)(void* context, std::int64_t task, int worker);
  // Tasks 0 … count-1, in any order, each once; `chunk` at a time (0: chosen so that each thread gets some eight chunks).
  void run(std::int64_t count, Task task, void* context, std::int64_t chunk = 0);
  template <class F>
  void run(std::int64_t count, F&& f, std::int64_t chunk = 0) {
    using Callable = std::remove_reference_t<F>;
    run(
        count, [](void* c, std::int64_t task, int worker) { (*static_cast<Callable*>(c))(task, worker); },
        const_cast<void*>(static_cast<const void*>(&f)), chunk);
  }
  // `bytes` of memory of worker `worker`'s own, kept between runs; null when there is none. Not while a run is on.
  void* scratch(int worker, std::int64_t bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace warploom::runtime
