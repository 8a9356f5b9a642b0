// Runs an emitted kernel on this machine, every CUDA thread a fiber, and reports what a GPU would
// leave undefined: races, missing fences and waits, wrong barrier counts, memory out of range or
// never written, deadlock.
//
// The kernel's text is compiled against device/emulated and device/common (flags: kCompileFlags) to
// a shared library; its symbol NAME_entry is Launch::entry. args[i] points to the i-th parameter: a
// pointer variable, an int, a wl::TensorMap.
//
//   Launch launch;
//   launch.entry = reinterpret_cast<Entry>(dlsym(library, "softmax_entry"));
//   launch.grid[0] = rows;  launch.block = 256;  launch.shared_bytes = 1024;
//   launch.allocations = {{x, bytes, "x", false, true}, {y, bytes, "y", true, false}};
//   void* args[] = {&x, &y, &n};  launch.args = args;
//   Report report = run(launch);       // report.clean(), or report.hazards with lines of the text
//
// All blocks of a cooperative launch run together; else those of one cluster, clusters one after
// another. One launch at a time in a process (others wait). The rules are in docs/device.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace warploom::emulator {
inline constexpr const char* kCompileFlags =
    "-std=c++20 -O2 -fPIC -shared -ffp-contract=off -fno-strict-aliasing -w";

using Entry = void (*)(void** args);

struct Allocation {
  void* data = nullptr;
  size_t bytes = 0;
  std::string name;
  bool writable = false;
  bool initialised = true;  // false: reading an element that the kernel has not written is a hazard
};

// When the effect of an asynchronous operation takes place, between its issue and the wait that
// covers it.
enum class Timing { early, late, random };

struct Options {
  uint64_t seed = 0;  // order of threads and of asynchronous effects
  Timing timing = Timing::random;
  bool banks = false;         // count shared-memory wavefronts, line by line
  bool after_launch = false;  // launched while the previous kernel may still run: global access
                              // needs griddepcontrol_wait
  int most_hazards = 20;      // stop recording after so many different ones
};

struct Launch {
  Entry entry = nullptr;
  int grid[3] = {1, 1, 1};     // blocks
  int block = 32;              // threads a block, a multiple of 32
  int cluster[3] = {1, 1, 1};  // blocks a cluster; divides grid
  bool cooperative = false;    // all blocks run at the same time
  int shared_bytes = 0;        // dynamic shared memory
  int registers =
      0;  // a thread at entry, for reg_alloc: 0 takes 65536 / block, at most 255, a multiple of 8
  void** args = nullptr;
  std::vector<Allocation> allocations;
  Options options;
};

struct Hazard {
  std::string kind;     // "race", "proxy-fence", "mbarrier", "wgmma-registers", "uninitialised",
                        // "out-of-range", ...
  std::string message;  // one sentence with both places
  int line = 0;         // of the kernel's text
  int thread = -1;      // of its block; -1: TMA or a tensor core
  int block[3] = {0, 0, 0};
  int other_line = 0;  // of the earlier access, 0 if none
  int times = 1;
};

struct BankUse {  // shared-memory instructions at one line of the text
  int64_t instructions = 0;
  int64_t wavefronts = 0;  // passes over the banks
  int64_t least = 0;       // the fewest possible for the same accesses
};

struct Report {
  std::vector<Hazard> hazards;
  bool deadlock = false;
  std::string deadlock_text;     // who waits where, and the state of what they wait for
  std::map<int, BankUse> banks;  // by line, with Options::banks

  bool clean() const { return hazards.empty() && !deadlock; }

  std::string text() const;  // for people: one line a hazard
};

Report run(const Launch& launch);
}  // namespace warploom::emulator
