#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "archive_fixture.h"
#include "base/error.h"
#include "base/file.h"

namespace warploom::archive {
namespace {
TEST_F(ArchiveTest, TheFastestAreAcceptedOnesInTheirOrder) {
  Archive archive = opened();
  ASSERT_TRUE(archive.record(candidate(1, 30)));
  ASSERT_TRUE(archive.record(candidate(2, 10, Stage::promoted)));
  ASSERT_TRUE(archive.record(candidate(3, 20)));
  ASSERT_TRUE(archive.record(candidate(4, 5, Stage::refused)));
  const auto fastest = archive.fastest("p", 2);
  ASSERT_EQ(fastest->size(), 2u);
  EXPECT_EQ((*fastest)[0].median_us, 10);
  EXPECT_EQ((*fastest)[1].median_us, 20);
}

TEST_F(ArchiveTest, KeepsWhatItWasGiven) {
  {
    Archive archive = opened();
    Candidate written = candidate(1, 12.5, Stage::promoted);
    written.parents = {"fake n=0"};
    written.seed = ~uint64_t{0};
    written.verdict = {{"error", 1e-7}};
    ASSERT_TRUE(archive.record(written));
  }
  Archive archive = opened();
  const auto found = archive.candidates("p");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ((*found)[0].parents, std::vector<std::string>{"fake n=0"});
  EXPECT_EQ((*found)[0].seed, ~uint64_t{0});
  EXPECT_EQ((*found)[0].stage, Stage::promoted);
  EXPECT_EQ((*found)[0].fields.at("n"), 1);
  EXPECT_EQ((*found)[0].verdict.at("error"), 1e-7);
  EXPECT_EQ(archive.problems()->size(), 1u);
}

TEST_F(ArchiveTest, BestPrefersPromotedThenFast) {
  Archive archive = opened();
  EXPECT_FALSE(archive.best("p")->has_value());
  ASSERT_TRUE(archive.record(candidate(1, 5)));
  ASSERT_TRUE(archive.record(candidate(2, 1, Stage::refused)));
  EXPECT_EQ((*archive.best("p"))->schedule, "fake n=1");
  ASSERT_TRUE(archive.record(candidate(3, 9, Stage::promoted)));
  ASSERT_TRUE(archive.record(candidate(4, 8, Stage::promoted)));
  EXPECT_EQ((*archive.best("p"))->schedule, "fake n=4");
}

TEST_F(ArchiveTest, ExchangesAreKeptInTheirOrder) {
  Archive archive = opened();
  ASSERT_TRUE(archive.add_exchange("p", {{"answer", "one"}}));
  ASSERT_TRUE(archive.add_exchange("q", {{"answer", "another problem's"}}));
  ASSERT_TRUE(archive.add_exchange("p", {{"answer", "two"}}));
  const auto kept = opened().exchanges("p");
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->size(), 2u);
  EXPECT_EQ((*kept)[0]["answer"], "one");
  EXPECT_EQ((*kept)[1]["answer"], "two");
}

TEST_F(ArchiveTest, AnArchiveOfBeforeExchangesTakesThem) {
  opened();
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "DROP TABLE exchanges", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  Archive archive = opened();
  ASSERT_TRUE(archive.add_exchange("p", {{"answer", "one"}}));
  EXPECT_EQ(archive.exchanges("p")->size(), 1u);
}

TEST_F(ArchiveTest, AnExchangeThatHasChangedIsDamage) {
  ASSERT_TRUE(opened().add_exchange("p", {{"answer", "one"}}));
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &raw), SQLITE_OK);
  const char* const change = "UPDATE exchanges SET record = replace(record, 'one', 'two')";
  ASSERT_EQ(sqlite3_exec(raw, change, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(raw);
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveDamaged);
}

TEST_F(ArchiveTest, TheSameScheduleAgainReplacesTheRecord) {
  Archive archive = opened();
  ASSERT_TRUE(archive.record(candidate(1, 5)));
  ASSERT_TRUE(archive.record(candidate(1, 7, Stage::promoted)));
  ASSERT_EQ(archive.candidates("p")->size(), 1u);
  EXPECT_EQ(archive.candidates("p")->front().median_us, 7);
}

