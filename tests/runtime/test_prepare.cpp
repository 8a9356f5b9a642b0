// What is prepared of constants: once, on workspaces that calls share, and anew when it is asked.
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "fixtures.h"
#include "runtime/compile.h"
#include "runtime/compilers.h"
#include "runtime/executor.h"
#include "support/prepared_list.h"

namespace warploom::runtime {
namespace {
class Prepare : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!find_cpu_compiler()) GTEST_SKIP() << "no C++ compiler here";
    device = *Executor::open(Engine::cpu);
    const LaunchList list = test::prepared_list(device->info().arch, 1000);
    const auto binary = compile(list);
    ASSERT_OK(binary);
    auto loaded = device->load(list, *binary);
    ASSERT_OK(loaded);
    sum = std::move(*loaded);
    for (const char* name : {"x", "w", "y"})
      buffers[name] = *device->allocate(4000);
    set("x", 1);
    set("w", 10);
  }

  void set(const std::string& name, float value) {
    const std::vector<float> all(1000, value);
    ASSERT_OK(device->upload(buffers[name], all.data(), 4000));
  }

  float first(const std::string& name) {
    float value = 0;
    EXPECT_TRUE(device->download(buffers[name], &value, 4));
    return value;
  }

  const OwnCache cache;
  std::unique_ptr<Executor> device;
  Runnable sum;
  Bindings buffers;
};

TEST_F(Prepare, IsNoPartOfACallOnBoundWorkspaces) {
  buffers["t"] = *device->allocate(4000);
  const auto prepare = sum.prepare(buffers);
  const auto call = sum.bind(buffers);
  ASSERT_OK(prepare);
  ASSERT_OK(call);
  ASSERT_OK((*prepare)());
  ASSERT_OK((*call)());
  EXPECT_EQ(first("y"), 21);
  set("x", 2);
  set("w", 20);
  ASSERT_OK((*call)());
  EXPECT_EQ(first("y"), 22) << "a call prepares nothing: what is prepared is of the old constant";
  ASSERT_OK((*prepare)());
  ASSERT_OK((*call)());
  EXPECT_EQ(first("y"), 42);
}

TEST_F(Prepare, IsDoneAtOnceForACallWithWorkspacesOfItsOwn) {
  const auto call = sum.bind(buffers);
  ASSERT_OK(call);
  ASSERT_OK((*call)());
  EXPECT_EQ(first("y"), 21);
}

TEST_F(Prepare, WantsItsBuffersBound) {
  const auto prepare = sum.prepare({{"w", buffers["w"]}});
  ASSERT_FALSE(prepare);
  EXPECT_EQ(prepare.error().code, ErrorCode::kPlanInvalid);
  EXPECT_EQ(prepare.error().place, "t");
}

TEST_F(Prepare, IsNothingOfListsWithoutIt) {
  const LaunchList list = doubling_list(Engine::cpu, device->info().arch);
  const auto loaded = device->load(list, *compile(list));
  ASSERT_OK(loaded);
  EXPECT_FALSE(loaded->prepare);
}
}  // namespace
}  // namespace warploom::runtime
