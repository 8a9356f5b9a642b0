// Products by pairs of terms on a CPU: where packing puts each element, and what products make of
// it.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "cpu_run.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/interpret.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom {
namespace {
using tile::Builder;
using tile::Index;
using tile::Program;
using Bytes = std::vector<std::byte>;

target::Capabilities machine(int vector_bytes) {
  auto capabilities = *target::capabilities_of("cpu");
  capabilities.vector_bytes = std::min(vector_bytes, capabilities.vector_bytes);
  return capabilities;
}

std::vector<std::string> flags_of(const target::Capabilities& capabilities) {
  if (capabilities.vector_bytes == 64) return {};
  if (capabilities.vector_bytes == 32) return {"-mavx2", "-mfma", "-mf16c"};
  return {"-msse2"};
}

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + as_int64(random.below(static_cast<uint64_t>(high - low + 1)));
}

struct Shape {
  int64_t rows;
  int64_t columns;
  int64_t pitch;  // elements from one pair of rows to the next

  explicit Shape(Random& random)
      : rows(2 * between(random, 1, 40)),
        columns(between(random, 2, 90)),
        pitch(2 * (columns + between(random, 0, 3))) {}
};

// A matrix into pairs of rows; `turned`: of a matrix whose rows are the columns.
Program packing(const Shape& s, bool turned, const std::string& name) {
  Builder b(name);
  b.warps(1);
  const std::vector<int64_t> matrix =
      turned ? std::vector{s.columns, s.rows} : std::vector{s.rows, s.columns};
  const auto x = b.global("X", Dtype::f32, matrix);
  const auto held = b.reg("held", Dtype::f32, matrix);
  const auto pairs = turned
                         ? b.output("P", Dtype::bf16, {s.columns, s.rows / 2, 2}, {2, s.pitch, 1})
                         : b.output("P", Dtype::bf16, {s.rows / 2, 2, s.columns}, {s.pitch, 1, 2});
  b.copy(b.all(x), b.all(held));
  b.copy(b.all(held), b.all(pairs));
  return b.finish();
}

Kernel kernel_of(const Program& program, const target::Capabilities& capabilities) {
  const auto valid = tile::verify(program);
  EXPECT_TRUE(valid) << (valid ? "" : describe(valid.error()));
  const auto kernel = codegen::emit_cpu(program, capabilities);
  EXPECT_TRUE(kernel) << (kernel ? "" : describe(kernel.error()));
  return kernel ? *kernel : Kernel{};
}

struct Packing {
  Shape shape;
  bool turned;
  Kernel kernel;
};

TEST(Pairs, NeighboursArePairsOfRowsWhereverTheMatrixLies) {
  for (const int vector_bytes : {64, 32, 16}) {
    const auto capabilities = machine(vector_bytes);
    CpuLibrary library;
    std::vector<Packing> all;
    Random random(7, "pairs");
    for (int i = 0; i < 16; ++i) {
      const Shape shape(random);
      const bool turned = i % 2 != 0;
      const std::string name = "pack_" + std::to_string(i);
      all.push_back({shape, turned, kernel_of(packing(shape, turned, name), capabilities)});
      library.add(all.back().kernel);
      EXPECT_NE(all.back().kernel.source.find("wl::store_in_pairs"), std::string::npos);
    }
    ASSERT_TRUE(library.compile(flags_of(capabilities)));
    for (const Packing& one : all) {
      const auto [rows, columns, pitch] = one.shape;
      std::vector<float> x(static_cast<size_t>(rows * columns));
      for (float& element : x)
        element = static_cast<float>(random.normal());
      constexpr uint16_t kUntouched = 0x7fc1;
      std::vector<uint16_t> pairs(static_cast<size_t>(rows / 2 * pitch), kUntouched);
      library.run(one.kernel, {x.data(), pairs.data()});
      int64_t written = 0;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          const auto at = static_cast<size_t>(one.turned ? c * rows + r : r * columns + c);
          const auto to = static_cast<size_t>(r / 2 * pitch + 2 * c + r % 2);
          ASSERT_EQ(load_as_double(Dtype::bf16, pairs.data(), to), rounded(Dtype::bf16, x[at]))
              << r << ", " << c << " of " << rows << " x " << columns;
          ++written;
        }
      EXPECT_EQ(std::ranges::count(pairs, kUntouched), std::ssize(pairs) - written);
    }
  }
}

