// What ptxas -v prints, in two dialects: nvcc's own lines start with "ptxas info    :", NVRTC's continuation lines with
// "ptxas         .". Only the words that both share are looked at.
//
//   ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
//   ptxas         .     0 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
//   ptxas info    : Used 168 registers, used 1 barriers, 256 bytes smem
//   ptxas info    : (C7510) Potential Performance Loss: …       (C75 and its kin: a wgmma pipeline that had to be serialised)
#include <regex>
#include "runtime/nvrtc.h"

namespace warploom::runtime {

PtxasReport parse_ptxas(std::string_view log) {
  static const std::regex words(
      "Compiling entry function '([^']*)'|(\\d+) bytes spill|Used (\\d+) registers|(\\d+) bytes "
      "smem|\\(C75[^)\\n]*\\)[^\\n]*");
  PtxasReport report;
  std::cregex_iterator found(log.data(), log.data() + log.size(), words);
  for (; found != std::cregex_iterator(); ++found) {
    const std::cmatch& match = *found;
    const auto number = [&](std::size_t group) { return match[group].matched ? std::stoi(match[group]) : 0; };
    if (match[1].matched) report.kernels.push_back({match[1], 0, 0, 0});
    else if (match.str().starts_with("(C75")) report.warnings.push_back(match.str());
    if (report.kernels.empty()) continue;
    KernelFigures& kernel = report.kernels.back();
    kernel.spill_bytes += number(2);
    kernel.registers += number(3);
    kernel.static_shared += number(4);
  }
  return report;
}

}  // namespace warploom::runtime
