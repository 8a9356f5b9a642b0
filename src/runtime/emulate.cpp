#include "runtime/emulate.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "emulator.h"
#include "runtime/compilers.h"
#include "runtime/library.h"
#include "tensor_map.h"

namespace warploom::runtime {
namespace {
constexpr int64_t kMostTogether = 1 << 14;  // threads

// How the emulator numbers the swizzles of 32, 64 and 128 bytes; 0: none.
int swizzle_number(int bytes) {
  switch (bytes) {
    case 32: return 3;
    case 64: return 2;
    case 128: return 1;
    default: return 0;
  }
}

wl::TensorMap map_over(const TensorMapSpec& spec, void* base) {
  wl::TensorMap map{};
  map.base = base;
  map.rank = as_int(spec.dims.size());
  map.element_bytes = bytes_of(spec.dtype);
  std::ranges::copy(spec.dims, map.dims);
  map.strides[0] = map.element_bytes;
  std::ranges::copy(spec.strides_bytes, map.strides + 1);
  std::ranges::copy(spec.box, map.box);
  map.tf32 = spec.dtype == Dtype::tf32;
  map.swizzle = swizzle_number(spec.swizzle_bytes);
  return map;
}

struct Space {  // a buffer, and what the kernels have done with it
  std::span<std::byte> bytes;
  bool initialised = false;
  bool writable = false;
};

Status run_kernel(const Kernel& kernel, std::map<std::string, Space>& spaces,
                  const EmulateOptions& options, std::vector<BankUse>& banks) {
  std::istringstream words(emulator::kCompileFlags);
  const std::vector<std::string> flags(std::istream_iterator<std::string>(words), {});
  auto compiled = compile_shared_object(kernel.source, flags, "emulated", std::chrono::minutes(10));
  WARPLOOM_TRY(const Image object, std::move(compiled));
  const Library library{object.path.c_str()};
  emulator::Launch launch;
  const std::string entry = kernel.name + "_entry";
  launch.entry = library[entry.c_str()];
  if (!launch.entry) {
    Error error{ErrorCode::kInternal, "an emulated kernel cannot be loaded"};
    error.place = object.path.string();
    error.expected = entry;
    error.found = library.why_not();
    return fail(error);
  }

  std::ranges::copy(kernel.grid, launch.grid);
  std::ranges::copy(kernel.cluster, launch.cluster);
  launch.cooperative = kernel.cooperative;
  launch.block = kernel.threads;
  launch.shared_bytes = as_int(kernel.shared_bytes);
  launch.options = options;
  launch.options.after_launch = kernel.programmatic_launch;
  const auto blocks = kernel.grid[0] * kernel.grid[1] * kernel.grid[2];
  if (kernel.cooperative && blocks * kernel.threads > kMostTogether) {
    Error error{ErrorCode::kResourceLimit};
    error.message = "the blocks of a cooperative kernel are too many to be emulated together";
    error.place = kernel.name;
    error.expected = fmt::format("at most {} threads", kMostTogether);
    error.found = fmt::format("{} blocks of {}", blocks, kernel.threads);
    error.remedy = "check a smaller problem";
    return fail(error);
  }

  std::vector<void*> pointers(kernel.args.size());
  std::vector<void*> args(kernel.args.size());
  std::vector<wl::TensorMap> maps(kernel.args.size());
  std::set<std::string> seen;
  for (size_t i = 0; i < kernel.args.size(); ++i) {
    const Argument& arg = kernel.args[i];
    Space& space = spaces.at(arg.buffer);
    pointers[i] = space.bytes.data() + arg.offset;
    if (arg.zeroed) {
      const int64_t rest = std::ssize(space.bytes) - arg.offset;
      const auto begin = space.bytes.begin() + arg.offset;
      std::fill_n(begin, arg.bytes != 0 ? arg.bytes : rest, std::byte{0});
      space.initialised = true;
    }
    args[i] = &pointers[i];
    if (arg.tensor_map) {
      maps[i] = map_over(arg.map, pointers[i]);
      args[i] = &maps[i];
    }
    if (!seen.insert(arg.buffer).second) continue;
    emulator::Allocation memory{space.bytes.data(), space.bytes.size(), arg.buffer};
    memory.writable = space.writable;
    memory.initialised = space.initialised;
    launch.allocations.push_back(std::move(memory));
  }
  launch.args = args.data();
  const auto report = emulator::run(launch);
  for (const Argument& arg : kernel.args)
    spaces[arg.buffer].initialised = true;  // what was left out shows as poison in the numbers
  if (report.deadlock)
    return fail({ErrorCode::kEmulatorDeadlock, "every thread of the emulated kernel is blocked",
                 kernel.name, "progress", report.deadlock_text, "look at the barriers named"});
  if (!report.clean())
    return fail({ErrorCode::kEmulatorHazard, "the emulated kernel does something undefined",
                 kernel.name, "no hazard", report.text(), "look at the lines named"});
  for (const auto& [line, use] : report.banks)
    banks.push_back({use, kernel.name, line});
  return ok();
}
}  // namespace

Result<std::vector<BankUse>> emulate(const LaunchList& list, const EmulatedBuffers& buffers,
                                     const EmulateOptions& options) {
  std::map<std::string, Space> spaces;
  for (const auto& input : list.inputs)
    spaces[input.name].initialised = true;
  for (const auto& output : list.outputs)
    spaces[output.name].writable = true;
  for (const auto& [name, bytes] : buffers)
    spaces[name].bytes = bytes;
  std::vector<std::vector<std::byte>> owned;
  owned.reserve(list.workspaces.size());
  for (const auto& workspace : list.workspaces) {
    owned.emplace_back(workspace.bytes(), std::byte{0xff});
    spaces[workspace.name] = {owned.back(), false, true};
  }
  std::vector<BankUse> banks;
  for (const Kernel& kernel : list.kernels)
    WARPLOOM_CHECK(run_kernel(kernel, spaces, options, banks));
  return banks;
}
}  // namespace warploom::runtime