// Two blocks of k, of which the second adds to the first.
Program product(int64_t m, int64_t n, int64_t k, const std::string& name) {
  Builder b(name);
  b.warps(1);
  const auto A = b.global("A", Dtype::bf16, {m, 2 * k}, {2 * k + 5, 1});
  const auto B = b.global("B", Dtype::bf16, {k, 2, n}, {2 * n + 4, 1, 2});
  const auto C = b.output("C", Dtype::f32, {m, n});
  const auto acc = b.reg("acc", Dtype::f32, {m, n});
  b.fill(acc, 0);
  const int64_t part = k / 2;
  b.mma(acc, b.tile(A, {0, 0}, {m, 2 * part}), b.tile(B, {0, 0, 0}, {part, 2, n}));
  b.mma(acc, b.tile(A, {0, 2 * part}, {m, 2 * (k - part)}),
        b.tile(B, {part, 0, 0}, {k - part, 2, n}));
  b.copy(b.all(acc), b.all(C));
  return b.finish();
}

struct Product {
  Program program;
  Kernel kernel;
};

// Whole numbers, of which every sum is exact: any order of terms makes the same.
TEST(Pairs, ProductsAddEveryTermOnce) {
  for (const int vector_bytes : {64, 32, 16}) {
    const auto capabilities = machine(vector_bytes);
    CpuLibrary library;
    std::vector<Product> all;
    Random random(11, "pairs");
    for (int i = 0; i < 12; ++i) {
      Program program = product(between(random, 1, 9), between(random, 2, 70),
                                between(random, 2, 30), "product_" + std::to_string(i));
      Kernel kernel = kernel_of(program, capabilities);
      library.add(kernel);
      all.push_back({std::move(program), std::move(kernel)});
    }
    ASSERT_TRUE(library.compile(flags_of(capabilities)));
    for (const Product& one : all) {
      std::map<std::string, Bytes> data;
      for (const auto& tensor : one.program.tensors) {
        if (tensor.scope != tile::Scope::global) continue;
        const int64_t count = tile::span_of(tensor.shape, tensor.strides);
        Bytes& own = data[tensor.name];
        own.resize(static_cast<size_t>(bytes_of(tensor.dtype, count)));
        for (int64_t e = 0; e < count; ++e)
          store_from_double(tensor.dtype, own.data(), static_cast<size_t>(e),
                            static_cast<double>(between(random, -9, 9)));
      }
      std::map<std::string, Bytes> meant = data;
      tile::Buffers buffers;
      for (auto& [name, bytes] : meant)
        buffers[name] = bytes;
      ASSERT_TRUE(tile::interpret(one.program, buffers));
      std::vector<void*> pointers;
      for (const auto& arg : one.kernel.args)
        pointers.push_back(data[arg.buffer].data());
      library.run(one.kernel, pointers);
      EXPECT_EQ(data["C"], meant["C"]) << one.kernel.source;
    }
  }
}

TEST(Pairs, ProductsWhoseFirstOperandHasTermsApartAreRefused) {
  Builder b("apart");
  b.warps(1);
  const auto A = b.global("A", Dtype::bf16, {4, 8}, {1, 4});
  const auto B = b.global("B", Dtype::bf16, {4, 2, 16}, {32, 1, 2});
  const auto C = b.output("C", Dtype::f32, {4, 16});
  const auto acc = b.reg("acc", Dtype::f32, {4, 16});
  b.fill(acc, 0);
  b.mma(acc, b.all(A), b.all(B));
  b.copy(b.all(acc), b.all(C));
  const auto kernel = codegen::emit_cpu(b.finish(), machine(64));
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kNoInstruction);
  EXPECT_NE(describe(kernel.error()).find("apart"), std::string::npos);
}
}  // namespace
}  // namespace warploom
