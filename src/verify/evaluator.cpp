#include "verify/evaluator.h"
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "verify/channel.h"
#include "verify/evaluator_pool.h"
#include "verify/memory_group.h"
#include "verify/oracle.h"
#include "verify/setup.h"

namespace warploom::verify {
namespace {
using nlohmann::json;

// Candidates that one process judges: images of CPU kernels are never unloaded, and the number of
// mappings is limited.
constexpr int kMostCandidates = 500;
// With a fresh process each, where one ends that is not the candidate's doing.
constexpr int kTries = 4;
// For the evaluator's own work (inputs, FP64, the vendor) without a word from it.
constexpr double kOwnLimitMs = 900e3;
// A cell ends a CPU candidate by itself, which needs ten times the limit at most (cell_watch.h).
constexpr double kCellPatience = 12;

tl::unexpected<Error> lost(const std::string& found) {
  return fail({ErrorCode::kEvaluatorLost,
               "the evaluator process died and could not be started again", "",
               "a running evaluator", found,
               "see whether memory is short; run again to go on where the search stopped"});
}

Verdict refusal(ErrorCode code, std::string message, std::string expected, std::string found) {
  Verdict verdict;
  verdict.error_found = {code, std::move(message), "", std::move(expected), std::move(found), ""};
  return verdict;
}

// Whether a process was ended by `signal`, by its wait status.
bool ended_by(int status, int signal) {
  return WIFSIGNALED(status) && WTERMSIG(status) == signal;
}

// How a process ended, by its wait status.
std::string ending_of(int status, const char* when) {
  if (!WIFSIGNALED(status))
    return fmt::format("exited with status {} {}", WEXITSTATUS(status), when);
  const int signal = WTERMSIG(status);
  return fmt::format("ended by signal {} ({}) {}", signal, ::strsignal(signal), when);
}

// What a worker did with one request until it answered, ended or fell silent.
struct Attempt {
  json answer;                   // null: none
  bool in_candidate = false;     // it was in the candidate's own code at the end
  bool began_candidate = false;  // or at some time before

  std::string ending(int status) const {
    return ending_of(status,
                     in_candidate ? "while the candidate ran" : "between the candidate's calls");
  }
};

Verdict refusal_for_memory(const char* found) {
  return refusal(ErrorCode::kCandidateMemory, "a candidate used more memory than it may",
                 "less memory", found);
}

// What the candidate did that ended the worker; nothing where that may have been somebody else.
// `again`: it ended another worker before.
std::optional<Verdict> fault_of(const Attempt& attempt, int status, bool again) {
  if (ended_by(status, SIGSYS))
    return refusal(ErrorCode::kCandidateForbidden, "a candidate made a system call",
                   "computation alone", "it was killed");
  const bool out_of_memory = WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemoryStatus;
  const bool killed = ended_by(status, SIGKILL);
  if (out_of_memory || (killed && attempt.in_candidate && again))
    return refusal_for_memory(out_of_memory ? "no more could be had" : "killed for want of memory");
  if (killed || !attempt.began_candidate) return std::nullopt;
  return refusal(ErrorCode::kCandidateCrashed, "the candidate crashed", "an orderly end",
                 attempt.ending(status));
}
}  // namespace

struct Evaluator::State {
  using Clock = std::chrono::steady_clock;

  EvaluatorOptions options;
  std::optional<Clock::time_point> until;  // of what is at work
  json setup;                              // as every process gets it first
  std::unique_ptr<EvaluatorProcess> process = std::make_unique<EvaluatorProcess>();
  int judged = 0;        // by this process
  bool stopped = false;  // somebody made it stand still
  bool greeted = false;  // it said that it is ready
  Ready ready;

