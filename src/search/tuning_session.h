// TuningSession: the search of one region, from what the archive knows to the best config that is
// proven right. It works in slices, so that the regions of a network take turns.
//
//   open      the archive may have the answer
//   begin     what earlier searches learned is read; the fallback's compiler starts
//   search    a slice: an evaluator starts, where none is alive, while configs are ranked; then
//             candidates go to the measurer, whose verdicts make the next ones, until the slice is
//             over or nothing is left to gain
//   finish    the fastest few are measured again beside the reference; the best of them that is
//             right is judged whole in a fresh process
//   conclude  the outcome
//
//   TuningSession session(task, options, Budget(20), turns_for(options));
//   WARPLOOM_CHECK(session.open());
//   WARPLOOM_CHECK(session.begin());
//   WARPLOOM_CHECK(session.search({.soft = budget.part(2), .hard = budget, .until_right = true}));
//
// Where time runs out, what is right so far is the outcome, unproven where it was judged on samples
// alone; where nothing is, the session is late().
#pragma once
#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/family.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/coder/coder.h"
#include "search/coder/model_writer.h"
#include "search/compile_pool.h"
#include "search/costs.h"
#include "search/measurer.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/policy/policy.h"
#include "search/requests.h"
#include "search/strategy/ranked.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/task_archive.h"
#include "verify/evaluator.h"

namespace warploom::search {
// Promotion judges on other inputs than the search.
inline constexpr uint64_t kFreshSeed = 0x5eed5eed5eed5eedull;

// As many compilations at once as the options say.
CompilePool::Turns turns_for(const Options& options);

class TuningSession {
 public:
  // The task, which must outlive it. The budget is the whole command's.
  TuningSession(const Task& task, Options options, const Budget& budget, CompilePool::Turns turns);

  Status open();

  bool is_recalled() const { return from_archive_; }

  Status begin();
  // The evaluator of the first slice gets ready meanwhile.
  void wake();
  Status search(const Slice& slice);
  // The fastest few are measured again beside the reference, where there are at least so many; then
  // the best of them is judged whole in a fresh process. Both, or one after the other.
  Status finish(const Slice& slice);
  Status measure_best(const Budget& until, size_t least);
  Status prove_best(const Slice& slice);

  // Fails with kNoCorrectCandidate where nothing is right.
  Result<Outcome> conclude();
  // The run ends in the archive; the error names the best so far.
  Error failure(Error why);

  // Ends the evaluator, whose memory is wanted; the next slice starts another.
  void rest() { measurer_.rest(); }

  bool is_awake() const { return measurer_.is_started(); }

  bool is_right() const { return best_us_ > 0 || from_archive_; }

  // Whether more candidates may gain something.
  bool has_more() const;

  // Whether nothing is right yet, and something may still be.
  bool is_waiting() const { return !is_right() && has_more(); }

  // The budget ended before anything was judged right.
  bool is_late() const { return late_ && !is_right(); }

  double best_us() const { return best_us_; }

  // What a library's calls take, measured beside a candidate or at first; 0: none is known.
  double reference_us() const {
    return archive_.run().reference_us.value_or(archive_.ready().reference_us);
  }

  int candidates() const { return archive_.run().candidates; }

  // Whether a verdict was taken, right or wrong.
  bool has_tried() const { return candidates() > 0; }

  int dry() const { return dry_; }  // candidates since one was the best

  const Costs& costs() const { return measurer_.costs(); }

  // What measuring the fastest few again will take: of those that there are.
  double finalists_seconds() const;

  const std::string& phase() const { return phase_; }

  // Of the candidate that the outcome is: see strain_of().
  double strain() const;
  // What its compiler took, or where none ran the slowest of those that did; 0: none ran at all.
  double compile_seconds() const;
  // The outcome becomes a candidate that is clearly more exact, the fastest of those, or at last
  // the fallback; false where there is none.
  bool take_more_exact();
  // The outcome becomes the fallback, judged or not; false where there is none.
  bool take_fallback();

  // It becomes the best again.
  void take_winner() { chosen_.reset(); }

 private:
  Status resume();
  // tuning_writer.cpp: the model that writes beside the strategy.
  Status start_writer();
  void submit_banked(std::vector<Candidate> known);
  Status ask_writer();
  Status record_exchanges();
  void suggest_actions();
  nlohmann::json writer_summary();
  void end_writer();
  verify::Setup first_setup() const;
  Status prepare(const Budget& hard);
  StrategyPtr made_strategy() const;
  // Of the process that the best is judged whole in.
  verify::Setup fresh_setup(double ready_seconds) const;
  void stand_by();
  void keep_near();
  void suggest_near();
  nlohmann::json proposed_by(const Origins& origins) const;
  void put_ahead();
  bool is_over(const Slice& slice) const;
  Status take_verdict(Candidate candidate);
  void accept(Candidate candidate);
  // Of an error: nothing where the time was up, which is noted.
  Status unless_late(const Status& done);
  Status measure_finalists(const Budget& until, size_t least);
  Status promote_best(const Slice& slice);
  Status promote(Candidate& candidate, const Slice& slice);
  const Candidate* winner() const;
  Result<Candidate> unjudged() const;
  Error nothing_right() const;
  double needed_seconds() const;

  Result<LaunchList> built(const Candidate& candidate) const {
    const bool is_built = !candidate.list.kernels.empty();
    return is_built ? candidate.list : task_.space.build(candidate.config);
  }

  double known_us() const;
  int most_candidates() const;
  void report() const;

  // What the search is busy with from now on; "" while it tries candidates.
  void enter(const char* phase) {
    phase_ = phase;
    report();
  }

  const Task& task_;
  const Options options_;
  const Budget budget_;
  TaskArchive archive_;
  Measurer measurer_;
  PolicyPtr policy_;
  CoderPtr coder_;
  StrategyPtr strategy_;
  std::optional<ModelWriter> writer_;
  kernels::KernelConfig suggested_for_;  // whose actions the writer knows
  std::string phase_;
  std::vector<verify::SetUpPart> set_up_;  // of the first evaluator
  std::vector<Candidate> candidates_;      // the fastest accepted ones
  // By their configs' texts: what the search recorded before it was stopped.
  std::map<std::string, Candidate> answered_;
  std::vector<Remembered> remembered_;
  std::vector<kernels::KernelConfig> near_;  // to be tried behind the first guesses
  std::optional<Fallback> fallback_;
  bool is_fallback_put_ = false;
  std::optional<kernels::KernelConfig> chosen_;  // over the winner, for a plan's sake
  bool from_archive_ = false;
  bool begun_ = false;
  bool exhausted_ = false;  // the strategy has no more to propose
  bool late_ = false;
  int put_ = 0;  // configs that were proposed
  int dry_ = 0;
  double best_us_ = 0;
};

// Where a search of at least this budget has come to its end, by this program on this machine with
// the same seed, the archive gives the answer: a kernel of the same text was judged whole there, by
// the same compiler and driver. Searches that a strategy or a number of candidates limits always
// search, and so do those with `force_search`.
//
// A session from its begin to its end. The outcome lacks what optimize() works out of it: part of
// the roofline, labels, seconds.
Result<Outcome> tune(const Task& task, const Options& options);
}  // namespace warploom::search
