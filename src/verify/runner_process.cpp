// The runner's own side: shuts itself in, then loads kernels and carries steps out, until the socket closes.
#include <sys/prctl.h>
#include <csignal>
#include "base/random.h"
#include "cpu/pool.h"
#include "runtime/bound.h"
#include "verify/runner.h"
#include "verify/sandbox.h"
#include "verify/tolerance.h"
namespace warploom::verify {
namespace {
using nlohmann::json;

struct Loaded {
  CpuKernel function;
  std::int64_t blocks, scratch;
};

class Work {
 public:
  Work(char* memory, wl::Pool& pool) : memory_(memory), pool_(pool) {}

  json answer(const json& message) {
    if (message.contains("load")) return load(message);
    return run(message, message.value("steps", std::vector<Step>()), message.value("times", 1));
  }

 private:
  json load(const json& message) {
    const auto function = runtime::cpu_kernel(message["load"], message["name"]);
    if (!function) return {{"error", to_json(function.error())}};
    kernels_.push_back({*function, message["blocks"], message["scratch"]});
    return {{"kernel", kernels_.size() - 1}};
  }

  // Every worker awake, as one is that follows another call.
  void wake() {
    std::atomic<int> awake = 0;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    pool_.run(pool_.threads(), [&](std::int64_t, int) {
      for (++awake; awake < pool_.threads() && std::chrono::steady_clock::now() < until;) __builtin_ia32_pause();
    });
  }

  json run(const json& message, const std::vector<Step>& steps, int times) {
    backwards_ = message.value("backwards", false);
    const auto swapped = message.value("swapped", std::vector<Words>()), poked = message.value("poked", std::vector<Words>());
    Random random(message.value("seed", std::uint64_t{0}), "disturbances");
    wake();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
      std::vector<std::pair<char*, char*>> traded;
      for (const auto& [offset, words] : i + 1 < times ? swapped : std::vector<Words>()) {
        const auto word = [&, at = offset, of = words] { return memory_ + at + 8 * static_cast<std::int64_t>(random.below(of)); };
        traded.emplace_back(word(), word());
      }
      for (const auto& [offset, words] : i > 0 ? poked : std::vector<Words>())
        std::memcpy(memory_ + offset + 4 * static_cast<std::int64_t>(random.below(words)), &kPoison, sizeof kPoison);
      for (const auto& [a, b] : traded) std::swap_ranges(a, a + 8, b);
      for (const Step& step : steps)
        if (!step.empty() && !(step[0] == kFill ? fill(step) : launch(step)))
          return {{"error", to_json(Error{ErrorCode::kOutOfMemory, "no memory for a kernel's scratch", "", "its scratch",
                                          "no room", "take a smaller schedule"})}};
      for (const auto& [a, b] : traded) std::swap_ranges(a, a + 8, b);
    }
    return {{"us", std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count()}};
  }
  bool fill(const Step& step) {
    const auto word = static_cast<std::uint32_t>(step[3]);
    for (std::int64_t at = 0; at < step[2]; at += 4)
      std::memcpy(memory_ + step[1] + at, &word, std::min<std::int64_t>(4, step[2] - at));
    return true;
  }
  bool launch(const Step& step) {
    const Loaded& kernel = kernels_[step[0]];
    std::vector<void*> addresses;
    for (const std::int64_t offset : std::span(step).subspan(1)) addresses.push_back(memory_ + offset);
    return wl::run_blocks(pool_, kernel.function, addresses.data(), kernel.blocks, kernel.scratch, backwards_);
  }

  char* memory_;
  wl::Pool& pool_;
  std::vector<Loaded> kernels_;
  bool backwards_ = false;
};
int serve(Channel& channel, char* memory) {
  std::vector<std::string> held = shut_in();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  wl::Pool pool;
  cpu_set_t own;  // the core that the pool's other threads leave free, or a message could wake this one on theirs
  CPU_ZERO(&own);
  CPU_SET(wl::allowed_cores().front(), &own);
  ::sched_setaffinity(0, sizeof own, &own);
  if (seal()) held.push_back("seccomp");
  channel.send({{"sandbox", fmt::format("{}", fmt::join(held, ", "))}});
  Work work(memory, pool);
  while (const auto message = channel.receive(-1)) channel.send(work.answer(*message));
  ::_exit(0);
}
}  // namespace
bool runner_main(int argc, char** argv, int* status) { return peer_main(kRunCommand, 4, argc, argv, status, serve); }
}  // namespace warploom::verify
