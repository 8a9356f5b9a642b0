// Judging: hands candidates to an evaluator, counts what is refused, and records every verdict.
#pragma once
#include <atomic>
#include <map>
#include <string>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "search/candidate.h"
#include "search/options.h"
#include "search/task.h"
#include "search/task_archive.h"
#include "verify/evaluator.h"

namespace warploom::search {
// Asks for a screening: sampled outputs, and a quick time. A candidate much slower than
// `known_us`, what is known to be possible, is of no use (0: nothing is known).
verify::Request quick_request(double budget_seconds, double known_us);

// Asks for a judgement of the whole in about so many seconds, of which no launch may take more
// than its limit.
verify::Request whole_request(const LaunchList& list, double seconds, double limit_ms);

// An error that no other candidate would escape.
bool is_fatal(ErrorCode code);

// A plan of several regions judged whole, in a fresh process, in about so many seconds: the verdict
// that accepts it, or kPlanWrong. `ready`: what the process said of itself and its reference.
Result<verify::Verdict> judge_plan(const verify::Setup& setup, const LaunchList& list,
                                   double seconds, const std::atomic<bool>* interrupted = nullptr,
                                   verify::Ready* ready = nullptr);

class Judging {
 public:
  Judging(const Task& task, TaskArchive& archive) : task_(task), archive_(archive) {}

  // Judges a candidate as its list (or why there is none) allows, and records and counts what came
  // of it. Fails with what no other would escape.
  Status judge(Candidate& candidate, Result<LaunchList> list, verify::Evaluator& evaluator,
               verify::Request request);
  // The same of a candidate that may become the best, judged whole: where it is accepted, it is
  // promoted.
  Status promote(Candidate& candidate, Result<LaunchList> list, verify::Evaluator& evaluator,
                 const verify::Request& request);

  int refused() const { return refused_; }

  // "3 candidate-wrong, 1 resource-limit; the first: …".
  std::string summary() const;

 private:
  Status take_verdict(Candidate& candidate, verify::Evaluator& evaluator,
                      const verify::Request& request);
  void note_refusal(const Candidate& candidate);

  const Task& task_;
  TaskArchive& archive_;
  int refused_ = 0;
  std::map<std::string, int> refused_by_code_;
  std::string first_refusal_;
};
}  // namespace warploom::search
