#include "runtime/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace warploom::runtime {

Result<ProcessResult> run_in_fork(const std::function<int()>& work, std::chrono::milliseconds limit) {
  // The read end of this pipe reports the end of the child: it closes with the last process that holds the other.
  std::array<int, 2> alive{};
  if (::pipe2(alive.data(), O_CLOEXEC) != 0)
    return fail(
        {ErrorCode::kInternal, "cannot make a pipe", "fork", "a pipe", std::strerror(errno), "raise ulimit -n"});
  const pid_t child = ::fork();
  if (child < 0) {
    const int reason = errno;
    ::close(alive[0]);
    ::close(alive[1]);
    return fail({ErrorCode::kInternal, "cannot fork", "fork", "a process", std::strerror(reason), "raise ulimit -u"});
  }
  if (child == 0) {
    ::setsid();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd <= 2; ++fd) ::dup2(null, fd);
    ::_exit(work());
  }
  ::close(alive[1]);
  ProcessResult result;
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (::waitpid(child, &status, WNOHANG) != child) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    if (left <= 0) {
      result.timed_out = true;
      break;
    }
    pollfd ended{alive[0], POLLIN, 0};
    if (::poll(&ended, 1, static_cast<int>(std::min<long long>(left, 1000))) > 0) ::usleep(200);
  }
  ::kill(-child, SIGKILL);
  if (result.timed_out) {
    ::kill(child, SIGKILL);  // it may not have reached setsid
    ::waitpid(child, &status, 0);
  }
  ::close(alive[0]);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  if (WIFEXITED(status)) result.exit_status = WEXITSTATUS(status);
  return result;
}

}  // namespace warploom::runtime
