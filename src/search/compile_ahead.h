// CompileAhead: builds and compiles schedules on threads of its own, so many at once, ahead of the measuring, and hands them out in the order
// they were put in. Compilers themselves run in child processes under a clock (runtime/compile.h).
#pragma once
#include <deque>
#include <future>
#include <semaphore>
#include "base/process.h"
#include "kernels/family.h"
#include "runtime/compile.h"
namespace warploom::search {
struct Compiled {
  kernels::Schedule schedule;
  Result<LaunchList> list = LaunchList{};
  std::string compiler;
};

class CompileAhead {
 public:
  using Build = std::function<Result<LaunchList>(const kernels::Schedule&)>;
  using milliseconds = std::chrono::milliseconds;
  CompileAhead(Build build, int threads, milliseconds limit)
      : build_(std::move(build)), limit_(limit), turns_(std::max(1, threads)) {}
  ~CompileAhead() {
    stopped_ = true;
  }  // compilers that are still running end with all that they started; builders are waited for

  // A thread each, which waits for its turn and lives as long as the compiler that it starts: that dies with it.
  void put(kernels::Schedule schedule) {
    entries_.push_back({Clock::now(), std::async(std::launch::async, [this, schedule = std::move(schedule)] {
                          end_processes_with(&stopped_);
                          turns_.acquire();
                          Compiled made = stopped_ ? Compiled{} : compiled(schedule);
                          turns_.release();
                          return made;
                        })});
  }
  // One that needs no compiler keeps its place in the order.
  void put(Compiled made) {
    entries_.push_back({Clock::now(), std::async(std::launch::deferred, [made = std::move(made)] { return made; })});
  }
  std::size_t pending() const { return entries_.size(); }  // put and not taken
  // The first one put, once it is ready; after `patience` any that is ready; nothing when `wait` has passed.
  std::optional<Compiled> take(milliseconds wait, milliseconds patience) {
    const auto start = Clock::now();
    const auto ready = [](const Entry& entry) { return entry.result.wait_for(milliseconds(0)) != std::future_status::timeout; };
    while (!entries_.empty()) {
      const bool any = Clock::now() - entries_.front().put >= patience;
      const auto last = any ? entries_.end() : entries_.begin() + 1;
      if (const auto found = std::find_if(entries_.begin(), last, ready); found != last) {
        Compiled out = found->result.get();
        entries_.erase(found);
        return out;
      }
      if (Clock::now() - start >= wait) break;
      entries_.front().result.wait_for(milliseconds(5));  // the others are looked at as often
    }
    return std::nullopt;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    Clock::time_point put;
    std::future<Compiled> result;
  };

  Compiled compiled(const kernels::Schedule& schedule) const {
    Compiled made{schedule, build_(schedule), {}};
    if (!made.list) return made;
    Result<runtime::Binary> binary = runtime::compile(*made.list, {.time = limit_});
    if (binary) made.compiler = binary->compiler;
    else made.list = fail(binary.error());
    return made;
  }

  Build build_;
  milliseconds limit_;
  std::counting_semaphore<> turns_;
  std::atomic<bool> stopped_ = false;
  std::deque<Entry> entries_;  // in the order they were put; the last member, so that the threads end before what they use
};
}  // namespace warploom::search
