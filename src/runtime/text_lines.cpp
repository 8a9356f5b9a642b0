#include "runtime/text_lines.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include "base/confine.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compiler_sandbox.h"
#include "runtime/compilers.h"
#include "runtime/foreign_text.h"
#include "runtime/text_places.h"
#include "runtime/units.h"

namespace warploom::runtime {
namespace {
constexpr const char* kText = "kernels.cpp";
constexpr std::chrono::seconds kTime{60};  // for the compiler and the reader of its tables
}  // namespace

std::unique_ptr<TextLines> TextLines::make(const LaunchList& list, size_t kernel) {
  // Its asm statements are not looked at again before they are assembled.
  if (confinement_in_force() == "rlimits") return nullptr;
  const std::vector<Unit> units = units_of(list, true);
  const auto unit = std::ranges::find_if(
      units, [&](const Unit& one) { return std::ranges::count(one.kernels, kernel) > 0; });
  if (unit == units.end()) return nullptr;
  const Result<Compiler> compiler = find_cpu_compiler();
  if (!compiler) return nullptr;
  std::unique_ptr<TextLines> made(new TextLines(*compiler, list.arch));
  made->text_ = unit->text;
  return made->compile() ? std::move(made) : nullptr;
}

Status TextLines::compile() {
  sandbox_ = std::make_unique<CompilerSandbox>(compiler_, command_, "cpu", kTime, true);
  const auto step = [&](std::initializer_list<const char*> more) -> Status {
    std::vector<std::string> argv = command_;
    argv.insert(argv.end(), more.begin(), more.end());
    WARPLOOM_CHECK(sandbox_->run(argv));
    return ok();
  };
  WARPLOOM_CHECK(sandbox_->write(kText, text_));
  WARPLOOM_CHECK(step({"-E", "-I", ".", "-o", "kernels.ii", kText}));
  WARPLOOM_TRY(const std::string preprocessed, sandbox_->read("kernels.ii"));
  WARPLOOM_CHECK(check_preprocessed(preprocessed, sandbox_->readable()));
  WARPLOOM_CHECK(step({"-g", "-o", "image", "kernels.ii"}));
  WARPLOOM_TRY(image_, sandbox_->read("image"));
  return ok();
}

TextPlace TextLines::place_at(uint64_t address) const {
  const int line = line_at(address);
  return line > 0 ? place_in(text_, line) : TextPlace();
}

// addr2line says where the instruction is from, innermost first: a header's line, then the line
// that it was inlined into: "/usr/lib/…/ia32intrin.h:114", "/…/kernels.cpp:7 (discriminator 2)".
int TextLines::line_at(uint64_t address) const {
  const auto said =
      sandbox_->run({"addr2line", "-i", "-e", "image", fmt::format("{:#x}", address)});
  if (!said) return 0;
  std::istringstream lines(*said);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.rfind(':');
    if (colon == line.npos) continue;
    const std::string file = line.substr(0, colon);
    if (file == kText || file.ends_with(std::string("/") + kText))
      return std::atoi(line.c_str() + colon + 1);
  }
  return 0;
}
}  // namespace warploom::runtime
