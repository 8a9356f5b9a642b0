// beside: the judge's strict calls of a CPU kernel beside a plain benchmark of the same calls, in
// turns, so that both see the same minutes of the machine.
//
//   beside TEXT KERNEL BLOCKS PAIRS in:ELEMENTS… out:ELEMENTS…     fp32 buffers in the order of
//   args
//
// A pair is one strict call (verify/runner.h: in a cell, all memory as new) and one call by plain
// means: outputs filled, whole inputs copied from one of three sets, and the kernel called on
// threads of this process, one a core, that wait at a barrier before the clock starts. Prints JSON:
// the microseconds of both (`strict_us`, `plain_us`), what a strict call takes without work, and
// how far that differs (`overhead_us`, `overhead_spread_us`). Driven by agreement.py.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "cpu/pool.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "verify/cores.h"
#include "verify/evaluator.h"
#include "verify/runner.h"

namespace {
using namespace warploom;
using verify::Cores, verify::place_on, verify::Runner;

constexpr int kSets = 3;

struct Argument {
  bool is_input = false;
  int64_t elements = 0;
  std::vector<std::vector<float>> sets;  // of an input

  size_t bytes() const { return sizeof(float) * static_cast<size_t>(elements); }
};

Argument argument_of(const std::string& word, std::mt19937& random) {
  Argument made;
  made.is_input = word.starts_with("in:");
  made.elements = std::atoll(word.c_str() + word.find(':') + 1);
  std::normal_distribution<float> normal;
  for (int set = 0; made.is_input && set < kSets; ++set) {
    std::vector<float>& values = made.sets.emplace_back(static_cast<size_t>(made.elements));
    for (float& value : values)
      value = normal(random);
  }
  return made;
}

// Calls a kernel on threads that stay on a core each. They sleep while the judge has its turn.
class Plain {
 public:
  Plain(CpuKernel kernel, int64_t blocks, const std::vector<Argument>& arguments)
      : kernel_(kernel), blocks_(blocks), arguments_(arguments), cores_(Cores::allowed()) {
    for (const Argument& one : arguments)
      buffers_.push_back(wl::allocate_pages(static_cast<int64_t>(one.bytes())));
    for (const auto& buffer : buffers_)
      addresses_.push_back(buffer.get());
    const auto most = static_cast<int64_t>(cores_.order.size());
    count_ = static_cast<int>(std::min(blocks, most));
    for (int thread = 1; thread < count_; ++thread)
      threads_.emplace_back([=, this] { serve(thread); });
  }

  ~Plain() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    woken_.notify_all();
    for (std::thread& thread : threads_)
      thread.join();
  }

  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  double call_us(size_t set) {
    const verify::OnCore here(core_of(0));
    renew(set);
    {
      const std::lock_guard lock(mutex_);
      arrived_ = 0;
      finished_ = 0;
      next_ = 0;
      go_ = false;
      ++round_;
    }
    woken_.notify_all();
    while (arrived_ < count_ - 1)
      __builtin_ia32_pause();
    const auto start = std::chrono::steady_clock::now();
    go_ = true;
    take_blocks();
    while (finished_ < count_ - 1)
      __builtin_ia32_pause();
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - start;
    return spent.count();
  }

 private:
  // As the judge places the threads of a kernel: one alone is on the last core.
  int core_of(int thread) const {
    const auto place = static_cast<size_t>(thread);
    const bool apart = count_ < cores_.physical;
    return apart ? cores_.order[cores_.order.size() - 1 - place] : cores_.order[place];
  }

  // Inputs last, as the judge does: caches keep what comes last.
  void renew(size_t set) {
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (!arguments_[i].is_input) std::memset(addresses_[i], 0xed, arguments_[i].bytes());
    for (size_t i = 0; i < arguments_.size(); ++i)
      if (arguments_[i].is_input)
        std::memcpy(addresses_[i], arguments_[i].sets[set].data(), arguments_[i].bytes());
  }

  void take_blocks() {
    const int64_t chunk = std::max<int64_t>(1, blocks_ / (8 * count_));
    while (true) {
      const int64_t from = next_.fetch_add(chunk, std::memory_order_relaxed);
      if (from >= blocks_) return;
      for (int64_t block = from; block < std::min(blocks_, from + chunk); ++block)
        kernel_(addresses_.data(), block, nullptr);
    }
  }

  void serve(int thread) {
    place_on(0, core_of(thread));
    int seen = 0;
    while (true) {
      {
        std::unique_lock lock(mutex_);
        woken_.wait(lock, [&] { return over_ || round_ != seen; });
        if (over_) return;
        seen = round_;
      }
      ++arrived_;
      while (!go_)
        __builtin_ia32_pause();
      take_blocks();
      ++finished_;
    }
  }

