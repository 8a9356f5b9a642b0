// Archives that travel: what goes out comes in as foreign, and a broken file brings nothing.
#include <gtest/gtest.h>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "archive/record.h"
#include "archive/travel.h"
#include "archive_fixture.h"
#include "base/error.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/hash.h"

namespace warploom::archive {
namespace {
using nlohmann::json;

const std::string kKey(32, 'a');

class Travel : public ArchiveTest {
 protected:
  // An archive with a problem of three candidates and a run.
  Archive searched() {
    Archive archive = *Archive::open(path_);
    EXPECT_TRUE(archive.add_problem({kKey, "mm", "fp32", "sm_90a", "a GPU", "text"}));
    for (int i = 1; i <= 3; ++i) {
      Candidate one = candidate(i, 10.0 * i, i == 1 ? Stage::promoted : Stage::screened);
      one.problem = kKey;
      if (i > 1) one.parents = {candidate(i - 1).schedule};
      EXPECT_TRUE(archive.record(one));
    }
    EXPECT_TRUE(archive.begin_run({.problem = kKey, .seed = 7, .budget_seconds = 20}));
    return archive;
  }

  Archive other() { return *Archive::open(folder_.path() / "other.sqlite"); }

  fs::path exported() {
    Archive archive = searched();
    const auto out = export_archive(archive, file_, "");
    EXPECT_TRUE(out) << describe(out.error());
    return file_;
  }

  // The file's lines.
  std::vector<std::string> lines() {
    const auto text = gunzipped(*read_file(exported()), size_t{1} << 20);
    std::vector<std::string> out;
    size_t begin = 0;
    while (begin < text->size()) {
      const size_t end = text->find('\n', begin);
      out.push_back(text->substr(begin, end - begin));
      begin = end + 1;
    }
    return out;
  }

  // The lines as a file again, whose end says that it is whole.
  void write(std::vector<std::string> lines) {
    std::string body;
    lines.pop_back();
    for (const std::string& line : lines)
      body += line + "\n";
    const json end = {{"kind", "end"}, {"records", lines.size()}, {"hash", hash_hex(body)}};
    fs::remove(file_);
    EXPECT_TRUE(write_file(file_, gzipped(body + end.dump() + "\n")));
  }

  // A line's record with one field set to something else, sealed again.
  static std::string changed(const std::string& line, const char* field, const json& value) {
    json whole = json::parse(line);
    whole.erase(kSeal);
    whole["record"][field] = value;
    return sealed_text(whole);
  }

  // What importing the file fails with; then it must have brought nothing.
  ErrorCode refusal() {
    Archive into = other();
    const auto in = import_archive(into, file_);
    EXPECT_TRUE(into.foreign_problems()->empty());
    EXPECT_FALSE(in);
    return in ? ErrorCode::kInternal : in.error().code;
  }

