#include "verify/cores.h"
#include <fmt/format.h>
#include <sched.h>
#include <set>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/file.h"
#include "cpu/pool.h"

namespace warploom::verify {
Cores Cores::allowed() {
  Cores cores;
  std::vector<int> beside;  // hardware threads of cores that are in the order already
  std::set<std::string> seen;
  for (const int core : wl::allowed_cores()) {
    const auto siblings =
        read_file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", core));
    const std::string name = siblings ? *siblings : std::to_string(core);
    (seen.insert(name).second ? cores.order : beside).push_back(core);
  }
  cores.physical = as_int(cores.order.size());
  cores.order.insert(cores.order.end(), beside.begin(), beside.end());
  return cores;
}

void place_on(pid_t thread, int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  ::sched_setaffinity(thread, sizeof one, &one);
}

OnCore::OnCore(int core) {
  ::sched_getaffinity(0, sizeof before_, &before_);
  place_on(0, core);
}

OnCore::~OnCore() {
  ::sched_setaffinity(0, sizeof before_, &before_);
}
}  // namespace warploom::verify
