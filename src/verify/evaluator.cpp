#include "verify/evaluator.h"
#include <signal.h>
#include <sys/wait.h>
#include "verify/channel.h"
#include "verify/oracle.h"

namespace warploom::verify {
namespace {
using nlohmann::json;

constexpr int kMostCandidates =
    500;  // of one process: images of CPU kernels are never unloaded, and mappings are limited
constexpr int kTries = 4;  // with fresh processes, where one ends that is not the candidate's doing
constexpr double kOwnLimitMs =
    900e3;  // for the evaluator's own work (inputs, FP64, the vendor) without a word from it

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

// How a process ended, by its wait status.
std::string how(int status, const char* when) {
  if (WIFSIGNALED(status))
    return fmt::format("ended by signal {} ({}) {}", WTERMSIG(status),
                       ::strsignal(WTERMSIG(status)), when);
  return fmt::format("exited with status {} {}", WEXITSTATUS(status), when);
}
}  // namespace

struct Evaluator::State {
  EvaluatorOptions options;
  json setup;  // as every process gets it first
  Peer worker;
  int judged = 0;  // by this process
  Ready ready;

  Status spawn() {
    judged = 0;
    WARPLOOM_CHECK(worker.start(options.program.string(), kEvaluateCommand));
    worker.channel->send(setup);
    WARPLOOM_TRY(const json message, next(kOwnLimitMs));
    if (message.is_null() && worker.channel->closed())
      return lost(how(worker.end(false), "while it was starting"));
    if (message.is_null()) {
      worker.end(true);
      return lost("it did not become ready in time");
    }
    WARPLOOM_TRY(ready,
                 record_from<Ready>(message.value("ready", json()), "the evaluator's greeting"));
    return ok();
  }

  // The worker's next message; null when it is gone or the time is up.
  Result<json> next(double limit_ms) {
    const auto start = std::chrono::steady_clock::now();
    while (true) {
      if (options.interrupted && options.interrupted->load()) {
        worker.end(true);
        return fail({ErrorCode::kInterrupted, "interrupted while a candidate was judged", "", "",
                     "", "run again to go on"});
      }
      auto message = worker.channel->receive(100);
      if (message && message->contains("error")) {
        worker.end(true);
        return fail(error_from_json(message->at("error")));
      }
      if (message) return std::move(*message);
      if (worker.channel->closed() || ms_since(start) > limit_ms) return json();
    }
  }

  Status ensure() {
    if (worker.process > 0) return ok();
    Status spawned = spawn();
    // One more try where it was lost without saying why; what it said itself would only be said
    // again.
    if (!spawned && spawned.error().code == ErrorCode::kEvaluatorLost) spawned = spawn();
    return spawned;
  }
};

Result<Evaluator> Evaluator::start(const Setup& setup, const EvaluatorOptions& options) {
  auto state = std::make_shared<State>();
  state->options = options;
  state->setup = to_json(setup);
  WARPLOOM_CHECK(state->ensure());
  return Evaluator(std::move(state));
}

Result<Verdict> Evaluator::judge(const Request& request) {
  Peer& worker = state_->worker;
  if (++state_->judged > kMostCandidates) worker.end(true);
  std::string ending;
  for (int tries = 0; tries < kTries; ++tries) {
    WARPLOOM_CHECK(state_->ensure());
    worker.channel->send(to_json(request));
    // the candidate
    bool running = false;
    bool ran = false;
    double limit_ms = kOwnLimitMs;
    json message;
    while (true) {
      WARPLOOM_TRY(message, state_->next(limit_ms));
      if (!message.contains("phase")) break;
      running = message["phase"] == "candidate";
      ran |= running;
      limit_ms =
          running ? request.candidate_limit_ms + message.value("expected_ms", 0.0) : kOwnLimitMs;
    }
    if (message.contains("verdict")) {
      if (message.value("tainted", false)) worker.end(true);
      return verdict_from_json(message["verdict"]);
    }
    if (!worker.channel->closed()) {
      worker.end(true);
      if (!ran) return lost("it did not answer in time");
      return refusal(ErrorCode::kCandidateHung, "the candidate did not finish in time",
                     fmt::format("an end within {:.1f} s", request.candidate_limit_ms / 1e3),
                     "no end; it was killed");
    }
    const int status = worker.end(false);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
      return refusal(ErrorCode::kCandidateForbidden, "a candidate made a system call",
                     "computation alone", "it was killed");
    const bool memory = WIFEXITED(status) && WEXITSTATUS(status) == kOutOfMemoryStatus;
    if (memory || (killed && running && tries > 0))
      return refusal(ErrorCode::kCandidateMemory, "a candidate used more memory than it may",
                     "less memory", memory ? "no more could be had" : "killed for want of memory");
    // Somebody else may have killed it, or it died before the candidate ran: once more, with a
    // fresh process.
    ending = how(status, running ? "while the candidate ran" : "between the candidate's calls");
    if (!killed && ran)
      return refusal(ErrorCode::kCandidateCrashed, "the candidate crashed", "an orderly end",
                     ending);
  }
  return lost(ending);
}

const Ready& Evaluator::ready() const {
  return state_->ready;
}

int Evaluator::process() const {
  return state_->worker.process;
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Request, whole, check_ms, foreign, beside_reference,
                                   reference_known_us, min_samples, max_samples, timing_ms,
                                   candidate_limit_ms)

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
