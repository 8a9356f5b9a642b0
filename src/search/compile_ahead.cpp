#include "search/compile_ahead.h"
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include "runtime/compile.h"

namespace warploom::search {
namespace {

using Clock = std::chrono::steady_clock;

struct Entry {
  kernels::Schedule schedule;
  bool started = false, done = false;
  Clock::time_point put = Clock::now();
  Compiled result = {};
};

}  // namespace

struct CompileAhead::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Entry>> entries;  // in the order they were put
  bool stop = false;
  Build build;
  std::chrono::milliseconds limit{60'000};

  std::shared_ptr<Entry> claim() {
    for (const auto& entry : entries)
      if (!entry->started) return entry;
    return nullptr;
  }

  // The thread lives as long as the compilers it starts: they die with it.
  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      std::shared_ptr<Entry> entry;
      changed.wait(lock, [&] { return stop || (entry = claim()) != nullptr; });
      if (stop) return;
      entry->started = true;
      lock.unlock();
      Compiled made{entry->schedule, build(entry->schedule), {}};
      if (made.list) {
        runtime::CompileOptions options;
        options.time = limit;
        Result<runtime::Binary> binary = runtime::compile(*made.list, options);
        if (binary) {
          made.compiler = binary->compiler;
        } else {
          made.list = fail(binary.error());
        }
      }
      lock.lock();
      entry->result = std::move(made);
      entry->done = true;
      changed.notify_all();
    }
  }
};

CompileAhead::CompileAhead(Build build, int threads, std::chrono::milliseconds limit)
    : state_(std::make_shared<State>()) {
  state_->build = std::move(build);
  state_->limit = limit;
  for (int i = 0; i < std::max(1, threads); ++i) std::thread([state = state_] { state->work(); }).detach();
}

CompileAhead::~CompileAhead() {
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
}

void CompileAhead::put(kernels::Schedule schedule) {
  const std::lock_guard lock(state_->mutex);
  auto entry = std::make_shared<Entry>();
  entry->schedule = std::move(schedule);
  state_->entries.push_back(std::move(entry));
  state_->changed.notify_all();
}

std::size_t CompileAhead::pending() const {
  const std::lock_guard lock(state_->mutex);
  return state_->entries.size();
}

std::optional<Compiled> CompileAhead::take(std::chrono::milliseconds wait, std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  auto& entries = state_->entries;
  const auto ready = [&] {
    if (entries.empty()) return entries.end();
    if (entries.front()->done) return entries.begin();
    if (Clock::now() - entries.front()->put < patience) return entries.end();
    return std::find_if(entries.begin(), entries.end(), [](const auto& entry) { return entry->done; });
  };
  auto found = entries.end();
  state_->changed.wait_for(lock, wait, [&] { return (found = ready()) != entries.end(); });
  if (found == entries.end()) return std::nullopt;
  Compiled out = std::move((*found)->result);
  entries.erase(found);
  return out;
}

}  // namespace warploom::search
