// Emitted CPU kernels compute what the interpreter says their program means.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/value_op.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "cpu_product_programs.h"
#include "cpu_run.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/interpret.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom {
namespace {
target::Capabilities machine(int vector_bytes = 0) {
  auto capabilities = *target::capabilities_of("cpu");
  if (vector_bytes > 0 && vector_bytes < capabilities.vector_bytes) {
    capabilities.vector_bytes = vector_bytes;
    capabilities.registers = 16;
  }
  return capabilities;
}

// A program with random inputs, its outputs by the interpreter and by the kernel.
struct Case {
  Program program;
  Kernel kernel;
  std::map<std::string, std::vector<std::byte>> meant;
  std::map<std::string, std::vector<std::byte>> got;

  Case(Program made, int number, const target::Capabilities& capabilities)
      : program(std::move(made)) {
    program.name += "_" + std::to_string(number) + "_" + std::to_string(capabilities.vector_bytes);
    const auto valid = tile::verify(program);
    EXPECT_TRUE(valid.has_value()) << (valid ? "" : describe(valid.error()));
    auto emitted = codegen::emit_cpu(program, capabilities);
    EXPECT_TRUE(emitted.has_value()) << (emitted ? "" : describe(emitted.error()));
    if (emitted) kernel = *emitted;
    Random random(static_cast<uint64_t>(number) + 1);
    for (const auto& tensor : program.tensors) {
      if (tensor.scope != tile::Scope::global) continue;
      int64_t last = 0;
      for (size_t i = 0; i < tensor.shape.size(); ++i)
        last += (tensor.shape[i] - 1) * tensor.strides[i];
      std::vector<std::byte> bytes(static_cast<size_t>((last + 1) * bytes_of(tensor.dtype)));
      for (int64_t i = 0; i <= last; ++i)
        store_from_double(tensor.dtype, bytes.data(), static_cast<size_t>(i), random.normal());
      meant[tensor.name] = got[tensor.name] = bytes;
    }
  }

