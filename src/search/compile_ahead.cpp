#include "search/compile_ahead.h"
#include <thread>
#include "runtime/compile.h"
namespace warploom::search {
namespace {
using std::chrono::milliseconds;

Compiled compiled(const kernels::Schedule& schedule, const CompileAhead::Build& build, milliseconds limit) {
  Compiled made{schedule, build(schedule), {}};
  if (!made.list) return made;
  Result<runtime::Binary> binary = runtime::compile(*made.list, {.time = limit});
  if (binary) made.compiler = binary->compiler;
  else made.list = fail(binary.error());
  return made;
}
}  // namespace
CompileAhead::CompileAhead(Build build, int threads, milliseconds limit)
    : build_(std::move(build)), limit_(limit), turns_(std::make_shared<Turns>(std::max(1, threads))) {}

CompileAhead::~CompileAhead() { turns_->stopped = true; }

// A thread each, which waits for its turn and lives as long as the compiler that it starts: that dies with it.
void CompileAhead::put(kernels::Schedule schedule) {
  std::packaged_task<Compiled()> task(
      [schedule = std::move(schedule), build = build_, limit = limit_, turns = turns_]() -> Compiled {
        turns->free.acquire();
        Compiled made = turns->stopped ? Compiled{} : compiled(schedule, build, limit);
        turns->free.release();
        return made;
      });
  entries_.push_back({Clock::now(), task.get_future()});
  std::thread(std::move(task)).detach();
}

std::optional<Compiled> CompileAhead::take(milliseconds wait, milliseconds patience) {
  const auto start = Clock::now();
  const auto ready = [](const Entry& entry) { return entry.result.wait_for(milliseconds(0)) == std::future_status::ready; };
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
}  // namespace warploom::search
