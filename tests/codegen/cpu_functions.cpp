// The vector functions of device/cpu against the C library in FP64, over floats of every exponent.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/value_op.h"
#include "codegen/launch_list.h"
#include "cpu_run.h"
#include "support/other_machine.h"

namespace warploom {
namespace {
constexpr int64_t kCount = 1 << 18;

double units_in_the_last_place(float got, double want) {
  const auto nearest = static_cast<float>(want);
  if (got == nearest || (std::isnan(got) && std::isnan(want))) return 0;
  if (!std::isfinite(got) || !std::isfinite(nearest)) return HUGE_VAL;
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::abs(got - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

constexpr ValueOp kOps[] = {
    ValueOp::exp,        ValueOp::exp2, ValueOp::log,     ValueOp::sqrt,
    ValueOp::tanh,       ValueOp::erf,  ValueOp::sigmoid, ValueOp::floor,
    ValueOp::round_tf32, ValueOp::relu, ValueOp::abs,     ValueOp::sin,
    ValueOp::cos,        ValueOp::atan, ValueOp::binade,  ValueOp::inverse_binade};

// One kernel for each, that applies it to kCount floats.
std::vector<Kernel> appliers() {
  std::vector<Kernel> kernels;
  for (const ValueOp op : kOps) {
    Kernel& kernel = kernels.emplace_back();
    kernel.name = "apply_" + std::string(name_of(op));
    kernel.source = fmt::format(
        "#include \"wl_cpu.h\"\nextern \"C\" void {}(void* const* b, long long, void*) {{\n"
        "  for (long i = 0; i < {}; i += wl::kLanes) wl::store((float*)b[1] + i, "
        "wl::{}(wl::load((float*)b[0] + i)));\n}}\n",
        kernel.name, kCount, name_of(op));
    kernel.args = {{.buffer = "x"}, {.buffer = "y"}};
  }
  return kernels;
}

// Floats of every exponent.
std::vector<float> arguments() {
  std::vector<float> x(kCount);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = std::bit_cast<float>(static_cast<uint32_t>(i * 16381));
  return x;
}

void expect_within(double bound, ValueOp op, const std::vector<float>& x, const float* y) {
  double worst = 0;
  size_t where = 0;
  for (size_t j = 0; j < x.size(); ++j) {
    const double error = units_in_the_last_place(y[j], apply(op, static_cast<double>(x[j])));
    if (error > worst) {
      worst = error;
      where = j;
    }
  }
  EXPECT_LE(worst, bound) << name_of(op) << " of " << x[where] << " gave " << y[where];
}

void within(double bound, const std::vector<std::string>& flags) {
  CpuLibrary library;
  const std::vector<Kernel> kernels = appliers();
  for (const Kernel& kernel : kernels)
    library.add(kernel);
  if (!library.compile(flags)) return;
  std::vector<float> x = arguments();
  std::vector<float> y(kCount);
  for (size_t i = 0; i < kernels.size(); ++i) {
    library.run(kernels[i], {x.data(), y.data()});
    expect_within(bound, kOps[i], x, y.data());
  }
}

// Even where the compiler knows how many, and that the other lanes are never used.
TEST(CpuFunctions, SomeElementsAreReadWithoutThoseBehindThem) {
  constexpr size_t kPage = 4096;
  void* const pages = ::mmap(nullptr, 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  ASSERT_EQ(::mprotect(pages, kPage, PROT_READ | PROT_WRITE), 0);
  float* const last = static_cast<float*>(pages) + kPage / sizeof(float) - 8;
  std::fill_n(last, 8, 1.0F);
  Kernel kernel;
  kernel.name = "eight";
  kernel.source =
      "#include \"wl_cpu.h\"\nextern \"C\" void eight(void* const* b, long long, void*) {\n  "
      "alignas(64) float x[32];\n"
      "  for (long v = 0; v < 8; v += wl::kLanes) wl::store(x + v, wl::load_row_at<1>((const "
      "float*)b[0], v, 0, 8, 0.0f));\n"
      "  for (long i = 0; i < 8; ++i) wl::store_one((float*)b[1] + 7 * i, wl::load_one(x + "
      "i));\n}\n";
  CpuLibrary library;
  library.add(kernel);
  ASSERT_TRUE(library.compile({"-march=native", "-O3", "-mprefer-vector-width=512"}));
  float found[56] = {};
  const auto run = [&] {
    library.run(kernel, {last, found});
    std::exit(found[0] == 1 && found[49] == 1 ? 0 : 1);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
  ::munmap(pages, 2 * kPage);
}

TEST(CpuFunctions, AreWithinThreeUnits) {
  within(3, {});
}

class CpuFunctionsOf : public testing::TestWithParam<const char*> {};

TEST_P(CpuFunctionsOf, AreWithinThreeUnits) {
  const auto machine = test::OtherMachine::of(GetParam());
  if (!machine) GTEST_SKIP() << describe(machine.error());
  const std::vector<float> x = arguments();
  std::vector<std::byte> bytes(x.size() * sizeof(float));
  std::memcpy(bytes.data(), x.data(), bytes.size());
  std::vector<test::Bound> all;
  std::string text;
  for (const Kernel& kernel : appliers()) {
    test::Bound& one = all.emplace_back();
    one.list.kernels = {kernel};
    one.storage = {{"x", bytes}, {"y", bytes}};
    text += kernel.source;
  }
  const Status ran = machine->run(text, all);
  ASSERT_TRUE(ran) << describe(ran.error());
  std::vector<float> y(kCount);
  for (size_t i = 0; i < all.size(); ++i) {
    std::memcpy(y.data(), all[i].storage.at("y").data(), bytes.size());
    expect_within(3, kOps[i], x, y.data());
  }
}

INSTANTIATE_TEST_SUITE_P(InstructionSets, CpuFunctionsOf,
                         testing::Values("x86-64-v4", "x86-64-v3", "x86-64-v2", "aarch64"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(CpuFunctions, AreWithinThreeUnitsOnBaselineVectors) {
  within(3, {"-msse2"});
}
}  // namespace
}  // namespace warploom
