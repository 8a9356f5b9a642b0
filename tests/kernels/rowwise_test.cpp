// The families of rows on every form of row: each place of the GPU's on the emulator, the CPU's
// compiled, against FP64.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>
#include "../codegen/cpu_run.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "loopnest/affine.h"
#include "row_nets.h"
#include "runtime/emulate.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/print.h"
#include "tile/program.h"
#include "tile/verify.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Net;
using test::RowNet;

using Output = std::vector<std::byte>;

std::vector<Output> poisoned(const graph::Graph& graph) {
  std::vector<Output> outputs;
  for (const auto id : graph.outputs)
    outputs.emplace_back(static_cast<size_t>(graph::byte_count(graph.tensor(id))), std::byte{0xff});
  return outputs;
}

void expect_agreement(const graph::Graph& graph, const std::vector<std::vector<std::byte>>& inputs,
                      const std::vector<Output>& outputs, const std::string& who) {
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate(graph, views, 1);
  ASSERT_TRUE(want) << describe(want.error());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Dtype dtype = graph.tensor(graph.outputs[o]).dtype;
    EXPECT_LT(test::error_of((*want)[o], dtype, outputs[o]), test::allowed(dtype))
        << "output " << o << " by " << who;
  }
}

class Rowwise : public testing::TestWithParam<RowNet> {};

TEST_P(Rowwise, OnAGpuAgreesWithFp64AndHasNoHazardInEveryPlace) {
  const graph::Graph& graph = GetParam().graph;
  Random random(1, GetParam().name);
  for (const int64_t place : {0, 1, 2, 3}) {
    const std::string target = random.below(2) ? "sm_90a" : "sm_80";
    const auto capabilities = *target::capabilities_of(target);
    const Region region{graph, Track::fp32};
    const FamilyPtr family = rowwise_gpu_family(region, capabilities);
    ASSERT_TRUE(family) << to_text(graph);
    const auto schedule = test::random_schedule(*family, random, {{"row_residency", place}});
    if (!schedule && (place == 1 || place == 3))
      continue;  // nothing to keep; rings are for rows of one tensor
    ASSERT_TRUE(schedule) << "place " << place;
    const auto list = build(region, *schedule, capabilities);
    ASSERT_TRUE(list) << schedule->text() << describe(list.error());
    auto inputs = test::random_inputs(graph, 1);
    auto outputs = poisoned(graph);
    runtime::EmulatedBuffers buffers;
    for (size_t i = 0; i < inputs.size(); ++i)
      buffers[list->inputs[i].name] = inputs[i];
    for (size_t i = 0; i < outputs.size(); ++i)
      buffers[list->outputs[i].name] = outputs[i];
    const auto done = runtime::emulate(*list, buffers);
    ASSERT_TRUE(done) << schedule->text() << describe(done.error()) << list->kernels[0].source;
    expect_agreement(
        graph, inputs, outputs,
        fmt::format("{} on {}\n{}", schedule->text(), target, list->kernels[0].source));
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, Rowwise, testing::ValuesIn(test::row_nets()),
                         [](const auto& one) { return one.param.name; });

// Streamed, the best so far and its place go along together; the first of equals wins, of numbers
// that are none too.
TEST(RowwisePlaces, OfExtremesAreFoundInOnePassOverMemory) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  for (const OpKind op : {OpKind::ArgMax, OpKind::ArgMin}) {
    Net n;
    const int64_t columns = 700;
    const Region region{n.with({n.add(op, {n.x({6, columns})}, {{"axis", int64_t{1}}})}),
                        Track::fp32};
    const FamilyPtr family = rowwise_gpu_family(region, capabilities);
    KernelConfig schedule =
        RowwiseConfig{.row_residency = RowResidency::reread, .ctas_per_row = 1, .warps = 2};
    const auto list = build(region, schedule, capabilities);
    ASSERT_TRUE(list) << describe(list.error());
    const std::string& source = list->kernels[0].source;
    ASSERT_NE(source.find("ld_global"), source.npos) << source;
    EXPECT_EQ(source.find("ld_global"), source.rfind("ld_global")) << source;

    std::vector<float> x(at(6 * columns));
    const float nothing = std::numeric_limits<float>::quiet_NaN();
    const float least =
        std::numeric_limits<float>::infinity() * (op == OpKind::ArgMax ? -1.0f : 1.0f);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = static_cast<float>((i * 37) % 11);            // rows 0 and 1: ties
    std::fill_n(x.begin() + 2 * columns, columns, least);  // row 2: nothing better
                                                           // row 3: behind all others
    x[at(3 * columns + 650)] = nothing;
    x[at(3 * columns + 651)] = nothing;
    // row 4: before what is best
    x[at(4 * columns + 3)] = nothing;
    x[at(4 * columns + 260)] = -least;
    // row 5: the last
    std::fill_n(x.begin() + 5 * columns, columns, least);
    x[at(5 * columns + 699)] = 0;
    std::vector<std::byte> bytes(x.size() * sizeof(float));
    std::memcpy(bytes.data(), x.data(), bytes.size());
    auto outputs = poisoned(region.graph);
    runtime::EmulatedBuffers buffers{{list->inputs[0].name, bytes},
                                     {list->outputs[0].name, outputs[0]}};
    const auto done = runtime::emulate(*list, buffers);
    ASSERT_TRUE(done) << describe(done.error());
    const auto found = [&](size_t row) {
      return load_as_double(list->outputs[0].dtype, outputs[0].data(), row);
    };
    const bool max = op == OpKind::ArgMax;
    const std::vector<double> first = {max ? 8.0 : 0.0, max ? 1.0 : 4.0, 0, 650, 3, 699};
    for (size_t row = 0; row < first.size(); ++row)
      EXPECT_EQ(found(row), first[row]) << to_text(region.graph) << row;
  }
}