TEST_F(ArchiveTest, RunsAreBegunAndFinished) {
  Archive archive = opened();
  archive::Run run{"p", 7, "plain", 0, "gcc"};
  const auto id = archive.begin_run(run);
  ASSERT_TRUE(id);
  EXPECT_EQ(archive.runs("p")->front().status, "running");
  run.status = "done";
  run.reference_us = 3;
  ASSERT_TRUE(archive.finish_run(*id, run));
  EXPECT_EQ(archive.runs("p")->front().status, "done");
  EXPECT_EQ(archive.runs("p")->front().reference_us, 3);
}

TEST_F(ArchiveTest, AFileOfAnotherKindIsForeignAndUntouched) {
  std::ofstream(path_) << "dear diary, this is not a database at all";
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveForeign);
  EXPECT_EQ(*read_file(path_), "dear diary, this is not a database at all");
}

TEST_F(ArchiveTest, AnotherProgramsDatabaseIsForeignAndUntouched) {
  sqlite3* other = nullptr;
  sqlite3_open(path_.c_str(), &other);
  sqlite3_exec(other, "CREATE TABLE songs (name)", nullptr, nullptr, nullptr);
  sqlite3_close(other);
  const auto before = *read_file(path_);
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveForeign);
  EXPECT_EQ(*read_file(path_), before);
}

TEST_F(ArchiveTest, AnotherVersionIsNamed) {
  fill(1);
  sqlite3* raw = nullptr;
  sqlite3_open(path_.c_str(), &raw);
  sqlite3_exec(raw, "PRAGMA user_version=99", nullptr, nullptr, nullptr);
  sqlite3_close(raw);
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveVersion);
  EXPECT_TRUE(fs::exists(path_));
}

TEST_F(ArchiveTest, AHalfWrittenFileIsMovedAsideAndTheNextOpenStartsAfresh) {
  fill(200);
  fs::resize_file(path_, fs::file_size(path_) / 2);
  const auto size = fs::file_size(path_);
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveDamaged);
  EXPECT_EQ(fs::file_size(path_.string() + ".damaged-1"), size);
  EXPECT_TRUE(opened().candidates("p")->empty());
}

TEST_F(ArchiveTest, AHeaderCutShortIsDamaged) {
  fill(1);
  fs::resize_file(path_, 40);
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveDamaged);
  EXPECT_TRUE(fs::exists(path_.string() + ".damaged-1"));
}

TEST_F(ArchiveTest, AHeaderThatForbidsWritingIsDamaged) {
  fill(1);
  std::string bytes = *read_file(path_);
  constexpr size_t kWriteVersion = 18;  // of SQLite's file format: more than 2 is read alone
  bytes[kWriteVersion] = 9;
  ASSERT_TRUE(write_file(path_, bytes));
  auto archive = Archive::open(path_);
  const auto written = archive ? archive->begin_run({.problem = "p"}) : Result<int64_t>(0);
  ASSERT_FALSE(archive && written);
  EXPECT_EQ((archive ? written.error() : archive.error()).code, ErrorCode::kArchiveDamaged);
}

TEST_F(ArchiveTest, OverwrittenPagesAreDamaged) {
  fill(200);
  corrupt(4096 * 3, 4096 * 4);
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveDamaged);
}

TEST_F(ArchiveTest, TablesThatSqliteCannotReadAreDamagedInAnArchiveAndForeignElsewhere) {
  fill(1);
  std::string bytes = *read_file(path_);
  bytes[47] = 9;  // a schema of a format to come
  ASSERT_TRUE(write_file(path_, bytes));
  const auto ours = Archive::open(path_);
  ASSERT_FALSE(ours);
  EXPECT_EQ(ours.error().code, ErrorCode::kArchiveDamaged);
  bytes.replace(68, 4, 4, '\0');  // no application's
  ASSERT_TRUE(write_file(path_, bytes));
  const auto theirs = Archive::open(path_);
  ASSERT_FALSE(theirs);
  EXPECT_EQ(theirs.error().code, ErrorCode::kArchiveForeign);
  EXPECT_EQ(*read_file(path_), bytes);
}