  void run(CpuLibrary& library) {
    tile::Buffers buffers;
    for (auto& [name, bytes] : meant)
      buffers[name] = bytes;
    const auto status = tile::interpret(program, buffers);
    ASSERT_TRUE(status.has_value()) << describe(status.error());
    std::vector<void*> pointers;
    for (const auto& arg : kernel.args)
      pointers.push_back(got[arg.buffer].data());
    library.run(kernel, pointers);
    for (const auto& tensor : program.tensors) {
      if (tensor.scope != tile::Scope::global || !tensor.writable) continue;
      const size_t count = meant[tensor.name].size() / static_cast<size_t>(bytes_of(tensor.dtype));
      double worst = 0;
      for (size_t i = 0; i < count; ++i) {
        const double want = load_as_double(tensor.dtype, meant[tensor.name].data(), i);
        const double have = load_as_double(tensor.dtype, got[tensor.name].data(), i);
        worst = std::max(
            worst, std::isnan(have) ? HUGE_VAL : std::abs(want - have) / (1 + std::abs(want)));
      }
      EXPECT_LT(worst, tensor.dtype == Dtype::f32 ? 1e-5 : 1e-2) << program.name << "\n"
                                                                 << kernel.source;
    }
  }
};

// Tiles of a tensor that reach over all its edges, through shared memory and registers, scaled by a
// column and a row.
Program scaled(int64_t rows, int64_t cols, Dtype dtype, bool transposed, bool streaming) {
  Builder b("scaled");
  b.grid((cols + 23) / 24 + 1, (rows + 6) / 7 + 1).warps(1);
  std::vector<int64_t> strides = {cols, 1};
  if (transposed) strides = {1, rows};
  const auto x = b.global("X", dtype, {rows, cols}, strides);
  const auto by_row = b.global("R", Dtype::f32, {rows, 1});
  const auto by_col = b.global("S", Dtype::f32, {1, cols});
  const auto y = b.output("Y", dtype, {rows, cols});
  const auto s = b.shared("s", Dtype::f32, {7, 24});
  const auto t = b.reg("t", Dtype::f32, {7, 24});
  const auto r = b.reg("r", Dtype::f32, {7, 1});
  const auto c = b.reg("c", Dtype::f32, {1, 24});
  const Index row = tile::block(1) * 7 - 3;
  const Index col = tile::block(0) * 24 - 5;
  b.copy(b.tile(x, {row, col}, {7, 24}), b.all(s), 2.5);
  b.copy(b.all(s), b.all(t));
  b.copy(b.tile(by_row, {row, 0}, {7, 1}), b.all(r));
  b.copy(b.tile(by_col, {0, col}, {1, 24}), b.all(c));
  b.map(t, b.value(t) * b.value(r) + b.value(c));
  b.copy(b.all(t), b.tile(y, {row, col}, {7, 24}), 0, streaming);
  return b.finish();
}

// Sums, maxima and minima of a [rows, cols] tile over each axis, and of the column of sums.
Program reductions(int64_t rows, int64_t cols) {
  Builder b("reductions");
  b.warps(1);
  const auto x = b.global("X", Dtype::f32, {rows, cols});
  const auto over_cols = b.output("P", Dtype::f32, {rows, 1});
  const auto over_rows = b.output("Q", Dtype::f32, {1, cols});
  const auto all = b.output("A", Dtype::f32, {1, 1});
  const auto t = b.reg("t", Dtype::f32, {rows, cols});
  const auto p = b.reg("p", Dtype::f32, {rows, 1});
  const auto q = b.reg("q", Dtype::f32, {1, cols});
  const auto a = b.reg("a", Dtype::f32, {1, 1});
  b.copy(b.all(x), b.all(t));
  b.reduce(p, t, 1, tile::ReduceOp::max);
  b.copy(b.all(p), b.all(over_cols));
  b.reduce(q, t, 0, tile::ReduceOp::min);
  b.copy(b.all(q), b.all(over_rows));
  b.reduce(a, p, 0, tile::ReduceOp::sum);
  b.copy(b.all(a), b.all(all));
  return b.finish();
}

struct ValueOpRow {
  ValueOp op;
  const char* name;
  size_t arity;
};

constexpr ValueOpRow kValueOps[] = {
#define WARPLOOM_VALUE_OP(name, arity, fp64, moved) {ValueOp::name, #name, arity},
#include "base/value_ops.def"
#undef WARPLOOM_VALUE_OP
};

bool wants_positive(ValueOp op) {
  return op == ValueOp::log || op == ValueOp::sqrt || op == ValueOp::rsqrt;
}

// Every value operation on one tile.
Program functions() {
  Builder b("functions");
  b.warps(1);
  const auto x = b.global("X", Dtype::f32, {1, 100});
  const auto y = b.global("Y", Dtype::f32, {1, 100});
  const auto u = b.reg("u", Dtype::f32, {1, 100});
  const auto v = b.reg("v", Dtype::f32, {1, 100});
  const auto r = b.reg("r", Dtype::f32, {1, 100});
  b.copy(b.all(x), b.all(u));
  b.copy(b.all(y), b.all(v));
  for (const ValueOpRow& row : kValueOps) {
    const std::string name = std::string("O_") + row.name;
    const auto out = b.output(name, Dtype::f32, {1, 100});
    tile::Value first = b.value(u);
    if (wants_positive(row.op)) first = tile::apply(ValueOp::abs, {first});
    std::vector<tile::Value> operands = {first, b.value(v), tile::constant(0.75)};
    operands.resize(row.arity);
    b.map(r, tile::apply(row.op, operands));
    b.copy(b.all(r), b.all(out));
  }
  return b.finish();
}

// A row of 256 read once, normalised in three loops: x less its maximum (x is what memory holds),
// divided by its sum (x is not), and added up over four turns (`sums` is carried from one to the
// next).
Program normalised(Dtype dtype) {
  Builder b("normalised");
  b.warps(1);
  const auto x = b.global("X", dtype, {4, 256});
  const auto y = b.output("Y", dtype, {4, 256});
  const auto z = b.output("Z", Dtype::f32, {1, 256});
  const auto t = b.reg("t", dtype, {1, 256});
  const auto sums = b.reg("sums", Dtype::f32, {1, 256});
  const auto high = b.reg("high", Dtype::f32, {1, 1});
  const auto total = b.reg("total", Dtype::f32, {1, 1});
  b.fill(sums, 0);
  b.for_("i", 0, 4, 1, [&](const Index& i) {
    b.copy(b.tile(x, {i, 0}, {1, 256}), b.all(t));
    b.reduce(high, t, 1, tile::ReduceOp::max);
    b.map(t, tile::apply(ValueOp::exp, {b.value(t) - b.value(high)}));
    b.reduce(total, t, 1, tile::ReduceOp::sum);
    b.map(t, b.value(t) / b.value(total));
    b.map(sums, b.value(sums) + b.value(t));
    b.copy(b.all(t), b.tile(y, {i, 0}, {1, 256}), 0, true);
  });
  b.copy(b.all(sums), b.all(z));
  return b.finish();
}

// A shared row that is overwritten while its old values are still wanted.
Program overwritten() {
  Builder b("overwritten");
  b.warps(1);
  const auto x = b.global("X", Dtype::f32, {1, 64});
  const auto y = b.output("Y", Dtype::f32, {1, 64});
  const auto s = b.shared("s", Dtype::f32, {1, 64});
  const auto t = b.reg("t", Dtype::f32, {1, 64});
  const auto u = b.reg("u", Dtype::f32, {1, 64});
  const auto m = b.reg("m", Dtype::f32, {1, 1});
  b.copy(b.all(x), b.all(u));
  b.copy(b.all(u), b.all(s));
  b.copy(b.all(s), b.all(t));
  b.reduce(m, t, 1, tile::ReduceOp::max);
  b.map(u, b.value(t) * b.value(m));
  b.copy(b.all(u), b.all(s));
  b.map(u, b.value(t) - b.value(m));
  b.copy(b.all(u), b.all(y));
  return b.finish();
}

// Rows gathered, masked beside a diagonal, scanned over each axis, transposed, scattered.
Program moved_about(int64_t rows, int64_t cols) {
  Builder b("moved");
  b.warps(1);
  const auto x = b.global("X", Dtype::f32, {2, cols});
  const auto from = b.global("I", Dtype::i32, {rows});
  const auto to = b.global("J", Dtype::i64, {rows}, {2});
  const auto y = b.output("Y", Dtype::f32, {rows, cols});
  const auto t = b.output("T", Dtype::f32, {cols, rows});
  const auto z = b.output("Z", Dtype::bf16, {2, cols});
  const auto u = b.reg("u", Dtype::f32, {rows, cols});
  const auto v = b.reg("v", Dtype::f32, {rows, cols});
  const auto w = b.reg("w", Dtype::f32, {cols, rows});
  b.copy(b.gathered(b.tile(x, {0, 0}, {rows, cols}), 0, from), b.all(u), 0.5);
  const tile::Value below =
      tile::apply(ValueOp::less, {tile::coordinate(0), tile::coordinate(1, Index(-2))});
  b.map(u, tile::apply(ValueOp::where, {below, b.value(u), tile::coordinate(1)}));
  b.scan(v, u, 1, tile::ReduceOp::sum);
  b.copy(b.all(v), b.all(y));
  b.scan(v, u, 0, tile::ReduceOp::max);
  b.scan(u, v, 1, tile::ReduceOp::min, true);
  b.scan(v, u, 0, tile::ReduceOp::sum, true);
  b.convert_layout(w, v, true);
  b.copy(b.all(w), b.all(t));
  b.convert_layout(u, v);
  b.copy(b.all(u), b.gathered(b.tile(z, {0, 0}, {rows, cols}), 0, to));
  return b.finish();
}

// Tiles of a matrix turned from memory to memory; then, as one run, rows of 20 that no vector
// fills.
Program turned(int64_t rows, int64_t cols, bool streaming) {
  Builder b("turned");
  b.grid(2).warps(1);
  const auto x = b.global("X", Dtype::f32, {2 * rows, cols}, {1, 2 * rows + 3});
  const auto y = b.output("Y", Dtype::f32, {2 * rows, cols});
  const auto z = b.output("Z", Dtype::f32, {7, 20});
  const auto t = b.reg("t", Dtype::f32, {rows, cols});
  const auto u = b.reg("u", Dtype::f32, {20});
  const auto s = b.shared("s", Dtype::f32, {3 * 20});
  b.copy(b.tile(x, {tile::block(0) * rows, 0}, {rows, cols}), b.all(t));
  b.copy(b.all(t), b.tile(y, {tile::block(0) * rows, 0}, {rows, cols}), 0, streaming);
  b.for_("i", 0, 3, 1, [&](const Index& i) {
    b.fill(u, 1.5);
    b.map(u, b.value(u) + tile::coordinate(0, i * 20));
    b.copy(b.all(u), b.tile(s, {i * 20}, {20}));
  });
  b.copy(b.all(s), b.tile(z, {tile::block(0) * 3 + 1, 0}, {3, 20}), 0, true);
  return b.finish();
}

std::vector<Program> programs() {
  std::vector<Program> out;
  for (const bool streaming : {false, true}) {
    out.push_back(turned(32, 48, streaming));
    out.push_back(turned(16, 64, streaming));
    out.push_back(turned(24, 16, streaming));   // in halves of AVX-512's vectors
    out.push_back(turned(9, 30, streaming));    // by way of a buffer
    out.push_back(turned(144, 80, streaming));  // by blocks of 64 and what they leave
  }
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    out.push_back(normalised(dtype));
  out.push_back(overwritten());
  out.push_back(moved_about(7, 37));
  out.push_back(moved_about(20, 16));
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    for (const bool transposed : {false, true})
      out.push_back(scaled(19, 61, dtype, transposed, true));
  out.push_back(scaled(3, 100, Dtype::f32, false, false));
  out.push_back(reductions(5, 37));
  out.push_back(reductions(33, 8));
  out.push_back(functions());
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      out.push_back(product(13, 48, 21, ta, tb, true));
      out.push_back(product(9, 43, 7, ta, tb, false));
    }
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16})
    for (const bool ta : {false, true})
      out.push_back(product_in_place(13, 70, 21, dtype, ta));
  out.push_back(product_in_place(1, 7, 40, Dtype::f32, false));
  return out;
}

