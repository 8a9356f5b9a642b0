// Of one schedule there is one record: which of several stands.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstdint>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "archive_fixture.h"
#include "base/error.h"

namespace warploom::archive {
namespace {
const std::string kWrong(code_text(ErrorCode::kCandidateWrong));
const std::string kHung(code_text(ErrorCode::kCandidateHung));

// What an evaluator said of the one schedule, of which program's kernels.
struct Said {
  Stage stage = Stage::promoted;
  double us = 0;  // 0: refused, and so not known
  std::string code = {};
  std::string source = "a";
  int64_t built = 100;

  Candidate record() const {
    Candidate out = candidate(1, us, stage);
    if (us == 0) out.median_us.reset();
    out.error_code = code;
    out.source_hash = source;
    out.environment = "g++; build " + std::to_string(built);
    out.built = built;
    return out;
  }
};

Said promoted(double us, const std::string& source = "a", int64_t built = 100) {
  return {Stage::promoted, us, "", source, built};
}

Said screened(double us, const std::string& source = "a", int64_t built = 100) {
  return {Stage::screened, us, "", source, built};
}

Said refused(const std::string& code, const std::string& source = "a", int64_t built = 100) {
  return {Stage::refused, 0, code, source, built};
}

class SameSchedule : public ArchiveTest {
 protected:
  // What is kept of these, recorded one after the other.
  Candidate kept(const std::vector<Said>& all) {
    Archive archive = opened();
    for (const Said& one : all)
      EXPECT_TRUE(archive.record(one.record()));
    return archive.candidates("p")->front();
  }
};

TEST_F(SameSchedule, ThePromotedStandsAgainstAScreeningOfTheSameKernels) {
  EXPECT_EQ(kept({promoted(7), screened(5)}).median_us, 7);
}

TEST_F(SameSchedule, APromotedOfOtherKernelsIsReplacedByAScreening) {
  EXPECT_EQ(kept({promoted(7), screened(8, "b")}).median_us, 8);
}

TEST_F(SameSchedule, TheFasterOfTwoPromotedStands) {
  EXPECT_EQ(kept({promoted(7), promoted(9)}).median_us, 7);
}

TEST_F(SameSchedule, AFasterPromotedReplaces) {
  EXPECT_EQ(kept({promoted(9), promoted(7)}).median_us, 7);
}

TEST_F(SameSchedule, APromotedOfOtherKernelsIsReplacedBySlowerOnes) {
  EXPECT_EQ(kept({promoted(7), promoted(9, "b")}).median_us, 9);
}

TEST_F(SameSchedule, ATimeOfAnotherBuildIsReplacedBySlowerOnes) {
  EXPECT_EQ(kept({promoted(7, "a", 100), promoted(9, "a", 200)}).median_us, 9);
}

TEST_F(SameSchedule, FoundWrongReplacesThePromoted) {
  EXPECT_EQ(kept({promoted(7), refused(kWrong)}).error_code, kWrong);
}

TEST_F(SameSchedule, FoundWrongStandsAgainstALuckierRunOfTheSameKernels) {
  EXPECT_EQ(kept({refused(kWrong), promoted(7)}).error_code, kWrong);
}

TEST_F(SameSchedule, AHangIsReplacedByALaterRun) {
  EXPECT_EQ(kept({refused(kHung), promoted(7)}).median_us, 7);
}

TEST_F(SameSchedule, FoundWrongStandsAgainstAnOlderProgramsKernels) {
  EXPECT_EQ(kept({refused(kWrong, "b", 200), promoted(7, "a", 100)}).error_code, kWrong);
}

TEST_F(SameSchedule, FoundWrongStandsAgainstAnOlderProgramsSameKernels) {
  EXPECT_EQ(kept({refused(kWrong, "a", 200), promoted(7, "a", 100)}).error_code, kWrong);
}

TEST_F(SameSchedule, FoundWrongIsReplacedByANewerProgram) {
  EXPECT_EQ(kept({refused(kWrong, "a", 100), promoted(7, "b", 200)}).median_us, 7);
}

TEST_F(SameSchedule, AcceptedStandsAgainstWhatAnOlderProgramsKernelsDidWrong) {
  EXPECT_EQ(kept({promoted(7, "b", 200), refused(kWrong, "a", 100)}).median_us, 7);
}

TEST_F(SameSchedule, AcceptedIsReplacedWhereAnOlderProgramFindsTheSameKernelsWrong) {
  EXPECT_EQ(kept({promoted(7, "a", 200), refused(kWrong, "a", 100)}).error_code, kWrong);
}

TEST_F(SameSchedule, ARecordOfAProgramThatToldNoBuildIsTheOldest) {
  EXPECT_EQ(kept({refused(kWrong, "b", 0), promoted(7, "a", 100)}).median_us, 7);
}

// Processes that each record what they were told, again and again, until all have done so often.
class SearchesAtOnce : public SameSchedule {
 protected:
  void record_at_once(const std::vector<Said>& each) {
    constexpr int kTimes = 20;
    { const Archive made = opened(); }
    std::vector<pid_t> children;
    for (const Said& said : each) {
      children.push_back(::fork());
      if (children.back() != 0) continue;
      auto archive = Archive::open(path_);
      for (int i = 0; archive && i < kTimes; ++i)
        if (!archive->record(said.record())) ::_exit(1);
      ::_exit(archive ? 0 : 1);
    }
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_EQ(status, 0);
    }
  }
};

TEST_F(SearchesAtOnce, TheFastestOfFiveStands) {
  record_at_once({promoted(9), promoted(7), promoted(11), promoted(8), promoted(10)});
  EXPECT_EQ(opened().candidates("p")->front().median_us, 7);
}

TEST_F(SearchesAtOnce, WhatOneOfFiveFoundWrongStands) {
  record_at_once({promoted(9), promoted(7), refused(kWrong), screened(3), promoted(8)});
  EXPECT_EQ(opened().candidates("p")->front().error_code, kWrong);
}

TEST_F(SearchesAtOnce, WhatTheNewestProgramFoundWrongStands) {
  record_at_once({promoted(9, "a", 100), refused(kWrong, "b", 300), promoted(7, "c", 200),
                  promoted(8, "a", 100), screened(6, "c", 200)});
  EXPECT_EQ(opened().candidates("p")->front().error_code, kWrong);
}
}  // namespace
}  // namespace warploom::archive
