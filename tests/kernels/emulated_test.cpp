// Every GPU schedule family, built from a graph, emitted as CUDA text and run on the emulator with
// hazard rules on, against FP64.

#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "cases.h"
#include "codegen/launch_list.h"
#include "graph/reference.h"
#include "kernels/family.h"
#include "runtime/emulate.h"
#include "support/problems.h"

namespace warploom {
namespace {
using kernels::Region;
using test::Case;

// Relative Frobenius error of the emulated launch list, or the error's code in a failed Result.
Result<double> emulated_error(const Case& c, uint64_t seed,
                              std::vector<runtime::BankUse>* banks = nullptr) {
  const Region& region = c.region;
  WARPLOOM_TRY(const LaunchList list, kernels::build(region, c.schedule, test::capabilities_of(c)));
  auto inputs = test::random_inputs(region.graph, seed);
  runtime::EmulatedBuffers buffers;
  std::vector<graph::Bytes> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    buffers[list.inputs[i].name] = inputs[i];
    views.emplace_back(inputs[i]);
  }
  std::vector<std::byte> output(static_cast<size_t>(list.outputs[0].bytes()),
                                std::byte{0xff});  // poison: NaN
  buffers[list.outputs[0].name] = output;
  runtime::EmulateOptions options;
  options.seed = seed;
  options.banks = banks != nullptr;
  WARPLOOM_TRY(auto used, runtime::emulate(list, buffers, options));
  if (banks) *banks = std::move(used);
  WARPLOOM_TRY(const auto expected, graph::evaluate(region.graph, views, 1));
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < expected[0].size(); ++i) {
    const double got = load_as_double(list.outputs[0].dtype, output.data(), i);
    difference += (got - expected[0][i]) * (got - expected[0][i]);
    size += expected[0][i] * expected[0][i];
  }
  return std::sqrt(difference / size);
}

class Emulated : public testing::TestWithParam<Case> {};

TEST_P(Emulated, AgreesWithFp64AndHasNoHazard) {
  const Case& c = GetParam();
  for (const uint64_t seed : {1, 2}) {
    const auto error = emulated_error(c, seed);
    ASSERT_TRUE(error.has_value()) << describe(error.error());
    EXPECT_LE(*error, c.tolerance);
  }
}

// Bank conflicts that are known: lines with this text, of cases whose names begin so, take this
// many times the least wavefronts.
struct Conflict {
  const char* cases;
  const char* text;
  int64_t times;
  const char* why;
};

const Conflict kConflicts[] = {
    {"wgmma_bf16_windows", "wl::st_shared<2>(smem + wl::swizzle<1, 4, 3>", 2,
     "turns weights of few channels, once"},
    {"mma_bf16_windows", "wl::st_shared<2>(smem + wl::swizzle<1, 4, 3>", 2,
     "turns weights of few channels, once"},
    {"wgmma_", "wl::st_shared<4>(smem + wl::swizzle<3, 4, 6>", 2,
     "lays operands of 4 bytes along k that lie along rows"},
    {"wgmma_bf16_split_k_through_shared", "wl::st_shared<8>(staging", 2,
     "sums of 4 bytes in TMA's swizzle"},
    {"wgmma_i8_blocks_split_k", "wl::st_shared<8>(staging", 2, "sums of 4 bytes in TMA's swizzle"},
    {"simt_fp32_long_sums", "wl::cp_async<4>(a + pipe_write", 2,
     "lays an operand along k, of which a stage holds 16, in columns"},
};

TEST(EmulatedBanks, MatrixKernelsHaveNoConflictsButThoseThatAreKnown) {
  std::set<const Conflict*> met;
  for (const Case& c : test::all_cases()) {
    if (c.schedule.family() == "rowwise" || c.schedule.family() == "direct") continue;
    const auto list = kernels::build(c.region, c.schedule, test::capabilities_of(c));
    ASSERT_TRUE(list) << describe(list.error());
    std::vector<runtime::BankUse> banks;
    const auto error = emulated_error(c, 1, &banks);
    ASSERT_TRUE(error.has_value()) << describe(error.error());
    for (const auto& use : banks) {
      const auto kernel = std::ranges::find(list->kernels, use.kernel, &Kernel::name);
      ASSERT_NE(kernel, list->kernels.end()) << use.kernel;
      std::istringstream text(kernel->source);
      std::string line;
      for (int i = 0; i < use.line; ++i)
        std::getline(text, line);
      const auto known = std::ranges::find_if(kConflicts, [&](const Conflict& one) {
        return c.name.starts_with(one.cases) && line.find(one.text) != line.npos;
      });
      const bool listed = known != std::end(kConflicts);
      if (listed) met.insert(known);
      EXPECT_EQ(use.wavefronts, use.least * (listed ? known->times : 1))
          << c.name << ", " << use.kernel << ", line " << use.line << ": " << line
          << (listed ? known->why : "");
    }
  }
  EXPECT_EQ(met.size(), std::size(kConflicts));
}

INSTANTIATE_TEST_SUITE_P(Families, Emulated, testing::ValuesIn(test::all_cases()),
                         [](const auto& one) { return one.param.name; });
}  // namespace
}  // namespace warploom
