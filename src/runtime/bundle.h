// Bundle: what `warploom optimize` wrote to a folder, loaded again and ready to run on this
// machine.
//
//   WARPLOOM_TRY(const auto conv, Bundle::load("out/conv"));
//   conv->tensors                              // what a caller gives addresses of: inputs, then
//   outputs WARPLOOM_TRY(const Call call, conv->bind({x, w, y})); WARPLOOM_CHECK(call());
//
// Constants of the model and workspaces are the bundle's own, so that its calls must not overlap in
// time. What its kernels make of constants alone is prepared once: when the bundle is loaded, or,
// where the caller gives some of the constants, whenever addresses are bound. Who changes a
// constant binds again. Errors: those of plan_file.h and launch_check.h, wrong-machine where its
// kernels are for another one, and those of the Executor.
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include "runtime/executor.h"
#include "runtime/plan_file.h"

namespace warploom::runtime {
struct Bundle {
  static Result<std::unique_ptr<Bundle>> load(
      std::filesystem::path path);  // its folder or its plan.json
  Result<Call> bind(std::span<void* const> addresses);

  LaunchList list;
  std::unique_ptr<Executor> device;  // outlives what it loaded
  std::vector<const BufferSpec*> tensors;
  double prepare_us = 0;  // what the preparation took, or the last one; 0: there is none

 private:
  bool holds_constants() const;
  Status prepare(const Bindings& buffers);

  Runnable kernels_;
  Bindings kept_;  // constants, workspaces
};
}  // namespace warploom::runtime
