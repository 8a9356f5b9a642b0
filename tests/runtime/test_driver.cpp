#include <gtest/gtest.h>
#include <string>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/driver.h"
#include "runtime/executor.h"
#include "runtime/library.h"

namespace warploom::runtime {
namespace {
TEST(Driver, MissingIsAnErrorOfItsOwn) {
  if (Library{"libcuda.so.1"}) GTEST_SKIP() << "a CUDA driver is here";
  const auto device = Executor::open(Engine::cuda);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kNoDriver);
  EXPECT_FALSE(device.error().remedy.empty());
}

TEST(Driver, AnswersTheSameEveryTime) {
  const auto first = Driver::get();
  const auto second = Driver::get();
  ASSERT_EQ(first.has_value(), second.has_value());
  if (first) {
    EXPECT_EQ(*first, *second);
  }
}

TEST(Driver, CodesHaveMeanings) {
  Driver driver;
  driver.cuGetErrorName = [](CUresult, const char** text) {
    *text = "NAME";
    return 0;
  };
  driver.cuGetErrorString = [](CUresult, const char** text) {
    *text = "words";
    return 0;
  };
  EXPECT_TRUE(driver.check(0, "cuCall"));
  EXPECT_EQ(driver.check(2, "cuCall").error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(driver.check(100, "cuCall").error().code, ErrorCode::kNoGpu);
  EXPECT_EQ(driver.check(700, "cuCall").error().code, ErrorCode::kCandidateCrashed);
  const Error other = driver.check(1, "cuCall").error();
  EXPECT_EQ(other.code, ErrorCode::kCudaCall);
  EXPECT_EQ(other.message, "cuCall failed: words");
  EXPECT_EQ(other.found, "NAME (1)");
}

TEST(Library, ThatIsMissingSaysWhy) {
  const Library library{"libno_such_library_of_warploom.so"};
  EXPECT_FALSE(library);
  EXPECT_NE(library.why_not().find("libno_such_library_of_warploom.so"), std::string::npos);
}
}  // namespace
}  // namespace warploom::runtime