TEST(RowwiseCovers, NoSmallShapeWithoutALegalSchedule) {
  const auto capabilities = *target::capabilities_of("sm_90a");
  for (const int64_t rows : {2, 3, 33, 200})
    for (const int64_t columns : {2, 3, 5, 8, 40})
      for (const int64_t axis : {0, 1}) {
        Net n;
        const Region region{
            n.with({n.add(OpKind::Softmax, {n.x({rows, columns})}, {{"axis", axis}})}),
            Track::fp32};
        const FamilyPtr family = rowwise_gpu_family(region, capabilities);
        ASSERT_TRUE(family);
        Random random(4, "small");
        EXPECT_TRUE(test::random_schedule(*family, random))
            << rows << " x " << columns << " along " << axis;
      }
}

TEST(RowwiseCpu, AgreesWithFp64) {
  const auto machine = *target::capabilities_of("cpu");

  struct Trial {
    Region region;
    std::string who;
    std::map<std::string, std::string> buffers;
    Kernel kernel;
  };

  std::vector<Trial> trials;
  CpuLibrary library;
  for (const RowNet& net : test::row_nets()) {
    Random random(2, net.name);
    const Region region{net.graph, Track::fp32};
    const FamilyPtr family = rowwise_cpu_family(region, machine);
    ASSERT_TRUE(family) << net.name;
    for (int i = 0; i < 4; ++i) {
      const auto schedule = test::random_schedule(*family, random, {{"resident", i % 2}});
      if (!schedule) continue;
      auto made = family->programs(*schedule);
      ASSERT_TRUE(made) << net.name << describe(made.error());
      tile::Program& program = made->programs[0];
      program.name = fmt::format("{}_{}", net.name, i);
      const auto valid = tile::verify(program);
      ASSERT_TRUE(valid) << describe(valid.error()) << tile::print(program);
      const auto kernel = codegen::emit_cpu(program, machine);
      ASSERT_TRUE(kernel) << describe(kernel.error()) << tile::print(program);
      library.add(*kernel);
      const std::string who =
          fmt::format("{} {}\n{}", net.name, schedule->text(), tile::print(program));
      trials.push_back({region, who, made->buffers[0], *kernel});
    }
  }
  ASSERT_TRUE(library.compile());
  for (Trial& trial : trials) {
    const graph::Graph& graph = trial.region.graph;
    auto inputs = test::random_inputs(graph, 1);
    auto constants = inputs;
    auto outputs = poisoned(graph);
    std::vector<void*> pointers;
    for (const Argument& arg : trial.kernel.args) {
      const auto id = *graph.tensor_named(trial.buffers.at(arg.buffer));
      const auto place = [&](const std::vector<graph::TensorId>& list) {
        return static_cast<size_t>(std::find(list.begin(), list.end(), id) - list.begin());
      };
      if (place(graph.inputs) < inputs.size())
        pointers.push_back(inputs[place(graph.inputs)].data());
      else if (place(graph.outputs) < outputs.size())
        pointers.push_back(outputs[place(graph.outputs)].data());
      else
        pointers.push_back(constants.emplace_back(*graph.tensor(id).constant).data());
    }
    library.run(trial.kernel, pointers);
    expect_agreement(graph, inputs, outputs, trial.who);
  }
}