  // The process is there, and gets ready by itself.
  Status launch() {
    judged = 0;
    greeted = false;
    auto waiting = options.pool ? options.pool->take() : nullptr;
    options.pool = nullptr;  // what is started again is this one
    if (waiting)
      process = std::move(waiting);
    else
      WARPLOOM_CHECK(process->start(options.program));
    if (!options.device.empty()) worker().channel->send({{"device", options.device}});
    worker().channel->send(setup);
    return ok();
  }

  Peer& worker() { return process->peer; }

  const Peer& worker() const { return process->peer; }

  Status greet() {
    WARPLOOM_TRY(const json message, next(kOwnLimitMs));
    if (message.is_null() && worker().channel->closed())
      return lost(ending_of(worker().end(worker().channel->broken()), "while it was starting"));
    if (message.is_null()) {
      worker().end(true);
      return lost("it did not become ready in time");
    }
    WARPLOOM_TRY(ready,
                 record_from<Ready>(message.value("ready", json()), "the evaluator's greeting"));
    greeted = true;
    return ok();
  }

  Status spawn() {
    WARPLOOM_CHECK(launch());
    return greet();
  }

  // Whether somebody stopped the worker: nobody says that it will ever go on.
  bool stands_still() const {
    int status = 0;
    const bool told = ::waitpid(worker().process, &status, WNOHANG | WUNTRACED) == worker().process;
    return told && WIFSTOPPED(status);
  }

  // Once somebody interrupted, or the time is up, the worker is ended.
  Status go_on() {
    const bool is_interrupted = options.interrupted && options.interrupted->load();
    const bool is_late = until && Clock::now() >= *until;
    if (!is_interrupted && !is_late) return ok();
    worker().end(true);
    const char* const message = is_interrupted ? "interrupted while a candidate was judged"
                                               : "the time was up while a candidate was judged";
    return fail({ErrorCode::kInterrupted, message, "", "", "", "run again to go on"});
  }

  // How long to wait for a message before looking round.
  int pause_ms() const {
    constexpr double kMost = 100;
    if (!until) return static_cast<int>(kMost);
    const double left_ms = -ms_since(*until);
    return static_cast<int>(std::clamp(left_ms, 1.0, kMost));
  }

  // The worker's next message; null when it is gone, stopped, or has said nothing for that long.
  Result<json> next(double limit_ms) {
    const auto start = Clock::now();
    while (true) {
      WARPLOOM_CHECK(go_on());
      auto message = worker().channel->receive(pause_ms(), kMostAnswer);
      if (message && message->contains("error")) {
        worker().end(true);
        const auto said = error_said(message->at("error"));
        return said ? fail(*said)
                    : unreadable("the evaluator's error", message->at("error").dump());
      }
      if (message) return std::move(*message);
      if (worker().channel->closed() || ms_since(start) > limit_ms) return json();
      stopped = stands_still();
      if (stopped) return json();
    }
  }

  // Hands the request to the worker and follows it. The limit on its silence is the candidate's
  // while the candidate runs.
  Result<Attempt> attempt(const Request& request) {
    worker().channel->send(to_json(request));
    Attempt attempt;
    double limit_ms = request.own_limit_ms;
    while (true) {
      WARPLOOM_TRY(attempt.answer, next(limit_ms));
      if (!attempt.answer.contains("phase")) return attempt;
      attempt.in_candidate = attempt.answer["phase"] == "candidate";
      attempt.began_candidate |= attempt.in_candidate;
      const auto expected = attempt.answer.find("expected_ms");
      const bool is_time = expected != attempt.answer.end() && expected->is_number();
      const double expected_ms =
          is_time ? std::clamp(expected->get<double>(), 0.0, kOwnLimitMs) : 0;
      const bool in_cell = request.list.engine == Engine::cpu;
      const double candidate_ms = request.candidate_limit_ms * (in_cell ? kCellPatience : 1);
      limit_ms = attempt.in_candidate ? candidate_ms + expected_ms : request.own_limit_ms;
    }
  }

