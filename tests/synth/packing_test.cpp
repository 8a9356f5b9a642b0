// The order that synthesis chooses for packed tensors.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "layout/memory_layout.h"
#include "synth/solve.h"
#include "synth/synthesize.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
using tile::Builder;
using tile::TensorId;

Solution best(const tile::Program& program, const std::string& target = "sm_80") {
  auto found = synthesize_best(program, *target::capabilities_of(target), 1);
  EXPECT_TRUE(found.has_value()) << describe(found.error());
  return found ? std::move(found->front()) : Solution();
}

// acc += w * x on one warp or several, w packed and of codes that become f16.
struct Weights {
  Builder b{"weights"};
  TensorId W;
  TensorId codes;
  TensorId w;
  TensorId x;
  TensorId acc;

  Weights(Dtype dtype, int64_t m, int64_t k, int warps) {
    b.warps(warps);
    W = b.prepacked(b.global("W", dtype, {4 * m, 2 * k}));
    const TensorId X = b.global("X", Dtype::f16, {k, 16});
    const TensorId C = b.output("C", Dtype::f32, {m, 16});
    codes = b.reg("codes", dtype, {m, k});
    w = b.reg("w", Dtype::f16, {m, k});
    x = b.reg("x", Dtype::f16, {k, 16});
    acc = b.reg("acc", Dtype::f32, {m, 16});
    b.copy(b.tile(W, {tile::block(0) * m, k}, {m, k}), b.all(codes));
    b.copy(b.all(codes), b.all(w));
    b.copy(b.all(X), b.all(x));
    b.fill(acc, 0);
    b.mma(acc, b.all(w), b.all(x));
    b.copy(b.all(acc), b.all(C));
  }
};

// Elements' offsets in memory, by thread and value.
std::vector<std::vector<int64_t>> offsets(const Solution& solution, TensorId packed,
                                          TensorId registers) {
  const TvLayout& held = solution.registers.at(registers);
  std::vector<std::vector<int64_t>> out(static_cast<size_t>(held.threads()));
  for (int64_t t = 0; t < held.threads(); ++t)
    for (int64_t v = 0; v < held.values(); ++v)
      out[static_cast<size_t>(t)].push_back(
          solution.prepacked.at(packed).element_offset(held.coord(t, v)));
  return out;
}

TEST(Packing, AFragmentOfBytesIsTheWorkedExampleOfThePass) {
  Weights p(Dtype::u8, 16, 16, 1);
  const Solution solution = best(p.b.finish());
  const layout::MemoryLayout& order = solution.prepacked.at(p.W);
  EXPECT_EQ(to_string(order), "(8:32)(2:2)(4:512), (2:1)(4:8)(2:4)(2:256) of 8 bits");
  EXPECT_NE(solution.reasons.at(p.W).why.find("64 bits at a time"), std::string::npos)
      << solution.reasons.at(p.W).why;
}

TEST(Packing, AThreadReadsSixteenBytesAndNeighboursAreNextToItsOwn) {
  for (const auto& [dtype, k] : {std::pair{Dtype::u4, 64},
                                 {Dtype::i4, 128},
                                 {Dtype::u8, 32},
                                 {Dtype::u8, 64},
                                 {Dtype::f16, 16}})
    for (const int warps : {1, 2, 4}) {
      Weights p(dtype, 16 * warps, k, warps);
      const tile::Program program = p.b.finish();
      const Solution solution = best(program);
      const int64_t vector = 128 / bits_of(dtype);
      EXPECT_EQ(solution.choices.at(program.body[0].id).vector, vector) << name_of(dtype);
      const auto at = offsets(solution, p.W, p.codes);
      for (size_t t = 0; t < at.size(); ++t)
        for (size_t v = 0; v < static_cast<size_t>(vector); ++v)
          EXPECT_EQ(at[t][v], at[t / 32 * 32][0] + static_cast<int64_t>(t % 32) * vector +
                                  static_cast<int64_t>(v));
    }
}

TEST(Packing, EveryElementHasAPlaceOfItsOwnAndTilesLieOneBehindAnother) {
  Weights p(Dtype::u4, 48, 32, 3);
  const Solution solution = best(p.b.finish());
  const layout::MemoryLayout& order = solution.prepacked.at(p.W);
  std::set<int64_t> places;
  for (int64_t i = 0; i < 192; ++i)
    for (int64_t j = 0; j < 64; ++j) {
      const int64_t place = order.element_offset({i, j});
      EXPECT_EQ(place / (48 * 32), i / 48 * 2 + j / 32);
      EXPECT_TRUE(places.insert(place).second);
    }
  EXPECT_EQ(order.elements(), 192 * 64);
}

