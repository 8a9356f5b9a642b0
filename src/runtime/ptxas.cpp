// What ptxas -v prints, in two dialects: nvcc's own lines start with "ptxas info    :", NVRTC's continuation lines with
// "ptxas         .". Only the words that both share are looked at.
//
//   ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
//   ptxas         .     0 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
//   ptxas info    : Used 168 registers, used 1 barriers, 256 bytes smem
#include <charconv>
#include "runtime/nvrtc.h"

namespace warploom::runtime {
namespace {

// The decimal number that ends right before `at`, spaces between; 0 when there is none.
int number_before(std::string_view text, std::size_t at) {
  while (at > 0 && text[at - 1] == ' ') --at;
  std::size_t begin = at;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(text.data() + begin, text.data() + at, value);
  return value;
}
int number_before(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  return at == std::string_view::npos ? 0 : number_before(line, at);
}

// "(C7510)" and its kin: ptxas's codes for a wgmma pipeline it had to serialise.
bool is_serialisation(std::string_view line) {
  const std::size_t at = line.find("(C75");
  return at != std::string_view::npos && line.find(')', at) != std::string_view::npos;
}

}  // namespace

PtxasReport parse_ptxas(std::string_view log) {
  PtxasReport report;
  constexpr std::string_view kEntry = "Compiling entry function '";
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (is_serialisation(line)) report.warnings.emplace_back(line);
    if (const std::size_t at = line.find(kEntry); at != std::string_view::npos) {
      const std::string_view rest = line.substr(at + kEntry.size());
      report.kernels.push_back({std::string(rest.substr(0, rest.find('\''))), 0, 0, 0});
    }
    if (report.kernels.empty()) continue;
    KernelFigures& kernel = report.kernels.back();
    kernel.spill_bytes += number_before(line, "bytes spill stores") + number_before(line, "bytes spill loads");
    if (line.find("Used ") != std::string_view::npos) {
      kernel.registers = number_before(line, "registers");
      kernel.static_shared = number_before(line, "bytes smem");
    }
  }
  return report;
}

}  // namespace warploom::runtime
