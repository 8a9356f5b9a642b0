// The fp32 track's law of sums: whatever a sum's length, where all terms have one sign every family
// stays within 8 units of fp32 roundoff of FP64 (verify/tolerance.h, kFp32Floor), the relative
// Frobenius error of the whole output. GPU families run on the emulator, whose matrix units round
// as an H200's do; those of the CPU as they are.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "runtime/compile.h"
#include "runtime/emulate.h"
#include "runtime/executor.h"
#include "support/nets.h"
#include "support/sample.h"
#include "target/capabilities.h"
#include "tile/print.h"
#include "trials.h"

namespace warploom::test {
namespace {
using graph::OpKind;
using kernels::KernelConfig;
using Bytes = std::vector<std::byte>;
using Fields = std::map<std::string, int64_t>;

constexpr double kAllowed = 4.8e-7;

struct Sum {
  std::string name;
  std::string target;
  graph::Graph graph;
};

// Of one sign: magnitudes of normal numbers, or numbers from 1 to 2, which differ less.
enum class Inputs : uint8_t { magnitudes, shifted };

std::vector<Bytes> inputs_of(const graph::Graph& graph, Inputs kind) {
  std::vector<Bytes> all;
  Random random(7, "accuracy");
  for (const graph::TensorId id : graph.inputs) {
    std::vector<float> values(static_cast<size_t>(graph::element_count(graph.tensor(id).shape)));
    for (float& value : values) {
      const double drawn = kind == Inputs::shifted ? 1 + random.uniform() : random.normal();
      value = static_cast<float>(std::abs(drawn));
    }
    Bytes& bytes = all.emplace_back(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return all;
}

Result<Bytes> emulated(const LaunchList& list, std::vector<Bytes>& inputs) {
  runtime::EmulatedBuffers buffers;
  for (size_t i = 0; i < inputs.size(); ++i)
    buffers[list.inputs[i].name] = inputs[i];
  Bytes output(static_cast<size_t>(list.outputs[0].bytes()), std::byte{0xff});
  buffers[list.outputs[0].name] = output;
  WARPLOOM_CHECK(runtime::emulate(list, buffers, {1}));
  return output;
}

Result<Bytes> run_on(runtime::Executor& device, const LaunchList& list,
                     const std::vector<Bytes>& inputs) {
  WARPLOOM_TRY(const runtime::Binary binary, runtime::compile(list));
  WARPLOOM_TRY(const auto loaded, device.load(list, binary));
  runtime::Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto bytes = static_cast<int64_t>(inputs[i].size());
    auto& buffer = bindings[list.inputs[i].name];
    WARPLOOM_TRY(buffer, device.allocate(bytes));
    WARPLOOM_CHECK(device.upload(buffer, inputs[i].data(), bytes));
  }
  const BufferSpec& out = list.outputs[0];
  WARPLOOM_TRY(bindings[out.name], device.allocate(out.bytes()));
  WARPLOOM_TRY(const runtime::Call call, loaded.bind(bindings));
  WARPLOOM_CHECK(call());
  WARPLOOM_CHECK(device.synchronize());
  Bytes output(static_cast<size_t>(out.bytes()));
  WARPLOOM_CHECK(device.download(bindings[out.name], output.data(), out.bytes()));
  return output;
}

// Relative Frobenius error against FP64.
Result<double> error_of(const Sum& sum, const Bytes& have, const std::vector<Bytes>& inputs) {
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  WARPLOOM_TRY(const auto want, graph::evaluate(sum.graph, views, 1));
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < want[0].size(); ++i) {
    const double off = load_as_double(Dtype::f32, have.data(), i) - want[0][i];
    difference += off * off;
    size += want[0][i] * want[0][i];
  }
  return std::sqrt(difference / size);
}

Result<double> error_of(const Sum& sum, const KernelConfig& config, Inputs kind) {
  const auto capabilities = *target::capabilities_of(sum.target);
  WARPLOOM_TRY(const LaunchList list,
               kernels::build({sum.graph, Track::fp32}, config, capabilities));
  std::vector<Bytes> inputs = inputs_of(sum.graph, kind);
  if (capabilities.gpu) {
    WARPLOOM_TRY(const Bytes have, emulated(list, inputs));
    return error_of(sum, have, inputs);
  }
  WARPLOOM_TRY(const auto device, runtime::Executor::open(Engine::cpu));
  WARPLOOM_TRY(const Bytes have, run_on(*device, list, inputs));
  return error_of(sum, have, inputs);
}

graph::Graph product(int64_t m, int64_t n, int64_t k) {
  Net net;
  return net.with({net.add(OpKind::MatMul, {net.x({m, k}), net.x({k, n})})});
}

// Four rows of 32 pixels of 32 channels.
graph::Graph windows(int64_t channels, int64_t side) {
  Net net;
  const auto x = net.x({1, channels, side + 1, 32});
  const auto w = net.x({32, channels, side, side});
  const int64_t beside = side / 2;
  return net.with({net.add(OpKind::Conv, {x, w}, {{"pads", Ints{1, beside, 1, beside}}})});
}

// The same backwards, in steps of 2: four phases, of windows of half the size.
graph::Graph windows_backwards(int64_t channels, int64_t side) {
  Net net;
  const auto x = net.x({1, channels, 4, 16});
  const auto w = net.x({channels, 16, side, side});
  return net.with({net.add(OpKind::ConvTranspose, {x, w}, {{"strides", Ints{2, 2}}})});
}

graph::Graph along_rows(OpKind op, int64_t rows, int64_t size) {
  Net net;
  const auto x = net.x({rows, size});
  if (op == OpKind::CumSum) return net.with({net.add(op, {x, net.reshape(net.ints({1}), {})})});
  return net.with({net.add(op, {x, net.ints({1})}, {{"keepdims", int64_t{0}}})});
}

std::vector<Sum> all_sums() {
  std::vector<Sum> all;
  for (const char* const target : {"sm_90a", "sm_80", "cpu"}) {
    const auto add = [&](const std::string& what, graph::Graph graph) {
      all.push_back({fmt::format("{}_{}", what, target), target, std::move(graph)});
    };
    for (const int64_t k : {64, 576, 4608, 16384}) {
      add(fmt::format("product_{}", k), product(64, 32, k));
      add(fmt::format("row_{}", k), along_rows(OpKind::ReduceSum, 4, k));
      add(fmt::format("prefixes_{}", k), along_rows(OpKind::CumSum, 4, k));
    }
    constexpr std::pair<int64_t, int64_t> kWindows[] = {
        {64, 1}, {2048, 1}, {64, 3}, {512, 3}, {96, 5}, {64, 7}, {3, 11}, {16, 11}, {128, 11}};
    for (const auto& [channels, side] : kWindows)
      add(fmt::format("windows_{}_of_{}", side, channels), windows(channels, side));
    for (const auto& [channels, side] : {std::pair{64, 4}, std::pair{512, 4}})
      add(fmt::format("backwards_{}_of_{}", side, channels), windows_backwards(channels, side));
  }
  return all;
}

// A legal config at random; where chance finds none, as of im2win, one of the first of all.
std::optional<KernelConfig> drawn_config(const kernels::Family& family, Random& random) {
  Fields fixed;
  if (family.type().find("layout_candidate")) fixed["layout_candidate"] = 0;
  if (auto config = random_schedule(family, random, fixed, 2)) return config;
  constexpr size_t kFirst = 500;
  std::vector<KernelConfig> some;
  kernels::SpaceWalk(family).all([&](const KernelConfig& config) {
    some.push_back(config);
    return some.size() < kFirst;
  });
  if (some.empty()) return std::nullopt;
  return some[random.below(some.size())];
}

void expect_within_the_track(const Sum& sum, const KernelConfig& config) {
  for (const Inputs kind : {Inputs::magnitudes, Inputs::shifted}) {
    const auto error = error_of(sum, config, kind);
    ASSERT_TRUE(error) << sum.name << ", " << config.text() << describe(error.error());
    EXPECT_LE(*error, kAllowed) << sum.name << ", " << config.text();
  }
}

// A sum under a legal config of each family that covers it, drawn at random.
void expect_within_the_track(const Sum& sum, int configs) {
  const auto capabilities = *target::capabilities_of(sum.target);
  const auto families = kernels::families_for({sum.graph, Track::fp32}, capabilities);
  ASSERT_FALSE(families.empty()) << sum.name;
  for (const kernels::FamilyPtr& family : families) {
    Random random(sample_seed(), sum.name + family->name());
    for (int i = 0; i < configs; ++i)
      if (const auto config = drawn_config(*family, random)) expect_within_the_track(sum, *config);
  }
}

// A lane of the tile adds up as many numbers as the row has tiles: their errors add up, however
// many lanes there are beside it.
TEST(Rowwise, SumsOfManyTilesAreCompensated) {
  Net net;
  const auto x = net.x({5120, 64});
  const auto y = net.add(OpKind::ReduceSum, {x, net.ints({0})}, {{"keepdims", int64_t{0}}});
  const kernels::Region region{net.with({y}), Track::fp32};
  Fields fields = {
      {"ctas_per_row", 1}, {"warps", 4}, {"elems_per_thread", 4}, {"rows_per_cta", 32}};
  fields["row_residency"] = static_cast<int64_t>(kernels::RowResidency::reread);
  const auto families = kernels::families_for(region, *target::capabilities_of("sm_90a"));
  const auto rowwise = std::ranges::find(families, "rowwise", &kernels::Family::name);
  ASSERT_NE(rowwise, families.end());
  const auto is_compensated = [&] {
    const auto made = (*rowwise)->programs(config_of("rowwise", fields));
    EXPECT_TRUE(made) << describe(made.error());
    return made && tile::print(made->programs[0]).find("register lost0") != std::string::npos;
  };
  EXPECT_TRUE(is_compensated());
  fields["elems_per_thread"] = 8;  // 160 tiles of 32 lanes a column
  EXPECT_TRUE(is_compensated());
  fields["warps"] = 16;
  fields["elems_per_thread"] = 16;  // 20 tiles
  EXPECT_FALSE(is_compensated());
}

// 16 channels of windows of 7 are 112 terms, of which tensor cores would lose too much.
TEST(Im2win, TakesWideWindowsInStagesThatAreNotTooDeep) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  const auto families = kernels::families_for({windows(64, 7), Track::fp32}, capabilities);
  const auto im2win = std::ranges::find(families, "im2win", &kernels::Family::name);
  ASSERT_NE(im2win, families.end());
  int64_t configs = 0;
  kernels::SpaceWalk(**im2win).all([&](const KernelConfig& config) {
    EXPECT_LT(config.as<kernels::Im2winConfig>().block_c, 16) << config.text();
    return ++configs < 50;
  });
  EXPECT_GT(configs, 0);
}

// In a row's last windows all but one place of the filter lies outside.
TEST(Im2win, WindowsAtBothEndsOfRowsAreRight) {
  Net net;
  const auto y = net.add(OpKind::Conv, {net.x({2, 32, 512}), net.x({64, 32, 5})},
                         {{"dilations", Ints{3}}, {"pads", Ints{12, 12}}});
  const kernels::Region region{net.with({y}), Track::fp32};
  const auto capabilities = *target::capabilities_of("sm_90a");
  const auto families = kernels::families_for(region, capabilities);
  const auto im2win = std::ranges::find(families, "im2win", &kernels::Family::name);
  ASSERT_NE(im2win, families.end());
  Random random(sample_seed(), "ends of rows");
  const auto config = drawn_config(**im2win, random);
  ASSERT_TRUE(config);
  const auto list = kernels::build(region, *config, capabilities);
  ASSERT_TRUE(list) << describe(list.error());
  std::vector<Bytes> inputs = inputs_of(region.graph, Inputs::magnitudes);
  const auto have = emulated(*list, inputs);
  ASSERT_TRUE(have) << describe(have.error());
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = *graph::evaluate(region.graph, views, 1);
  for (size_t i = 0; i < want[0].size(); ++i)
    ASSERT_NEAR(load_as_double(Dtype::f32, have->data(), i) / want[0][i], 1, 1e-6) << i;
}

constexpr int kShards = 64;  // at least as many as there are sums: some take minutes

class Accuracy : public testing::TestWithParam<int> {};

TEST_P(Accuracy, SumsOfOneSignStayWithinTheTrackWhateverTheirLength) {
  const std::vector<Sum> sums = sampled("sums of one sign", 0, all_sums(), [](const Sum& sum) {
    const std::string what = sum.name.substr(0, sum.name.find('_'));
    return std::set<std::string>{what + sum.target};
  });
  for (size_t i = static_cast<size_t>(GetParam()); i < sums.size(); i += kShards)
    expect_within_the_track(sums[i], whole() ? 4 : 1);
}

// The bits that a GPU of compute capability 9.0 makes are the emulator's.
TEST(AccuracyOnGpu, SumsOfProductsAreTheEmulatedOnes) {
  const auto device = runtime::Executor::open(Engine::cuda);
  if (!device) GTEST_SKIP() << describe(device.error());
  if ((*device)->info().arch != "sm_90a") GTEST_SKIP() << (*device)->info().arch;
  constexpr size_t kSmall = 120'000;  // elements that are soon emulated
  const auto capabilities = *target::capabilities_of("sm_90a");
  for (const Sum& sum : all_sums()) {
    if (sum.target != "sm_90a" || sum.name.starts_with("row") || sum.name.starts_with("pre"))
      continue;
    for (const kernels::FamilyPtr& family :
         kernels::families_for({sum.graph, Track::fp32}, capabilities)) {
      if (family->name() == "direct") continue;
      Random random(sample_seed(), sum.name + family->name());
      const auto config = drawn_config(*family, random);
      if (!config) continue;
      const auto list = kernels::build({sum.graph, Track::fp32}, *config, capabilities);
      ASSERT_TRUE(list) << describe(list.error());
      std::vector<Bytes> inputs = inputs_of(sum.graph, Inputs::magnitudes);
      const auto real = run_on(**device, *list, inputs);
      if (!real && real.error().code == ErrorCode::kCompileFailed) continue;  // registers spill
      ASSERT_TRUE(real) << describe(real.error());
      const auto error = error_of(sum, *real, inputs);
      ASSERT_TRUE(error) << describe(error.error());
      EXPECT_LE(*error, kAllowed) << sum.name << ", " << config->text();
      const size_t elements = (inputs[0].size() + inputs[1].size()) / sizeof(float);
      if (elements > kSmall) continue;
      const auto same = emulated(*list, inputs);
      ASSERT_TRUE(same) << describe(same.error());
      EXPECT_EQ(*real, *same) << sum.name << ", " << config->text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, Accuracy, testing::Range(0, kShards));
}  // namespace
}  // namespace warploom::test
