// Archives that older programs wrote become archives of today.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <cstddef>
#include <filesystem>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "archive/versions.h"
#include "archive_fixture.h"
#include "base/error.h"
#include "support/paths.h"

namespace warploom::archive {
namespace {
TEST_F(ArchiveTest, RecordsFromBeforeAFieldWasAddedAreRead) {
  {
    Archive archive = opened();
    ASSERT_TRUE(archive.record(candidate(1, 5)));
    ASSERT_TRUE(archive.begin_run({"p", 7, "plain", 0, "gcc"}));
  }
  sqlite3* raw = nullptr;
  sqlite3_open(path_.c_str(), &raw);
  sqlite3_exec(raw,
               "UPDATE candidates SET record = json_remove(record, '$.screened_us', '$.\"~\"')",
               nullptr, nullptr, nullptr);
  sqlite3_exec(raw,
               "UPDATE runs SET record = json_remove(record, '$.known', '$.known_best', '$.\"~\"')",
               nullptr, nullptr, nullptr);
  sqlite3_close(raw);
  Archive archive = opened();
  ASSERT_TRUE(archive.candidates("p"));
  EXPECT_EQ(archive.candidates("p")->front().median_us, 5);
  EXPECT_EQ(archive.runs("p")->front().known, 0u);
}

// The tables of version 2, with a promoted, a screened and a refused candidate as it kept them.
constexpr const char* kVersion2 = R"(
CREATE TABLE problems (id INTEGER PRIMARY KEY, record TEXT NOT NULL,
  created TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, key TEXT NOT NULL UNIQUE AS (record ->> 'key'));
CREATE TABLE candidates (id INTEGER PRIMARY KEY, record TEXT NOT NULL,
  recorded TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  problem TEXT NOT NULL REFERENCES problems(key) AS (record ->> 'problem'),
  schedule TEXT NOT NULL AS (record ->> 'schedule'), stage TEXT NOT NULL AS (record ->> 'stage'),
  median_us REAL NOT NULL AS (record ->> 'median_us'), UNIQUE (problem, schedule));
CREATE INDEX candidates_by_time ON candidates (problem, stage, median_us);
CREATE TABLE runs (id INTEGER PRIMARY KEY, record TEXT NOT NULL,
  started TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  problem TEXT NOT NULL REFERENCES problems(key) AS (record ->> 'problem'));
PRAGMA application_id=1464880205;
PRAGMA user_version=2;
INSERT INTO problems (record, created) VALUES ('{"key":"p","name":"mm","track":"fp32",
  "target":"cpu","device":"a CPU","text":"t"}', '2025-01-02 03:04:05');
INSERT INTO candidates (id, record, recorded) VALUES (4, '{"problem":"p","schedule":"fake n=1",
  "fields":{"family":"fake","n":1},"family":"fake","parents":[],"stage":"promoted","error_code":"",
  "median_us":12.5,"low_us":12,"high_us":13,"reference_us":15,"error":1e-7,"max_error":2e-7,
  "seed":7,"source_hash":"a","environment":"e","screened_us":11,"verdict":{"accepted":true,
  "median_us":12.5,"reference_us":15,"reference_low_us":14,"reference_high_us":16,
  "reference_error":-1.0,"evidence":[{"family":"normal","reference_error":-1.0}]}}',
  '2025-01-02 03:04:06');
INSERT INTO candidates (record) VALUES ('{"problem":"p","schedule":"fake n=2","fields":{},
  "family":"fake","parents":["fake n=1"],"stage":"screened","error_code":"","median_us":20,
  "low_us":19,"high_us":21,"reference_us":15,"error":0,"max_error":0,"seed":7,"source_hash":"b",
  "environment":"e","screened_us":20,"verdict":{"accepted":true,"median_us":20,"reference_us":0,
  "evidence":[{"family":"normal"}]}}');
INSERT INTO candidates (record) VALUES ('{"problem":"p","schedule":"fake n=3","fields":{},
  "family":"fake","parents":[],"stage":"refused","error_code":"candidate-wrong","median_us":0,
  "low_us":0,"high_us":0,"reference_us":15,"error":0,"max_error":0,"seed":7,"source_hash":"c",
  "environment":"e","screened_us":0,"verdict":{"accepted":false,"evidence":[]}}');
INSERT INTO runs (record) VALUES ('{"problem":"p","seed":7,"reference":"","reference_us":0,
  "environment":"e","status":"done","candidates":3,"seconds":2.5,"best":"fake n=1"}');
)";

