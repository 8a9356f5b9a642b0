// Networks of several regions, as programs see them.
#include <gtest/gtest.h>
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/file.h"
#include "cli_fixture.h"

namespace warploom {
namespace {
using cli_test::Cli;
using cli_test::Ran;
using cli_test::tensor;

class Network : public Cli {};

// Two equal layers gelu(x·w + b), a third without gelu, softmax; weights are inputs, or constants
// of the model.
std::string network_model(bool constants) {
  std::string text = "ir_version: 8\nopset_import { version: 20 }\ngraph {\nname: \"net\"\n" +
                     tensor("input", "x", 1, 24, 32) + tensor("output", "y", 1, 24, 32);
  const auto node = [&](const std::string& op, const std::string& a, const std::string& b,
                        const std::string& out) {
    text += "node { input: \"" + a + (b.empty() ? "" : "\" input: \"" + b) + "\" output: \"" + out +
            "\" op_type: \"" + op + "\" }\n";
  };
  std::string x = "x";
  for (const std::string layer : {"1", "2", "3"}) {
    node("MatMul", x, "w" + layer, "m" + layer);
    node("Add", "m" + layer, "b" + layer, "a" + layer);
    x = "a" + layer;
    if (layer == "3")
      node("Softmax", x, "", "y");
    else {
      node("Gelu", x, "", "g" + layer);
      x = "g" + layer;
    }
    for (const auto& [name, rows] : {std::pair("w" + layer, 32), std::pair("b" + layer, 1)}) {
      if (!constants)
        text += tensor("input", name, 1, rows, 32);
      else
        text += "initializer { name: \"" + name + "\" data_type: 1 dims: " + std::to_string(rows) +
                " dims: 32 ";
      for (int i = 0; constants && i < rows * 32; ++i)
        text += "float_data: " + std::to_string((i * 37 % 41 - 20) / 60.0) + " ";
      if (constants) text += "}\n";
    }
  }
  return text + "}\n";
}

TEST_F(Network, ANetworkBecomesOneBundleAndEqualLayersAreSearchedOnce) {
  for (const bool constants : {false, true}) {
    ASSERT_TRUE(write_file(model, network_model(constants)));
    const Ran run = optimize("--target cpu --candidates 2 --budget 40s --out made");
    ASSERT_EQ(run.status, 0) << run.text << run.err;
    std::vector<std::string> regions;
    for (const auto& region : run.out["regions"])
      regions.push_back(std::to_string(region["times"].get<int>()) + " " +
                        region["name"].get<std::string>());
    EXPECT_EQ(regions.size(), 3u) << run.text;
    EXPECT_EQ(regions[0], "2 MatMul+Add+Gelu");
    EXPECT_GT(run.out["best_us"].get<double>(), 0);
    const Ran check = shell("make -C made check");
    EXPECT_EQ(check.status, 0) << check.text << check.err;
    const Ran judged = shell("$W verify made --json");
    EXPECT_EQ(judged.status, 0) << judged.text << judged.err;
  }
}

TEST_F(Network, OfANetworkTheArchiveKnowsWhatShareEachRegionHad) {
  ASSERT_TRUE(write_file(model, network_model(false)));
  const std::string flags = "--target cpu --budget 40s --archive kept.sqlite --out made";
  const Ran first = optimize(flags);
  ASSERT_EQ(first.status, 0);
  std::set<std::string> keys;  // of the regions that the plan has; others were tried
  for (const auto& region : first.out["regions"])
    keys.insert(region["key"]);
  double seconds = 0;
  bool all_judged_whole = true;
  auto archive = archive::Archive::open(scratch.path() / "kept.sqlite");
  const auto problems = archive->problems();
  for (const auto& problem : *problems) {
    if (!keys.contains(problem.key)) continue;
    const auto runs = archive->runs(problem.key);
    EXPECT_LT(runs->front().budget_seconds, 40) << problem.name;
    seconds += runs->front().budget_seconds;
    all_judged_whole &= (*archive->best(problem.key))->stage == archive::Stage::promoted;
  }
  const bool as_fused = first.out["boundaries"]["text"] == "";
  EXPECT_NEAR(seconds, as_fused ? 40 : seconds, 1e-9);
  // What a busy machine left no time to judge whole is searched again.
  EXPECT_EQ(optimize(flags).out["recalled"].get<bool>(), all_judged_whole);
}

TEST_F(Network, ASearchOfANetworkThatWasKilledGoesOn) {
  ASSERT_TRUE(write_file(model, network_model(false)));
  const std::string flags = "--target cpu --archive kept.sqlite --out made ";
  const auto rows = [&] {
    std::vector<std::string> out;
    auto archive = archive::Archive::open(scratch.path() / "kept.sqlite");
    const auto problems = archive->problems();
    for (const auto& problem : *problems) {
      const auto candidates = archive->candidates(problem.key);
      for (const auto& row : *candidates)
        out.push_back(problem.name + " " + row.schedule);
    }
    return out;
  };
  shell("timeout -s KILL 8 $W optimize " + model.string() + " --budget 10m --strategy random " +
        flags);
  const auto before = rows();
  EXPECT_FALSE(before.empty());
  const Ran run = optimize(flags + "--candidates 1 --budget 40s");
  EXPECT_EQ(run.status, 0) << run.text << run.err;
  const auto after = rows();
  for (const auto& row : before)
    EXPECT_NE(std::ranges::find(after, row), after.end()) << row;
}
}  // namespace
}  // namespace warploom