  // The worker neither answered nor ended: it is ended.
  Result<Verdict> hung(const Attempt& attempt, const Request& request) {
    worker().end(true);
    if (!attempt.began_candidate) return lost("it did not answer in time");
    return refusal(ErrorCode::kCandidateHung, "the candidate did not finish in time",
                   fmt::format("an end within {:.1f} s", request.candidate_limit_ms / 1e3),
                   "no end; it was killed");
  }

  Status ensure() {
    if (worker().process > 0 && greeted) return ok();
    Status spawned = worker().process > 0 ? greet() : spawn();
    // One more try where it was lost without saying why; what it said itself would only be said
    // again.
    if (!spawned && spawned.error().code == ErrorCode::kEvaluatorLost) spawned = spawn();
    return spawned;
  }
};

Result<Evaluator> Evaluator::start(const Setup& setup, const EvaluatorOptions& options) {
  WARPLOOM_TRY(Evaluator made, begin(setup, options));
  WARPLOOM_CHECK(made.await(options.until));
  return made;
}

Result<Evaluator> Evaluator::begin(const Setup& setup, const EvaluatorOptions& options) {
  auto state = std::make_shared<State>();
  state->options = options;
  const bool is_waiting_any = setup.engine == Engine::cuda && options.device.empty();
  if (!is_waiting_any) state->options.pool = nullptr;
  state->setup = to_json(setup);
  WARPLOOM_CHECK(state->launch());
  return Evaluator(std::move(state));
}

Status Evaluator::await(std::optional<std::chrono::steady_clock::time_point> until) {
  state_->until = until;
  return state_->ensure();
}

Result<Verdict> Evaluator::judge(const Request& request) {
  Peer& worker = state_->worker();
  state_->until = request.until;
  if (++state_->judged > kMostCandidates) worker.end(true);
  std::string ending;
  for (int tries = 0; tries < kTries; ++tries) {
    WARPLOOM_CHECK(state_->ensure());
    WARPLOOM_TRY(const Attempt attempt, state_->attempt(request));
    const json& answer = attempt.answer;
    if (answer.contains("verdict")) {
      const auto tainted = answer.find("tainted");
      if (tainted == answer.end() || *tainted != false) worker.end(true);
      auto verdict = verdict_from_json(answer["verdict"]);
      if (verdict || !attempt.began_candidate) return verdict;
      // Only a candidate can have made that of a process that answers in our own words.
      worker.end(true);
      return refusal(ErrorCode::kCandidateForbidden, "a candidate's process gave no verdict",
                     "an answer in the evaluator's form", verdict.error().found);
    }
    if (std::exchange(state_->stopped, false)) {
      worker.end(true);
      ending = "was stopped";
      continue;
    }
    if (!worker.channel->closed()) return state_->hung(attempt, request);
    const int status = worker.end(worker.channel->broken());
    if (state_->process->group && state_->process->group->ran_out())
      return refusal_for_memory("as much as its processes' cgroup may have");
    if (auto refused = fault_of(attempt, status, tries > 0)) return *std::move(refused);
    // Somebody else may have killed it, or it died before the candidate ran: once more, with a
    // fresh process.
    ending = attempt.ending(status);
  }
  return lost(ending);
}

const Ready& Evaluator::ready() const {
  return state_->ready;
}

int Evaluator::process() const {
  return state_->worker().process;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Request, whole, check_ms, foreign, series, beside_reference,
                                   warm_up, best_us, reference_known_us, min_samples, max_samples,
                                   timing_ms, candidate_limit_ms, own_limit_ms, exact)

json to_json(const Request& request) {
  json out = request;
  out["list"] = warploom::to_json(request.list);
  return out;
}

Result<Request> request_from_json(const json& text) {
  WARPLOOM_TRY(Request out, record_from<Request>(text, "a request"));
  WARPLOOM_TRY(out.list, launch_list_from_json(text.value("list", json())));
  return out;
}
}  // namespace warploom::verify
