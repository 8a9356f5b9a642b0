// Bundle: what `warploom optimize` wrote to a folder, loaded again and ready to run on this
// machine.
//
//   WARPLOOM_TRY(const auto conv, Bundle::load("out/conv"));
//   conv->tensors                              // what a caller gives addresses of: inputs, then
//   outputs WARPLOOM_TRY(const Call call, conv->bind({x, w, y})); WARPLOOM_CHECK(call());
//
// Kernels of a CPU are machine code of this process once they are loaded: they can do whatever its
// user can. A bundle comes from somewhere, so that its kernels are loaded here only for callers who
// say that they trust it; for others where the caller lends an executor that shuts them in
// (verify/runner.h). On a GPU nothing of a bundle runs on the host; a gate looks at what is loaded.
//
// Constants of the model and workspaces are the bundle's own, so that its calls must not overlap in
// time. What its kernels make of constants alone is prepared once: when the bundle is loaded, or,
// where the caller gives some of the constants, whenever addresses are bound. Who changes a
// constant binds again. Errors: those of plan_file.h and launch_check.h, wrong-machine where its
// kernels are for another one, bundle-untrusted, and those of the Executor and of the gate.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include "runtime/executor.h"
#include "runtime/plan_file.h"

namespace warploom::runtime {
// Who answers for a bundle's kernels.
struct LoadOptions {
  bool trusted = false;  // the caller: they run with this process's rights
  // Else whoever made these two: a look at each image before it is loaded, and where it runs
  // (null: only on a GPU, which runs no code of the host's).
  std::function<Status(const std::string& image, const std::string& kernel)> gate = nullptr;
  std::function<Result<std::unique_ptr<Executor>>()> cpu = nullptr;
};

struct Bundle {
  // Its folder or its plan.json.
  static Result<std::unique_ptr<Bundle>> load(std::filesystem::path path,
                                              const LoadOptions& options);
  Result<Call> bind(std::span<void* const> addresses);

  LaunchList list;
  std::unique_ptr<Executor> device;  // outlives what it loaded
  std::vector<const BufferSpec*> tensors;
  double prepare_us = 0;  // what the preparation took, or the last one; 0: there is none

 private:
  static Result<std::unique_ptr<Bundle>> loaded(std::filesystem::path path,
                                                const LoadOptions& options);
  bool holds_constants() const;
  Status prepare(const Bindings& buffers);

  Runnable kernels_;
  Bindings kept_;  // constants, workspaces
};
}  // namespace warploom::runtime
