// Cells: what runs in one, what it cannot do, and that nothing of it outlives a call.
#include <gtest/gtest.h>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>
#include "base/file.h"
#include "cpu/pool.h"
#include "runtime/compilers.h"
#include "verify/cell.h"

namespace warploom::verify {
namespace {
// A cell of one compiled text, whose kernels are called `kernel`, with one buffer of a page.
struct Held {
  std::shared_ptr<SharedMemory> memory = SharedMemory::make(int64_t{1} << 30);
  std::shared_ptr<void> buffer = memory->allocate(kBytes);
  std::unique_ptr<Cell> cell;

  static constexpr int64_t kBytes = 4096;

  int* values() const { return static_cast<int*>(buffer.get()); }

  Result<double> call(int64_t blocks = 1, int threads = 1, double limit_ms = 10'000) {
    const CellLaunch launch{.function = 0,
                            .buffers = {cell->address_of(buffer.get())},
                            .blocks = blocks,
                            .end = blocks};
    return cell->run({.launches = {launch}, .threads = threads, .limit_ms = limit_ms});
  }
};

Held held(const std::string& body, int threads = 1) {
  Held made;
  const std::string text = "#include <cmath>\n#include <cstring>\nextern \"C\" void kernel(void* "
                           "const* buffers, long long block, void* scratch) {\n"
                           "int* out = (int*)buffers[0];\n" +
                           body + "\n}\n";
  const auto image = runtime::compile_shared_object(text, runtime::kCpuCompileFlags, "cpu",
                                                    std::chrono::minutes(1));
  EXPECT_TRUE(image) << (image ? "" : image.error().message);
  if (!image) return made;
  const CellOptions options{.functions = {{read_file(image->path).value(), "kernel"}},
                            .mapped = {made.memory->extent_of(made.buffer.get())},
                            .threads = threads};
  auto cell = Cell::start(made.memory, options);
  EXPECT_TRUE(cell) << (cell ? "" : cell.error().message + ": " + cell.error().found);
  if (cell) made.cell = *std::move(cell);
  std::memset(made.values(), 0, Held::kBytes);
  return made;
}

TEST(Cell, RunsAKernelOnBuffersOfThisProcess) {
  Held one = held("out[block] = 7 + (int)block;");
  ASSERT_TRUE(one.cell);
  const auto us = one.call(5);
  ASSERT_TRUE(us) << us.error().message << us.error().found;
  EXPECT_GT(*us, 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(one.values()[i], 7 + i);
  EXPECT_EQ(one.values()[5], 0);
}

TEST(Cell, RunsEveryBlockOnceOnAllThreads) {
  const int threads = static_cast<int>(wl::allowed_cores().size());
  Held one = held("__atomic_fetch_add(&out[block], 1, __ATOMIC_RELAXED);", threads);
  ASSERT_TRUE(one.cell);
  for (int call = 0; call < 20; ++call) ASSERT_TRUE(one.call(1000, threads));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(one.values()[i], 20) << i;
}

TEST(Cell, CallsThisMachinesMathematics) {
  Held one = held("((float*)out)[0] = std::exp(((float*)out)[1]); ((double*)out)[1] = "
                  "std::pow(((double*)out)[2], 0.37); ((float*)out)[6] = std::erf(0.5f);");
  ASSERT_TRUE(one.cell);
  auto* const floats = reinterpret_cast<float*>(one.values());
  auto* const doubles = reinterpret_cast<double*>(one.values());
  floats[1] = 1.25f;
  doubles[2] = 12.5;
  ASSERT_TRUE(one.call());
  EXPECT_EQ(floats[0], std::exp(1.25f));
  EXPECT_EQ(doubles[1], std::pow(12.5, 0.37));
  EXPECT_EQ(floats[6], std::erf(0.5f));
}

TEST(Cell, EndsAtASystemCall) {
  Held one = held("long r; asm volatile(\"syscall\" : \"=a\"(r) : \"a\"(39L) : \"rcx\", \"r11\"); "
                  "out[0] = (int)r;");
  ASSERT_TRUE(one.cell);
  const auto us = one.call();
  ASSERT_FALSE(us);
  EXPECT_EQ(us.error().code, ErrorCode::kCandidateForbidden);
}
}  // namespace
}  // namespace warploom::verify