// Mean 1000, deviation 0.1: a variance as the difference of two means would be noise.
TEST(RowwiseStatistics, SurviveALargeMean) {
  Net n;
  const auto x = n.x({3, 900});
  const Region region{n.with({test::normalized(n, x, {1})}), Track::fp32};
  auto inputs = test::random_inputs(region.graph, 3, 0.1);
  for (size_t i = 0; i < 2700; ++i)
    store_from_double(Dtype::f32, inputs[0].data(), i,
                      1000 + load_as_double(Dtype::f32, inputs[0].data(), i));
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate_magnitude_rows(region.graph, views, 0, 0,
                                                   graph::rows_of(region.graph).count, 1);
  ASSERT_TRUE(want) << describe(want.error());
  Random random(3, "statistics");
  for (int place = 0; place < 5; ++place) {
    const auto capabilities = *target::capabilities_of(place < 3 ? "sm_90a" : "cpu");
    const FamilyPtr family =
        (place < 3 ? rowwise_gpu_family : rowwise_cpu_family)(region, capabilities);
    const auto schedule = test::random_schedule(
        *family, random, {{place < 3 ? "row_residency" : "row_in_scratch", place % 3}});
    ASSERT_TRUE(schedule);
    const auto made = family->programs(*schedule);
    ASSERT_TRUE(made) << describe(made.error());
    auto outputs = poisoned(region.graph);
    const auto status = tile::interpret(made->programs[0], {{"X0", inputs[0]}, {"Y", outputs[0]}});
    ASSERT_TRUE(status) << describe(status.error());
    for (size_t i = 0; i < want->value.size(); ++i)
      ASSERT_NEAR(load_as_double(Dtype::f32, outputs[0].data(), i), want->value[i],
                  0x1p-24 * 8 * want->magnitude[i])
          << schedule->text();
  }
}

// The same over four blocks that meet in memory, and as a cluster, in every place, on the emulator.
TEST(RowwiseStatistics, SurviveALargeMeanWhereBlocksMeet) {
  Net n;
  const auto x = n.x({3, 4096});
  const Region region{n.with({test::normalized(n, x, {1})}), Track::fp32};
  auto inputs = test::random_inputs(region.graph, 3, 0.1);
  for (size_t i = 0; i < 3 * 4096; ++i)
    store_from_double(Dtype::f32, inputs[0].data(), i,
                      1000 + load_as_double(Dtype::f32, inputs[0].data(), i));
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate_magnitude_rows(region.graph, views, 0, 0, 3, 1);
  ASSERT_TRUE(want) << describe(want.error());
  for (const int64_t place : {0, 1, 2, 3, 4, 5, 7})
    for (const int64_t chunk : {4, 8}) {
      const bool ring = place % 4 == 3;
      const bool cluster = place > 3;
      const KernelConfig schedule =
          RowwiseConfig{.row_residency = static_cast<RowResidency>(place % 4),
                        .ctas_per_row = 4,
                        .warps = 2,
                        .elems_per_thread = chunk,
                        .stages = ring ? 1 : 2,
                        .ctas_per_sm = ring ? 1 : 2};
      const auto list =
          build(region, schedule, *target::capabilities_of(cluster ? "sm_90a" : "sm_80"));
      ASSERT_TRUE(list) << describe(list.error());
      EXPECT_EQ(list->kernels[0].cooperative, !cluster);
      auto outputs = poisoned(region.graph);
      const auto done = runtime::emulate(
          *list, {{list->inputs[0].name, inputs[0]}, {list->outputs[0].name, outputs[0]}});
      ASSERT_TRUE(done) << schedule.text() << describe(done.error()) << list->kernels[0].source;
      for (size_t i = 0; i < want->value.size(); ++i)
        ASSERT_NEAR(load_as_double(Dtype::f32, outputs[0].data(), i), want->value[i],
                    0x1p-24 * 8 * want->magnitude[i])
            << schedule.text();
    }
}

