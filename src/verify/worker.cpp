// The evaluator process: reads a setup, then requests, and answers with phases and verdicts.
//
//   parent → worker   {"graph": …, …}  {"list": …, "whole": false, …}
//   worker → parent   {"ready": …}  {"phase": "candidate", "expected_ms": 0}  {"phase": "own"}  {"verdict": …, "tainted": false}
//                     {"error": …} when the problem cannot be set up at all
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <cstdlib>
#include <fstream>
#include <new>
#include "verify/channel.h"
#include "verify/judge.h"
namespace warploom::verify {
namespace {
using nlohmann::json;

// After these refusals a process is replaced.
constexpr std::array kFaults = {ErrorCode::kCandidateCrashed, ErrorCode::kCandidateHung, ErrorCode::kCudaCall,
                                ErrorCode::kCandidateWroteInput, ErrorCode::kCandidateMemory};

// A crash for want of memory looks like any other (a null pointer, a bad_alloc that nobody catches); whether a mapping can still
// be had tells the two apart. Only calls that are safe in a signal handler.
void on_crash(int signal) {
  void* probe =
      ::mmap(nullptr, std::size_t{512} << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) ::_exit(kOutOfMemoryStatus);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void watch_for_crashes() {
  static std::array<char, 64 << 10> stack;
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) ::sigaction(signal, &action, nullptr);
}

std::int64_t memory_limit(const Setup& setup) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;  // sanitizers reserve address space freely
#endif
  if (setup.engine != Engine::cpu) return 0;  // and so does CUDA
  std::int64_t tensors = 0;
  for (const auto& tensor : setup.graph.tensors) tensors += graph::byte_count(tensor);
  // Two copies of everything, the oracle's blocks, thread stacks and their arenas' reservations, and room for workspaces.
  return 3 * tensors + (std::int64_t{12} << 30);
}

int serve(Channel& channel) {
  Result<Setup> setup = setup_from_json(channel.receive(-1).value_or(json()));
  const auto refuse = [&](const Error& error) { return channel.send({{"error", to_json(error)}}), 1; };
  if (!setup) return refuse(setup.error());
  if (const std::int64_t limit = memory_limit(*setup); limit > 0) {
    const rlimit bound{static_cast<rlim_t>(limit), static_cast<rlim_t>(limit)};
    ::setrlimit(RLIMIT_AS, &bound);
  }
  const auto announce = [&](bool candidate, double expected_ms) {
    channel.send({{"phase", candidate ? "candidate" : "own"}, {"expected_ms", expected_ms}});
  };
  Judge judge(std::move(*setup), announce);
  const Result<Ready> ready = judge.prepare();
  if (!ready) return refuse(ready.error());
  channel.send({{"ready", *ready}});
  while (auto line = channel.receive(-1)) {
    const auto request = request_from_json(*line);
    if (!request) return refuse(request.error());
    const Verdict verdict = judge.judge(*request);
    const bool tainted = !verdict.accepted && std::ranges::count(kFaults, verdict.error_found.code);
    channel.send({{"verdict", to_json(verdict)}, {"tainted", tainted}});
    if (tainted) ::_exit(0);  // the context of a GPU that faulted may hang when it is torn down
  }
  return 0;
}
}  // namespace
bool evaluator_main(int argc, char** argv, int* status) {
  if (argc < 2 || std::strcmp(argv[1], kEvaluateCommand) != 0) return false;
  *status = 2;
  if (argc != 3) return true;
  Channel channel(std::atoi(argv[2]));
  watch_for_crashes();
  std::ofstream("/proc/self/oom_score_adj") << "900";  // when memory runs out for the whole machine, this process should go first
  try {
    *status = serve(channel);
  } catch (const std::bad_alloc&) { *status = kOutOfMemoryStatus; } catch (const std::exception& error) {
    channel.send({{"error", to_json(Error{ErrorCode::kInternal, "an exception in the evaluator", "", "", error.what(), ""})}});
    *status = 1;
  }
  ::_exit(*status);  // static destructors of a process that ran foreign code are not to be trusted
}
}  // namespace warploom::verify