  CpuKernel kernel_;
  int64_t blocks_;
  const std::vector<Argument>& arguments_;
  Cores cores_;
  std::vector<std::shared_ptr<void>> buffers_;
  std::vector<void*> addresses_;
  int count_ = 1;
  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable woken_;
  int round_ = 0;
  bool over_ = false;
  std::atomic<bool> go_ = false;
  alignas(64) std::atomic<int> arrived_ = 0;
  alignas(64) std::atomic<int> finished_ = 0;
  alignas(64) std::atomic<int64_t> next_ = 0;
};

LaunchList list_of(const std::string& text, const std::string& kernel, int64_t blocks,
                   const std::vector<Argument>& arguments) {
  LaunchList list;
  list.engine = Engine::cpu;
  list.arch = "cpu";
  Kernel& made = list.kernels.emplace_back(Kernel{.name = kernel, .source = text});
  made.threads = 1;
  made.grid = {blocks, 1, 1};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const BufferSpec spec{fmt::format("b{}", i), Dtype::f32, {arguments[i].elements}};
    (arguments[i].is_input ? list.inputs : list.outputs).push_back(spec);
    made.args.push_back({.buffer = spec.name});
  }
  return list;
}

// The judge's side: one call for each set of inputs.
struct Strict {
  std::unique_ptr<runtime::Executor> here;
  std::unique_ptr<Runner> runner;
  std::vector<runtime::Call> calls;
};

Result<Strict> strict_of(const LaunchList& list, const runtime::Binary& binary,
                         const std::vector<Argument>& arguments) {
  Strict made;
  WARPLOOM_TRY(made.here, runtime::Executor::open(Engine::cpu));
  WARPLOOM_TRY(made.runner, Runner::open(*made.here));
  made.runner->begin({.foreign = true});
  WARPLOOM_TRY(const runtime::Runnable kernel, made.runner->load(list, binary));
  runtime::Bindings outputs;
  for (size_t set = 0; set < kSets; ++set) {
    runtime::Bindings buffers = outputs;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string name = fmt::format("b{}", i);
      if (buffers.contains(name)) continue;
      const auto bytes = static_cast<int64_t>(arguments[i].bytes());
      WARPLOOM_TRY(buffers[name], made.runner->allocate(bytes));
      if (arguments[i].is_input)
        std::memcpy(buffers[name].address(), arguments[i].sets[set].data(), arguments[i].bytes());
      else
        outputs[name] = buffers[name];
    }
    WARPLOOM_TRY(made.calls.emplace_back(), kernel.bind(buffers));
  }
  return made;
}

Status compare(int argc, char** argv) {
  WARPLOOM_TRY(const std::string text, read_file(argv[1]));
  const std::string name = argv[2];
  const int64_t blocks = std::atoll(argv[3]);
  std::mt19937 random(std::random_device{}());
  std::vector<Argument> arguments;
  for (int i = 5; i < argc; ++i)
    arguments.push_back(argument_of(argv[i], random));
  const LaunchList list = list_of(text, name, blocks, arguments);
  WARPLOOM_TRY(const runtime::Binary binary, runtime::compile(list));
  WARPLOOM_TRY(const Strict strict, strict_of(list, binary, arguments));
  void* const image = ::dlopen(binary.images[0].c_str(), RTLD_NOW);
  const auto kernel = image ? reinterpret_cast<CpuKernel>(::dlsym(image, name.c_str())) : nullptr;
  if (!kernel) return fail({ErrorCode::kCompileFailed, "the kernel is not in its image", name});
  Plain plain(kernel, blocks, arguments);
  std::vector<double> strict_us;
  std::vector<double> plain_us;
  const int pairs = std::atoi(argv[4]);
  constexpr int kUntimed = 3;
  for (int pair = -kUntimed; pair < pairs; ++pair) {
    WARPLOOM_TRY(const double us, strict.runner->time_us(strict.calls[random() % kSets], 1));
    const double beside_us = plain.call_us(random() % kSets);
    if (pair < 0) continue;
    strict_us.push_back(us);
    plain_us.push_back(beside_us);
  }
  const Runner::Overhead overhead = strict.runner->overhead();
  const nlohmann::json out = {{"strict_us", strict_us},
                              {"plain_us", plain_us},
                              {"overhead_us", overhead.us},
                              {"overhead_spread_us", overhead.spread_us},
                              {"doubt_us", strict.runner->doubt_us(pairs)}};
  fmt::print("{}\n", out.dump());
  return ok();
}
}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  if (verify::evaluator_main(argc, argv, &status)) return status;
  if (argc < 7) return 2;
  const Status done = compare(argc, argv);
  if (!done) fmt::print(stderr, "{}: {}\n", done.error().message, done.error().found);
  return done ? 0 : 1;
}
