#include "runtime/bound.h"

#include <fmt/format.h>

namespace warploom::runtime {

Result<Bindings> complete_bindings(Executor& device, const LaunchList& list, const Bindings& buffers) {
  Bindings all = buffers;
  for (const auto* specs : {&list.inputs, &list.outputs}) {
    for (const BufferSpec& spec : *specs) {
      const auto found = all.find(spec.name);
      const std::int64_t have = found == all.end() ? -1 : found->second.bytes();
      if (have < spec.bytes())
        return fail({ErrorCode::kPlanInvalid, have < 0 ? "a buffer is not bound" : "a bound buffer is too small",
                     spec.name, fmt::format("{} bytes", spec.bytes()),
                     have < 0 ? "none" : fmt::format("{} bytes", have),
                     "bind every input and output of the launch list"});
    }
  }
  for (const BufferSpec& spec : list.workspaces) {
    WARPLOOM_TRY(Buffer workspace, device.allocate(spec.bytes()));
    WARPLOOM_CHECK(device.fill(workspace, kWorkspaceFill));
    all[spec.name] = std::move(workspace);
  }
  return all;
}

Result<std::vector<Buffer>> buffers_of(const Kernel& kernel, const Bindings& buffers) {
  std::vector<Buffer> chosen;
  for (const Argument& argument : kernel.args) {
    const auto found = buffers.find(argument.buffer);
    if (found == buffers.end())
      return fail({ErrorCode::kPlanInvalid, "a kernel's argument names no buffer", kernel.name,
                   "an input, output or workspace", argument.buffer, "check the launch list"});
    chosen.push_back(found->second);
  }
  return chosen;
}

Error no_such_set(const std::string& name, int set, int sets) {
  return {ErrorCode::kInternal,
          "a buffer set was never bound",
          name,
          fmt::format("a set below {}", sets),
          fmt::format("{}", set),
          "bind buffer sets in order from 0, before the launch"};
}

Status check_images(const LaunchList& list, const Binary& binary) {
  if (binary.engine == list.engine && binary.images.size() == list.kernels.size()) return ok();
  return fail({ErrorCode::kPlanInvalid, "the binary is not of this launch list",
               list.kernels.empty() ? "" : list.kernels[0].name, fmt::format("{} images", list.kernels.size()),
               fmt::format("{} images", binary.images.size()), "compile the list again"});
}

}  // namespace warploom::runtime
