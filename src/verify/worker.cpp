// The evaluator process: reads a setup, then requests, and answers with phases and verdicts.
//
//   parent → worker   {"device": "1"}, where it is to see one GPU alone
//                     {"ahead": true}, where the problem is not known yet (evaluator_pool.h)
//                     {"graph": …, …}  {"list": …, "whole": false, …}
//   worker → parent   {"ready": …}
//                     {"phase": "candidate", "expected_ms": 0}  {"phase": "own"}
//                     {"verdict": …, "tainted": false}
//                     {"error": …} when the problem cannot be set up at all
#include <stdlib.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "verify/cell.h"
#include "verify/channel.h"
#include "verify/device_truth.h"
#include "verify/evaluator.h"
#include "verify/gpu_products.h"
#include "verify/judge.h"
#include "verify/memory_group.h"
#include "verify/peer.h"
#include "verify/setup.h"

namespace warploom::verify {
namespace {
using nlohmann::json;

// After these refusals a process is replaced whose GPU the candidate ran on. A cell (cell.h) takes
// what its candidate did with it.
constexpr std::array kFaults = {ErrorCode::kCandidateCrashed, ErrorCode::kCandidateHung,
                                ErrorCode::kCudaCall, ErrorCode::kCandidateWroteInput,
                                ErrorCode::kCandidateMemory};

int serve(Channel& channel) {
  json message = channel.receive(-1).value_or(json());
  if (message.contains("device")) {
    ::setenv("CUDA_VISIBLE_DEVICES", message.value("device", "").c_str(), 1);
    message = channel.receive(-1).value_or(json());
  }
  Ahead ahead;
  if (message.contains("ahead")) {
    ahead = open_ahead();
    message = channel.receive(-1).value_or(json());
  }
  auto setup = setup_from_json(message);
  const auto refuse = [&](const Error& error) {
    channel.send({{"error", to_json(error)}});
    return 1;
  };
  if (!setup) return refuse(setup.error());
  const auto announce = [&](bool candidate, double expected_ms) {
    channel.send({{"phase", candidate ? "candidate" : "own"}, {"expected_ms", expected_ms}});
  };
  const bool on_gpu = setup->engine == Engine::cuda;
  if (!on_gpu) limit_data_without_group(memory_for_candidates());  // a driver reserves freely
  Judge judge(std::move(*setup), announce, std::move(ahead));
  const auto ready = judge.prepare();
  if (!ready) return refuse(ready.error());
  channel.send({{"ready", *ready}});
  while (auto line = channel.receive(-1)) {
    const auto request = request_from_json(*line);
    if (!request) return refuse(request.error());
    const Verdict verdict = judge.judge(*request);
    const bool fault = std::ranges::count(kFaults, verdict.error_found.code) > 0;
    const bool tainted = on_gpu && fault && !verdict.accepted;
    channel.send({{"verdict", to_json(verdict)}, {"tainted", tainted}});
    if (tainted) ::_exit(0);  // the context of a GPU that faulted may hang when it is torn down
  }
  return 0;
}

[[noreturn]] int evaluator(Channel& channel, char*) {
  runtime::set_helper_program("/proc/self/exe");  // which NVRTC runs in (evaluator_main)
  // Else oneDNN's threads spin for milliseconds, into the time of what comes next.
  ::setenv("GOMP_SPINCOUNT", "10000", 0);
  ::setenv("OPENBLAS_THREAD_TIMEOUT", "10", 0);  // likewise: 2^10 cycles
  // When memory runs out for the whole machine, this process should go first.
  std::ofstream("/proc/self/oom_score_adj") << "900";
  int status = 1;
  try {
    status = serve(channel);
  } catch (const std::bad_alloc&) {
    status = kOutOfMemoryStatus;
  } catch (const std::exception& error) {
    const Error said{ErrorCode::kInternal, "an exception in the evaluator", "", "", error.what()};
    channel.send({{"error", to_json(said)}});
  }
  ::_exit(status);  // static destructors of a process that ran foreign code are not to be trusted
}

int truth_on_gpu(Channel& channel, char* memory) {
  return truth_for(channel, memory, Engine::cuda);
}
}  // namespace

bool evaluator_main(int argc, char** argv, int* status) {
  return runtime::compiler_main(argc, argv, status) || cell_main(argc, argv, status) ||
         peer_main(kEvaluateCommand, 4, argc, argv, status, evaluator) ||
         peer_main(kMultiplyCommand, 5, argc, argv, status, multiply_for) ||
         peer_main(kTruthCommand, 5, argc, argv, status, truth_on_gpu);
}
}  // namespace warploom::verify
