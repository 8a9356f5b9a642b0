#include <gtest/gtest.h>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include "base/error.h"
#include "base/file.h"
#include "runtime/compilers.h"

namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

void set_age(const fs::path& path, int seconds) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
}

TEST(DiskCache, FindsWhatWasStoredWithItsLog) {
  const ScratchFolder scratch("cache");
  const DiskCache cache{scratch.path(), 1 << 20};
  ASSERT_TRUE(cache.store("key", "image", "source", "log"));
  const auto entry = cache.find("key");
  ASSERT_TRUE(entry);
  EXPECT_EQ(*read_file(entry->path), "image");
  EXPECT_EQ(entry->log, "log");
}

TEST(DiskCache, KeepsTheSourceBesideTheImage) {
  const ScratchFolder scratch("cache");
  const DiskCache cache{scratch.path(), 1 << 20};
  ASSERT_TRUE(cache.store("key", "image", "source", "log"));
  EXPECT_EQ(*read_file(scratch.path() / "key.txt"), "source");
}

TEST(DiskCache, FindsNothingUnderAnUnknownKey) {
  const ScratchFolder scratch("cache");
  EXPECT_FALSE((DiskCache{scratch.path(), 1 << 20}).find("other"));
}

TEST(DiskCache, LetsTheLongestUnusedGoWhenItOutgrowsItsCap) {
  const ScratchFolder scratch("cache");
  const DiskCache cache{scratch.path(), 2500};
  const std::string image(1000, 'x');
  ASSERT_TRUE(cache.store("old", image, "", ""));
  ASSERT_TRUE(cache.store("used", image, "", ""));
  set_age(scratch.path() / "old.image", 100);
  set_age(scratch.path() / "old.txt", 100);
  set_age(scratch.path() / "old.log", 100);
  set_age(scratch.path() / "used.image", 200);
  ASSERT_TRUE(cache.find("used"));  // renews it
  ASSERT_TRUE(cache.store("new", image, "", ""));
  EXPECT_FALSE(cache.find("old"));
  EXPECT_TRUE(cache.find("used"));
  EXPECT_TRUE(cache.find("new"));
}

TEST(DiskCache, FailsToStoreWhereTheFolderIsAFile) {
  const ScratchFolder scratch("cache");
  std::ofstream(scratch.path() / "file") << "x";
  const auto stored = (DiskCache{scratch.path() / "file", 1 << 20}).store("key", "image", "", "");
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, ErrorCode::kFileUnwritable);
}
}  // namespace
}  // namespace warploom::runtime