void make_version_2(const fs::path& path) {
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(raw, kVersion2, nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(raw);
  sqlite3_close(raw);
}

TEST_F(ArchiveTest, AnArchiveOfVersion2BecomesOneOfTodayAndKeepsAllThatWasMeasured) {
  make_version_2(path_);
  {
    auto archive = Archive::open(path_);
    ASSERT_TRUE(archive) << describe(archive.error());
  }
  auto archive = Archive::open(path_);  // and stays one
  ASSERT_TRUE(archive) << describe(archive.error());
  const auto rows = archive->candidates("p");
  ASSERT_TRUE(rows) << describe(rows.error());
  ASSERT_EQ(rows->size(), 3u);
  const Candidate& promoted = rows->at(0);
  EXPECT_EQ(promoted.schedule, "fake n=1");
  EXPECT_EQ(promoted.median_us, 12.5);
  EXPECT_EQ(promoted.low_us, 12);
  EXPECT_EQ(promoted.reference_us, 15);
  EXPECT_EQ(promoted.reference_high_us, 16);
  EXPECT_EQ(promoted.screened_us, 11);
  EXPECT_EQ(promoted.error, 1e-7);
  EXPECT_EQ((*archive->best("p"))->schedule, "fake n=1");
  EXPECT_EQ(archive->problems()->front().name, "mm");
  EXPECT_EQ(archive->runs("p")->front().seconds, 2.5);
}

TEST_F(ArchiveTest, AnArchiveOfVersion2WithARunOfAProblemThatItLacksIsDamaged) {
  make_version_2(path_);
  sqlite3* raw = nullptr;
  sqlite3_open(path_.c_str(), &raw);
  EXPECT_EQ(sqlite3_exec(raw, "UPDATE runs SET record = json_set(record, '$.problem', 'lost')",
                         nullptr, nullptr, nullptr),
            SQLITE_OK)
      << sqlite3_errmsg(raw);
  sqlite3_close(raw);
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveDamaged);
  EXPECT_TRUE(fs::exists(path_.string() + ".damaged-1"));
}

TEST_F(ArchiveTest, WhatVersion2DidNotKnowIsNullInVersion3) {
  make_version_2(path_);
  auto archive = Archive::open(path_);
  ASSERT_TRUE(archive) << describe(archive.error());
  const auto rows = archive->candidates("p");
  const nlohmann::json promoted = rows->at(0);
  EXPECT_TRUE(promoted["verdict"]["reference_error"].is_null());
  EXPECT_TRUE(promoted["verdict"]["evidence"][0]["reference_error"].is_null());
  EXPECT_TRUE(promoted["speedup"].is_null()) << "it was no median of pairs";
  EXPECT_TRUE(promoted["machine"].is_null());
  const nlohmann::json screened = rows->at(1);
  EXPECT_EQ(screened["median_us"], 20);
  EXPECT_EQ(screened["error"], 0) << "exact, and measured";
  EXPECT_TRUE(screened["reference_us"].is_null()) << "it was of another measurement";
  const nlohmann::json refused = rows->at(2);
  for (const char* key : {"median_us", "low_us", "reference_us", "error", "screened_us"})
    EXPECT_TRUE(refused[key].is_null()) << key;
  const nlohmann::json run = archive->runs("p")->front();
  EXPECT_TRUE(run["reference_us"].is_null());
}

TEST_F(ArchiveTest, TimesOfWritingSurviveAChangeOfVersion) {
  make_version_2(path_);
  ASSERT_TRUE(Archive::open(path_));
  sqlite3* raw = nullptr;
  sqlite3_open(path_.c_str(), &raw);
  sqlite3_stmt* asked = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(raw, "SELECT recorded, id, speedup IS NULL FROM candidates", -1,
                               &asked, nullptr),
            SQLITE_OK);
  ASSERT_EQ(sqlite3_step(asked), SQLITE_ROW);
  EXPECT_STREQ(reinterpret_cast<const char*>(sqlite3_column_text(asked, 0)), "2025-01-02 03:04:06");
  EXPECT_EQ(sqlite3_column_int(asked, 1), 4);
  EXPECT_EQ(sqlite3_column_int(asked, 2), 1);
  sqlite3_finalize(asked);
  sqlite3_close(raw);
}

TEST_F(ArchiveTest, TwoProgramsThatUpgradeAtOnceBothFindItDone) {
  make_version_2(path_);
  std::vector<std::future<bool>> opening;
  for (int i = 0; i < 4; ++i)
    opening.push_back(
        std::async(std::launch::async, [&] { return Archive::open(path_).has_value(); }));
  for (auto& one : opening)
    EXPECT_TRUE(one.get());
  EXPECT_EQ(Archive::open(path_)->candidates("p")->size(), 3u);
}

TEST_F(ArchiveTest, EveryVersionHasItsStep) {
  int version = steps().front().from;
  for (const Step& step : steps())
    EXPECT_EQ(step.from, version++);
  EXPECT_EQ(version, kVersion);
}

// One that the version before wrote in a search.
TEST_F(ArchiveTest, AStoredArchiveOfAnEarlierProgramIsRead) {
  const fs::path kept = test::source_path("tests/fixtures/829200f/archive.sqlite");
  ASSERT_TRUE(fs::exists(kept)) << kept;
  fs::copy_file(kept, path_);
  auto archive = Archive::open(path_);
  ASSERT_TRUE(archive) << describe(archive.error());
  size_t promoted = 0;
  const auto problems = archive->problems();
  ASSERT_TRUE(problems) << describe(problems.error());
  for (const Problem& problem : *problems) {
    const auto best = archive->best(problem.key);
    ASSERT_TRUE(best) << describe(best.error());
    if (*best && (*best)->stage == Stage::promoted && (*best)->median_us > 0) ++promoted;
  }
  EXPECT_GT(promoted, 0u);
}
}  // namespace
}  // namespace warploom::archive
