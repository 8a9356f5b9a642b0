// How emitted CPU kernels move memory: which calls a program's copies come to.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include "base/dtype.h"
#include "codegen/emit.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom {
namespace {
using tile::Builder;
using tile::Index;
using tile::Program;

std::string text_of(const Program& program) {
  return codegen::emit_cpu(program, *target::capabilities_of("cpu"))->source;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// A tile of a matrix that lies by columns, stored by rows; `uses` more of it.
Program turned(int uses) {
  Builder b("turned");
  const auto x = b.global("X", Dtype::f32, {64, 64}, {1, 64});
  const auto y = b.output("Y", Dtype::f32, {64, 64});
  const auto z = b.output("Z", Dtype::f32, {64, 64});
  const auto t = b.reg("t", Dtype::f32, {64, 64});
  b.copy(b.all(x), b.all(t));
  b.copy(b.all(t), b.all(y), 0, true);
  for (int i = 0; i < uses; ++i)
    b.copy(b.all(t), b.all(z));
  return b.finish();
}

TEST(CpuMemory, ATransposeGoesFromMemoryToMemory) {
  const std::string text = text_of(turned(0));
  EXPECT_EQ(count(text, "wl::copy_transposed<64, 64, true>("), 1u) << text;
  EXPECT_EQ(count(text, "alignas"), 0u) << text;
  EXPECT_EQ(count(text, "wl::stream_end()"), 1u) << text;
}

TEST(CpuMemory, ATransposeThatIsWantedAgainIsKept) {
  const std::string text = text_of(turned(1));
  EXPECT_EQ(count(text, "wl::copy_transposed"), 0u) << text;
  EXPECT_EQ(count(text, "wl::pack_transposed"), 1u) << text;
}

TEST(CpuMemory, RowsThatLieOneBehindAnotherAreOneRunPastTheCaches) {
  Builder b("rows");
  const auto y = b.output("Y", Dtype::f32, {6, 20});
  const auto s = b.shared("s", Dtype::f32, {60});
  const auto u = b.reg("u", Dtype::f32, {20});
  b.for_("i", 0, 3, 1, [&](const Index& i) {
    b.fill(u, 1);
    b.copy(b.all(u), b.tile(s, {i * 20}, {20}));
  });
  b.copy(b.all(s), b.tile(y, {3, 0}, {3, 20}), 0, true);
  const std::string text = text_of(b.finish());
  EXPECT_EQ(count(text, "wl::stream_run(Y + 60, s, 60)"), 1u) << text;
}

// Windows of three rows, two rows on at every turn: the one before was asked for as the last.
TEST(CpuMemory, WindowsAskForTheRowsThatATurnReadsFirst) {
  Builder b("windows");
  const auto x = b.global("X", Dtype::f32, {64, 100});
  const auto y = b.output("Y", Dtype::f32, {31, 49});
  const auto t = b.reg("t", Dtype::f32, {1, 49});
  const auto u = b.reg("u", Dtype::f32, {1, 49});
  b.for_("i", 0, 31, 1, [&](const Index& i) {
    b.fill(u, 0);
    for (int row = 0; row < 3; ++row)
      for (int col = 0; col < 3; ++col) {
        b.copy(b.stepped(b.tile(x, {i * 2 + row, col}, {1, 49}), {1, 2}), b.all(t));
        b.map(u, b.value(u) + b.value(t));
      }
    b.copy(b.all(u), b.tile(y, {i, 0}, {1, 49}));
  });
  const std::string text = text_of(b.finish());
  EXPECT_EQ(count(text, "wl::prefetch<2 * wl::kLanes>(X + i * 200 + 202 + 2 * "), 1u) << text;
  EXPECT_EQ(count(text, "wl::prefetch<2 * wl::kLanes>(X + i * 200 + 102 + 2 * "), 1u) << text;
  EXPECT_EQ(count(text, "wl::prefetch"), 2u) << text;
}

// Columns of a wide matrix, row after row: what comes is a row further, not further along it.
TEST(CpuMemory, PiecesOfRowsAreAskedForRowsAhead) {
  Builder b("columns");
  const auto x = b.global("X", Dtype::f32, {64, 8192});
  const auto y = b.output("Y", Dtype::f32, {256});
  const auto t = b.reg("t", Dtype::f32, {1, 256});
  const auto u = b.reg("u", Dtype::f32, {1, 256});
  b.fill(u, 0);
  b.for_("i", 0, 64, 1, [&](const Index& i) {
    b.copy(b.tile(x, {i, 0}, {1, 256}), b.all(t));
    b.map(u, b.value(u) + b.value(t));
  });
  b.copy(b.all(u), b.all(y));
  const std::string text = text_of(b.finish());
  EXPECT_EQ(count(text, "wl::prefetch"), 0u) << text;
  EXPECT_EQ(count(text, " + 65536);"), 1u) << text;  // eight rows
}

// Two loops over a row: what the second reads is there, so it asks for the next row's.
TEST(CpuMemory, WhatIsReadAgainAsksForTheNextRow) {
  const auto text_with = [](bool streaming, int64_t columns) {
    Builder b("ahead");
    const auto x = b.global("X", Dtype::f32, {64, columns});
    const auto y = b.output("Y", Dtype::f32, {64, columns});
    const auto t = b.reg("t", Dtype::f32, {256});
    const auto u = b.reg("u", Dtype::f32, {256});
    b.for_("i", 0, 64, 1, [&](const Index& i) {
      b.fill(u, 0);
      b.for_("j", 0, 4, 1, [&](const Index& j) {
        b.copy(b.tile(x, {i, j * 256}, {1, 256}), b.all(t), 0, streaming);
        b.map(u, b.value(u) + b.value(t));
      });
      b.for_("k", 0, 4, 1, [&](const Index& k) {
        b.copy(b.tile(x, {i, k * 256}, {1, 256}), b.all(t), 0, streaming);
        b.map(t, b.value(t) * b.value(u));
        b.copy(b.all(t), b.tile(y, {i, k * 256}, {1, 256}), 0, streaming);
      });
    });
    return text_of(b.finish());
  };
  const std::string streamed = text_with(true, 1024);
  EXPECT_EQ(count(streamed, "fetch<"), 1u) << streamed;
  EXPECT_EQ(count(streamed, "wl::fetch<wl::kLanes, 2>(X"), 1u) << streamed;
  EXPECT_EQ(count(streamed, " + 1024);"), 1u) << streamed;
  const std::string plain = text_with(false, 1024);
  EXPECT_EQ(count(plain, "wl::prefetch<wl::kLanes>(X"), 2u) << plain;
  const std::string long_rows = text_with(true, 1 << 22);  // which no L2 holds
  EXPECT_EQ(count(long_rows, "wl::prefetch<wl::kLanes, 2>(X"), 2u) << long_rows;
}

TEST(CpuMemory, WhatACacheHoldsIsNotAskedFor) {
  Builder b("weights");
  const auto x = b.global("X", Dtype::f32, {64, 1024});
  const auto w = b.global("W", Dtype::f32, {1024});
  const auto y = b.output("Y", Dtype::f32, {64, 1024});
  const auto t = b.reg("t", Dtype::f32, {256});
  const auto u = b.reg("u", Dtype::f32, {256});
  b.for_("i", 0, 64, 1, [&](const Index& i) {
    b.for_("j", 0, 4, 1, [&](const Index& j) {
      b.copy(b.tile(x, {i, j * 256}, {1, 256}), b.all(t));
      b.copy(b.tile(w, {j * 256}, {256}), b.all(u));
      b.map(t, b.value(u) * b.value(t));
      b.copy(b.all(t), b.tile(y, {i, j * 256}, {1, 256}));
    });
  });
  const std::string text = text_of(b.finish());
  EXPECT_EQ(count(text, "wl::prefetch<wl::kLanes>(X"), 1u) << text;
  EXPECT_EQ(count(text, "wl::prefetch<wl::kLanes>(W"), 0u) << text;
}

// What a loop has read at a place it may write there; not at another one.
TEST(CpuMemory, AValueMayTakeThePlaceOfOneThatWasRead) {
  const auto written_at = [](int64_t place) {
    Builder b("places");
    const auto y = b.output("Y", Dtype::f32, {2, 64});
    const auto s = b.shared("s", Dtype::f32, {128});
    const auto t = b.reg("t", Dtype::f32, {64});
    b.copy(b.tile(s, {0}, {64}), b.all(t));
    b.map(t, b.value(t) + b.value(t));
    b.copy(b.all(t), b.tile(s, {place}, {64}));
    b.copy(b.tile(s, {0}, {64}), b.tile(y, {0, 0}, {1, 64}));
    return text_of(b.finish());
  };
  EXPECT_EQ(count(written_at(0), "+= wl::kLanes"), 1u) << written_at(0);
  EXPECT_EQ(count(written_at(32), "+= wl::kLanes"), 2u) << written_at(32);
}
}  // namespace
}  // namespace warploom
