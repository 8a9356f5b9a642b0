// Batches of programs in child processes.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "check.h"
#include "support/paths.h"

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
// Reads what a worker says; whether it has ended.
bool listen(Worker& w) {
  char buffer[1 << 16];
  const ssize_t n = ::read(w.pipe, buffer, sizeof buffer);
  if (n <= 0) return true;
  w.said.append(buffer, static_cast<size_t>(n));
  w.spoke = Clock::now();
  return false;
}

bool is_hanging(const Worker& w, const Run& run) {
  const int patience = working_on(w.said) < 0 ? run.seconds_a_text : run.seconds_a_program;
  return Clock::now() - w.spoke > std::chrono::seconds(patience);
}

std::vector<Outcome> outcomes_in(const std::string& said) {
  std::vector<Outcome> outcomes;
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("{")) outcomes.push_back(outcome_of(nlohmann::json::parse(line)));
  return outcomes;
}

// Ends a worker: takes its outcomes, or, where it did not come to the end, blames the program that
// it was working on and lets the others wait for another worker.
void end(const Worker& w, bool hangs, std::deque<Batch>& waiting, std::vector<Outcome>& outcomes) {
  int status = 0;
  ::close(w.pipe);
  ::waitpid(w.process, &status, 0);
  if (w.said.ends_with("done\n")) {
    const std::vector<Outcome> found = outcomes_in(w.said);
    outcomes.insert(outcomes.end(), found.begin(), found.end());
    return;
  }
  const Batch& batch = w.batch;
  const int culprit = batch.count == 1 ? 0 : working_on(w.said);
  const auto again = [&](int from, int to) {
    if (from < to) waiting.push_front({batch.first + static_cast<uint64_t>(from), to - from});
  };
  if (culprit < 0) {
    again(batch.count / 2, batch.count);
    again(0, batch.count / 2);
    return;
  }
  outcomes.push_back({batch.first + static_cast<uint64_t>(culprit), "", "",
                      hangs ? "hang" : "crash", fmt::format("signal {}", WTERMSIG(status))});
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
    for (const Worker& w : working)
      polled.push_back({w.pipe, POLLIN, 0});
    ::poll(polled.data(), polled.size(), 1000);
    for (size_t i = working.size(); i-- > 0;) {
      const bool ended = polled[i].revents != 0 && listen(working[i]);
      const bool hangs = !ended && is_hanging(working[i], run);
      if (hangs) ::kill(working[i].process, SIGKILL);
      if (!ended && !hangs) continue;
      const Worker gone = std::move(working[i]);
      working.erase(working.begin() + static_cast<ptrdiff_t>(i));
      end(gone, hangs, waiting, outcomes);
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
  const std::string command =
      fmt::format("git -C '{}' rev-parse --short HEAD 2>/dev/null", test::source_path());
  if (FILE* git = ::popen(command.c_str(), "r")) {
    if (std::fgets(commit.data(), commit.size(), git))
      figures["commit"] = std::string(commit.data(), std::strcspn(commit.data(), "\n"));
    ::pclose(git);
  }
  return write_file(file, figures.dump(1) + "\n");
}
}  // namespace warploom::fuzz
