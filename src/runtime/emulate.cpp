#include "runtime/emulate.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <sstream>

#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "emulator.h"
#include "runtime/cpu_compiler.h"
#include "runtime/header_set.h"
#include "tensor_map.h"

namespace warploom::runtime {
namespace {

// The kernel's text as a shared object in the cache, by the content of text and headers.
Result<std::filesystem::path> compile_emulated(const Kernel& kernel) {
  WARPLOOM_TRY(const CpuCompiler compiler, find_cpu_compiler());
  WARPLOOM_TRY(const std::filesystem::path headers, header_folder(emulated_headers()));
  const auto folder = cache_folder() / "emulated";
  WARPLOOM_CHECK(make_folders(folder));
  const auto stem = folder / hash_hex(kernel.source + headers.string() + compiler.version);
  const std::filesystem::path object = stem.string() + ".so";
  if (std::filesystem::exists(object)) return object;
  const std::filesystem::path source = stem.string() + fmt::format("-{}.cpp", ::getpid()),
                              made = source.string() + ".so";
  WARPLOOM_CHECK(write_file(source, kernel.source));
  std::vector<std::string> argv = {compiler.path.string()};
  std::istringstream flags(emulator::kCompileFlags);
  for (std::string flag; flags >> flag;) argv.push_back(flag);
  argv.insert(argv.end(), {"-I" + headers.string(), source.string(), "-o", made.string()});
  WARPLOOM_TRY(const ProcessResult run, run_process(argv));
  std::error_code ignored;
  std::filesystem::remove(source, ignored);
  if (!run.succeeded())
    return fail({ErrorCode::kCompileFailed, "the emulated kernel does not compile", kernel.name,
                 "text of the device interface", run.err, "report this: generated text should always compile"});
  std::filesystem::rename(made, object, ignored);
  return object;
}

wl::TensorMap map_over(const TensorMapSpec& spec, void* base) {
  wl::TensorMap map{};
  map.base = base;
  map.rank = static_cast<int>(spec.dims.size());
  map.element_bytes = bytes_of(spec.dtype);
  map.strides[0] = map.element_bytes;
  for (std::size_t d = 0; d < spec.dims.size(); ++d) {
    map.dims[d] = spec.dims[d];
    map.box[d] = static_cast<int>(spec.box[d]);
    if (d > 0) map.strides[d] = spec.strides_bytes[d - 1];
  }
  map.tf32 = spec.dtype == Dtype::tf32;
  map.swizzle = spec.swizzle_bytes == 128 ? 1 : spec.swizzle_bytes == 64 ? 2 : spec.swizzle_bytes == 32 ? 3 : 0;
  return map;
}

struct Library {
  void* handle = nullptr;
  ~Library() {
    if (handle) ::dlclose(handle);
  }
};

struct Space {  // a buffer, and whether a kernel has written it
  std::span<std::byte> bytes;
  bool initialised = false, writable = false;
};

Result<Emulation> run_kernel(const Kernel& kernel, std::map<std::string, Space>& spaces,
                             const EmulateOptions& options) {
  WARPLOOM_TRY(const std::filesystem::path object, compile_emulated(kernel));
  Library library{::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL)};
  void* entry = library.handle ? ::dlsym(library.handle, (kernel.name + "_entry").c_str()) : nullptr;
  if (!entry)
    return fail({ErrorCode::kInternal, "an emulated kernel cannot be loaded", object.string(), kernel.name + "_entry",
                 ::dlerror(), ""});

  emulator::Launch launch;
  launch.entry = reinterpret_cast<emulator::Entry>(entry);
  for (std::size_t d = 0; d < 3; ++d) {
    launch.grid[d] = static_cast<int>(kernel.grid[d]);
    launch.cluster[d] = static_cast<int>(kernel.cluster[d]);
  }
  launch.block = kernel.threads;
  launch.shared_bytes = static_cast<int>(kernel.shared_bytes);
  launch.options = {
      options.seed, static_cast<emulator::Timing>(options.timing), options.hazards, options.count_banks, false, 20};

  std::vector<void*> pointers(kernel.args.size()), args(kernel.args.size());
  std::vector<wl::TensorMap> maps(kernel.args.size());
  std::map<std::string, bool> seen;
  for (std::size_t i = 0; i < kernel.args.size(); ++i) {
    const Argument& arg = kernel.args[i];
    const auto space = spaces.find(arg.buffer);
    if (space == spaces.end())
      return fail({ErrorCode::kPlanInvalid, "a kernel's argument names no buffer", kernel.name,
                   "a buffer of the launch list", arg.buffer, ""});
    pointers[i] = space->second.bytes.data();
    args[i] = &pointers[i];
    if (arg.tensor_map) {
      maps[i] = map_over(arg.map, pointers[i]);
      args[i] = &maps[i];
    }
    if (!seen.emplace(arg.buffer, true).second) continue;
    launch.allocations.push_back(
        {pointers[i], space->second.bytes.size(), arg.buffer, space->second.writable, space->second.initialised});
  }
  launch.args = args.data();
  const emulator::Report report = emulator::run(launch);
  for (const Argument& arg : kernel.args)
    spaces[arg.buffer].initialised = true;  // what was left out shows as poison in the numbers
  if (report.deadlock)
    return fail({ErrorCode::kEmulatorDeadlock, "every thread of the emulated kernel is blocked", kernel.name,
                 "progress", report.deadlock_text, "look at the barriers named"});
  if (!report.clean())
    return fail({ErrorCode::kEmulatorHazard, "the emulated kernel does something undefined", kernel.name, "no hazard",
                 report.text(), "look at the lines named"});
  Emulation emulation;
  for (const auto& [line, use] : report.banks)
    emulation.banks.push_back({kernel.name, line, use.instructions, use.wavefronts, use.least});
  return emulation;
}

}  // namespace

Result<Emulation> emulate(const LaunchList& list, const EmulatedBuffers& buffers, const EmulateOptions& options) {
  std::map<std::string, Space> spaces;
  for (const auto& input : list.inputs) spaces[input.name].initialised = true;
  for (const auto& output : list.outputs) spaces[output.name].writable = true;
  for (const auto& [name, bytes] : buffers) spaces[name].bytes = bytes;
  std::vector<std::vector<std::byte>> owned;
  owned.reserve(list.workspaces.size());
  for (const auto& workspace : list.workspaces) {
    owned.emplace_back(static_cast<std::size_t>(workspace.bytes()), std::byte{0xff});
    spaces[workspace.name] = {owned.back(), false, true};
  }
  Emulation total;
  for (const Kernel& kernel : list.kernels) {
    WARPLOOM_TRY(const Emulation one, run_kernel(kernel, spaces, options));
    total.banks.insert(total.banks.end(), one.banks.begin(), one.banks.end());
  }
  return total;
}

}  // namespace warploom::runtime
