// Control groups round candidates' processes: which is made where, on a tree that is imitated, and
// one of the kernel's own where this user may make one.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include "base/file.h"
#include "verify/memory_group.h"

namespace warploom::verify {
namespace {
namespace fs = std::filesystem;

constexpr uint64_t kBytes = 6'200'000'000;

// As the kernel shows it: /, /user where memory is passed on, /user/shell of this process.
class ImitatedTree : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(tree_.root / "user/shell");
    write("cgroup.controllers", "cpu memory pids\n");
    for (const std::string folder : {"", "user/", "user/shell/"}) {
      write(folder + "cgroup.procs", "");
      write(folder + "cgroup.subtree_control", "");
    }
    write("user/cgroup.subtree_control", "cpu memory\n");
    write("own", "3:cpuset:/\n0::/user/shell\n");
  }

  void write(const std::string& file, const std::string& text) {
    ASSERT_TRUE(write_file(tree_.root / file, text));
  }

  std::string text(const fs::path& file) { return read_file(file).value_or("none"); }

  ScratchFolder folder_{"groups"};
  GroupTree tree_{folder_.path(), folder_.path() / "own"};
};

TEST_F(ImitatedTree, AGroupIsMadeInTheNearestThatPassesMemoryOn) {
  const auto group = MemoryGroup::make(kBytes, tree_);
  ASSERT_TRUE(group);
  EXPECT_EQ(group->path().parent_path(), tree_.root / "user");
}

TEST_F(ImitatedTree, AGroupIsBounded) {
  const auto group = MemoryGroup::make(kBytes, tree_);
  ASSERT_TRUE(group);
  EXPECT_EQ(text(group->path() / "memory.max"), std::to_string(kBytes));
}

TEST_F(ImitatedTree, AGroupEndsAsAWhole) {
  const auto group = MemoryGroup::make(kBytes, tree_);
  ASSERT_TRUE(group);
  EXPECT_EQ(text(group->path() / "memory.oom.group"), "1");
}

TEST_F(ImitatedTree, AProcessEntersByItself) {
  const auto group = MemoryGroup::make(kBytes, tree_);
  ASSERT_TRUE(group);
  group->enter();
  EXPECT_EQ(text(group->path() / "cgroup.procs"), "0");
}

TEST_F(ImitatedTree, NoneIsMadeWhereMemoryIsNotPassedOn) {
  write("user/cgroup.subtree_control", "cpu pids\n");
  EXPECT_FALSE(MemoryGroup::make(kBytes, tree_));
}

TEST_F(ImitatedTree, NoneIsMadeInATreeOfVersion1) {
  fs::remove(tree_.root / "cgroup.controllers");
  EXPECT_FALSE(MemoryGroup::make(kBytes, tree_));
}

TEST_F(ImitatedTree, NoneIsMadeWhereTheOwnGroupIsOutOfSight) {
  write("own", "0::/../other\n");
  EXPECT_FALSE(MemoryGroup::make(kBytes, tree_));
}

TEST_F(ImitatedTree, AGroupOfAProgramThatIsGoneIsRemoved) {
  const pid_t gone = ::fork();
  if (gone == 0) ::_exit(0);
  ::waitpid(gone, nullptr, 0);
  const fs::path left = tree_.root / "user" / fmt::format("warploom-{}-1", gone);
  fs::create_directory(left);
  const auto group = MemoryGroup::make(kBytes, tree_);
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(ImitatedTree, AGroupOfARunningProgramStays) {
  const fs::path other = tree_.root / "user" / fmt::format("warploom-{}-1", ::getppid());
  fs::create_directory(other);
  const auto group = MemoryGroup::make(kBytes, tree_);
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(ImitatedTree, TheKernelsWordOfAnEndIsRead) {
  const auto group = MemoryGroup::make(kBytes, tree_);
  ASSERT_TRUE(group);
  EXPECT_FALSE(group->ran_out());
  ASSERT_TRUE(write_file(group->path() / "memory.events", "low 0\noom 1\noom_kill 2\n"));
  EXPECT_TRUE(group->ran_out());
}

TEST_F(ImitatedTree, AVerdictSaysTheBound) {
  write("own", "0::/user/warploom-7-1\n");
  fs::create_directory(tree_.root / "user/warploom-7-1");
  write("user/warploom-7-1/memory.max", "6200000000\n");
  EXPECT_EQ(memory_confinement(tree_), "memory: a cgroup of 6.2 GB, shared memory counted");
}

TEST_F(ImitatedTree, AVerdictSaysThatThereIsNone) {
  EXPECT_EQ(memory_confinement(tree_),
            "memory: rlimits, shared memory not counted (no cgroup v2 to be made)");
}

// Of the kernel's own tree.
TEST(MemoryGroups, SharedMemoryBeyondTheBoundEndsTheProcess) {
  constexpr size_t kMost = size_t{16} << 20;
  const auto group = MemoryGroup::make(kMost);
  if (!group) GTEST_SKIP() << "no cgroup v2 that this user may make";
  const pid_t child = ::fork();
  if (child == 0) {
    group->enter();
    const int file = ::memfd_create("shared", 0);
    if (::ftruncate(file, 4 * kMost) != 0) ::_exit(1);
    void* const memory = ::mmap(nullptr, 4 * kMost, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    std::memset(memory, 1, 4 * kMost);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
  EXPECT_TRUE(group->ran_out());
}

TEST(MemoryGroups, AGroupIsGoneWithItsOwner) {
  auto group = MemoryGroup::make(size_t{64} << 20);
  if (!group) GTEST_SKIP() << "no cgroup v2 that this user may make";
  const fs::path path = group->path();
  group.reset();
  EXPECT_FALSE(fs::exists(path));
}
}  // namespace
}  // namespace warploom::verify
