#include "export/launcher.h"

#include <fmt/format.h>

namespace warploom::export_ {

std::string describe_parameters(const Frame& frame) {
  std::string text;
  for (const auto& parameter : frame.parameters)
    text += fmt::format("//   {:<12} {}, {} {}\n", parameter.variable, parameter.input ? "input" : "output",
                        name_of(parameter.buffer.dtype), graph::to_text(parameter.buffer.shape));
  return text;
}

std::int64_t block_count(const Kernel& kernel) { return kernel.grid[0] * kernel.grid[1] * kernel.grid[2]; }

}  // namespace warploom::export_
