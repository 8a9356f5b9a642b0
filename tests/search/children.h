// What /proc says of this process's children.
#pragma once
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <vector>
#include "base/file.h"

namespace warploom {
struct Child {
  int process = 0;
  char state = '?';  // 'Z': ended and not waited for
  bool evaluator = false;
};

inline std::vector<Child> children() {
  std::vector<Child> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const int process = std::atoi(entry.path().filename().c_str());
    const auto stat = process > 0 ? read_file(entry.path() / "stat") : Result<std::string>("");
    const size_t name = stat ? stat->rfind(") ") : std::string::npos;  // "12 (name) S PARENT …"
    if (name == std::string::npos || std::atoi(stat->c_str() + name + 4) != ::getpid()) continue;
    const auto line = read_file(entry.path() / "cmdline");
    out.push_back(
        {process, stat->at(name + 2), line && line->find("__evaluate") != std::string::npos});
  }
  return out;
}

// 0: none runs.
inline int evaluator_process() {
  for (const Child& child : children())
    if (child.evaluator && child.state != 'Z') return child.process;
  return 0;
}

// Resident memory in bytes.
inline double resident(const std::string& process = "self") {
  double pages = 0;
  std::ifstream("/proc/" + process + "/statm") >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}
}  // namespace warploom
