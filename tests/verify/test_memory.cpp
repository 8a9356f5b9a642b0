// What is free: memory that another process had comes back by and by.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/error.h"
#include "verify/judge.h"

namespace warploom::verify {
namespace {
constexpr int64_t kWanted = 12'000'000'000;

// Free memory as a list of what each look finds, the last of it from then on.
int64_t found(std::vector<int64_t> looks) {
  size_t at = 0;
  const auto free = await_memory(
      [&] { return Result<int64_t>(looks[std::min(at++, looks.size() - 1)]); }, kWanted, {});
  return free.value_or(-1);
}
}  // namespace

TEST(FreeMemory, IsWaitedForWhileItComesBack) {
  EXPECT_EQ(found({1'000'000'000, 1'000'000'000, 5'000'000'000, 5'000'000'000, 13'000'000'000}),
            13'000'000'000);
}

TEST(FreeMemory, IsWhatThereIsWhenNoMoreComes) {
  EXPECT_EQ(found({13'000'000'000}), 13'000'000'000);
  EXPECT_EQ(found({1'000'000'000, 1'000'001'000, 1'000'000'000}), 1'000'000'000);
}
}  // namespace warploom::verify
