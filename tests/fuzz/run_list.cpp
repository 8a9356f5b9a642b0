#include "run_list.h"
#include <dlfcn.h>
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "support/guarded.h"

namespace warploom::fuzz {
namespace {
using test::Guarded;

std::unique_ptr<Guarded> guarded(const std::vector<std::byte>& bytes) {
  return std::make_unique<Guarded>(bytes.data(), bytes.size());
}

Status run_kernel(const Kernel& kernel, const std::string& image, Storage& storage) {
  void* library = ::dlopen(image.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto* function =
      library ? reinterpret_cast<CpuKernel>(::dlsym(library, kernel.name.c_str())) : nullptr;
  if (!function) return fail({ErrorCode::kInternal, "the kernel cannot be loaded", kernel.name});
  std::map<std::string, std::unique_ptr<Guarded>> buffers;
  std::vector<void*> pointers;
  for (const Argument& argument : kernel.args) {
    if (argument.zeroed) std::ranges::fill(storage.at(argument.buffer), std::byte{0});
    auto& buffer = buffers[argument.buffer];
    if (!buffer) buffer = guarded(storage.at(argument.buffer));
    pointers.push_back(buffer->data());
  }
  const auto bytes = static_cast<size_t>((kernel.shared_bytes + 8191) / 4096 * 4096);
  const std::unique_ptr<void, void (*)(void*)> scratch(std::aligned_alloc(4096, bytes), std::free);
  std::fill_n(static_cast<float*>(scratch.get()), bytes / 4, __builtin_nanf(""));
  for (long long task = 0; task < kernel.grid[0] * kernel.grid[1] * kernel.grid[2]; ++task)
    function(pointers.data(), task, scratch.get());
  for (auto& [name, buffer] : buffers) {
    if (!buffer->intact())
      return fail({ErrorCode::kCandidateWroteInput, "the kernel wrote outside a buffer", name});
    std::memcpy(storage.at(name).data(), buffer->data(), storage.at(name).size());
  }
  ::dlclose(library);
  return ok();
}
}  // namespace

std::string joined(const std::vector<std::string>& texts) {
  std::string head;
  std::string body;
  std::set<std::string> seen;
  for (size_t i = 0; i < texts.size(); ++i) {
    body += fmt::format("namespace part_{} {{\n", i);
    std::istringstream lines(texts[i]);
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("#include") && !line.starts_with("#define"))
        body += line + "\n";
      else if (seen.insert(line).second)
        head += line + "\n";
    body += "}\n";
  }
  return head + body;
}

Status run_on_cpu(const LaunchList& list, const runtime::Binary& binary, Storage& storage) {
  for (size_t i = 0; i < list.kernels.size(); ++i)
    WARPLOOM_CHECK(run_kernel(list.kernels[i], binary.images[i], storage));
  return ok();
}
}  // namespace warploom::fuzz
