#include <gtest/gtest.h>
#include <stdlib.h>
#include <atomic>
#include <chrono>
#include <thread>
#include "base/file.h"
#include "verify/gpu_turn.h"

namespace warploom::verify {
namespace {
using std::chrono::milliseconds;

// Each GpuTurn has the file open on its own, as each process has.
class GpuTurnTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }

  inline static ScratchFolder cache_{"gpu-turn-test"};

  // Whether somebody else times while `held` lasts.
  static bool times_beside(bool alone) {
    GpuTurn one("a");
    GpuTurn other("a");
    std::atomic<bool> timed = false;
    std::thread timer;
    {
      const GpuTurn::Held first = alone ? one.alone() : one.share();
      timer = std::thread([&] {
        const GpuTurn::Held timing = other.alone();
        timed = true;
      });
      std::this_thread::sleep_for(milliseconds(50));
      if (timed) {
        timer.join();
        return true;
      }
    }
    timer.join();
    return false;
  }
};

TEST_F(GpuTurnTest, WhoTimesWaitsUntilNobodyWorks) {
  EXPECT_FALSE(times_beside(false));
}

TEST_F(GpuTurnTest, WhoTimesWaitsUntilNobodyTimes) {
  EXPECT_FALSE(times_beside(true));
}

TEST_F(GpuTurnTest, WhoWorksDoesNotWaitForOthersThatWork) {
  GpuTurn one("a");
  GpuTurn other("a");
  const auto start = std::chrono::steady_clock::now();
  const GpuTurn::Held first = one.share();
  const GpuTurn::Held second = other.share();
  EXPECT_LT(std::chrono::steady_clock::now() - start, GpuTurn::kPatience);
}

TEST_F(GpuTurnTest, OneWithinAnotherLeavesTheTurnToTheOuter) {
  constexpr milliseconds kShort{100};
  GpuTurn one("a");
  GpuTurn other("a", kShort);
  const GpuTurn::Held outer = one.alone();
  { const GpuTurn::Held inner = one.share(); }
  const auto start = std::chrono::steady_clock::now();
  const GpuTurn::Held waits = other.alone();
  EXPECT_GE(std::chrono::steady_clock::now() - start, kShort);
}

TEST_F(GpuTurnTest, AnotherGpuIsAnotherTurn) {
  GpuTurn one("a");
  GpuTurn other("b");
  const auto start = std::chrono::steady_clock::now();
  const GpuTurn::Held first = one.alone();
  const GpuTurn::Held second = other.alone();
  EXPECT_LT(std::chrono::steady_clock::now() - start, GpuTurn::kPatience);
}

TEST_F(GpuTurnTest, WithoutAPlaceNobodyWaits) {
  GpuTurn one;
  GpuTurn other;
  const auto start = std::chrono::steady_clock::now();
  const GpuTurn::Held first = one.alone();
  const GpuTurn::Held second = other.alone();
  EXPECT_LT(std::chrono::steady_clock::now() - start, GpuTurn::kPatience);
}
}  // namespace
}  // namespace warploom::verify
