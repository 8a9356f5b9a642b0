// CompilePool: builds and compiles configs on threads of its own, so many at once, and hands them
// out as they are ready. Configs that are built to the same text are compiled once. Compilers
// themselves run in child processes under a clock (runtime/compile.h).
//
//   CompilePool pool(space.build, turns, 60s);
//   pool.put({.config = config}, true);
//   while (std::optional<Compiled> made = pool.take(100ms)) …
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "runtime/compile.h"
#include "search/candidate.h"

namespace warploom::search {
// A candidate with its list, or why there is none.
struct Compiled {
  Candidate candidate;
  Result<LaunchList> list = LaunchList{};
  double seconds = 0;  // that its compiler took; 0: none ran
};

// Of the texts of all its kernels: what is compiled, and what archives know a list by.
std::string hash_of_texts(const LaunchList& list);

class CompilePool {
 public:
  using Build = std::function<Result<LaunchList>(const kernels::KernelConfig&)>;
  using Milliseconds = std::chrono::milliseconds;
  using Turns = std::shared_ptr<runtime::Turns>;

  // `turns`: compilations that may run at once, which several pools may share. `limit`: of one.
  CompilePool(Build build, Turns turns, Milliseconds limit);

  // Compilers that are still running end with all that they started; builders are waited for.
  ~CompilePool() { stopped_ = true; }

  CompilePool(const CompilePool&) = delete;
  CompilePool& operator=(const CompilePool&) = delete;

  // Without `compiles` it is built alone, or where it was judged before not even that.
  void put(Candidate candidate, bool compiles);

  size_t pending() const { return entries_.size(); }  // put and not taken

  // The first of those put that is ready; nothing when `wait` has passed. Before anything was taken
  // only the very first counts, which is the one most is hoped of: where a judgement takes seconds,
  // there may be no second.
  std::optional<Compiled> take(Milliseconds wait);

 private:
  using Clock = std::chrono::steady_clock;
  using Image = std::shared_future<Result<std::string>>;  // its compiler

  std::optional<Compiled> take_ready();
  Compiled made(Candidate candidate, bool compiles);
  void compile(Compiled& made);
  Image image_of(const LaunchList& list, double& seconds);

  Build build_;
  Turns turns_;
  Milliseconds limit_;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::map<std::string, Image> images_;  // by hash_of_texts()
  bool any_taken_ = false;
  // In the order they were put; the last member, so that the threads end before what they use.
  std::deque<std::future<Compiled>> entries_;
};
}  // namespace warploom::search