TEST_F(ArchiveTest, TablesOfAnotherShapeAreDamaged) {
  fill(1);
  sqlite3* raw = nullptr;
  sqlite3_open(path_.c_str(), &raw);
  sqlite3_exec(raw, "DROP TABLE problems; CREATE TABLE problems (id INTEGER)", nullptr, nullptr,
               nullptr);
  sqlite3_close(raw);
  const auto archive = Archive::open(path_);
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kArchiveDamaged);
  EXPECT_TRUE(fs::exists(path_.string() + ".damaged-1"));
}

TEST_F(ArchiveTest, AHeldLockTimesOut) {
  Archive archive = opened(100ms);
  sqlite3* holder = nullptr;
  sqlite3_open(path_.c_str(), &holder);
  ASSERT_EQ(sqlite3_exec(holder, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const Status written = archive.record(candidate(1));
  sqlite3_close(holder);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kArchiveLocked);
}

// A writer that tells through a pipe how many records were acknowledged, until it is killed.
pid_t start_writer(const fs::path& path, int first, int acknowledged) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  auto archive = Archive::open(path);
  if (!archive) ::_exit(1);
  for (int i = first;; ++i) {
    if (!archive->record(candidate(i))) ::_exit(2);
    if (::write(acknowledged, &i, sizeof i) != sizeof i) ::_exit(3);
  }
}

TEST_F(ArchiveTest, KillingTheWriterLosesNothingAcknowledged) {
  { Archive archive = opened(); }
  int last = -1;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const pid_t child = start_writer(path_, last + 1, ends[1]);
    ::close(ends[1]);
    ::usleep(static_cast<useconds_t>(15'000 + 7'000 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (int number = 0; ::read(ends[0], &number, sizeof number) == sizeof number;)
      last = number;
    ::close(ends[0]);
    Archive archive = opened();
    const auto found = archive.candidates("p");
    ASSERT_TRUE(found) << describe(found.error());
    ASSERT_GE(static_cast<int>(found->size()),
              last + 1);  // one more may be written and not yet told
    last = static_cast<int>(found->size()) - 1;
  }
  EXPECT_GT(last, 0);
}

TEST_F(ArchiveTest, SeveralMayMakeOneAtOnce) {
  for (int round = 0; round < 60; ++round) {
    const auto path = folder_.path() / fmt::format("new{}.sqlite", round);
    std::vector<std::future<bool>> opened;
    for (int i = 0; i < 6; ++i)
      opened.push_back(
          std::async(std::launch::async, [&] { return Archive::open(path).has_value(); }));
    for (auto& one : opened)
      EXPECT_TRUE(one.get()) << round;
  }
}

TEST_F(ArchiveTest, TwoWritersTakeTurns) {
  { Archive archive = opened(); }
  std::vector<pid_t> children;
  for (int writer = 0; writer < 2; ++writer) {
    const pid_t child = ::fork();
    if (child == 0) {
      auto archive = Archive::open(path_);
      if (!archive) ::_exit(1);
      for (int i = 0; i < 100; ++i)
        if (!archive->record(candidate(writer * 1000 + i))) ::_exit(2);
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(opened().candidates("p")->size(), 200u);
}

TEST_F(ArchiveTest, AFullDiskKeepsWhatWasAcknowledged) {
  { Archive archive = opened(); }
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{200'000, 200'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto archive = Archive::open(path_);
    int written = 0;
    while (archive) {
      Candidate next = candidate(written);
      next.environment = std::string(5000, 'x');
      const Status status = archive->record(next);
      if (!status) {
        if (status.error().code != ErrorCode::kDiskFull)
          std::fprintf(stderr, "%s\n", describe(status.error()).c_str());
        (void)!::write(ends[1], &written, sizeof written);
        ::_exit(status.error().code == ErrorCode::kDiskFull ? 0 : 1);
      }
      ++written;
    }
    ::_exit(2);
  }
  int status = 0;
  int written = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_EQ(::read(ends[0], &written, sizeof written), static_cast<ssize_t>(sizeof written));
  EXPECT_GT(written, 5);
  EXPECT_EQ(static_cast<int>(opened().candidates("p")->size()), written);
}

TEST_F(ArchiveTest, AFolderThatCannotBeWrittenIsSaidSo) {
  const auto archive = Archive::open("/proc/nowhere/archive.sqlite");
  ASSERT_FALSE(archive);
  EXPECT_EQ(archive.error().code, ErrorCode::kFileUnwritable);
}
}  // namespace
}  // namespace warploom::archive
