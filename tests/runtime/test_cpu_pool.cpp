#include <gtest/gtest.h>
#include <sched.h>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>
#include "cpu/pool.h"

namespace warploom::runtime {
namespace {
TEST(Pool, RunsEveryTaskOnce) {
  wl::Pool pool(3);
  for (const int64_t count : {0, 1, 2, 3, 100, 9999}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(count));
    pool.run(count, [&](int64_t task, int) { ++runs[static_cast<size_t>(task)]; });
    for (const auto& r : runs)
      ASSERT_EQ(r, 1);
  }
}

TEST(Pool, SurvivesManyShortRunsInARow) {
  wl::Pool pool(4);
  int64_t total = 0;
  for (int run = 0; run < 5000; ++run) {
    std::atomic<int64_t> sum{0};
    pool.run(7, [&](int64_t task, int) { sum += task; });
    total += sum;
  }
  EXPECT_EQ(total, 5000 * 21);
}

TEST(Pool, WakesSleepingWorkers) {
  wl::Pool pool(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::atomic<int> sum{0};
  pool.run(64, [&](int64_t, int) { ++sum; });
  EXPECT_EQ(sum, 64);
}

TEST(Pool, TellsWorkersApart) {
  wl::Pool pool(2);
  std::atomic<bool> good{true};
  pool.run(100, [&](int64_t, int worker) { good = good && worker >= 0 && worker < 2; });
  EXPECT_TRUE(good);
}

TEST(Pool, GivesEachWorkerAlignedScratchThatStays) {
  wl::Pool pool(2);
  void* first = pool.scratch(0, 10000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 4096, 0u);
  EXPECT_NE(first, pool.scratch(1, 10000));
  EXPECT_EQ(first, pool.scratch(0, 5000));
}

TEST(Pool, AlignsBigBuffersForHugePages) {
  const auto memory = wl::allocate_pages(int64_t{8} << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % (2 << 20), 0u);
}

// Where the other of two workers ran while the caller kept to one core; -1: nowhere for 20 s,
// or the caller may not.
int core_of_the_other(wl::Pool& pool, int own) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(own, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) return -1;
  std::atomic<int> elsewhere = -1;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (elsewhere < 0 && std::chrono::steady_clock::now() < until)
    pool.run(64, [&](int64_t, int worker) {
      if (worker == 1) elsewhere = ::sched_getcpu();
    });
  return elsewhere;
}

// Two on one core would take up to twice as long, on a machine with nothing else to do.
TEST(Pool, AWorkerThatMeetsTheCallerOnItsCoreMakesWay) {
  const std::vector<int> cores = wl::allowed_cores();
  if (cores.size() < 2) GTEST_SKIP() << "one core";
  wl::Pool pool(2);
  for (const int own : {cores[1], cores[0], cores[1]}) {
    std::thread([&] {  // whose affinity is its own
      EXPECT_EQ(core_of_the_other(pool, own), own == cores[0] ? cores[1] : cores[0]);
    })
        .join();
  }
}

TEST(Pool, UsesTheAllowedCores) {
  EXPECT_EQ(wl::Pool().threads(), static_cast<int>(wl::allowed_cores().size()));
}
}  // namespace
}  // namespace warploom::runtime
