#include "run_list.h"
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
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

namespace warploom::fuzz {
namespace {
// Buffers whose ends are the ends of pages that can be read, up to 63 bytes of padding, so that a
// kernel that reads on faults.
class Guarded {
 public:
  explicit Guarded(const std::vector<std::byte>& bytes) : bytes_(bytes.size()) {
    const size_t body = (bytes.size() + 63) / 64 * 64;
    mapped_ = (body + 4095) / 4096 * 4096 + 2 * 4096;
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(base_ + 4096, mapped_ - 2 * 4096, PROT_READ | PROT_WRITE);
    std::memset(base_ + 4096, 0xa5, mapped_ - 2 * 4096);
    data_ = base_ + mapped_ - 4096 - body;
    std::memcpy(data_, bytes.data(), bytes.size());
  }

  Guarded(const Guarded&) = delete;

  ~Guarded() { ::munmap(base_, mapped_); }

  std::byte* data() const { return data_; }

  bool intact() const {  // round the buffer
    for (const std::byte* p = base_ + 4096; p < base_ + mapped_ - 4096; ++p)
      if ((p < data_ || p >= data_ + bytes_) && *p != std::byte{0xa5}) return false;
    return true;
  }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t mapped_ = 0;
};

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
    if (!buffer) buffer = std::make_unique<Guarded>(storage.at(argument.buffer));
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
