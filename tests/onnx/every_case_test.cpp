// Damaged copies of every installed case of the ONNX project, read by children that may take 1 GiB
// and a second a model.
//
// WARPLOOM_ONNX_MUTANTS damaged copies of each (20 unless it says otherwise),
// WARPLOOM_ONNX_MUTANTS_SEED their seed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "damage.h"
#include "onnx/load.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;
constexpr rlim_t kMostBytes = rlim_t{1} << 30;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimited = false;  // the sanitizers' own memory is larger than the limit
#else
constexpr bool kLimited = true;
#endif

struct Case {
  std::string name;
  std::string bytes;
};

std::vector<Case> installed() {
  std::vector<Case> cases;
  const fs::path root = "/usr/share/libonnx-testdata/data";
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(root, none))
    if (entry.path().filename() == "model.onnx")
      cases.push_back({entry.path().parent_path().filename(), *read_file(entry.path())});
  std::ranges::sort(cases, {}, &Case::name);
  return cases;
}

uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Counts {  // in memory that parent and child share
  uint64_t next = 0;
  uint64_t accepted = 0;
  uint64_t refused = 0;
  uint64_t without_memory = 0;
  uint64_t faults = 0;
  double slowest = 0;
};

// What a child does: reads from mutant `next` on, until it is through or dies.
[[noreturn]] void read_on(const std::vector<Case>& cases, uint64_t each, uint64_t seed,
                          Counts& counts) {
  const rlimit memory{kMostBytes, kMostBytes};
  if (kLimited) setrlimit(RLIMIT_AS, &memory);
  while (counts.next < cases.size() * each) {
    const Case& of = cases[counts.next / each];
    Random random(seed, fmt::format("{} {}", of.name, counts.next % each));
    const std::string bytes = damaged(of.bytes, random);
    ++counts.next;
    const itimerval second{{0, 0}, {1, 0}};
    const itimerval never{};
    setitimer(ITIMER_REAL, &second, nullptr);  // SIGALRM ends the child
    const auto start = std::chrono::steady_clock::now();
    const auto graph = parse_onnx(bytes);
    counts.slowest =
        std::max(counts.slowest,
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    setitimer(ITIMER_REAL, &never, nullptr);
    ++(graph ? counts.accepted : counts.refused);
    if (graph) continue;
    counts.without_memory += graph.error().code == ErrorCode::kOutOfMemory;
    counts.faults += graph.error().code == ErrorCode::kInternal;
  }
  _exit(0);
}

TEST(Mutants, OfEveryInstalledCaseCostLittleAndCrashNothing) {
  const std::vector<Case> cases = installed();
  if (cases.empty()) GTEST_SKIP() << "no installed test data";
  const uint64_t each = number_of("WARPLOOM_ONNX_MUTANTS", 20);
  const uint64_t seed = number_of("WARPLOOM_ONNX_MUTANTS_SEED", 2026);
  void* shared =
      mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& counts = *new (shared) Counts;
  int crashed = 0;
  int late = 0;
  long peak = 0;  // KiB
  while (counts.next < cases.size() * each) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) read_on(cases, each, seed, counts);
    int status = 0;
    rusage used{};
    ASSERT_EQ(wait4(child, &status, 0, &used), child);
    peak = std::max(peak, used.ru_maxrss);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    const bool slow = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
    ++(slow ? late : crashed);
    ADD_FAILURE() << cases[(counts.next - 1) / each].name << ", mutant " << (counts.next - 1) % each
                  << " of seed " << seed << (slow ? ": more than a second" : ": ended with status ")
                  << (slow ? "" : std::to_string(status));
  }
  std::printf(
      "%zu models, %zu mutants of seed %zu: %zu accepted, %zu refused (%zu for want of memory), %d "
      "crashed, %d late; "
      "slowest %.3f s, peak %ld MiB\n",
      cases.size(), cases.size() * each, seed, counts.accepted, counts.refused,
      counts.without_memory, crashed, late, counts.slowest, peak / 1024);
  EXPECT_EQ(counts.faults, 0u);
  EXPECT_EQ(counts.without_memory, 0u);
  munmap(shared, sizeof(Counts));
}
}  // namespace
}  // namespace warploom
