// CompileAhead: builds and compiles schedules on threads of its own, ahead of the measuring, and hands them out in the order
// they were put in. Compilers themselves run in child processes under a clock (runtime/compile.h).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"

namespace warploom::search {

struct Compiled {
  kernels::Schedule schedule;
  Result<LaunchList> list = LaunchList{};
  std::string compiler;
};

class CompileAhead {
 public:
  using Build = std::function<Result<LaunchList>(const kernels::Schedule&)>;
  CompileAhead(Build build, int threads, std::chrono::milliseconds limit);
  // Does not wait for compilers that are still running: their threads end, and their results are dropped, later.
  ~CompileAhead();
  CompileAhead(const CompileAhead&) = delete;
  CompileAhead& operator=(const CompileAhead&) = delete;

  void put(kernels::Schedule schedule);
  std::size_t pending() const;  // put and not taken
  // The first one put, once it is ready; after `patience` any that is ready; nothing when `wait` has passed.
  std::optional<Compiled> take(std::chrono::milliseconds wait, std::chrono::milliseconds patience);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace warploom::search
