#include "search/compile_ahead.h"
#include <algorithm>
#include <future>
#include <optional>
#include <utility>
#include "base/error.h"
#include "base/process.h"
#include "kernels/config/kernel_config.h"
#include "runtime/compile.h"

namespace warploom::search {
using kernels::KernelConfig;

CompileAhead::CompileAhead(Build build, int threads, Milliseconds limit)
    : build_(std::move(build)), limit_(limit), turns_(std::max(1, threads)) {}

// A thread each, which waits for its turn and lives as long as the compiler that it starts: that
// dies with it.
void CompileAhead::put(const KernelConfig& config, bool compiles) {
  std::future<Compiled> result;
  if (compiles)
    result = std::async(std::launch::async, [this, config] { return made(config); });
  else
    result = std::async(std::launch::deferred, [config] { return Compiled{config}; });
  entries_.push_back({Clock::now(), std::move(result)});
}

std::optional<Compiled> CompileAhead::take(Milliseconds wait, Milliseconds patience) {
  const auto start = Clock::now();
  while (!entries_.empty()) {
    if (std::optional<Compiled> ready = take_ready(patience)) return ready;
    if (Clock::now() - start >= wait) break;
    entries_.front().result.wait_for(Milliseconds(5));  // the others are looked at as often
  }
  return std::nullopt;
}

std::optional<Compiled> CompileAhead::take_ready(Milliseconds patience) {
  const auto ready = [](const Entry& entry) {
    return entry.result.wait_for(Milliseconds(0)) != std::future_status::timeout;
  };
  const bool any = Clock::now() - entries_.front().put >= patience;
  const auto last = any ? entries_.end() : entries_.begin() + 1;
  const auto found = std::find_if(entries_.begin(), last, ready);
  if (found == last) return std::nullopt;
  Compiled out = found->result.get();
  entries_.erase(found);
  return out;
}

Compiled CompileAhead::made(const KernelConfig& config) {
  Compiled out{config};
  end_processes_with(&stopped_);
  turns_.acquire();
  if (!stopped_) compile(out);
  turns_.release();
  return out;
}

void CompileAhead::compile(Compiled& made) {
  made.list = build_(made.config);
  if (!made.list) return;
  const runtime::CompileOptions options{.time = limit_, .turns = &turns_, .ended = &stopped_};
  auto binary = runtime::compile(*made.list, options);
  if (binary)
    made.compiler = binary->compiler;
  else
    made.list = fail(binary.error());
}
}  // namespace warploom::search
