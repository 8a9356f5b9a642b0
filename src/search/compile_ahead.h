// CompileAhead: builds and compiles schedules on threads of its own, so many at once, ahead of the measuring, and hands them out in the order
// they were put in. Compilers themselves run in child processes under a clock (runtime/compile.h).
#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
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
  std::size_t pending() const { return entries_.size(); }  // put and not taken
  // The first one put, once it is ready; after `patience` any that is ready; nothing when `wait` has passed.
  std::optional<Compiled> take(std::chrono::milliseconds wait, std::chrono::milliseconds patience);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Clock::time_point put;
    std::future<Compiled> result;
  };
  struct Turns {
    explicit Turns(int threads) : free(threads) {}
    std::counting_semaphore<> free;
    std::atomic<bool> stopped = false;
  };

  Build build_;
  std::chrono::milliseconds limit_;
  std::shared_ptr<Turns> turns_;
  std::deque<Entry> entries_;  // in the order they were put
};
}  // namespace warploom::search
