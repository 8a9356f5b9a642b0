#include <gtest/gtest.h>
#include <cstdint>
#include <memory>
#include "verify/shared_memory.h"

namespace warploom::verify {
namespace {
constexpr int64_t kSmall = 4096;
constexpr int64_t kLarge = int64_t{8} << 20;

class SharedMemoryTest : public testing::Test {
 protected:
  std::shared_ptr<SharedMemory> memory_ = SharedMemory::make(int64_t{1} << 30);
};

TEST_F(SharedMemoryTest, ASmallBufferIsZeroAgainInTheSamePlace) {
  void* before = nullptr;
  {
    const auto buffer = memory_->allocate(kSmall);
    before = buffer.get();
    *static_cast<char*>(before) = 7;
  }
  const auto again = memory_->allocate(kSmall);
  ASSERT_EQ(again.get(), before);
  EXPECT_EQ(*static_cast<const char*>(again.get()), 0);
}

// Its pages are not made anew: whoever uses it writes all of it.
TEST_F(SharedMemoryTest, ALargeBufferKeepsItsPages) {
  void* before = nullptr;
  {
    const auto buffer = memory_->allocate(kLarge);
    before = buffer.get();
    *static_cast<char*>(before) = 7;
  }
  const auto again = memory_->allocate(kLarge);
  ASSERT_EQ(again.get(), before);
  EXPECT_EQ(*static_cast<const char*>(again.get()), 7);
}

TEST_F(SharedMemoryTest, BuffersThatLiveAtOnceLieApart) {
  const auto one = memory_->allocate(kLarge);
  const auto other = memory_->allocate(kLarge);
  const int64_t apart = memory_->offset(other.get()) - memory_->offset(one.get());
  EXPECT_GT(apart, kLarge);
  EXPECT_EQ(memory_->extent_of(one.get()).bytes, kLarge);
}

TEST_F(SharedMemoryTest, BeyondItsRoomThereIsNone) {
  EXPECT_EQ(memory_->allocate(int64_t{2} << 30), nullptr);
}
}  // namespace
}  // namespace warploom::verify