TEST(Packing, ThreadsThatHoldCopiesShareTheirPlace) {
  Builder b("scales");
  b.warps(1);
  const TensorId S = b.prepacked(b.global("S", Dtype::f16, {64, 8}));
  const TensorId W = b.prepacked(b.global("W", Dtype::f16, {64, 16}));
  const TensorId X = b.global("X", Dtype::f16, {16, 8});
  const TensorId C = b.output("C", Dtype::f32, {64, 8});
  const TensorId s = b.reg("s", Dtype::f16, {64, 1});
  const TensorId w = b.reg("w", Dtype::f16, {64, 16});
  const TensorId x = b.reg("x", Dtype::f16, {16, 8});
  const TensorId acc = b.reg("acc", Dtype::f32, {64, 8});
  b.copy(b.tile(S, {0, tile::block(0)}, {64, 1}), b.all(s));
  b.copy(b.all(W), b.all(w));
  b.copy(b.all(X), b.all(x));
  b.map(w, b.value(w) * b.value(s));
  b.fill(acc, 0);
  b.mma(acc, b.all(w), b.all(x));
  b.copy(b.all(acc), b.all(C));
  const tile::Program program = b.finish();
  const Solution solution = best(program);
  EXPECT_EQ(solution.choices.at(program.body[0].id).vector, 8);  // rows of a lane, of 64 on 8 lanes
  const auto at = offsets(solution, S, s);
  for (size_t t = 0; t < 32; ++t)
    EXPECT_EQ(at[t][0], static_cast<int64_t>(t / 4 * 8));
  EXPECT_EQ(solution.prepacked.at(S).elements(), 64 * 8);
}

TEST(Packing, ATensorThatNothingElseAsksOfIsReadInWholeVectors) {
  Builder b("moves");
  b.warps(4);
  const TensorId W = b.prepacked(b.global("W", Dtype::u8, {64, 64}));
  const TensorId r = b.reg("r", Dtype::u8, {64, 64});
  const TensorId Y = b.output("Y", Dtype::u8, {64, 64}, {1, 64});
  b.copy(b.all(W), b.all(r));
  b.copy(b.all(r), b.all(Y));
  const tile::Program program = b.finish();
  const Solution solution = best(program);
  // The result's order decides, since the packed tensor has none: both sides move 16 bytes at a
  // time.
  EXPECT_EQ(solution.choices.at(program.body[0].id).vector, 16);
  EXPECT_EQ(solution.choices.at(program.body[1].id).vector, 16);
}

TEST(Packing, TheOrderIsChosenForAllThatRead) {
  Builder b("twice");
  b.warps(1);
  const TensorId W = b.prepacked(b.global("W", Dtype::f16, {16, 16}));
  const TensorId Y = b.output("Y", Dtype::f16, {16, 16});
  const TensorId X = b.global("X", Dtype::f16, {16, 8});
  const TensorId C = b.output("C", Dtype::f32, {16, 8});
  const TensorId w = b.reg("w", Dtype::f16, {16, 16});
  const TensorId r = b.reg("r", Dtype::f16, {16, 16});
  const TensorId x = b.reg("x", Dtype::f16, {16, 8});
  const TensorId acc = b.reg("acc", Dtype::f32, {16, 8});
  b.copy(b.all(W), b.all(r));
  b.copy(b.all(r), b.all(Y));
  b.copy(b.all(W), b.all(w));
  b.copy(b.all(X), b.all(x));
  b.fill(acc, 0);
  b.mma(acc, b.all(w), b.all(x));
  b.copy(b.all(acc), b.all(C));
  const tile::Program program = b.finish();
  const Solution solution = best(program);
  EXPECT_EQ(solution.choices.at(program.body[0].id).vector +
                solution.choices.at(program.body[2].id).vector,
            8 + 2);
}

TEST(Packing, ReadsOfAPackedTensorArePredictedToTakeLessThanThoseOfRows) {
  const auto cost = [](bool packed) {
    Weights p(Dtype::u4, 64, 64, 4);
    tile::Program program = p.b.finish();
    program.tensors[0].prepacked = packed;
    program.grid[0] = 4;
    return best(program).cost;
  };
  EXPECT_LT(cost(true).l2, cost(false).l2 / 2);
  EXPECT_LT(cost(true).issue, cost(false).issue);
}

TEST(Packing, AThreadThatHoldsHalfAByteIsRefused) {
  Builder b("half");
  b.warps(4);
  const TensorId W = b.prepacked(b.global("W", Dtype::u4, {128}));
  const TensorId Y = b.output("Y", Dtype::f32, {128}, {2});
  const TensorId codes = b.reg("codes", Dtype::u4, {128});
  const TensorId y = b.reg("y", Dtype::f32, {128});
  b.copy(b.all(W), b.all(codes));
  b.map(y, b.value(codes) * tile::constant(2));
  b.copy(b.all(y), b.all(Y));
  const auto found = synthesize_best(b.finish(), *target::capabilities_of("sm_80"), 1);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kNoLayout);
  EXPECT_NE(found.error().message.find("whole bytes of 'codes'"), std::string::npos)
      << describe(found.error());
  EXPECT_NE(found.error().place.find("packing_test.cpp"), std::string::npos);
}
}  // namespace
}  // namespace warploom::synth
