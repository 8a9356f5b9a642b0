// CompileAhead: builds and compiles configs on threads of its own, so many at once, ahead of the
// measuring, and hands them out in the order they were put in. Compilers themselves run in child
// processes under a clock (runtime/compile.h).
//
//   CompileAhead compile(space.build, 8, 60s);
//   compile.put(config, true);
//   while (std::optional<Compiled> made = compile.take(100ms, 3s)) …
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "runtime/compile.h"

namespace warploom::search {
struct Compiled {
  kernels::KernelConfig config;
  Result<LaunchList> list = LaunchList{};  // or why there is none
  std::string compiler;
};

class CompileAhead {
 public:
  using Build = std::function<Result<LaunchList>(const kernels::KernelConfig&)>;
  using Milliseconds = std::chrono::milliseconds;

  // `limit`: of one compilation.
  CompileAhead(Build build, int threads, Milliseconds limit);

  // Compilers that are still running end with all that they started; builders are waited for.
  ~CompileAhead() { stopped_ = true; }

  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

  // One that needs no compiler keeps its place in the order.
  void put(const kernels::KernelConfig& config, bool compiles);

  size_t pending() const { return entries_.size(); }  // put and not taken

  // The first one put, once it is ready; after `patience` any that is ready; nothing when `wait`
  // has passed.
  std::optional<Compiled> take(Milliseconds wait, Milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    Clock::time_point put;
    std::future<Compiled> result;
  };

  std::optional<Compiled> take_ready(Milliseconds patience);
  Compiled made(const kernels::KernelConfig& config);
  void compile(Compiled& made);

  Build build_;
  Milliseconds limit_;
  runtime::Turns turns_;
  std::atomic<bool> stopped_ = false;
  // In the order they were put; the last member, so that the threads end before what they use.
  std::deque<Entry> entries_;
};
}  // namespace warploom::search
