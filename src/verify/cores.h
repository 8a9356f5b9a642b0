// Cores: which logical cores are cores of their own, and where a thread runs.
//
//   const Cores cores = Cores::allowed();   // {0, 2, 4, 6, 1, 3, 5, 7}, 4 physical: of each core
//                                           // first one of its hardware threads, then the others
//   const OnCore here(cores.order[1]);      // this thread runs there until the end of the block
//
// Two hardware threads of one core share its units: who watches a kernel must not sit beside it.
// Source: Linux, sysfs-devices-system-cpu (topology/thread_siblings_list). Within the room only.
#pragma once
#include <sched.h>
#include <sys/types.h>
#include <vector>

namespace warploom::verify {
struct Cores {
  std::vector<int> order;
  int physical = 1;

  static Cores allowed();  // of this process
};

void place_on(pid_t thread, int core);

class OnCore {
 public:
  explicit OnCore(int core);
  ~OnCore();
  OnCore(const OnCore&) = delete;
  OnCore& operator=(const OnCore&) = delete;

 private:
  cpu_set_t before_{};
};
}  // namespace warploom::verify
