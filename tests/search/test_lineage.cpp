// Lineage: what a search records of the way to its best, and that it replays.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/file.h"
#include "kernels/config/kernel_config.h"
#include "recording.h"
#include "search/lineage.h"
#include "search/options.h"
#include "search/policy/state.h"
#include "search/strategy/curves.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
// A search of a recorded space, as the archive has it.
std::vector<archive::Candidate> searched(const Recording& recording, Strategy strategy,
                                         const std::string& file) {
  Task task;
  task.space = recording.space;
  task.setup.graph = recording.space.region.graph;
  task.recorded = [&](const kernels::KernelConfig& config, const verify::Request&) {
    const Judged judged = made_up(config);
    verify::Verdict verdict;
    verdict.accepted = judged.accepted;
    verdict.median_us = judged.us;
    if (!judged.accepted) verdict.error_found.code = ErrorCode::kCandidateWrong;
    return Result<verify::Verdict>(verdict);
  };
  Options options;
  options.target = "cpu";
  options.max_candidates = 60;
  options.strategy = strategy;
  options.jobs = 1;
  options.archive = file;
  (void)tune(task, options);
  auto archive = archive::Archive::open(file);
  return *archive->candidates(archive->problems()->at(0).key);
}

TEST(Lineage, ReplaysStepByStepToTheBest) {
  const Recording recording = made_up_recording();
  for (const Strategy strategy :
       {Strategy::linear, Strategy::branch, Strategy::tree, Strategy::evolution, Strategy::beam}) {
    const ScratchFolder folder("lineage");
    const auto all = searched(recording, strategy, (folder.path() / "a.sqlite").string());
    ASSERT_GT(all.size(), 20u);
    size_t longest = 0;
    for (const archive::Candidate& one : all) {
      const Lineage steps = lineage_of(all, one.schedule);
      longest = std::max(longest, steps.size());
      const auto last = replay(recording.space, steps);
      ASSERT_TRUE(last) << describe(last.error());
      EXPECT_EQ(last->text(), one.schedule);
    }
    EXPECT_GE(longest, 3u) << kStrategyNames[static_cast<size_t>(strategy)];
  }
}

TEST(Lineage, OfStepsThatLeadElsewhereIsRefused) {
  const Recording recording = made_up_recording();
  const ScratchFolder folder("lineage");
  const auto all = searched(recording, Strategy::tree, (folder.path() / "a.sqlite").string());
  const auto longer =
      std::ranges::find_if(all, [](const auto& one) { return !one.parents.empty(); });
  ASSERT_NE(longer, all.end());
  Lineage steps = lineage_of(all, longer->schedule);
  steps.back().schedule = steps[0].schedule;
  const auto made = replay(recording.space, steps);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kPlanInvalid);
}

TEST(Lineage, OfAScheduleThatNobodyRecordedIsEmpty) {
  EXPECT_TRUE(lineage_of({}, "matmul_cpu tile_m=6").empty());
  EXPECT_FALSE(replay(made_up_recording().space, {}));
}

TEST(Lineage, EndsWhereParentsGoInACircle) {
  archive::Candidate one;
  one.schedule = "a";
  one.parents = {"b"};
  archive::Candidate other;
  other.schedule = "b";
  other.parents = {"a"};
  EXPECT_EQ(lineage_of({one, other}, "a").size(), 2u);
}
}  // namespace
}  // namespace warploom::search