// Beside a pipeline of rows lies what all of them take, loaded before the first.
TEST(RowwiseRings, KeepWhatEveryRowTakes) {
  Net n;
  const auto x = n.x({20, 8192});
  const auto y =
      n.add(OpKind::LayerNormalization, {x, n.x({8192}), n.x({8192})}, {{"axis", int64_t{1}}});
  const Region region{n.with({y}), Track::fp32};
  auto inputs = test::random_inputs(region.graph, 3);
  auto capabilities = *target::capabilities_of("sm_90a");
  capabilities.num_sms = 5;
  for (const int64_t cluster : {1, 4}) {
    const KernelConfig schedule = RowwiseConfig{.row_residency = RowResidency::circular_buffer,
                                                .ctas_per_row = cluster,
                                                .warps = cluster == 1 ? 4 : 2,
                                                .elems_per_thread = 8,
                                                .ctas_per_sm = 1};
    const auto list = build(region, schedule, capabilities);
    ASSERT_TRUE(list) << describe(list.error());
    const std::string& source = list->kernels[0].source;
    ASSERT_NE(source.rfind("ld_global"), std::string::npos);
    EXPECT_LT(source.rfind("ld_global"), source.find("for (int r")) << source;
    auto outputs = poisoned(region.graph);
    runtime::EmulatedBuffers buffers{{list->outputs[0].name, outputs[0]}};
    for (size_t i = 0; i < inputs.size(); ++i)
      buffers[list->inputs[i].name] = inputs[i];
    const auto done = runtime::emulate(*list, buffers);
    ASSERT_TRUE(done) << schedule.text() << describe(done.error()) << source;
    expect_agreement(region.graph, inputs, outputs, schedule.text());
  }
}

// Exponentials are of differences to a block's own maximum until the cluster's has arrived.
TEST(RowwiseClusters, FindASoftmaxOfPartsThatAreFarApart) {
  Net n;
  const int64_t columns = 4096;
  const int64_t part = columns / 4;
  const Region region{n.with({n.add(OpKind::Softmax, {n.x({4, columns})}, {{"axis", int64_t{1}}})}),
                      Track::fp32};
  auto inputs = test::random_inputs(region.graph, 5);
  const double infinity = std::numeric_limits<double>::infinity();
  const auto put = [&](int64_t row, int64_t first, int64_t count, double value) {
    for (int64_t i = first; i < first + count; ++i)
      store_from_double(Dtype::f32, inputs[0].data(), at(row * columns + i), value);
  };
  put(0, 0, part, -infinity);
  put(0, part, part, -1e30);
  put(1, 0, columns, -infinity);
  put(2, part, 1, 3e4);
  put(3, columns - 1, 1, infinity);
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate(region.graph, views, 1);
  ASSERT_TRUE(want) << describe(want.error());
  for (const int64_t place : {0, 1, 3})
    for (const int64_t chunk : {4, 8}) {
      const KernelConfig schedule = RowwiseConfig{.row_residency = static_cast<RowResidency>(place),
                                                  .ctas_per_row = 4,
                                                  .warps = 2,
                                                  .elems_per_thread = chunk};
      const auto list = build(region, schedule, *target::capabilities_of("sm_90a"));
      ASSERT_TRUE(list) << describe(list.error());
      auto outputs = poisoned(region.graph);
      const auto done = runtime::emulate(
          *list, {{list->inputs[0].name, inputs[0]}, {list->outputs[0].name, outputs[0]}});
      ASSERT_TRUE(done) << schedule.text() << describe(done.error());
      for (size_t i = 0; i < (*want)[0].size(); ++i) {
        const double found = load_as_double(Dtype::f32, outputs[0].data(), i);
        const double expected = (*want)[0][i];
        ASSERT_EQ(std::isnan(found), std::isnan(expected)) << schedule.text() << " " << i;
        if (!std::isnan(expected)) {
          ASSERT_NEAR(found, expected, 1e-6) << schedule.text() << " " << i;
        }
      }
    }
}

// What a kernel may bend where all of a row is -infinity, is not what a graph stores.
TEST(RowwiseClusters, StoreTheMaximumAndExponentialsAsTheyAre) {
  Net n;
  const int64_t columns = 4096;
  const auto x = n.x({2, columns});
  const auto top = n.add(OpKind::ReduceMax, {x, n.ints({1})});
  const auto e = n.add(OpKind::Exp, {n.add(OpKind::Sub, {x, top})});
  const auto half = n.add(OpKind::Mul, {e, n.number(0.5)});
  const Region region{n.with({half, n.add(OpKind::ReduceSum, {e, n.ints({1})}), top}), Track::fp32};
  auto inputs = test::random_inputs(region.graph, 5);
  const double infinity = std::numeric_limits<double>::infinity();
  store_from_double(Dtype::f32, inputs[0].data(), 70, infinity);
  for (int64_t i = columns; i < 2 * columns; ++i)
    store_from_double(Dtype::f32, inputs[0].data(), at(i), -infinity);
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate(region.graph, views, 1);
  ASSERT_TRUE(want) << describe(want.error());
  for (const int64_t place : {0, 1}) {
    const KernelConfig schedule = RowwiseConfig{
        .row_residency = static_cast<RowResidency>(place), .ctas_per_row = 4, .warps = 2};
    const auto list = build(region, schedule, *target::capabilities_of("sm_90a"));
    ASSERT_TRUE(list) << describe(list.error());
    auto outputs = poisoned(region.graph);
    runtime::EmulatedBuffers buffers{{list->inputs[0].name, inputs[0]}};
    for (size_t o = 0; o < outputs.size(); ++o)
      buffers[list->outputs[o].name] = outputs[o];
    const auto done = runtime::emulate(*list, buffers);
    ASSERT_TRUE(done) << schedule.text() << describe(done.error());
    for (size_t o = 0; o < outputs.size(); ++o)
      for (size_t i = 0; i < (*want)[o].size(); ++i) {
        const double found = load_as_double(Dtype::f32, outputs[o].data(), i);
        const double expected = (*want)[o][i];
        ASSERT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected)) ||
                    std::abs(found - expected) < 1e-6)
            << schedule.text() << " output " << o << " at " << i << ": " << found << ", expected "
            << expected;
      }
  }
}

