// wl::WarmUp: how long untimed calls go before those that are timed.
//
// A GPU that has rested runs large kernels faster than it can for long: it takes a second under
// load until its clock has come down to what its power allows. So `warploom bench`, `verify` and
// `run` and the check of a bundle all call a GPU's kernels untimed for kGpuWarmUpMs before the
// first call that counts. On a CPU nothing but the first calls goes before.
//
//   const wl::WarmUp warm_up(wl::kGpuWarmUpMs);
//   while (warm_up.is_due()) call();   // untimed
#pragma once
#include <chrono>

namespace wl {
inline constexpr double kGpuWarmUpMs = 1500;

// Is due from its construction on until `ms` milliseconds have passed.
class WarmUp {
 public:
  explicit WarmUp(double ms) : ms_(ms) {}

  bool is_due() const {
    using Milliseconds = std::chrono::duration<double, std::milli>;
    const Milliseconds spent = std::chrono::steady_clock::now() - start_;
    return spent.count() < ms_;
  }

 private:
  double ms_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};
}  // namespace wl
