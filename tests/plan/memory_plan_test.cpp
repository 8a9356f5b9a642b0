// Memory plans of random launch lists, held against what they promise by brute force.
#include "codegen/memory_plan.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_list.h"

namespace warploom {
namespace {
LaunchList random_list(uint64_t seed) {
  Random random(seed, "memory plan");
  LaunchList list{.engine = Engine::cpu};
  const auto count = static_cast<int>(random.below(12));
  for (int i = 0; i < count; ++i)
    list.workspaces.push_back(
        {fmt::format("w{}", i), Dtype::u8, {static_cast<int64_t>(random.below(3000))}});
  const auto kernels = static_cast<int>(1 + random.below(12));
  for (int k = 0; k < kernels; ++k) {
    Kernel kernel{.name = fmt::format("k{}", k)};
    kernel.args.push_back({"x"});  // no workspace
    for (int n = 0; count > 0 && n < 3; ++n) {
      const auto chosen = random.below(static_cast<uint64_t>(count));
      kernel.args.push_back({list.workspaces[chosen].name});
      kernel.args.back().zeroed = random.below(8) == 0;
    }
    list.kernels.push_back(std::move(kernel));
  }
  return list;
}

// Kernel by kernel: the workspaces that hold something that it or a later kernel may still want.
std::vector<std::set<std::string>> live_at(const LaunchList& list) {
  std::vector<std::set<std::string>> live(list.kernels.size());
  for (const BufferSpec& workspace : list.workspaces)
    for (size_t from = 0; from < live.size(); ++from)
      for (size_t to = from; to < live.size(); ++to) {
        const auto names = [&](size_t k) {
          return contains(list.kernels[k].args, workspace.name, &Argument::buffer);
        };
        if (!names(from) || !names(to)) continue;
        for (size_t k = from; k <= to; ++k)
          live[k].insert(workspace.name);
      }
  return live;
}

// Bytes of separate buffers, each taken by the first workspace that finds it free; those that are
// cleared have their own.
int64_t first_fit_bytes(const LaunchList& list) {
  const auto live = live_at(list);
  const auto is_cleared = [&](const std::string& name) {
    return std::ranges::any_of(list.kernels, [&](const Kernel& kernel) {
      return std::ranges::any_of(
          kernel.args, [&](const Argument& arg) { return arg.buffer == name && arg.zeroed; });
    });
  };

  struct Place {
    int64_t bytes = 0;
    std::string holds;
  };

  std::vector<Place> places;
  std::set<std::string> placed;
  int64_t apart = 0;
  for (size_t k = 0; k < live.size(); ++k)
    for (const Argument& arg : list.kernels[k].args) {
      const auto spec = std::ranges::find(list.workspaces, arg.buffer, &BufferSpec::name);
      if (spec == list.workspaces.end() || !placed.insert(arg.buffer).second) continue;
      if (is_cleared(arg.buffer)) {
        apart += round_up(spec->bytes(), kWorkspaceAlignment);
        continue;
      }
      auto place = std::ranges::find_if(
          places, [&](const Place& one) { return !live[k].contains(one.holds); });
      if (place == places.end()) place = places.insert(places.end(), Place{});
      place->bytes = std::max(place->bytes, spec->bytes());
      place->holds = arg.buffer;
    }
  for (const Place& place : places)
    apart += round_up(place.bytes, kWorkspaceAlignment);
  for (const BufferSpec& spec : list.workspaces)
    if (!placed.contains(spec.name)) apart += round_up(spec.bytes(), kWorkspaceAlignment);
  return apart;
}

class MemoryPlans : public testing::TestWithParam<int> {};

TEST_P(MemoryPlans, KeepWhatLivesAtTheSameTimeApart) {
  const LaunchList list = random_list(static_cast<uint64_t>(GetParam()));
  const MemoryPlan plan = memory_plan(list);
  for (const std::set<std::string>& live : live_at(list)) {
    std::vector<std::string> owner(static_cast<size_t>(plan.arena_bytes));
    for (const PlacedBuffer& placed : plan.buffers) {
      if (!live.contains(placed.name)) continue;
      EXPECT_EQ(placed.offset % kWorkspaceAlignment, 0);
      ASSERT_LE(placed.offset + placed.bytes, plan.arena_bytes);
      for (int64_t byte = 0; byte < placed.bytes; ++byte) {
        std::string& of = owner[static_cast<size_t>(placed.offset + byte)];
        ASSERT_TRUE(of.empty()) << placed.name << " lies on " << of;
        of = placed.name;
      }
    }
  }
}

TEST_P(MemoryPlans, TakeNoMoreThanFirstFitByName) {
  const LaunchList list = random_list(static_cast<uint64_t>(GetParam()));
  EXPECT_LE(memory_plan(list).arena_bytes, first_fit_bytes(list));
}

TEST_P(MemoryPlans, FallIntoBlocksThatShareNoByte) {
  const MemoryPlan plan = memory_plan(random_list(static_cast<uint64_t>(GetParam())));
  std::set<std::string> seen;
  int64_t end = 0;
  for (const MemoryBlock& block : blocks_of(plan)) {
    EXPECT_GE(block.offset, end);
    end = block.offset + block.bytes;
    for (const PlacedBuffer& placed : block.buffers) {
      EXPECT_GE(placed.offset, block.offset);
      EXPECT_LE(placed.offset + placed.bytes, end);
      EXPECT_EQ(placed.offset, plan.offset_of(placed.name));
      EXPECT_TRUE(seen.insert(placed.name).second);
    }
  }
  EXPECT_EQ(seen.size(), plan.buffers.size());
}

INSTANTIATE_TEST_SUITE_P(OfRandomLists, MemoryPlans, testing::Range(0, 300));

TEST(MemoryPlan, IsTheOneOfTheHeadersExample) {
  LaunchList list;
  for (const char* name : {"a", "b", "c", "d"})
    list.workspaces.push_back({name, Dtype::u8, {1000}});
  for (const auto& [from, to] : {std::pair("a", "b"), {"b", "c"}, {"c", "d"}})
    list.kernels.push_back({.name = "k", .args = {{from}, {to}}});
  const MemoryPlan plan = memory_plan(list);
  EXPECT_EQ(plan.arena_bytes, 2048);
  std::map<std::string, int64_t> offsets;
  for (const PlacedBuffer& placed : plan.buffers)
    offsets[placed.name] = placed.offset;
  EXPECT_EQ(offsets,
            (std::map<std::string, int64_t>{{"a", 0}, {"b", 1024}, {"c", 0}, {"d", 1024}}));
}

TEST(MemoryPlan, OfNoWorkspacesIsEmpty) {
  const MemoryPlan plan = memory_plan({});
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_TRUE(plan.buffers.empty());
  EXPECT_TRUE(blocks_of(plan).empty());
}
}  // namespace
}  // namespace warploom
