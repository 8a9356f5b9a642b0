// Batches of programs in child processes.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <regex>
#include <set>
#include "base/file.h"
#include "check.h"

namespace warploom::fuzz {
namespace {
using Clock = std::chrono::steady_clock;

struct Batch {
  uint64_t first = 0;
  int count = 0;
};

struct Worker {
  pid_t process = 0;
  int pipe = -1;
  Batch batch;
  std::string said;
  Clock::time_point spoke;
};

nlohmann::json to_json(const Outcome& o) {
  return {{"seed", o.seed},
          {"kind", o.kind},
          {"target", o.target},
          {"code", o.code},
          {"detail", o.detail}};
}

Outcome outcome_of(const nlohmann::json& j) {
  return {j["seed"], j["kind"], j["target"], j["code"], j["detail"]};
}

void say(int pipe, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(pipe, text.data() + at, text.size() - at);
    if (n <= 0) ::_exit(1);
    at += static_cast<size_t>(n);
  }
}

[[noreturn]] void work(const Batch& batch, const Check& check, int pipe) {
  std::string text;
  for (const Outcome& o :
       check(batch.first, batch.count, [&](int i) { say(pipe, fmt::format("at {}\n", i)); }))
    text += to_json(o).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  say(pipe, text + "done\n");
  ::_exit(0);
}

// What the worker said it works on last: a program's number, or -1.
int working_on(const std::string& said) {
  const size_t at = said.rfind("at ");
  return at == std::string::npos ? -1 : std::atoi(said.c_str() + at + 3);
}

Worker start(const Batch& batch, const Check& check) {
  int ends[2];
  if (::pipe(ends) != 0) return {};
  const pid_t process = ::fork();
  if (process == 0) {
    ::close(ends[0]);
    work(batch, check, ends[1]);
  }
  ::close(ends[1]);
  return {process, ends[0], batch, "", Clock::now()};
}
}  // namespace

namespace {
enum class Ending { none, ended, hangs };

// Takes what a worker has said; whether it has ended, or is ended because it was silent too long.
Ending listen(Worker& worker, bool ready, const Run& run) {
  bool ended = false;
  if (ready) {
    char buffer[1 << 16];
    const ssize_t n = ::read(worker.pipe, buffer, sizeof buffer);
    if (n > 0) {
      worker.said.append(buffer, static_cast<size_t>(n));
      worker.spoke = Clock::now();
    }
    ended = n <= 0;
  }
  if (ended) return Ending::ended;
  const int patience = working_on(worker.said) < 0 ? run.seconds_a_text : run.seconds_a_program;
  if (Clock::now() - worker.spoke <= std::chrono::seconds(patience)) return Ending::none;
  ::kill(worker.process, SIGKILL);
  return Ending::hangs;
}

// The outcomes that a worker which did all its cases has said, a line each.
void add_outcomes(const std::string& said, std::vector<Outcome>& outcomes) {
  size_t at = 0;
  for (size_t end = said.find('\n'); end != std::string::npos; end = said.find('\n', at)) {
    const std::string line = said.substr(at, end - at);
    if (line.starts_with('{')) outcomes.push_back(outcome_of(nlohmann::json::parse(line)));
    at = end + 1;
  }
}

// The case at which a worker ended becomes an outcome; the others of its batch wait again.
void add_failure(const Batch& batch, const std::string& said, Ending ending, int status,
                 std::deque<Batch>& waiting, std::vector<Outcome>& outcomes) {
  const int culprit = batch.count == 1 ? 0 : working_on(said);
  const auto again = [&](int from, int to) {
    if (from < to) waiting.push_front({batch.first + static_cast<uint64_t>(from), to - from});
  };
  if (culprit < 0) {
    again(batch.count / 2, batch.count);
    again(0, batch.count / 2);
    return;
  }
  const uint64_t seed = batch.first + static_cast<uint64_t>(culprit);
  const std::string what = ending == Ending::hangs ? "hang" : "crash";
  outcomes.push_back({seed, "", "", what, fmt::format("signal {}", WTERMSIG(status))});
  again(culprit + 1, batch.count);
  again(0, culprit);
}
}  // namespace

std::vector<Outcome> run(const Run& run, const Check& check) {
  std::deque<Batch> waiting;
  for (int at = 0; at < run.count; at += run.batch)
    waiting.push_back({run.first + static_cast<uint64_t>(at), std::min(run.batch, run.count - at)});
  std::vector<Worker> working;
  std::vector<Outcome> outcomes;
  while (!waiting.empty() || !working.empty()) {
    while (!waiting.empty() && static_cast<int>(working.size()) < run.workers) {
      working.push_back(start(waiting.front(), check));
      waiting.pop_front();
    }
    std::vector<pollfd> polled;
    for (const Worker& w : working) polled.push_back({w.pipe, POLLIN, 0});
    ::poll(polled.data(), polled.size(), 1000);
    for (size_t i = working.size(); i-- > 0;) {
      Worker& w = working[i];
      const Ending ending = listen(w, polled[i].revents != 0, run);
      if (ending == Ending::none) continue;
      int status = 0;
      ::close(w.pipe);
      ::waitpid(w.process, &status, 0);
      const Batch batch = w.batch;
      const std::string said = std::move(w.said);
      working.erase(working.begin() + static_cast<ptrdiff_t>(i));
      if (said.ends_with("done\n"))
        add_outcomes(said, outcomes);
      else
        add_failure(batch, said, ending, status, waiting, outcomes);
    }
  }
  std::sort(outcomes.begin(), outcomes.end(), [](const Outcome& a, const Outcome& b) {
    return std::tie(a.seed, a.target) < std::tie(b.seed, b.target);
  });
  return outcomes;
}

nlohmann::json figures(const Run& run, const std::vector<Outcome>& outcomes, double seconds) {
  std::map<std::string, std::map<std::string, int>> by_target;
  std::map<std::string, std::map<std::string, int>> by_kind;
  int refused = 0;
  int bugs = 0;
  std::map<std::string, int>
      refusals;  // by the first line of what was said, numbers and names aside
  for (const Outcome& o : outcomes) {
    ++by_target[o.target][o.code];
    ++by_kind[o.kind][o.code];
    bugs += o.is_bug();
    refused += !o.is_bug() && !o.agrees();
    if (!o.agrees())
      ++refusals[std::regex_replace(o.detail.substr(0, o.detail.find('\n')),
                                    std::regex("'[^']*'|[0-9]+"), "…")];
  }
  return {{"first_seed", run.first}, {"programs", run.count}, {"runs", outcomes.size()},
          {"refused", refused},      {"bugs", bugs},          {"seconds", std::round(seconds)},
          {"by_target", by_target},  {"by_kind", by_kind},    {"refusals", refusals}};
}

Status write_figures(const char* file, nlohmann::json figures) {
  std::array<char, 64> commit = {};
  if (FILE* git =
          ::popen("git -C '" WARPLOOM_SOURCE_DIR "' rev-parse --short HEAD 2>/dev/null", "r")) {
    if (std::fgets(commit.data(), commit.size(), git))
      figures["commit"] = std::string(commit.data(), std::strcspn(commit.data(), "\n"));
    ::pclose(git);
  }
  return write_file(file, figures.dump(1) + "\n");
}
}  // namespace warploom::fuzz
