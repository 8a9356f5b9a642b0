// Spaces of configs: what is sampled is legal, constraints tell what they read.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"

namespace warploom::kernels {
namespace {
struct Named {
  std::string name;
  Region region;
};

std::vector<Named> regions() {
  test::Net conv;
  const auto y = conv.add(graph::OpKind::Conv, {conv.x({8, 64, 56, 56}), conv.x({64, 64, 3, 3})},
                          {{"pads", test::Ints{1, 1, 1, 1}}});
  const graph::Graph convolution = conv.with({y});
  return {{"3x3 convolution", {convolution, Track::fp32}},
          {"3x3 convolution", {convolution, Track::tf32}},
          {"matmul", {test::matmul_graph({4096, 4096, 4096}, Dtype::bf16), Track::bf16}},
          {"matmul", {test::matmul_graph({4096, 4096, 4096}, Dtype::f32), Track::fp32}},
          {"softmax", {test::softmax_graph(1024, 4096, Dtype::f32, false), Track::fp32}}};
}

// Calls with each family of each region on each target.
void with_families(const std::function<void(const std::string&, const Family&)>& body) {
  for (const Named& one : regions())
    for (const char* target : {"sm_90a", "sm_80", "cpu"})
      for (const FamilyPtr& family : families_for(one.region, *target::capabilities_of(target)))
        body(
            fmt::format("{} {} {} {}", one.name, name_of(one.region.track), target, family->name()),
            *family);
}

TEST(Spaces, AtLeastHalfOfWhatIsSampledIsLegal) {
  constexpr int kSamples = 200;
  with_families([&](const std::string& name, const Family& family) {
    Random random(1);
    const SpaceWalk walk(family);
    int legal = 0;
    for (int i = 0; i < kSamples; ++i)
      if (const auto config = walk.sample(random))
        legal += family.legal(*config).has_value() ? 1 : 0;
    EXPECT_GE(2 * legal, kSamples) << name << ": " << legal << " of " << kSamples;
  });
}

TEST(Spaces, WalksFindEveryLegalConfigInTheOrderOfItsFields) {
  const Region region(test::matmul_graph({256, 256, 256}, Dtype::f32), Track::fp32);
  const FamilyPtr family = family_for(region, "matmul_simt", *target::capabilities_of("sm_80"));
  ASSERT_TRUE(family);
  const Space space = family->space();
  std::vector<std::string> want;
  for (int64_t number = 0; number < space.size(); ++number) {
    KernelConfig config(family->type());
    int64_t rest = number;
    for (const Field& field : space.fields) {
      config.set(field.number, field.values[static_cast<size_t>(rest % std::ssize(field.values))]);
      rest /= std::ssize(field.values);
    }
    if (family->legal(config)) want.push_back(config.text());
  }
  std::vector<std::string> found;
  SpaceWalk(*family).all([&](const KernelConfig& config) {
    found.push_back(config.text());
    return true;
  });
  EXPECT_EQ(found, want);
  EXPECT_FALSE(want.empty());
}

// Draws all fields of a space but those that are kept.
void draw_others(KernelConfig& config, const Space& space, const std::vector<size_t>& kept,
                 Random& random) {
  for (const Field& field : space.fields)
    if (std::ranges::count(kept, field.number) == 0)
      config.set(field.number, field.values[random.below(field.values.size())]);
}

// That what `config` fails fails whatever the fields become that the constraint does not read.
void expect_failures_stay(const std::string& name, const Family& family, const Space& space,
                          const KernelConfig& config, Random& random) {
  for (const FailedConstraint& failed : family.constraints(config)) {
    ASSERT_FALSE(failed.fields.empty()) << name << ": " << failed.expected;
    KernelConfig changed = config;
    draw_others(changed, space, failed.fields, random);
    const FailedConstraints still = family.constraints(changed);
    EXPECT_GT(std::ranges::count(still, failed.expected, &FailedConstraint::expected), 0)
        << name << ": " << failed.expected << "\n"
        << config.text() << "\n"
        << changed.text();
  }
}

// A constraint that fails says which fields it reads: no other field can mend it.
TEST(Spaces, FieldsThatAConstraintDoesNotReadNeverMendIt) {
  with_families([&](const std::string& name, const Family& family) {
    Random random(2);
    const Space space = family.space();
    for (int i = 0; i < 100; ++i) {
      KernelConfig config(family.type());
      draw_others(config, space, {}, random);
      ASSERT_NO_FATAL_FAILURE(expect_failures_stay(name, family, space, config, random));
    }
  });
}

TEST(Spaces, EveryConstraintThatFailsIsToldWithWhatItReads) {
  const Region region(test::matmul_graph({4096, 4096, 4096}, Dtype::bf16), Track::bf16);
  const FamilyPtr family = family_for(region, "matmul_wgmma", *target::capabilities_of("sm_90a"));
  ASSERT_TRUE(family);
  const FailedConstraints failed = family->constraints(MatmulWgmmaConfig{
      .block_m = 96, .block_n = 200, .split_k = 2, .scheduler = Scheduler::stream_k});
  std::vector<std::string> expected;
  for (const FailedConstraint& one : failed)
    expected.push_back(one.expected);
  EXPECT_GE(failed.size(), 3u) << fmt::format("{}", fmt::join(expected, "; "));
  const Status status = family->legal(MatmulWgmmaConfig{.block_m = 96});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().remedy, "change block_m, or num_math_warpgroups");
  EXPECT_TRUE(family->constraints(MatmulWgmmaConfig{}).empty());
}
}  // namespace
}  // namespace warploom::kernels
