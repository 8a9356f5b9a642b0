// Limits: who may end planning before it is done.
//
// Planning asks families about many parts of a graph, and cost models about many schedules. Between
// any two such questions it looks at its limits:
//
//   interrupted   a person wants it to end: it fails with kInterrupted
//   until         planning has had its time: what is fused by then is the plan, right as any other,
//                 of more regions than it might have been
#pragma once
#include <atomic>
#include <chrono>
#include <optional>
#include "base/error.h"

namespace warploom::plan {
struct Limits {
  using Clock = std::chrono::steady_clock;
  const std::atomic<bool>* interrupted = nullptr;  // set by a signal handler; null: by nobody
  std::optional<Clock::time_point> until = {};

  bool ended() const { return interrupted && interrupted->load(); }

  bool late() const { return until && Clock::now() >= *until; }

  // kInterrupted once it has ended.
  Status check() const {
    if (!ended()) return ok();
    return fail({ErrorCode::kInterrupted, "interrupted while the plan was made", "", "", "",
                 "run again to begin anew"});
  }
};
}  // namespace warploom::plan
