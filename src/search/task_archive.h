// TaskArchive: what the archive knows of one task, and what a search adds to it.
//
// A search that came to its end is an answer: who asks the same again gets it (lookup_result).
// Whoever searches on begins with what earlier ones learned (resume).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "llm/exchange.h"
#include "search/action/action.h"
#include "search/candidate.h"
#include "search/optimize.h"
#include "search/task.h"
#include "verify/evaluator.h"

namespace warploom::search {
// What an earlier search recorded of a config, and what that means for this one.
struct Remembered {
  Candidate candidate;        // without its list; accepted where its time is known
  bool same_program = false;  // judged by this build of the program: not to be tried again
  bool best = false;          // the best that was known when the search began
};

// Which build of this program this is: another may emit other source for the same config.
std::string build_stamp();

class TaskArchive {
 public:
  TaskArchive(const Task& task, const Options& options);

  // Opens the archive and adds the task to it.
  Status open();
  // The archive's answer, where it has one.
  Result<std::optional<Candidate>> lookup_result();
  // What earlier runs recorded, in their order; before begin().
  Result<std::vector<Remembered>> resume();
  // Where searches of other problems say that this one may begin, nearest first; after resume().
  std::vector<kernels::KernelConfig> near() const;
  // From now on what is recorded is of a run with this evaluator.
  Status begin(const verify::Ready& ready);
  Status start();
  // That a later evaluator has a reference, where the first had none.
  void note_ready(const verify::Ready& ready);

  Status record(const Candidate& candidate);
  // Keeps what was asked of a model, and gives it back.
  Status record(const llm::Exchange& exchange);
  Result<std::vector<llm::Exchange>> exchanges();
  // The run's end: done, interrupted or failed.
  void finish(const char* status, double seconds);

  const verify::Ready& ready() const { return ready_; }

  // The run's figures, which the search keeps up to date.
  archive::Run& run() { return run_; }

  const archive::Run& run() const { return run_; }

  // The reference's best median on this machine so far; 0: none is known.
  double reference_known_us() const { return reference_known_us_; }

  void note_reference(double us);

 private:
  std::string environment(const std::string& compiler) const;
  std::string key() const;
  bool is_limited() const;
  double asked_seconds() const;
  bool is_answer(const archive::Run& run) const;
  Result<std::optional<archive::Candidate>> best_of_finished_run();
  std::optional<kernels::KernelConfig> config_of(const archive::Candidate& row) const;
  Status find_near(bool is_known);
  std::optional<Action> action_of(const archive::Candidate& row) const;
  std::optional<Candidate> rebuilt(const archive::Candidate& row) const;
  Status note_references();
  std::optional<Remembered> remembered(const archive::Candidate& row, bool stopped_here) const;

  const Task& task_;
  const Options& options_;
  archive::Problem problem_;
  const std::string stamp_;  // which build of this program this is
  std::optional<archive::Archive> archive_;
  verify::Ready ready_;
  archive::Run run_;
  int64_t run_id_ = 0;
  double reference_known_us_ = 0;
};
}  // namespace warploom::search
