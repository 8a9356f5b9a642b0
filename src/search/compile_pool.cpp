#include "search/compile_pool.h"
#include <algorithm>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include "base/error.h"
#include "base/hash.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "search/candidate.h"

namespace warploom::search {
std::string hash_of_texts(const LaunchList& list) {
  std::string texts;
  for (const Kernel& kernel : list.kernels)
    texts += kernel.source;
  return hash_hex(texts);
}

CompilePool::CompilePool(Build build, Turns turns, Milliseconds limit)
    : build_(std::move(build)), turns_(std::move(turns)), limit_(limit) {}

// A thread each, which waits for its turn and lives as long as the compiler that it starts: that
// dies with it.
void CompilePool::put(Candidate candidate, bool compiles) {
  const auto how = compiles ? std::launch::async : std::launch::deferred;
  entries_.push_back(std::async(
      how, [this, compiles, one = std::move(candidate)] { return made(one, compiles); }));
}

std::optional<Compiled> CompilePool::take(Milliseconds wait) {
  const auto start = Clock::now();
  while (!entries_.empty()) {
    if (std::optional<Compiled> ready = take_ready()) return ready;
    if (Clock::now() - start >= wait) break;
    entries_.front().wait_for(Milliseconds(5));  // the others are looked at as often
  }
  return std::nullopt;
}

std::optional<Compiled> CompilePool::take_ready() {
  const auto is_ready = [](const std::future<Compiled>& entry) {
    return entry.wait_for(Milliseconds(0)) != std::future_status::timeout;
  };
  const auto found = std::ranges::find_if(entries_, is_ready);
  if (found == entries_.end()) return std::nullopt;
  Compiled out = found->get();
  entries_.erase(found);
  return out;
}

Compiled CompilePool::made(Candidate candidate, bool compiles) {
  Compiled out{std::move(candidate)};
  if (out.candidate.judged_here) return out;
  if (!compiles) {
    out.list = build_(out.candidate.config);
    return out;
  }
  end_processes_with(&stopped_);
  turns_->acquire();
  if (!stopped_) compile(out);
  turns_->release();
  return out;
}

void CompilePool::compile(Compiled& made) {
  made.list = build_(made.candidate.config);
  if (!made.list) return;
  const Result<std::string> compiler = image_of(*made.list, made.seconds).get();
  if (compiler)
    made.candidate.compiler = *compiler;
  else
    made.list = fail(compiler.error());
}

// Whoever comes first with a text compiles it; others wait for that.
CompilePool::Image CompilePool::image_of(const LaunchList& list, double& seconds) {
  const std::string text = hash_of_texts(list);
  std::promise<Result<std::string>> promise;
  {
    const std::lock_guard lock(mutex_);
    const auto known = images_.find(text);
    if (known != images_.end()) return known->second;
    images_.emplace(text, promise.get_future().share());
  }
  const auto start = Clock::now();
  const runtime::CompileOptions options{
      .time = limit_, .turns = turns_.get(), .ended = &stopped_, .foreign = list.foreign};
  const Result<runtime::Binary> binary = runtime::compile(list, options);
  seconds = std::chrono::duration<double>(Clock::now() - start).count();
  Result<std::string> compiler =
      binary ? Result<std::string>(binary->compiler) : Result<std::string>(fail(binary.error()));
  promise.set_value(std::move(compiler));
  const std::lock_guard lock(mutex_);
  return images_.at(text);
}
}  // namespace warploom::search
