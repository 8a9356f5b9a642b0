#include "verify/evaluator.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include "base/file.h"
#include "base/process.h"
#include "verify/channel.h"
namespace warploom::verify {
namespace {
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kOwnLimitMs = 900e3;  // for the evaluator's own work (inputs, FP64, the vendor) without a word from it

Clock::time_point in_ms(double ms) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
}

tl::unexpected<Error> lost(const std::string& found) {
  return fail({ErrorCode::kEvaluatorLost, "the evaluator process died and could not be started again", "", "a running evaluator",
               found, "see whether memory is short; run again to go on where the search stopped"});
}

tl::unexpected<Error> interrupted_error() {
  return fail({ErrorCode::kInterrupted, "interrupted while a candidate was judged", "", "", "", "run again to go on"});
}

// The setup as an anonymous file that every evaluator of this problem reads from its start.
Result<int> setup_file(const Setup& setup) {
  const std::vector<std::uint8_t> bytes = pack(setup);
  const int fd = ::memfd_create("warploom-setup", MFD_CLOEXEC);
  if (fd >= 0 && write_all(fd, {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) return fd;
  if (fd >= 0) ::close(fd);
  return fail(
      {ErrorCode::kOutOfMemory, "the evaluator's setup could not be stored", "", "room in memory", std::strerror(errno), ""});
}
}  // namespace
struct Evaluator::State {
  EvaluatorOptions options;
  int setup = -1;
  pid_t child = 0;
  int socket = -1;
  std::optional<Channel> channel;
  Ready ready;

  ~State() {
    kill_worker();
    if (setup >= 0) ::close(setup);
  }

  // How the worker ended: its wait status.
  int kill_worker(bool kill = true) {
    const int status = child > 0 ? end_process(child, kill) : 0;
    child = 0;
    channel.reset();
    if (socket >= 0) ::close(socket);
    socket = -1;
    return status;
  }

  bool interrupted() const { return options.interrupted && options.interrupted->load(); }

  Status spawn() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
      return fail({ErrorCode::kInternal, "cannot make a socket pair", "", "", std::strerror(errno), "raise ulimit -n"});
    // Everything else closes on exec; these two go along under their own numbers.
    const std::string files = fmt::format("{},{}", ends[1], setup);
    const auto started = start_process({options.program.string(), kEvaluateCommand, files}, [&] {
      for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(::open("/dev/null", O_WRONLY), fd);
      for (const int fd : {ends[1], setup}) ::fcntl(fd, F_SETFD, 0);
    });
    ::close(ends[1]);
    if (!started) ::close(ends[0]);
    WARPLOOM_TRY(child, started);
    socket = ends[0];
    channel.emplace(socket);
    WARPLOOM_TRY(const json message, next(in_ms(kOwnLimitMs)));
    if (message.is_null() && channel->closed()) return lost(how(kill_worker(false), "while it was starting"));
    if (message.is_null()) return kill_worker(), lost("it did not become ready in time");
    WARPLOOM_TRY(ready, record_from<Ready>(message.value("ready", json()), "the evaluator's greeting"));
    return ok();
  }

  // The worker's next message; null when it is gone or the deadline has passed.
  Result<json> next(Clock::time_point deadline) {
    while (true) {
      if (interrupted()) return kill_worker(), interrupted_error();
      auto message = channel->receive(100);
      if (message && message->contains("error")) return kill_worker(), fail(error_from_json(message->at("error")));
      if (message) return std::move(*message);
      if (channel->closed() || Clock::now() > deadline) return json();
    }
  }

  static std::string how(int status, const char* when) {
    if (WIFSIGNALED(status))
      return fmt::format("ended by signal {} ({}) {}", WTERMSIG(status), ::strsignal(WTERMSIG(status)), when);
    return fmt::format("exited with status {} {}", WEXITSTATUS(status), when);
  }

  Status ensure() {
    if (child > 0) return ok();
    Status spawned = spawn();
    // One more try where it was lost without saying why; what it said itself would only be said again.
    if (!spawned && spawned.error().code == ErrorCode::kEvaluatorLost) spawned = spawn();
    return spawned;
  }

  struct Ending {
    std::optional<Verdict> verdict;  // none: the worker ended, with this status
    int status = 0;
    bool candidate_ran = false, in_candidate = false;
  };

  static Verdict refusal(ErrorCode code, std::string message, std::string expected, std::string found) {
    Verdict verdict;
    verdict.error_found = {code, std::move(message), "", std::move(expected), std::move(found), ""};
    return verdict;
  }

  // One request to one worker.
  Result<Ending> ask(const Request& request) {
    Ending ending;
    if (!channel->send(to_json(request))) return ending.status = kill_worker(), ending;
    auto deadline = in_ms(kOwnLimitMs);
    while (true) {
      WARPLOOM_TRY(const json message, next(deadline));
      if (message.contains("phase")) {
        ending.in_candidate = message["phase"] == "candidate";
        ending.candidate_ran = ending.candidate_ran || ending.in_candidate;
        const double limit_ms = request.candidate_limit_ms + message.value("expected_ms", 0.0);
        deadline = in_ms(ending.in_candidate ? limit_ms : kOwnLimitMs);
      } else if (message.contains("verdict")) {
        WARPLOOM_TRY(ending.verdict, verdict_from_json(message["verdict"]));
        if (message.value("tainted", false)) kill_worker();
        return ending;
      } else if (channel->closed()) {
        return ending.status = kill_worker(false), ending;
      } else {
        kill_worker();
        if (!ending.candidate_ran) return lost("it did not answer in time");
        ending.verdict =
            refusal(ErrorCode::kCandidateHung, "the candidate did not finish in time",
                    fmt::format("an end within {:.1f} s", request.candidate_limit_ms / 1e3), "no end; it was killed");
        return ending;
      }
    }
  }
};

Result<Evaluator> Evaluator::start(const Setup& setup, const EvaluatorOptions& options) {
  auto state = std::make_shared<State>();
  state->options = options;
  WARPLOOM_TRY(state->setup, setup_file(setup));
  WARPLOOM_CHECK(state->ensure());
  return Evaluator(std::move(state));
}

Result<Verdict> Evaluator::judge(const Request& request) {
  std::string endings;
  for (int tries = 0; tries < 2; ++tries) {
    WARPLOOM_CHECK(state_->ensure());
    WARPLOOM_TRY(const State::Ending ending, state_->ask(request));
    if (ending.verdict) return *ending.verdict;
    const bool killed = WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == SIGKILL;
    const bool memory = WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == kOutOfMemoryStatus;
    if (memory || (killed && ending.in_candidate && tries > 0))
      return State::refusal(ErrorCode::kCandidateMemory, "a candidate used more memory than it may", "less memory",
                            memory ? "no more could be had" : "killed for want of memory");
    // Somebody else may have killed it, or it died before the candidate ran: once more, with a fresh process.
    endings = State::how(ending.status, ending.in_candidate ? "while the candidate ran" : "between the candidate's calls");
    if (killed || !ending.candidate_ran) continue;
    return State::refusal(ErrorCode::kCandidateCrashed, "the candidate crashed", "an orderly end", endings);
  }
  return lost(endings);
}

const Ready& Evaluator::ready() const { return state_->ready; }
int Evaluator::process() const { return state_->child; }

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Request, whole, check_ms, timed, beside_reference, min_samples, max_samples, timing_ms,
                                   candidate_limit_ms)

void to_json(json& out, InputFamily family) { out = name_of(family); }
void from_json(const json& in, InputFamily& family) {
  const auto named = std::ranges::find(input_families(), in.get<std::string>(), [](InputFamily one) { return name_of(one); });
  family = named == input_families().end() ? InputFamily::normal : *named;
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Evidence, family, seed, error, max_error, bound, worst_ratio, reference_error, rows_checked,
                                   rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verdict, accepted, error, max_error, reference_error, median_us, low_us, high_us, reference_us,
                                   reference_low_us, reference_high_us, repeats, floor_us, evidence)

json to_json(const Verdict& verdict) {
  json out = verdict;
  if (!verdict.accepted) out["refused"] = warploom::to_json(verdict.error_found);
  return out;
}

Result<Verdict> verdict_from_json(const json& text) {
  WARPLOOM_TRY(Verdict out, record_from<Verdict>(text, "a verdict"));
  if (text.contains("refused")) out.error_found = error_from_json(text["refused"]);
  return out;
}

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
