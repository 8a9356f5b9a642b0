// What tests of the archive share: a folder with an archive of one problem, "p", and candidates.
#pragma once
#include <gtest/gtest.h>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include "archive/archive.h"
#include "base/file.h"

namespace warploom::archive {
namespace fs = std::filesystem;
using namespace std::chrono_literals;

inline Candidate candidate(int number, double us = 10, Stage stage = Stage::screened) {
  Candidate out;
  out.problem = "p";
  out.schedule = "fake n=" + std::to_string(number);
  out.fields = {{"family", "fake"}, {"n", number}};
  out.family = "fake";
  out.stage = stage;
  out.median_us = us;
  return out;
}

class ArchiveTest : public testing::Test {
 protected:
  ScratchFolder folder_{"archive-test"};
  fs::path path_ = folder_.path() / "archive.sqlite";

  Archive opened(std::chrono::milliseconds timeout = 10s) {
    auto archive = Archive::open(path_, {timeout});
    EXPECT_TRUE(archive) << describe(archive.error());
    EXPECT_TRUE(archive->add_problem({"p", "mm", "fp32", "cpu", "a CPU", "text"}));
    return std::move(*archive);
  }

  void corrupt(int64_t from, size_t bytes) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(from);
    for (size_t i = 0; i < bytes; ++i)
      file.put(static_cast<char>(0xa5));
  }

  void fill(int count) {
    Archive archive = opened();
    for (int i = 0; i < count; ++i)
      ASSERT_TRUE(archive.record(candidate(i)));
  }
};
}  // namespace warploom::archive
