// A round of which is looked at what the candidate reads (read_watch.h).
#include <signal.h>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <ratio>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "verify/cell.h"
#include "verify/cell_code.h"
#include "verify/cell_layout.h"
#include "verify/cell_watch.h"
#include "verify/cores.h"
#include "verify/disassembler.h"
#include "verify/read_watch.h"
#include "verify/traced.h"

namespace warploom::verify {
namespace {
// Stops a thread now and then, at times that grow and are drawn, so that traps can be put on again.
class Nudges {
 public:
  Nudges(const TracedThread& thread, pid_t process, uint64_t seed)
      : serve_([this, thread, process,
                random = Random(seed, "nudges")](const std::stop_token& end) mutable {
          for (double ms = kFirstMs; ms <= kLastMs && !end.stop_requested(); ms *= 2) {
            const double drawn = ms * (0.5 + random.uniform());
            std::unique_lock lock(mutex_);
            woken_.wait_for(lock, end, std::chrono::duration<double, std::milli>(drawn),
                            [] { return false; });
            if (end.stop_requested()) return;
            late_ = 2 * ms > kLateMs;
            over_ = 2 * ms > kLastMs;
            thread.interrupt(process);
          }
        }) {}

  // Half a second has passed, or so; and the last time.
  bool is_late() const { return late_; }

  bool is_over() const { return over_; }

 private:
  static constexpr double kFirstMs = 0.5;
  static constexpr double kLateMs = 250;
  static constexpr double kLastMs = 2000;

  std::atomic<bool> late_ = false;
  std::atomic<bool> over_ = false;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::jthread serve_;  // last: it uses all others
};
}  // namespace

Result<ReadReport> Cell::watch_reads(const Round& asked, std::vector<Readable> readable, bool every,
                                     uint64_t seed) {
  constexpr double kPatienceMs = 10'000;  // many stops, and a kernel that all threads share
  Round round = asked;
  round.threads = 1;
  WARPLOOM_TRY(const Disassembler* const zydis, Disassembler::open());
  WARPLOOM_TRY(CellControl* const control, layout_->write_control(round));
  control->span_count = 0;  // pages are no matter here
  control->go = 1;
  const uint64_t list = layout_->step_buffers(0);
  const uint64_t bytes = sizeof(uint64_t) * round.launches[0].buffers.size();
  readable.push_back({list, list + bytes, "the list of its buffers"});
  const OnCore here(cores_.order[0]);
  const TracedThread& thread = workers_[0];
  watch_->arm(round.limit_ms + kPatienceMs);
  if (!prepare_thread(0, round, cell_code().run_thread, false)) return lost();
  const uint64_t end_of_stack = layout_->end_of_stack(1);
  const Readable stack{end_of_stack - CellLayout::kStack, end_of_stack, "its stack"};
  ReadWatch watch(thread, layout_->image(), std::move(readable), stack, every, *zydis);
  ReadReport report{.watched = watch.watched()};
  if (!watch.plant()) return report;  // nothing is seen then
  const Nudges nudges(thread, process_, seed);
  bool again = thread.go();
  while (again) {
    const Stop stop = thread.await();
    const bool nudged = !stop.gone && stop.event == 0 && stop.signal == SIGSTOP;
    if (!stop.by_trap() && !nudged) return fault_of(thread, stop);
    if (stop.by_trap() && stands_at_end(thread)) break;
    // On a machine that others use stops take long.
    const bool enough = !every || watch.has_used_up();
    if (nudges.is_over() || (nudges.is_late() && enough)) break;
    if (nudged) watch.plant_again();
    if (stop.by_trap()) {
      const ReadLook look = watch.look();
      report.finding = look.finding;
      if (look.ended) return fault_of(thread, *look.ended);
    }
    if (report.finding) break;
    again = thread.go();
  }
  if (!again) return lost();
  report.seen = watch.seen();
  end();  // its code is not what it was
  return report;
}
}  // namespace warploom::verify
