// Measurer: candidates go in, verdicts come out later.
//
//   Measurer measurer(task, budget, turns, 60s);
//   measurer.submit({.config = config});           // its compiler begins on another thread
//   WARPLOOM_CHECK(measurer.start(setup, until));  // the evaluator, meanwhile
//   while (measurer.pending() > 0)
//     WARPLOOM_TRY(std::optional<Candidate> judged, measurer.take(100ms, request));
//
// But for the first candidate, of which most is hoped (CompilePool::take), measuring never waits
// for a compiler while another candidate is ready: what comes first is judged first, one at a time.
// With further devices of the machine each has a candidate at a time (device_lanes.h); the first,
// on which whoever calls take() judges, also judges whatever is measured by name: finalists, and
// the best whole.
//
// Recorded verdicts (Task::recorded) come in the order of submission. What is built to the very
// launch list that was judged before has its verdict.
#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/compile_pool.h"
#include "search/costs.h"
#include "search/device_lanes.h"
#include "search/task.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
// Devices beside the first.
struct FurtherDevices {
  std::vector<std::string> names = {};
  MakeDevice make = evaluators_on();
};

// An error that no other candidate would escape.
bool is_fatal(ErrorCode code);

class Measurer {
 public:
  using Milliseconds = std::chrono::milliseconds;

  // `budget`: whose clock costs are told by. `limit`: of one compilation. The task must outlive it.
  // `pool`: whose processes the evaluators are; null: each starts its own. `first`: what the first
  // device is called where there are further ones.
  Measurer(const Task& task, const Budget& budget, CompilePool::Turns turns, Milliseconds limit,
           const std::atomic<bool>* interrupted = nullptr, verify::EvaluatorPool* pool = nullptr,
           FurtherDevices further = {}, std::string first = "0");

  // The evaluator of the next start() gets ready by itself meanwhile. It belongs to this thread.
  void begin(const verify::Setup& setup);
  // Starts the evaluator, which belongs to this thread, afresh, or awaits the one that was begun.
  // kInterrupted once the budget is over.
  Status start(const verify::Setup& setup, const Budget& budget);
  // Another one gets ready while candidates are judged, for the next start_fresh().
  void stand_by(const verify::Setup& setup);
  // As start(), with the one that stands by where there is one: no candidate ran in it.
  Status start_fresh(const verify::Setup& setup, const Budget& budget);

  bool is_started() const { return evaluator_.has_value(); }

  // Ends the evaluator, whose memory is wanted; what is compiled stays.
  void rest() {
    evaluator_.reset();
    begun_.reset();
    take_back();
  }

  // What the evaluator said of itself when it was ready.
  const verify::Ready& ready() const { return evaluator_->ready(); }

  void submit(Candidate candidate);

  // Submitted and not taken.
  size_t pending() const {
    return pool_.pending() + returned_.size() + (lanes_ ? lanes_->pending() : 0);
  }

  // Further devices that are left out, and why.
  std::vector<std::string> notes() const { return lanes_ ? lanes_->notes() : notes_; }

  // The next one with its verdict; nothing where none is compiled within `wait`. One that was
  // submitted with its verdict comes as it is. Fails with what no other candidate would escape.
  Result<std::optional<Candidate>> take(Milliseconds wait, const verify::Request& request);

  // The verdict of a candidate that is built, or could not be.
  Status measure(Candidate& candidate, Result<LaunchList> list, verify::Request request);

  const Costs& costs() const { return costs_; }

  int refused() const { return refused_; }

  // "3 candidate-wrong, 1 resource-limit; the first: …".
  std::string refusals() const;

 private:
  void start_lanes(const verify::Setup& setup, const Budget& budget);
  void take_back();
  std::optional<Compiled> next_compiled(Milliseconds wait);
  Result<std::optional<Candidate>> take_from_lanes();
  bool hand_out(Compiled& compiled, const verify::Request& request, bool is_idle);
  void hand_out_ahead(const verify::Request& request);
  Status settle(Candidate& candidate, const verify::Request& request);
  std::string key_of(const LaunchList& list, const verify::Request& request) const;
  Status judge(Candidate& candidate, const verify::Request& request);
  void note_refusal(const Candidate& candidate);

  const Task& task_;
  const Budget budget_;
  const std::atomic<bool>* interrupted_;
  verify::EvaluatorPool* evaluators_;
  Costs costs_;
  std::optional<verify::Evaluator> evaluator_;
  std::optional<verify::Evaluator> begun_;
  std::optional<verify::Evaluator> standby_;
  std::map<std::string, verify::Verdict> screened_;  // by the launch lists' texts
  int refused_ = 0;
  std::map<std::string, int> refused_by_code_;
  std::string first_refusal_;
  FurtherDevices further_;
  std::string first_;
  std::vector<std::string> notes_;
  std::optional<DeviceLanes> lanes_;
  std::deque<Compiled> returned_;  // what a device that was lost did not judge
  CompilePool pool_;
};
}  // namespace warploom::search
