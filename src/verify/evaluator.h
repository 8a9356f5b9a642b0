// Evaluator: candidates are judged and timed in a process of their own.
//
// The process is this program again with a hidden subcommand, `PROGRAM __evaluate SOCKET CACHE` (an
// open file, the cache folder); the host program's main must hand it to evaluator_main() before it
// does anything else. It is warm: it keeps the inputs, their FP64 references, the vendor's kernel
// and the device open from candidate to candidate. After any fault (a crash, a hang, a write out of
// bounds, a lost GPU context), and after many candidates, it is replaced.
//
//   // Screened: sampled rows of two input families.
//   WARPLOOM_TRY(Evaluator evaluator, Evaluator::start(setup));
//   WARPLOOM_TRY(Verdict verdict, evaluator.judge({.list = list}));
//   // Promoted: whole outputs of every family, in a fresh process with a new seed.
//   WARPLOOM_TRY(Evaluator fresh, Evaluator::start(setup_with_a_new_seed));
//   WARPLOOM_TRY(verdict, fresh.judge({.list = list, .whole = true}));
//
// Both give up when the time is up that they are told, or somebody interrupts: kInterrupted.
// judge() gives a verdict for whatever a candidate does: candidate-crashed, -hung, -memory, -wrong,
// -non-finite, -unwritten, -wrote-input, -too-fast, or the compiler's errors, are refusals within
// it. It fails only with evaluator-lost (the process cannot be kept alive even without a
// candidate), interrupted, or what the machine lacks.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include "runtime/standing.h"
#include "verify/inputs.h"
#include "verify/setup.h"