// A few values a million times larger than the rest: a plain sum of fp32 loses of each of those
// what lies below the sum's last bit.
void expect_exact_first_sum(const graph::Shape& shape, int64_t axis, int64_t chunk) {
  const auto size = static_cast<size_t>(graph::element_count(shape));
  const auto sums = size / static_cast<size_t>(shape[at(axis)]);
  Net n;
  const auto x = n.x(shape);
  const Region region{n.with({n.add(OpKind::ReduceSum, {x, n.ints({axis})})}), Track::fp32};
  auto inputs = test::random_inputs(region.graph, 5);
  double want = 0;
  for (size_t i = 0; i < size; ++i) {
    const double value =
        i < 64 ? 3e6 : 0.1 + 1e-3 * std::abs(load_as_double(Dtype::f32, inputs[0].data(), i));
    store_from_double(Dtype::f32, inputs[0].data(), i, value);
    if (i % sums == 0) want += load_as_double(Dtype::f32, inputs[0].data(), i);
  }
  const FamilyPtr family = rowwise_cpu_family(region, *target::capabilities_of("cpu"));
  KernelConfig schedule = CpuRowwiseConfig{.chunk = chunk, .rows_per_task = 1};
  const auto made = family->programs(schedule);
  ASSERT_TRUE(made) << describe(made.error());
  auto outputs = poisoned(region.graph);
  const auto status = tile::interpret(made->programs[0], {{"X0", inputs[0]}, {"Y", outputs[0]}});
  ASSERT_TRUE(status) << describe(status.error());
  EXPECT_NEAR(load_as_double(Dtype::f32, outputs[0].data(), 0), want, want * 0x1p-20);
  store_from_double(Dtype::f32, inputs[0].data(), size / sums / 2 * sums, HUGE_VAL);
  ASSERT_TRUE(tile::interpret(made->programs[0], {{"X0", inputs[0]}, {"Y", outputs[0]}}));
  EXPECT_EQ(load_as_double(Dtype::f32, outputs[0].data(), 0), HUGE_VAL);
}

TEST(RowwiseStatistics, SumsOfThousandsOfChunksKeepWhatRoundingLoses) {
  expect_exact_first_sum({1, 1 << 18}, 1, 64);
}

TEST(RowwiseStatistics, SumsOfThousandsOfRowsKeepWhatRoundingLoses) {
  expect_exact_first_sum({1 << 16, 3}, 0, 1);
}

// Exponentials of -18 lie below the last bit of a sum of a few ones.
TEST(RowwiseStatistics, ExponentialsOfThousandsOfRowsKeepWhatRoundingLoses) {
  Net n;
  const auto x = n.x({1 << 16, 3});
  const Region region{n.with({n.add(OpKind::Softmax, {x}, {{"axis", int64_t{0}}})}), Track::fp32};
  auto inputs = test::random_inputs(region.graph, 5);
  for (size_t i = 0; i < 3 << 16; ++i)
    store_from_double(Dtype::f32, inputs[0].data(), i, i < 64 ? 0 : -18);
  const FamilyPtr family = rowwise_cpu_family(region, *target::capabilities_of("cpu"));
  const auto made = family->programs(CpuRowwiseConfig{.chunk = 1, .rows_per_task = 4});
  ASSERT_TRUE(made) << describe(made.error());
  auto outputs = poisoned(region.graph);
  const auto status = tile::interpret(made->programs[0], {{"X0", inputs[0]}, {"Y", outputs[0]}});
  ASSERT_TRUE(status) << describe(status.error());
  expect_agreement(region.graph, inputs, outputs, "cpu_rowwise");
}
}  // namespace
}  // namespace warploom::kernels
