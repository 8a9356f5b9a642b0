#include "runtime/bound.h"
namespace warploom::runtime {
Call in_order(std::vector<Call> calls) {
  return [calls = std::move(calls)]() -> Status {
    for (const Call& call : calls) WARPLOOM_CHECK(call());
    return ok();
  };
}

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

Result<Runnable> Executor::load(const LaunchList& given, const Binary& binary) {
  const auto list = std::make_shared<LaunchList>(given);
  const std::string name = list->kernels.empty() ? "nothing" : list->kernels.back().name;
  if (list->engine != engine_ || binary.images.size() != list->kernels.size())
    return fail({ErrorCode::kPlanInvalid, "the binary is not of this launch list", name,
                 fmt::format("{} images", list->kernels.size()), fmt::format("{} images", binary.images.size()),
                 "compile the list again"});
  if (!list->kernels.empty()) list->kernels[0].overlaps = false;  // nothing runs before it
  std::vector<LoadedKernel> kernels;
  for (std::size_t i = 0; i < binary.images.size(); ++i) {
    WARPLOOM_TRY(kernels.emplace_back(), load_kernel(list->kernels[i], binary.images[i]));
  }
  // Workspaces that are not given belong to the call.
  const auto bind = [this, list, kernels](const Bindings& bound) -> Result<Call> {
    Bindings buffers = bound;
    for (const auto* specs : {&list->inputs, &list->outputs})
      for (const BufferSpec& spec : *specs) WARPLOOM_CHECK(named_buffer(buffers, spec));
    for (const BufferSpec& spec : list->workspaces) {
      if (buffers.contains(spec.name)) continue;
      WARPLOOM_TRY(buffers[spec.name], allocate(spec.bytes()));
      WARPLOOM_CHECK(fill(buffers[spec.name], kPoison));
    }
    std::vector<Call> calls;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      std::vector<void*> addresses;
      for (const Argument& argument : list->kernels[i].args) {
        const auto found = buffers.find(argument.buffer);
        if (found == buffers.end())
          return fail({ErrorCode::kPlanInvalid, "a kernel's argument names no buffer", list->kernels[i].name,
                       "an input, output or workspace", argument.buffer, "check the launch list"});
        addresses.push_back(found->second.address());
        if (argument.zeroed) calls.push_back([this, buffer = found->second] { return fill(buffer, 0); });
      }
      WARPLOOM_TRY(calls.emplace_back(), kernels[i](addresses));
    }
    return Call([list, kernels, buffers, all = in_order(std::move(calls))] { return all(); });
  };
  return Runnable{name, bind};
}
}  // namespace warploom::runtime
