// Every GPU schedule family, built from a graph, emitted as CUDA text and run on the emulator with hazard rules on, against FP64.

#include <gtest/gtest.h>
#include "cases.h"
#include "problems.h"
#include "runtime/emulate.h"
namespace warploom {
namespace {
using kernels::Region;
using test::Case;

// Relative Frobenius error of the emulated launch list, or the error's code in a failed Result.
Result<double> emulated_error(const Case& c, std::uint64_t seed, std::vector<runtime::BankUse>* banks = nullptr) {
  const Region& region = c.region;
  WARPLOOM_TRY(const LaunchList list, kernels::build(region, c.schedule, test::capabilities_of(c)));
  auto inputs = test::random_inputs(region.graph, seed);
  runtime::EmulatedBuffers buffers;
  std::vector<graph::Bytes> views;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    buffers[list.inputs[i].name] = inputs[i];
    views.emplace_back(inputs[i]);
  }
  std::vector<std::byte> output(static_cast<std::size_t>(list.outputs[0].bytes()), std::byte{0xff});  // poison: NaN
  buffers[list.outputs[0].name] = output;
  runtime::EmulateOptions options;
  options.seed = seed;
  options.banks = banks != nullptr;
  WARPLOOM_TRY(auto used, runtime::emulate(list, buffers, options));
  if (banks) *banks = std::move(used);
  WARPLOOM_TRY(const auto expected, graph::evaluate(region.graph, views, 1));
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected[0].size(); ++i) {
    const double got = load_as_double(list.outputs[0].dtype, output.data(), i);
    difference += (got - expected[0][i]) * (got - expected[0][i]);
    size += expected[0][i] * expected[0][i];
  }
  return std::sqrt(difference / size);
}

class Emulated : public testing::TestWithParam<Case> {};

TEST_P(Emulated, AgreesWithFp64AndHasNoHazard) {
  const Case& c = GetParam();
  for (const std::uint64_t seed : {1, 2}) {
    const auto error = emulated_error(c, seed);
    ASSERT_TRUE(error.has_value()) << describe(error.error());
    EXPECT_LE(*error, c.tolerance);
  }
}

TEST(EmulatedBanks, MatrixKernelsHaveNoConflicts) {
  for (const Case& c : test::all_cases()) {
    if (!c.name.starts_with("mma_") && !c.name.starts_with("wgmma_bf16")) continue;
    if (c.name.find("split_k_through_shared") != std::string::npos) continue;  // fp32 in the engine's swizzle: 2 ways
    if (c.name.starts_with("mma_fp32_odd"))
      continue;  // rows that lie at multiples of 4 bytes are copied element by element: 4 ways
    std::vector<runtime::BankUse> banks;
    const auto error = emulated_error(c, 1, &banks);
    ASSERT_TRUE(error.has_value()) << describe(error.error());
    for (const auto& line : banks) {
      if (c.name.ends_with("windows") && line.kernel == "prepare_a") continue;  // turns weights of few channels once: 2 ways
      EXPECT_EQ(line.wavefronts, line.least) << c.name << ", " << line.kernel << ", line " << line.line;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Emulated, testing::ValuesIn(test::all_cases()),
                         [](const auto& one) { return one.param.name; });
}  // namespace
}  // namespace warploom
