// Emulation of a CUDA launch list on this machine: the very text that ships, compiled by the
// system's C++ compiler against device/emulated, every CUDA thread a fiber. What a GPU would leave
// undefined becomes an error with the line of the text.
//
//   EmulatedBuffers buffers = {{"A", a}, {"B", b}, {"C", c}};        // host bytes; workspaces are
//   made here WARPLOOM_CHECK(emulate(list, buffers));
//
// Errors: emulator-hazard (the first hazards in `found`, with lines), emulator-deadlock,
// compile-failed, no-compiler.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include "codegen/launch_list.h"
#include "emulator.h"

namespace warploom::runtime {
using EmulatedBuffers = std::map<std::string, std::span<std::byte>>;

using EmulateOptions = emulator::Options;  // after_launch is each kernel's own

struct BankUse : emulator::BankUse {
  std::string kernel;
  int line = 0;  // of its text
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(BankUse, kernel, line, instructions, wavefronts, least)

// The use of banks by kernel and line, with EmulateOptions::banks.
Result<std::vector<BankUse>> emulate(const LaunchList& list, const EmulatedBuffers& buffers,
                                     const EmulateOptions& options = {});
}  // namespace warploom::runtime
