#include "base/process.h"
#include <fcntl.h>
#include <linux/prctl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/error.h"

namespace warploom {
namespace {
using Clock = std::chrono::steady_clock;

thread_local const std::atomic<bool>* ending = nullptr;
}  // namespace

void end_processes_with(const std::atomic<bool>* flag) {
  ending = flag;
}

Result<int> start_process(const std::vector<std::string>& argv,
                          const std::function<void()>& prepare) {
  std::vector<char*> raw;
  for (const auto& arg : argv)
    raw.push_back(const_cast<char*>(arg.c_str()));
  raw.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    const std::string found = std::strerror(errno);
    return fail(
        {ErrorCode::kInternal, "cannot fork", argv[0], "a process", found, "raise ulimit -u"});
  }
  if (child > 0) return child;
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent was killed before we asked to follow it.
  if (::getpid() != 1 && ::getppid() != parent) ::_exit(127);
  ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  prepare();
  ::execvp(raw[0], raw.data());
  ::_exit(127);
}

int end_process(int process, bool kill) {
  int status = 0;
  if (kill) {
    ::kill(-process, SIGKILL);
    ::kill(process, SIGKILL);
  }
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {}
  ::kill(-process, SIGKILL);
  return status;
}

namespace {
bool has_ended(int process) {
  constexpr int kOptions = WEXITED | WNOHANG | WNOWAIT;
  siginfo_t ended{};
  const int waited = ::waitid(P_PID, static_cast<id_t>(process), &ended, kOptions);
  return waited == 0 && ended.si_pid == process;
}

// Until when a process may run.
struct Deadline {
  Clock::time_point end;

  bool is_over() const { return Clock::now() >= end || (ending && *ending); }

  // Milliseconds to wait for output before is_over() is asked again.
  int patience() const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    const long long most = ending ? 50 : 1000;
    return as_int(std::clamp<long long>(left.count(), 1, most));
  }
};

// Appends what can be read now, `most` bytes at most in all. False where the end is closed.
bool read_some(int end, std::string& text, size_t most) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(end, buffer.data(), buffer.size());
  if (got <= 0) return got < 0 && errno == EINTR;
  const size_t room = most - text.size();
  text.append(buffer.data(), std::min(as_size(got), room));
  return true;
}

// Reads both ends until they are closed. False where the time was over before.
bool read_all(const std::array<int, 2>& ends, const std::array<std::string*, 2>& texts,
              const Deadline& deadline, size_t most) {
  std::array<pollfd, 2> polled{pollfd{ends[0], POLLIN, 0}, pollfd{ends[1], POLLIN, 0}};
  int open_ends = 2;
  while (open_ends > 0) {
    if (deadline.is_over()) return false;
    const int ready = ::poll(polled.data(), polled.size(), deadline.patience());
    if (ready < 0 && errno != EINTR) return true;
    for (size_t i = 0; i < polled.size(); ++i) {
      pollfd& one = polled[i];
      if (one.fd < 0 || !(one.revents & (POLLIN | POLLHUP))) continue;
      if (read_some(one.fd, *texts[i], most)) continue;
      one.fd = -1;
      --open_ends;
    }
  }
  return true;
}
}  // namespace

Result<ProcessResult> run_process(const std::vector<std::string>& argv,
                                  const ProcessLimits& limits) {
  std::array<int, 2> out{};
  std::array<int, 2> err{};
  const bool has_pipes = ::pipe2(out.data(), O_CLOEXEC) == 0 && ::pipe2(err.data(), O_CLOEXEC) == 0;
  if (!has_pipes) {
    const std::string found = std::strerror(errno);
    return fail(
        {ErrorCode::kInternal, "cannot make a pipe", argv[0], "a pipe", found, "raise ulimit -n"});
  }
  WARPLOOM_TRY(const int child, start_process(argv, [&] {
                 ::dup2(out[1], STDOUT_FILENO);
                 ::dup2(err[1], STDERR_FILENO);
                 if (limits.prepare) limits.prepare();
               }));
  ::close(out[1]);
  ::close(err[1]);

  ProcessResult result;
  const Deadline deadline{Clock::now() + limits.time};
  const std::array<int, 2> ends = {out[0], err[0]};
  result.timed_out = !read_all(ends, {&result.out, &result.err}, deadline, limits.output_bytes);
  // Both ends are closed; the process may still run.
  while (!result.timed_out && !has_ended(child)) {
    result.timed_out = deadline.is_over();
    ::usleep(500);
  }
  const int status = end_process(child, result.timed_out);
  ::close(out[0]);
  ::close(err[0]);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  return result;
}

std::filesystem::path find_program(const std::string& name) {
  const auto runs = [](const std::filesystem::path& file) {
    return ::access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos)
    return runs(name) ? std::filesystem::path(name) : std::filesystem::path();
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const auto candidate = std::filesystem::path(folder) / name;
    if (runs(candidate)) return candidate;
  }
  return {};
}
}  // namespace warploom
