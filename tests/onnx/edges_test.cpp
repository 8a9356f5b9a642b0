// Inputs at the ends of what operators take: no axes, no elements, no numbers, far too many.
#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "one_operator.h"

namespace warploom {
namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Case theirs(std::string op, std::vector<Given> inputs, std::vector<std::string> attributes = {},
            int outputs = 1) {
  return {std::move(op), std::move(inputs), std::move(attributes), outputs, 20, "com.microsoft"};
}

Given sizes(const Numbers& values) {
  return known(of(Dtype::i64, {std::ssize(values)}, values));
}

TEST(Edges, WhatASkipGroupNormAddsMayBeOneNumber) {
  const Given x = f32({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Given ones = f32({4}, {1, 1, 1, 1});
  const Given none = f32({4}, {0, 0, 0, 0});
  const Given one = f32({}, {1});
  const Made found =
      made(theirs("SkipGroupNorm", {x, ones, none, one, one}, {whole("groups", 2)}, 2));
  EXPECT_EQ(found[1], (Numbers{3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(Edges, PlacesOfAMaxPoolLieInTheImage) {
  const std::vector<std::string> window = {wholes("kernel_shape", {2, 2}),
                                           wholes("pads", {1, 1, 1, 1})};
  const Numbers first = {0, 0, 1, 0, 0, 1, 2, 2, 3};
  EXPECT_EQ(made({"MaxPool", {of(Dtype::u8, {1, 1, 2, 2}, {0, 0, 0, 0})}, window, 2})[1], first);
  EXPECT_EQ(made({"MaxPool", {f32({1, 1, 2, 2}, Numbers(4, -kInfinity))}, window, 2})[1], first);
  EXPECT_EQ(made({"MaxPool", {f32({1, 1, 2, 2}, {1, 2, 4, 3})}, window, 2})[1],
            (Numbers{0, 1, 1, 2, 2, 3, 2, 2, 3}));
}

TEST(Edges, QuantizedProductsOfScalarsAreRefused) {
  const Given scalar = of(Dtype::u8, {}, {1});
  const Given square = of(Dtype::u8, {2, 2}, {1, 2, 3, 4});
  const Given two = of(Dtype::u8, {2}, {1, 1});
  EXPECT_EQ(refusal({"MatMulInteger", {scalar, square, two}}).code, ErrorCode::kOnnxShape);
  const Given zero = of(Dtype::u8, {}, {0});
  const Given one = f32({}, {1});
  EXPECT_EQ(refusal({"QLinearMatMul", {two, f32({0}, {}), zero, two, one, zero, one, zero}}).code,
            ErrorCode::kOnnxShape);
  EXPECT_EQ(made({"QLinearMatMul", {two, one, zero, two, one, zero, one, zero}})[0], (Numbers{2}));
  EXPECT_EQ(refusal(theirs("DynamicQuantizeMatMul", {one, square, one})).code,
            ErrorCode::kOnnxShape);
}

// What is written behind a node that is refused would read shapes that it never made.
TEST(Edges, NothingIsWrittenBehindARefusedNode) {
  EXPECT_EQ(refusal(theirs("Attention", {drawn({1, 2, 4}), drawn({5, 12}), drawn({12})},
                           {whole("num_heads", 2)}))
                .code,
            ErrorCode::kOnnxShape);
}

TEST(Edges, LinearAttentionOfNoStepsKeepsItsState) {
  const Given past = drawn({1, 1, 2, 3});
  const Made found =
      made({"LinearAttention",
            {drawn({1, 0, 4}), drawn({1, 0, 2}), drawn({1, 0, 3}), past},
            {whole("q_num_heads", 2), whole("kv_num_heads", 1), text("update_rule", "linear")},
            2});
  EXPECT_EQ(found.dims[0], (Dims{1, 0, 6}));
  EXPECT_EQ(found[1], past.values);
}

TEST(Edges, BlocksOfACol2ImAreCounted) {
  const Given x = drawn({1, 2, 3});
  EXPECT_EQ(refusal({"Col2Im", {x, sizes({0x1p33, 0x1p33}), sizes({0x1p32, 0x1p32})}}).code,
            ErrorCode::kOnnxTooLarge);
  EXPECT_EQ(refusal({"Col2Im", {x, sizes({4}), sizes({0})}}).code, ErrorCode::kOnnxShape);
  const int64_t far = int64_t{1} << 62;
  for (const std::string& more : {wholes("pads", {far, far}), wholes("dilations", {far})})
    EXPECT_EQ(refusal({"Col2Im", {x, sizes({4}), sizes({2})}, {more}}).code, ErrorCode::kOnnxShape);
}

TEST(Edges, CubicsWithinARimsPixelHoldTheirTapsAlone) {
  // Places -0.4, 3.4 and -1.5 of 0 to 3; a tap of distance 1.4 weighs -0.108.
  const Made found = made({"GridSample",
                           {f32({1, 1, 4}, {1, 2, 3, 4}), f32({1, 3, 1}, {-0.95, 0.95, -1.5})},
                           {text("mode", "cubic"), text("padding_mode", "border")}});
  expect_close(found[0], {0.892, 4.108, 1}, 1e-6);
}

TEST(Edges, ScattersOfNoUpdatesLeaveTheirData) {
  const Given data = drawn({3, 4});
  for (const std::string how : {"none", "add", "max"})
    EXPECT_EQ(made({"ScatterElements",
                    {data, of(Dtype::i64, {0, 3}, {}), f32({0, 3}, {})},
                    {text("reduction", how)}})[0],
              data.values);
}

// The places a TopK names, and how many of its values are NaN.
std::pair<Numbers, int> ranked(const Numbers& line, double k, bool largest) {
  const Made found =
      made({"TopK", {f32({std::ssize(line)}, line), sizes({k})}, {whole("largest", largest)}, 2});
  int count = 0;
  for (const double value : found[0])
    count += std::isnan(value) ? 1 : 0;
  return {found[1], count};
}

TEST(Edges, TopKCountsNaNAsLargest) {
  const Numbers line = {1, kNaN, kInfinity, kNaN, -kInfinity};
  EXPECT_EQ(ranked(line, 4, true), std::pair(Numbers({1, 3, 2, 0}), 2));
  EXPECT_EQ(ranked(line, 5, false), std::pair(Numbers({4, 0, 2, 1, 3}), 2));
  EXPECT_EQ(ranked(line, 1, true), std::pair(Numbers({1}), 1));
  EXPECT_EQ(ranked(line, 1, false), std::pair(Numbers({4}), 0));
  // Long enough that each is picked in turn.
  Numbers rare(300, kNaN);
  rare[7] = kInfinity;
  rare[9] = 5;
  EXPECT_EQ(ranked(rare, 4, false), std::pair(Numbers({9, 7, 0, 1}), 2));
  Numbers few(300, 1);
  few[8] = kNaN;
  few[5] = 2;
  EXPECT_EQ(ranked(few, 3, true), std::pair(Numbers({8, 5, 0}), 1));
}

TEST(Edges, AClipWithoutEndsIsRefused) {
  const Case plain =
      theirs("FusedGemm", {drawn({2, 3}), drawn({3, 2})}, {text("activation", "Clip")});
  EXPECT_EQ(refusal(plain).code, ErrorCode::kOnnxAttribute);
  const Case conv =
      theirs("FusedConv", {drawn({1, 1, 3, 3}), drawn({1, 1, 2, 2})}, {text("activation", "Clip")});
  EXPECT_EQ(refusal(conv).code, ErrorCode::kOnnxAttribute);
}

TEST(Edges, TablesHaveALargestSize) {
  const int64_t many = int64_t{1} << 27;
  const Given index = of(Dtype::i64, {1, 1}, {5});
  for (const Given& place : {index, known(index)})
    EXPECT_EQ(refusal({"ScatterND", {f32({many}, {}), place, f32({1}, {9})}}).code,
              ErrorCode::kOnnxTooLarge);
}

TEST(Edges, AFewKnownPlacesOfManyAreFoundWithoutATable) {
  const int64_t many = (int64_t{1} << 20) + 1;
  const Given index = known(of(Dtype::i64, {1, 1}, {-2}));
  Numbers wanted(static_cast<size_t>(many), 1);
  wanted[wanted.size() - 2] = 9;
  const Given data = f32({many}, Numbers(static_cast<size_t>(many), 1));
  EXPECT_EQ(made({"ScatterND", {data, index, f32({1}, {9})}})[0], wanted);
}
}  // namespace
}  // namespace warploom