  const fs::path file_ = folder_.path() / "found.wlx";
};

TEST_F(Travel, WhatGoesOutComesInAsForeign) {
  exported();
  Archive into = other();
  const auto in = import_archive(into, file_);
  ASSERT_TRUE(in) << describe(in.error());
  EXPECT_EQ(in->problems, 1u);
  EXPECT_EQ(in->candidates, 3u);
  EXPECT_EQ(in->runs, 1u);
  const auto problems = into.foreign_problems();
  ASSERT_EQ(problems->size(), 1u);
  EXPECT_EQ((*problems)[0].from, "found.wlx");
  EXPECT_EQ((*problems)[0].record.device, "a GPU");
  const auto candidates = into.foreign_candidates(kKey);
  ASSERT_EQ(candidates->size(), 3u);
  EXPECT_EQ((*candidates)[1].record.parents, std::vector<std::string>{"fake n=1"});
  EXPECT_EQ((*into.foreign_runs(kKey))[0].record.budget_seconds, 20);
}

TEST_F(Travel, NothingForeignIsAProblemACandidateARunOrABest) {
  exported();
  Archive into = other();
  ASSERT_TRUE(into.add_problem({kKey, "mm", "fp32", "sm_90a", "a GPU", "text"}));
  ASSERT_TRUE(import_archive(into, file_));
  EXPECT_EQ(into.problems()->size(), 1u);
  EXPECT_TRUE(into.candidates(kKey)->empty());
  EXPECT_TRUE(into.runs(kKey)->empty());
  EXPECT_FALSE(*into.best(kKey));
}

TEST_F(Travel, ImportChangesNothingOfOnesOwn) {
  exported();
  Archive into = searched();
  const json before = *into.candidates(kKey);
  ASSERT_TRUE(import_archive(into, file_));
  EXPECT_EQ(json(*into.candidates(kKey)), before);
  EXPECT_EQ(into.runs(kKey)->size(), 2u);  // of searched(), twice; none that was imported
}

TEST_F(Travel, TheSameFileAgainAddsNothing) {
  exported();
  Archive into = other();
  ASSERT_TRUE(import_archive(into, file_));
  ASSERT_TRUE(import_archive(into, file_));
  EXPECT_EQ(into.foreign_candidates(kKey)->size(), 3u);
  EXPECT_EQ(into.foreign_runs(kKey)->size(), 1u);
}

TEST_F(Travel, WhatIsForeignDoesNotTravelOn) {
  exported();
  Archive into = other();
  ASSERT_TRUE(import_archive(into, file_));
  const auto out = export_archive(into, folder_.path() / "again.wlx", "");
  ASSERT_TRUE(out);
  EXPECT_EQ(out->problems, 0u);
}

TEST_F(Travel, AKeyNamesWhatGoesOut) {
  Archive archive = searched();
  ASSERT_TRUE(archive.add_problem({std::string(32, 'b'), "mm", "fp32", "cpu", "a CPU", ""}));
  EXPECT_EQ(export_archive(archive, folder_.path() / "b.wlx", "b")->problems, 1u);
  EXPECT_EQ(export_archive(archive, folder_.path() / "all.wlx", "")->problems, 2u);
}

TEST_F(Travel, AFileThatIsThereIsNotWrittenOver) {
  ASSERT_TRUE(write_file(file_, "mine"));
  Archive archive = searched();
  const auto out = export_archive(archive, file_, "");
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, ErrorCode::kFileUnwritable);
  EXPECT_EQ(*read_file(file_), "mine");
}

TEST_F(Travel, AMissingFileIsSaidSo) {
  EXPECT_EQ(refusal(), ErrorCode::kFileMissing);
}

TEST_F(Travel, AFileOfAnotherKindIsForeign) {
  ASSERT_TRUE(write_file(file_, "a text"));
  EXPECT_EQ(refusal(), ErrorCode::kArchiveForeign);
  ASSERT_TRUE(write_file(file_, gzipped("{\"format\": \"another\"}\n")));
  EXPECT_EQ(refusal(), ErrorCode::kArchiveForeign);
}

TEST_F(Travel, AnotherVersionIsSaidSo) {
  std::vector<std::string> all = lines();
  all[0] = R"({"format":"warploom-archive","version":2})";
  write(all);
  EXPECT_EQ(refusal(), ErrorCode::kArchiveVersion);
}

TEST_F(Travel, AFileThatIsCutOffIsDamagedWhereverThatIs) {
  const std::string whole = *read_file(exported());
  for (const size_t bytes : {size_t{0}, size_t{5}, whole.size() / 2, whole.size() - 1}) {
    ASSERT_TRUE(write_file(file_, whole.substr(0, bytes)));
    EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged) << bytes;
  }
}

TEST_F(Travel, AMissingEndIsDamage) {
  const std::vector<std::string> all = lines();
  ASSERT_TRUE(write_file(file_, gzipped(all[0] + "\n" + all[1] + "\n")));
  EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged);
}

TEST_F(Travel, ARecordThatWasLeftOutIsNoticed) {
  std::vector<std::string> all = lines();
  all.erase(all.begin() + 2);
  std::string text;
  for (const std::string& line : all)
    text += line + "\n";
  ASSERT_TRUE(write_file(file_, gzipped(text)));
  EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged);
}

TEST_F(Travel, ARecordThatWasChangedIsNoticed) {
  std::vector<std::string> all = lines();
  const size_t digit = all[2].find("10.0");
  ASSERT_NE(digit, std::string::npos);
  all[2][digit] = '2';
  write(all);
  EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged);
}

