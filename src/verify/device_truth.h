// DeviceTruth: inputs, truth and comparison on the GPU, in a process of their own that runs no
// candidate: this program once more, `PROGRAM __truth SOCKET CACHE MEMORY`. Within the room only.
//
//   WARPLOOM_TRY(auto truth, DeviceTruth::start(setup, device));
//   WARPLOOM_CHECK(truth->draw(0, InputFamily::normal, seed, tensors));  // into these buffers
//   …a candidate runs…
//   WARPLOOM_TRY(const auto seen, truth->compare(0, outputs));           // one Comparison an
//   output WARPLOOM_TRY(const auto changed, truth->changed(0, tensors));        // an input, or
//   none
//
// The process draws a set of inputs for itself, and copies it into the evaluator's buffers; whether
// a candidate wrote to them is seen by its own copy. It looks at the evaluator's memory where the
// driver lets two processes share it (runtime/device_sharing.h), else bytes go by way of a piece of
// the host's memory that both map, in parts. Nothing that a candidate can reach holds the answer.
//
//   evaluator → process   {"graph": …, …}                        the setup
//   process → evaluator   {"ready": true}
//   evaluator → process   {"map": 3, "bytes": …, "shared": true}, then the file
//                         {"put": 3, "at": …, "bytes": …}        from the host's memory; "get":
//                         into
//                         {"draw": 0, "family": "normal", "seed": …, "to": [[3, at, bytes], …]}
//                         {"compare": 0, "outputs": [[4, at, bytes]], "whole": true, …}
//                         {"prepare": 0, "seconds": 1.5}         makes its truth now
//                         {"changed": 0, "tensors": […]}   {"hash": […]}   {"forget": 0}
//   process → evaluator   {"done": true}, {"known": 512}, {"seen": […]}, {"input": -1}, {"hash": …}
//                         or {"error": …}
//
// Errors: what TruthEngine and the executor say; evaluator-lost where the process ended or did not
// answer in time.
#pragma once
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "verify/channel.h"
#include "verify/inputs.h"
#include "verify/setup.h"
#include "verify/shared_memory.h"
#include "verify/tolerance.h"
#include "verify/truth_engine.h"

namespace warploom::verify {
inline constexpr const char* kTruthCommand = "__truth";

struct DeviceTruthOptions {
  std::string program = "/proc/self/exe";
  int limit_ms = 600'000;                      // for one answer
  int64_t transfer_bytes = int64_t{64} << 20;  // that go by way of the host at once
};

// A buffer of the evaluator's: what a candidate or the vendor reads or writes, within the whole
// allocation that it lies in.
struct Looked {
  runtime::Buffer whole;
  runtime::Buffer data;
};

class DeviceTruth {
 public:
  // Starts the process, which opens its GPU by itself.
  static Result<std::unique_ptr<DeviceTruth>> launch(const DeviceTruthOptions& options = {});
  // Tells it of the problem; await() says when it is ready. `device` made the buffers that are
  // looked at.
  void give(const Setup& setup, runtime::Executor& device);
  // Both.
  static Result<std::unique_ptr<DeviceTruth>> start(const Setup& setup, runtime::Executor& device,
                                                    const DeviceTruthOptions& options = {});
  Status await();  // before anything else is asked
  // Draws a set of inputs into the first buffers, as many as the graph has inputs.
  Status draw(int set, InputFamily family, uint64_t seed, std::span<const Looked> tensors);
  // Makes a set's truth now, in so many seconds, or says why it cannot be made: how many rows of
  // all outputs comparisons then know the truth of.
  Result<int64_t> prepare(int set, double seconds = HUGE_VAL);
  Result<std::vector<Comparison>> compare(int set, std::span<const Looked> outputs,
                                          const CompareScope& scope = {});
  // The first of the graph's inputs, then its constants, that is not what was drawn.
  Result<std::optional<size_t>> changed(int set, std::span<const Looked> tensors);
  Result<uint64_t> hash(std::span<const Looked> outputs);
  Status forget(int set);

 private:
  // How the process knows an allocation of the evaluator's.
  struct Known {
    int key = 0;
    bool shared = false;    // else it has a copy, which is brought up to date
    runtime::Buffer whole;  // stays as long as that is looked at
  };

  explicit DeviceTruth(const DeviceTruthOptions& options) : options_(options) {}

  Result<nlohmann::json> ask(const nlohmann::json& message, int file = -1);
  Result<nlohmann::json> answer();
  Result<const Known*> known(const Looked& buffer);
  // Where each buffer lies, as the process knows it; `fresh`: copies are brought up to date first.
  Result<nlohmann::json> places(std::span<const Looked> buffers, bool fresh);
  Status transfer(const Known& to, const Looked& buffer, bool to_process);

  runtime::Executor* device_ = nullptr;
  DeviceTruthOptions options_;
  std::shared_ptr<SharedMemory> memory_;
  Peer process_;
  std::map<void*, Known> known_;
};

// The process's own side, to its end: its exit status.
int truth_for(Channel& channel, char* memory, Engine engine);
}  // namespace warploom::verify
