#include "runtime/bound.h"
namespace warploom::runtime {
Result<Buffer> named_buffer(const Bindings& buffers, const BufferSpec& spec) {
  const auto found = buffers.find(spec.name);
  const bool bound = found != buffers.end();
  if (bound && found->second.bytes() >= spec.bytes()) return found->second;
  return fail({ErrorCode::kPlanInvalid, bound ? "a bound buffer is too small" : "a buffer is not bound", spec.name,
               fmt::format("{} bytes", spec.bytes()), bound ? fmt::format("{} bytes", found->second.bytes()) : "none",
               "bind every input and output"});
}

Result<std::unique_ptr<Executor>> Executor::open(Engine engine, int threads) {
  return engine == Engine::cuda ? open_gpu() : open_cpu(threads);
}

Status Executor::flush_caches() {
  constexpr std::int64_t kMore = 16 << 20, kMost = 256 << 20;
  if (!flush_) { WARPLOOM_TRY(flush_, allocate(std::min(2 * info_.cache_bytes + kMore, kMost))); }
  return fill(flush_, ++flush_word_);
}

Status LoadedList::load(const Binary& binary) {
  if (binary.engine != list_.engine || binary.images.size() != list_.kernels.size())
    return fail({ErrorCode::kPlanInvalid, "the binary is not of this launch list", name(),
                 fmt::format("{} images", list_.kernels.size()), fmt::format("{} images", binary.images.size()),
                 "compile the list again"});
  for (std::size_t i = 0; i < list_.kernels.size(); ++i) WARPLOOM_CHECK(add(list_.kernels[i], binary.images[i]));
  return ok();
}

Status LoadedList::bind(const Bindings& buffers, int set) {
  LoadedSet bound{buffers};
  const bool again = set >= 0 && set < sets();  // keeps its workspaces
  for (const auto* specs : {&list_.inputs, &list_.outputs})
    for (const BufferSpec& spec : *specs) WARPLOOM_CHECK(named_buffer(buffers, spec));
  for (const BufferSpec& spec : list_.workspaces) {
    if (again) {
      bound.buffers[spec.name] = sets_[static_cast<std::size_t>(set)].buffers[spec.name];
      continue;
    }
    WARPLOOM_TRY(bound.buffers[spec.name], device_.allocate(spec.bytes()));
    WARPLOOM_CHECK(device_.fill(bound.buffers[spec.name], kWorkspaceFill));
  }
  for (const Kernel& kernel : list_.kernels) {
    auto& addresses = bound.addresses.emplace_back(kernel.args.size());
    auto& parameters = bound.parameters.emplace_back(kernel.args.size());
    for (std::size_t i = 0; i < kernel.args.size(); ++i) {
      const auto found = bound.buffers.find(kernel.args[i].buffer);
      if (found == bound.buffers.end())
        return fail({ErrorCode::kPlanInvalid, "a kernel's argument names no buffer", kernel.name, "an input, output or workspace",
                     kernel.args[i].buffer, "check the launch list"});
      addresses[i] = found->second.address();
      WARPLOOM_TRY(parameters[i], parameter(kernel, kernel.args[i], addresses[i], bound.kept));
    }
  }
  return keep(set, std::move(bound));
}

Status LoadedList::launch(int set) {
  WARPLOOM_TRY(LoadedSet* const bound, kept(set));
  for (std::size_t i = 0; i < bound->parameters.size(); ++i) {
    for (const Argument& argument : list_.kernels[i].args)
      if (argument.zeroed) WARPLOOM_CHECK(device_.fill(bound->buffers[argument.buffer], 0));
    WARPLOOM_CHECK(run(i, bound->parameters[i].data()));
  }
  return ok();
}
}  // namespace warploom::runtime
