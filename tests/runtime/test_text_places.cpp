// Which file and line a line of a text is from that was put together.
#include <gtest/gtest.h>
#include <string>
#include "runtime/text_places.h"

namespace warploom::runtime {
namespace {
const std::string kText =
    "//: line 1 of mm_kernels.cpp\na\nb\n//: line 1 of wl_cpu.h\nc\n"
    "//: line 4 of mm_kernels.cpp\nd\n";

void expect_place(int line, const std::string& file, int of_file) {
  const TextPlace place = place_in(kText, line);
  EXPECT_EQ(place.file, file) << line;
  EXPECT_EQ(place.line, of_file) << line;
}

TEST(TextPlaces, ALineIsCountedFromTheMarkAboveIt) {
  expect_place(2, "mm_kernels.cpp", 1);
  expect_place(3, "mm_kernels.cpp", 2);
  expect_place(5, "wl_cpu.h", 1);
  expect_place(7, "mm_kernels.cpp", 4);
}

TEST(TextPlaces, ATextWithoutMarksHasItsOwnLines) {
  const TextPlace place = place_in("a\nb\n", 2);
  EXPECT_EQ(place.file, "");
  EXPECT_EQ(place.line, 2);
}

TEST(TextPlaces, WhatOnlyLooksLikeAMarkIsNone) {
  EXPECT_EQ(place_in("//: line x of a\n//: line 3\nb\n", 3).line, 3);
}

TEST(TextPlaces, AMarkSaysWhatIsReadBack) {
  const TextPlace place = place_in(place_mark(41, "device/cpu/wl_cpu.h") + "x\n", 2);
  EXPECT_EQ(place.file, "device/cpu/wl_cpu.h");
  EXPECT_EQ(place.line, 41);
}
}  // namespace
}  // namespace warploom::runtime
