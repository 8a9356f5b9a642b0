#include "tile/index.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cstdint>
#include "base/random.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::tile {
namespace {
const Index k = Index::variable("k");
const Index m = Index::variable("m");

TEST(Index, ConstantsFold) {
  EXPECT_EQ((Index(4) * 16 + 0).constant(), 64);
  EXPECT_EQ((k * 0).constant(), 0);
  EXPECT_EQ((k - k).constant(), 0);
  EXPECT_TRUE((k + 0).same(k));
  EXPECT_TRUE((1 * k).same(k));
  EXPECT_EQ(min(Index(3), Index(5)).constant(), 3);
}

TEST(Index, NestedSumsAndProductsFold) {
  EXPECT_EQ((k + 3 + 5).text(), "k + 8");
  EXPECT_EQ((3 + k - 3).text(), "k");
  EXPECT_EQ((k * 4 * 16).text(), "k * 64");
  EXPECT_EQ(((k + 1) * 64).text(), "k * 64 + 64");
  EXPECT_EQ((k * 64 / 16).text(), "k * 4");
  EXPECT_EQ((k / 4 / 2).text(), "k / 8");
  EXPECT_EQ((k * 8 % 4).constant(), 0);
}

TEST(Index, TextHasFewParentheses) {
  EXPECT_EQ((k / 2 * 16 + m).text(), "k / 2 * 16 + m");
  EXPECT_EQ((k * (m + k)).text(), "k * (m + k)");
  EXPECT_EQ((k - (m - k)).text(), "k - (m - k)");
  EXPECT_EQ((k - 2).text(), "k - 2");
  EXPECT_EQ((k + (m + 4)).text(), "k + m + 4");
  EXPECT_EQ(min(k + 1, m).text(), "wl::min(k + 1, m)");
  EXPECT_EQ((block(1) * 128 + cluster_rank()).text(), "block_y * 128 + cluster_rank");
}

TEST(Index, DivisionIsFloored) {
  EXPECT_EQ((k / 4).evaluate({{"k", -1}}), -1);
  EXPECT_EQ((k % 4).evaluate({{"k", -1}}), 3);
  EXPECT_EQ((Index(-7) / 2).constant(), -4);
}

TEST(Index, DivisionByZeroNeitherFoldsNorTraps) {
  EXPECT_FALSE((Index(4) / 0).constant());
  EXPECT_EQ((k % 0).evaluate({{"k", 3}}), 3);
}

TEST(Index, KnownDivisorIsAPowerOfTwo) {
  EXPECT_EQ((k * 48 + 64).known_divisor(), 16);
  EXPECT_EQ((k * 64 / 4 + m * 8).known_divisor(), 8);
  EXPECT_EQ(Index(0).known_divisor(), 1 << 20);
  EXPECT_EQ(k.known_divisor(), 1);
  EXPECT_EQ(Index(INT64_MIN).known_divisor(), 1 << 20);
}

TEST(Index, KnowsItsVariables) {
  EXPECT_TRUE((k * 4 + m).depends_on("m"));
  EXPECT_FALSE((k * 4).depends_on("m"));
}

// A random tree, beside its value by plain arithmetic without folding.
struct Valued {
  Index index;
  int64_t value;
};

Valued random_index(Random& random, int depth) {
  if (depth == 0 || random.below(4) == 0) {
    if (random.below(2)) return random.below(2) ? Valued{k, 7} : Valued{m, 40};
    const auto constant = static_cast<int64_t>(random.below(70)) - 5;
    return {constant, constant};
  }
  const auto op = static_cast<IndexOp>(2 + random.below(7));
  const auto divisor = static_cast<int64_t>(1 + random.below(16));
  const bool divides = op == IndexOp::div || op == IndexOp::mod;
  const Valued a = random_index(random, depth - 1);
  const Valued b = divides ? Valued{divisor, divisor} : random_index(random, depth - 1);
  const int64_t x = a.value;
  const int64_t y = b.value;
  const auto floored = [](int64_t p, int64_t q) { return p / q - (p % q < 0 ? 1 : 0); };
  int64_t value = 0;
  switch (op) {
    case IndexOp::add: value = x + y; break;
    case IndexOp::sub: value = x - y; break;
    case IndexOp::mul: value = x * y; break;
    case IndexOp::div: value = floored(x, y); break;
    case IndexOp::mod: value = x - y * floored(x, y); break;
    case IndexOp::min: value = std::min(x, y); break;
    default: value = std::max(x, y); break;
  }
  return {Index::make(op, a.index, b.index), value};
}

TEST(Index, FoldingKeepsTheValueTheDivisorAndTheText) {
  Random random(11);
  for (int i = 0; i < 20000; ++i) {
    const Valued v = random_index(random, 4);
    ASSERT_EQ(v.index.evaluate({{"k", 7}, {"m", 40}}), v.value) << v.index.text();
    ASSERT_EQ(v.value % v.index.known_divisor(), 0) << v.index.text();
    const std::string text = v.index.text();
    const auto program = parse(fmt::format("program p grid(1)\nif {} < 1:\n", text));
    ASSERT_TRUE(program) << text;
    const Index& again = std::get<If>(program->body.at(0).node).left;
    ASSERT_EQ(again.text(), text);
    ASSERT_TRUE(again.same(v.index)) << text;
  }
}
}  // namespace
}  // namespace warploom::tile
