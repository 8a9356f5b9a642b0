// Planning as a search does it: what it costs, and who may end it.
#include <gtest/gtest.h>
#include <atomic>
#include <functional>
#include <set>
#include <string>
#include "../plan/planned_nets.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/region.h"
#include "search/optimize.h"
#include "search/options.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "target/capabilities.h"
#include "told.h"

namespace warploom::search {
namespace {
using namespace plan;
using graph::Graph;

// Whole: partition, families, catalogues and what they propose, for every target.
TEST(Planning, OfNetworksThatReadValuesTwiceEndsInProposals) {
  for (const std::string target : {"cpu", "sm_90a"})
    for (const Graph& given : {residual_blocks(10), residual_layers(12), dense_block(6),
                               doubling_chain(60), centred_rows(12), deep_chain(200)}) {
      const auto capabilities = *target::capabilities_of(target);
      const Graph graph = *lower_for_target(given, capabilities);
      const auto parts = regions_of(graph, Track::fp32, capabilities);
      ASSERT_TRUE(parts) << describe(parts.error());
      (void)make_task({graph, Track::fp32}, capabilities, 1);
      std::set<std::string> seen;
      for (const Region& region : parts->regions) {
        if (region.alias || !seen.insert(region.identity).second) continue;
        const SearchSpace space = search_space_of({region.graph, Track::fp32}, capabilities);
        const auto first = next_of(strategy_of(space, Strategy::enumerate, 1));
        ASSERT_TRUE(first) << target << " " << graph::to_text(region.graph);
        const auto list = space.build(*first);
        EXPECT_TRUE(list) << describe(list.error());
      }
    }
}

TEST(Planning, EndsAtAnInterruptBeforeAnythingIsSearched) {
  std::atomic<bool> flag = true;
  const Options options = {.target = "cpu", .budget_seconds = 1000, .interrupted = &flag};
  const auto outcome = optimize(residual_layers(6), options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kInterrupted);
  EXPECT_NE(outcome.error().message.find("plan"), std::string::npos) << outcome.error().message;
}

TEST(Planning, EndsAtAConstantThatIsNoInput) {
  const Options options = {.target = "cpu", .constants = {"w0", "nobody"}};
  const auto outcome = optimize(residual_layers(1), options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kUsage);
  EXPECT_EQ(outcome.error().place, "--constant nobody");
}

// Predictions: on a GPU, where there is a cost model.
struct Predicted {
  SearchSpace space;
  std::atomic<int> asked = 0;

  explicit Predicted(const std::function<void(int)>& at = [](int) {})
      : space(search_space_of({residual_layers(1), Track::fp32},
                              *target::capabilities_of("sm_90a"))) {
    space.predict = [this, at](const kernels::KernelConfig&) -> Result<double> {
      at(++asked);
      return 1.0;
    };
  }
};

TEST(Planning, PredictsNothingAfterAnInterrupt) {
  std::atomic<bool> flag = false;
  Predicted all;
  (void)strategy_of(all.space, Strategy::beam, 1);
  Predicted few([&](int number) { flag = flag || number >= 3; });
  const StrategyPtr strategy = strategy_of(few.space, Strategy::beam, 1, {.interrupted = &flag});
  EXPECT_GT(all.asked, 100);
  EXPECT_LT(few.asked, 100);  // those that other threads had begun
  EXPECT_TRUE(next_of(strategy));
}

TEST(Planning, PredictsNothingOnceItHasHadItsTime) {
  Predicted none;
  const StrategyPtr strategy =
      strategy_of(none.space, Strategy::beam, 1, {.until = Limits::Clock::now()});
  EXPECT_EQ(none.asked, 0);
  EXPECT_TRUE(next_of(strategy));
}
}  // namespace
}  // namespace warploom::search