void agree(int vector_bytes, const std::vector<std::string>& flags) {
  CpuLibrary library;
  std::vector<std::unique_ptr<Case>> cases;
  int number = 0;
  for (Program& program : programs()) {
    cases.push_back(std::make_unique<Case>(std::move(program), number++, machine(vector_bytes)));
    library.add(cases.back()->kernel);
  }
  if (!library.compile(flags)) return;
  for (auto& each : cases)
    each->run(library);
}

TEST(CpuEmit, KernelsAgreeWithTheInterpreter) {
  agree(0, {});
}

TEST(CpuEmit, KernelsOfTheBaselineVectorsAgree) {
  agree(16, {"-msse2"});
}

TEST(CpuEmit, KernelsOfNarrowerVectorsAgree) {
  if (machine().vector_bytes < 32) GTEST_SKIP() << "this machine has no AVX2";
  agree(32, {"-mavx2", "-mfma", "-mf16c"});
}

std::string text_of(const Program& program) {
  return codegen::emit_cpu(program, machine())->source;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(CpuFusion, StatementsOverOneExtentAreOneLoopWithoutArrays) {
  Builder b("one");
  const auto x = b.global("X", Dtype::f32, {256});
  const auto y = b.output("Y", Dtype::f32, {256});
  const auto t = b.reg("t", Dtype::f32, {256});
  const auto u = b.reg("u", Dtype::f32, {256});
  b.copy(b.all(x), b.all(t));
  b.map(u, b.value(t) * b.value(t));
  b.map(t, b.value(u) + b.value(t));
  b.copy(b.all(t), b.all(y));
  const std::string text = text_of(b.finish());
  EXPECT_EQ(count(text, "for (long"), 1u) << text;
  EXPECT_EQ(count(text, "alignas"), 0u) << text;
}

TEST(CpuFusion, AnExtentThatIsNoMultipleOfAVectorEndsInAPartOfOne) {
  Builder b("ragged");
  const auto x = b.global("X", Dtype::f32, {250});
  const auto y = b.output("Y", Dtype::f32, {250});
  const auto t = b.reg("t", Dtype::f32, {250});
  b.copy(b.all(x), b.all(t));
  b.copy(b.all(t), b.all(y));
  const std::string text = text_of(b.finish());
  EXPECT_EQ(count(text, "wl::load_row_at<1>(X, "), 1u) << text;
  EXPECT_EQ(count(text, "wl::store_first(Y"), 1u) << text;
  EXPECT_EQ(count(text, "alignas"), 0u) << text;
}

TEST(CpuFusion, RowsThatAreApartOrPartlyOutsideShareTheLoop) {
  Builder b("window");
  const auto x = b.global("X", Dtype::f32, {128});
  const auto y = b.output("Y", Dtype::f32, {64});
  const auto t = b.reg("t", Dtype::f32, {64});
  const auto u = b.reg("u", Dtype::f32, {64});
  b.copy(b.stepped(b.tile(x, {-1}, {64}), {2}), b.all(t));
  b.copy(b.stepped(b.tile(x, {0}, {64}), {2}), b.all(u));
  b.map(t, b.value(t) + b.value(u));
  b.copy(b.all(t), b.all(y));
  const std::string text = text_of(b.finish());
  EXPECT_EQ(count(text, "for (long"), 1u) << text;
  EXPECT_EQ(count(text, "wl::load_row_at<2>("), 2u) << text;
}

TEST(CpuFusion, RowsOfATileShareTheLoopsUpToTheirSums) {
  Builder b("rows");
  const auto x = b.global("X", Dtype::f32, {6, 40});
  const auto y = b.output("Y", Dtype::f32, {6, 40});
  const auto t = b.reg("t", Dtype::f32, {6, 40});
  const auto u = b.reg("u", Dtype::f32, {6, 40});
  const auto sums = b.reg("sums", Dtype::f32, {6, 1});
  b.copy(b.all(x), b.all(t));
  b.map(u, b.value(t) * b.value(t));
  b.reduce(sums, u, 1, tile::ReduceOp::sum);
  b.map(t, b.value(t) / b.value(sums));
  b.copy(b.all(t), b.all(y));
  const std::string text = text_of(b.finish());
  EXPECT_EQ(count(text, "for (long"), 4u) << text;  // rows and vectors, twice
  EXPECT_EQ(count(text, "float u["), 0u) << text;
}

TEST(CpuFusion, ATensorReadOnlyByTheNextTurnIsStored) {
  EXPECT_EQ(count(text_of(normalised(Dtype::f32)), "wl::store(sums"), 2u);  // filled, and added to
}

TEST(CpuFusion, ATensorThatHoldsWhatMemoryHoldsIsReadThere) {
  const std::string text = text_of(normalised(Dtype::f32));
  EXPECT_EQ(count(text, "wl::load(X"), 2u) << text;
}

TEST(CpuFusion, ReadingMemoryAgainStopsWhereTheTensorIsWritten) {
  const std::string text = text_of(normalised(Dtype::f32));
  EXPECT_EQ(count(text, "wl::store(t "), 1u) << text;  // the exponentials
  EXPECT_EQ(count(text, "wl::load(t "), 1u) << text;
}

TEST(CpuFusion, SharedMemoryThatTheBodyWritesIsNotReadAgain) {
  const std::string text = text_of(overwritten());
  EXPECT_EQ(count(text, "wl::load(s "), 1u) << text;
  EXPECT_EQ(count(text, "wl::store(t "), 1u) << text;
}

ErrorCode code_of(const Program& program, const target::Capabilities& capabilities = machine()) {
  const auto kernel = codegen::emit_cpu(program, capabilities);
  return kernel ? ErrorCode::kInternal : kernel.error().code;
}

TEST(CpuEmit, AProductThatBeginsItsSumMakesZerosInRegisters) {
  const std::string text = text_of(product_in_place(13, 70, 21, Dtype::f32, false));
  EXPECT_EQ(count(text, "wl::multiply_tile<true, 5, 33,"), 1);
  EXPECT_EQ(count(text, "wl::multiply_tile<false, 5, 33,"), 1);
  EXPECT_EQ(count(text, "fill acc"), 0);
}

TEST(CpuEmit, AProductReadsNoTileThatMayLieOutside) {
  Builder b("outside");
  b.warps(1);
  const auto A = b.global("A", Dtype::f32, {5, 16});
  const auto B = b.global("B", Dtype::f32, {16, 16});
  const auto acc = b.reg("acc", Dtype::f32, {4, 16});
  b.for_("i", 0, 2, 1, [&](const Index& i) {
    b.fill(acc, 0);
    b.mma(acc, b.tile(A, {i * 4, 0}, {4, 16}), b.all(B));
  });
  EXPECT_EQ(code_of(b.finish()), ErrorCode::kNoInstruction);
}

TEST(CpuEmit, RolesHaveNoInstruction) {
  Builder b("roles");
  const auto x = b.output("X", Dtype::f32, {4, 4});
  const auto t = b.reg("t", Dtype::f32, {4, 4});
  b.roles([&] {
    b.role("only", 4, 0, [&] {
      b.fill(t, 1);
      b.copy(b.all(t), b.all(x));
    });
  });
  EXPECT_EQ(code_of(b.finish()), ErrorCode::kNoInstruction);
}

TEST(CpuEmit, ClustersHaveNoInstruction) {
  Builder b("clusters");
  b.grid(4).cluster(2);
  EXPECT_EQ(code_of(b.finish()), ErrorCode::kNoInstruction);
}

TEST(CpuEmit, DoublesHaveNoInstruction) {
  Builder b("doubles");
  const auto x = b.output("X", Dtype::f64, {4});
  const auto t = b.reg("t", Dtype::f32, {4});
  b.copy(b.all(t), b.all(x));
  EXPECT_EQ(code_of(b.finish()), ErrorCode::kNoInstruction);
}

TEST(CpuEmit, OneOperandInTwoOrientationsHasNoLayout) {
  Builder b("orientations");
  const auto a = b.shared("a", Dtype::f32, {16, 16});
  const auto w = b.shared("w", Dtype::f32, {16, 16});
  const auto acc = b.reg("acc", Dtype::f32, {16, 16});
  b.mma(acc, b.all(a), b.all(w));
  b.mma(acc, b.all(a), b.all(w), false, true);
  EXPECT_EQ(code_of(b.finish()), ErrorCode::kNoLayout);
}

TEST(CpuEmit, SharedTensorsBeyondTheCacheExceedTheResources) {
  Builder b("large");
  b.shared("s", Dtype::f32, {1 << 14, 1 << 14});
  EXPECT_EQ(code_of(b.finish()), ErrorCode::kResourceLimit);
}
}  // namespace
}  // namespace warploom