TEST_F(Travel, RecordsThatMakeNoSenseAreDamage) {
  const std::vector<std::string> all = lines();
  const std::vector<std::pair<const char*, json>> broken = {{"problem", std::string(32, 'b')},
                                                            {"schedule", ""},
                                                            {"schedule", 7},
                                                            {"fields", "text"},
                                                            {"stage", "crowned"},
                                                            {"median_us", -1},
                                                            {"median_us", 1e16},
                                                            {"median_us", nullptr},
                                                            {"median_us", "10"},
                                                            {"parents", "fake n=1"}};
  for (const auto& [field, value] : broken) {
    std::vector<std::string> changed_lines = all;
    changed_lines[2] = changed(all[2], field, value);
    write(changed_lines);
    EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged) << field << " " << value;
  }
}

TEST_F(Travel, RunsThatMakeNoSenseAreDamage) {
  const std::vector<std::string> all = lines();
  const size_t run = all.size() - 2;
  const std::vector<std::pair<const char*, json>> broken = {
      {"problem", std::string(32, 'b')}, {"seconds", -1}, {"candidates", -1}};
  for (const auto& [field, value] : broken) {
    std::vector<std::string> changed_lines = all;
    changed_lines[run] = changed(all[run], field, value);
    write(changed_lines);
    EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged) << field << " " << value;
  }
}

TEST_F(Travel, AProblemOfNoTrackTargetOrDeviceIsDamage) {
  const std::vector<std::string> all = lines();
  for (const char* field : {"track", "target", "device"}) {
    std::vector<std::string> changed_lines = all;
    changed_lines[1] = changed(all[1], field, "");
    write(changed_lines);
    EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged) << field;
  }
}

// As older programs recorded some: what goes out must come in.
TEST_F(Travel, ACandidateWithoutATimeStaysAtHome) {
  Archive archive = searched();
  Candidate untimed = candidate(4, 40, Stage::screened);
  untimed.problem = kKey;
  untimed.median_us.reset();
  ASSERT_TRUE(archive.record(untimed));
  ASSERT_TRUE(export_archive(archive, file_, ""));
  Archive into = other();
  const auto in = import_archive(into, file_);
  ASSERT_TRUE(in) << describe(in.error());
  EXPECT_EQ(in->candidates, 3u);
}

TEST_F(Travel, AProblemOfNoKeyOrTwiceIsDamage) {
  std::vector<std::string> all = lines();
  std::vector<std::string> other_key = all;
  other_key[1] = changed(all[1], "key", "../../etc/passwd");
  write(other_key);
  EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged);
  all.insert(all.begin() + 1, all[1]);
  write(all);
  EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged);
}

TEST_F(Travel, ARecordThatIsNestedWithoutEndIsDamage) {
  std::vector<std::string> all = lines();
  const size_t deep = 100'000;
  all[2] =
      R"({"kind":"candidate","record":)" + std::string(deep, '[') + std::string(deep, ']') + "}";
  write(all);
  EXPECT_EQ(refusal(), ErrorCode::kArchiveDamaged);
}

TEST_F(Travel, AForeignRecordThatADiskChangedIsDamage) {
  exported();
  {
    Archive into = other();
    ASSERT_TRUE(import_archive(into, file_));
  }
  const fs::path path = folder_.path() / "other.sqlite";
  std::string bytes = *read_file(path);
  const size_t name = bytes.find("fake n=2");
  ASSERT_NE(name, std::string::npos);
  bytes[name] = 'F';
  ASSERT_TRUE(write_file(path, bytes));
  const auto opened = Archive::open(path);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kArchiveDamaged);
}

TEST_F(Travel, WhatAnOlderProgramDidNotKeepOfAProblemIsAdded) {
  Archive archive = searched();
  Problem fuller{kKey, "mm", "fp32", "sm_90a", "a GPU", "text"};
  fuller.features["flops"] = 0.5;
  ASSERT_TRUE(archive.add_problem(fuller));
  EXPECT_EQ((*archive.problems())[0].features["flops"], 0.5);
  fuller.features["flops"] = 0.7;
  ASSERT_TRUE(archive.add_problem(fuller));
  EXPECT_EQ((*archive.problems())[0].features["flops"], 0.5);
}
}  // namespace
}  // namespace warploom::archive