namespace warploom::verify {
// What one input family showed.
struct Evidence {
  InputFamily family = InputFamily::normal;
  uint64_t seed = 0;
  double error = 0;             // relative Frobenius against FP64
  double max_error = 0;         // largest absolute error over the largest absolute reference
  double bound = 0;             // the Frobenius error that was allowed
  double worst_ratio = 0;       // the worst element's error over its bound
  double reference_error = -1;  // the vendor's Frobenius error on the same inputs; -1: no vendor
  int64_t rows_checked = 0;
  int64_t undetermined = 0;  // elements that could be anything: a number on the way overflows
  int64_t rows = 0;          // against FP64; fewer than all where the whole was not affordable
  // Of all the output's lines with random signs, where that stands in for the whole.
  int64_t sums_checked = 0;
};

// How the calls were timed that a verdict's times are of.
enum class TimedBy : uint8_t {
  device,  // by a GPU's events
  strict,  // one by one, each as if it were the first
  series,  // again and again, without a stop between
};
NLOHMANN_JSON_SERIALIZE_ENUM(TimedBy, {{TimedBy::device, nullptr},
                                       {TimedBy::strict, "strict"},
                                       {TimedBy::series, "series"}})

// Right or wrong with the evidence, and its time or its error. What is not known is 0 here (an
// error of the reference: -1) and null in JSON, where no figure ever stands for what was not
// measured.
//
// All times are of one measurement in this process, in which the candidate and the reference took
// turns: they belong together, and to no figure of another run.
struct Verdict {
  bool accepted = false;
  Error error_found = {ErrorCode::kInternal, {}};  // why not
  // the worst family's
  double error = 0;
  double max_error = 0;
  double reference_error = -1;
  // 95 % interval of the median
  double median_us = 0;
  double low_us = 0;
  double high_us = 0;
  double reference_us = 0;
  double reference_low_us = 0;
  double reference_high_us = 0;
  // What runs once, before the calls that are timed: its time, and what it keeps for them.
  double prepare_us = 0;
  int64_t prepare_bytes = 0;
  runtime::Ratio speedup;         // of each lap's pair: the reference's time over the candidate's
  std::string reference_dropped;  // why the reference's times could not be believed
  // Of a series beside which there were strict calls also their time; what such a call takes
  // without work, which is taken off, and how much most such times differ.
  TimedBy path = TimedBy::device;
  // Foreign and too short for what a call costs to be taken off: the times are upper bounds.
  bool time_is_bound = false;
  double strict_us = 0;
  double strict_low_us = 0;
  double strict_high_us = 0;
  double overhead_us = 0;
  double overhead_spread_us = 0;
  int samples = 0;       // of each of the two
  int repeats = 0;       // calls of the candidate in all of them
  runtime::Noise noise;  // of the machine, meanwhile
  double floor_us = 0;   // the physical floor
  double judge_ms = 0;   // what judging took beyond the calls themselves
  std::string truth;     // where FP64 was evaluated, as Ready has it
  std::string sandbox;   // what held the candidate: "no system calls (seccomp), …"; on a GPU "no
                         // host code"
  // The families of inputs that were in force, each with what it showed.
  std::vector<Evidence> evidence;
  SpecialValues special = SpecialValues::exact;  // what the kernels were held to
  std::vector<std::string> not_promised;         // in words, what no family tried (coverage.h)
  // Calls that were looked at whole, and how many different inputs they were on (rare_errors.h).
  int64_t whole_calls = 0;
  int64_t whole_inputs = 0;
};

nlohmann::json to_json(const Verdict& verdict);
Result<Verdict> verdict_from_json(const nlohmann::json& json);

class EvaluatorPool;

struct EvaluatorOptions {
  std::filesystem::path program = "/proc/self/exe";
  EvaluatorPool* pool = nullptr;  // whose processes are taken first, for problems of a GPU
  // Which GPU alone its process sees, as CUDA_VISIBLE_DEVICES names it; empty: what this one sees.
  std::string device = {};
  const std::atomic<bool>* interrupted = nullptr;
  // When start() gives up on getting ready, as at an interrupt; nothing: it does not.
  std::optional<std::chrono::steady_clock::time_point> until = {};
};

struct Request {
  LaunchList list;
  bool whole = false;  // judge whole outputs on every input family, as far as check_ms allows
  // For FP64 evaluation, all families together; at least some rows of each are checked.
  double check_ms = 2000;
  bool exact = false;  // held to special values, whatever the list says of them
  // Not our own code generation's text: on the CPU it gets a process to itself.
  bool foreign = false;
  // On a CPU: foreign text is timed in a series as well, once strict calls found nothing that it
  // keeps; the strict time stands beside it.
  bool series = false;
  bool beside_reference = true;  // the vendor's kernel takes turns with it
  bool warm_up = false;          // on a GPU, before it is timed (common/warm_up.h)
  // The fastest that the same search has found: a candidate whose first call takes many times as
  // long is judged no further (candidate-slow). 0: none is found, or it does not matter.
  double best_us = 0;
  double reference_known_us = 0;  // its best median on this machine so far; 0: none is known
  int min_samples = 5;
  int max_samples = 40;
  double timing_ms = 200;
  double candidate_limit_ms = 10'000;  // one launch may not take longer
  double own_limit_ms = 900e3;         // nor the judge's own work without a word from it
  // When judge() gives up, as at an interrupt, and ends the process; nothing: it does not. It stays
  // here: the process is not told.
  std::optional<std::chrono::steady_clock::time_point> until = {};
};

// A stretch of an evaluator's setting up.
struct SetUpPart {
  std::string name;
  double seconds = 0;
  bool once = false;  // the next process on this machine finds it done
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SetUpPart, name, seconds, once)

struct Ready {
  std::string device;
  std::string arch;
  std::string environment;
  std::string truth;        // where FP64 is evaluated: "the GPU", or "CPU cores" and why
  std::string reference;    // its name; empty: none
  double reference_us = 0;  // a first, quick figure
  double reference_error = -1;
  std::string reference_choice;              // of several ways to make it (vendor/make.h)
  std::vector<std::string> reference_notes;  // those that failed or were wrong, and why
  std::vector<SetUpPart> parts;              // where the time to get ready went
  // Drawing a family's inputs and evaluating their truth, on a GPU; 0: not known.
  double family_seconds = 0;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ready, device, arch, environment, truth, reference, reference_us,
                                   reference_error, reference_choice, reference_notes, parts,
                                   family_seconds)

class Evaluator {
 public:
  static Result<Evaluator> start(const Setup& setup, const EvaluatorOptions& options = {});
  // The same without waiting until it is ready: that is await(), or the first judge().
  static Result<Evaluator> begin(const Setup& setup, const EvaluatorOptions& options = {});
  // `until`: when it gives up.
  Status await(std::optional<std::chrono::steady_clock::time_point> until);
  Result<Verdict> judge(const Request& request);
  const Ready& ready() const;
  int process() const;  // its id, 0 when none runs

 private:
  struct State;

  explicit Evaluator(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;  // the process ends with it
};

// The hidden subcommand: true when `argv` is one, and then `*status` is what the program should
// exit with.
bool evaluator_main(int argc, char** argv, int* status);

nlohmann::json to_json(const Request& request);
Result<Request> request_from_json(const nlohmann::json& json);
}  // namespace warploom::verify
