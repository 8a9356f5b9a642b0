// Runner: the executor of CPU candidates, whose code runs in another process.
//
// The evaluator knows the answers; a candidate is machine code that could look for them. So the
// evaluator starts this program once more, `PROGRAM __run SOCKET CACHE MEMORY`, and hands it
// nothing but a socket and the memory where inputs, outputs and workspaces lie, which both map.
// FP64 values, the vendor's kernel and its outputs, and the verdict stay on this side.
//
//   WARPLOOM_TRY(const auto runner, Runner::open(*here));  // an Executor: allocate() gives shared
//   memory WARPLOOM_TRY(Runnable gemm, runner->load(list, binary)); WARPLOOM_TRY(const Call call,
//   gemm.bind(…)); call(); runner->synchronize();                         // launches are
//   asynchronous, as a GPU's: they leave in one message
//
// The runner is shut in before it loads anything (runner_process.cpp). When it dies, this process
// ends in the same way, for whoever judges to see; so a crash, a kill and a forbidden system call
// need no second way of being told.
//
// time_us() takes two clocks: the runner's, which does not count the message's way, and our own,
// which no candidate can reach. Where they contradict each other ours counts: a busy machine comes
// between them now and then, and clocks_agree() tells that from a candidate that forges the other.
// Calls that are repeated within a sample are disturbed: before each but the last, two words of
// every input trade places until it is done, and before each but the first a word of every output
// is poisoned, so that no answer can be used twice. Calls of `here`, the vendor's, run in this
// process and are timed by our own clock alone. Within the room only.
//
//   evaluator → runner   {"load": "/…/5f.image", "name": "gemm", "blocks": 64, "scratch": 8192}
//                        {"steps": [[0, 4096, …], …], "times": 12, "swapped": [[4096, 512], …],
//                        "poked": […], "seed": 5, "backwards": false}
//   runner → evaluator   {"sandbox": "rlimits, …"} once   {"kernel": 0}   {"us": 812.5}   {"error":
//   …}
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include "runtime/executor.h"
#include "verify/channel.h"

namespace warploom::verify {
// One thing to do: {kernel, addresses…} or {kFill, address, bytes, word}, which repeats the word.
// Addresses are in the memory.
using Step = std::vector<int64_t>;
inline constexpr int64_t kFill = -1;
using Words = std::pair<int64_t,
                        int64_t>;  // where, and how many of 8 bytes (4 where they are poked)

inline constexpr const char* kRunCommand = "__run";

// Memory that two processes map. What is given back takes no room, and its addresses wait for
// another buffer as large.
class SharedMemory {
 public:
  static std::shared_ptr<SharedMemory> make(
      int64_t bytes);  // of address space; null where there is none
  ~SharedMemory();
  std::shared_ptr<void> allocate(int64_t bytes);  // null when it is used up

  char* base() const { return base_; }

  int64_t offset(const void* address) const { return static_cast<const char*>(address) - base_; }

  int file() const { return file_; }

  static char* map(
      int file);  // the whole of it, at a multiple of a huge page; null where that fails

 private:
  int file_ = -1;
  char* base_ = nullptr;
  int64_t bytes_ = 0;
  int64_t used_ = 0;
  std::map<int64_t, std::vector<int64_t>> free_;  // beginnings, by bytes
};

// What Peer::start() started: true when `argv` is `command` and of so many words. `work` has then
// been handed the channel and the memory, null without a fifth word, and `*status` is what it
// gave: what the program should exit with.
bool peer_main(const char* command, int words, int argc, char** argv, int* status,
               const std::function<int(Channel&, char* memory)>& work);

class Runner final : public runtime::Executor {
 public:
  static Result<std::unique_ptr<Runner>> open(runtime::Executor& here);

  const std::string& sandbox() const {
    return sandbox_;
  }  // what holds it: "rlimits, landlock, seccomp"

  int process() const { return process_.process; }  // its id

  Status renew();  // a process, or another one: what was loaded is gone
  // What repeated calls are disturbed by: their inputs and outputs.
  void disturb(const std::vector<runtime::Buffer>& inputs,
               const std::vector<runtime::Buffer>& outputs, uint64_t seed);

  Result<int64_t> free_memory() override { return here_.free_memory(); }

  Result<runtime::Buffer> allocate(int64_t bytes) override;
  Status fill(const runtime::Buffer& buffer,
              uint32_t word) override;  // here, unless launches wait or are recorded
  Status synchronize() override;
  Result<double> time_us(const runtime::Call& work, int times) override;

 private:
  explicit Runner(runtime::Executor& here) : Executor(Engine::cpu, here.info()), here_(here) {}

  Result<runtime::LoadedKernel> load_kernel(const Kernel& kernel,
                                            const std::string& image) override;
  Result<nlohmann::json> ask(const nlohmann::json& message);
  // The steps, so many times; the runner's own time for that, us.
  Result<double> carry_out(const std::vector<Step>& steps, int times, bool backwards = false);

  runtime::Executor& here_;
  std::shared_ptr<SharedMemory> memory_;
  Peer process_;
  std::string sandbox_;
  std::vector<Step> waiting_;
  bool recording_ = false;
  int untimed_ = 0;  // runs of the candidate: the first and every other begin with the last block,
                     // timed ones with the first
  nlohmann::json disturbances_ =
      nlohmann::json::object();  // of the measurement: "swapped", "poked"
  uint64_t seed_ = 0;
};

// The runner's own side, to its end.
int run_for(Channel& channel, char* memory);
}  // namespace warploom::verify
