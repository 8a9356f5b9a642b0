// Where the cache goes when the places for it are missing or not to be had.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include "base/file.h"
#include "fixtures.h"

namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

class Places : public testing::Test {
 protected:
  ScratchFolder folder{"places"};
  fs::path temporary = folder.path() / "temporary";
  fs::path fallback = temporary / fmt::format("warploom-cache-{}", ::geteuid());

  void SetUp() override {
    fs::create_directories(temporary);
    EXPECT_TRUE(write_file(folder.path() / "file", ""));
  }
};

TEST_F(Places, AUsableCacheHomeIsTaken) {
  const WithVariable xdg("XDG_CACHE_HOME", folder.path().string());
  const CacheFolder found = find_cache_folder();
  EXPECT_EQ(found.path, folder.path() / "warploom");
  EXPECT_TRUE(found.kept);
  EXPECT_TRUE(found.passed_over.empty());
}

TEST_F(Places, AHomeServesWhereNoCacheHomeIsNamed) {
  const WithVariable xdg("XDG_CACHE_HOME", "not absolute");
  const WithVariable home("HOME", folder.path().string());
  EXPECT_EQ(find_cache_folder().path, folder.path() / ".cache/warploom");
}

TEST_F(Places, AnUnusableOneIsPassedOverWithItsReason) {
  const WithVariable xdg("XDG_CACHE_HOME", (folder.path() / "file").string());
  const WithVariable tmp("TMPDIR", temporary.string());
  const CacheFolder found = find_cache_folder();
  EXPECT_EQ(found.path, fallback);
  ASSERT_EQ(found.passed_over.size(), 1u);
  EXPECT_NE(found.passed_over[0].find("Not a directory"), std::string::npos);
}

TEST_F(Places, AFolderThatOthersMayWriteToIsNotTheUsersOwn) {
  const WithVariable xdg("XDG_CACHE_HOME", (folder.path() / "file").string());
  const WithVariable tmp("TMPDIR", temporary.string());
  fs::create_directories(fallback);
  ::chmod(fallback.c_str(), 0777);
  const CacheFolder found = find_cache_folder();
  EXPECT_NE(found.path, fallback);
  EXPECT_FALSE(found.kept);
  EXPECT_EQ(found.passed_over.size(), 2u);
  EXPECT_EQ(::access(found.path.c_str(), W_OK), 0);
}

TEST_F(Places, ATemporaryFolderThatIsNoneIsPassedOver) {
  const WithVariable tmp("TMPDIR", "/no/such/folder");
  EXPECT_NE(temporary_folder(), "/no/such/folder");
  const ScratchFolder scratch("places");
  EXPECT_TRUE(fs::is_directory(scratch.path()));
}
}  // namespace
}  // namespace warploom::runtime
