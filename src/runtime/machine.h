// Which machines run code of an architecture.
//
//   runs_on("sm_80", "sm_89")          true: of one generation, and the older
//   runs_on("sm_90a", "sm_80")         false
//   runs_on("x86-64-v3", "x86-64-v4")  true
//
// Source: CUDA C++ Programming Guide, "Binary Compatibility".
#pragma once
#include <string>

namespace warploom::runtime {
inline bool runs_on(const std::string& arch, const std::string& here) {
  const bool is_older = !arch.ends_with('a') && arch < here;
  return arch == here || (is_older && arch.substr(0, 4) == here.substr(0, 4));
}
}  // namespace warploom::runtime
