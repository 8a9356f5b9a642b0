// Values at the edges of what operators mean, through the whole way from a model's file: indices
// that count from the end, wherever they come from; functions at the ends of their ranges. Each
// model's kernels for this machine's CPU are run on given numbers, and those for a GPU emulated.
#include <gtest/gtest.h>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <ostream>
#include <string>
#include <utility>
#include <vector>
#include "../kernels/trials.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "kernels/trials.h"
#include "onnx/load.h"
#include "plan/fusion.h"
#include "plan/link.h"
#include "runtime/compile.h"
#include "runtime/emulate.h"
#include "runtime/executor.h"
#include "support/paths.h"
#include "target/capabilities.h"

namespace warploom {
namespace {
using Numbers = std::vector<double>;
using Tensors = std::map<std::string, std::vector<std::byte>>;

struct Trial {
  std::string file;
  std::map<std::string, Numbers> inputs;
  Numbers expected;
  bool counts = false;  // needs arithmetic of i64, or moves of it, which not every target has
};

std::ostream& operator<<(std::ostream& out, const Trial& trial) {
  return out << trial.file;
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

Numbers counted(int64_t count) {  // 0, 1, 2 ..
  Numbers out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), 0.0);
  return out;
}

// Of a table that holds 0, 1, 2 .. in rows of `width`.
Numbers rows(int64_t width, const std::vector<int64_t>& numbers) {
  Numbers out;
  for (const int64_t row : numbers)
    for (int64_t column = 0; column < width; ++column)
      out.push_back(static_cast<double>(row * width + column));
  return out;
}

Numbers of_each(const Numbers& x, double (*function)(double)) {
  Numbers out;
  for (const double one : x)
    out.push_back(function(static_cast<double>(static_cast<float>(one))));
  return out;
}

const Numbers kHyperbolic = {0,   -0.0, 1e-8, -1e-8, 1e-4,      0.5,        3,   -3,  10,
                             -10, 50,   -50,  88,    -88,       89,         -89, 100, -104,
                             1e5, -1e5, 1e20, -1e20, kInfinite, -kInfinite, NAN};
const Numbers kAreas = {1, 1.0000009536743164, 1.5, 100, 1e10, 1e19, 3e19, 1e30, kInfinite};

std::vector<Trial> indices() {
  return {
      {"gather_negative_index", {{"x", counted(15)}, {"i", {0, -1, -5, 4}}}, rows(3, {0, 4, 0, 4})},
      {"gather_columns",
       {{"x", counted(15)}, {"i", {-1, 0, -5, 3}}},
       {4, 0, 0, 3, 9, 5, 5, 8, 14, 10, 10, 13}},
      {"embedding_reshaped_ids",
       {{"e", counted(16000)}, {"i", {0, 999, -1, -1000, 7, -2, 5, 0, 1, 2, 3, 4, 5, 6}}},
       rows(16, {0, 999, 999, 0, 7, 998, 5, 0, 1, 2, 3, 4, 5, 6})},
      {"gather_elements_short_axis",
       {{"x", counted(15)}, {"i", {0, -1, 2, -5, 4, -3}}},
       {0, 13, 8, 0, 13, 8}},
      {"gather_nd_negative",
       {{"x", counted(24)}, {"i", {-1, -1, 0, 2, -4, -3}}},
       {22, 23, 4, 5, 0, 1}},
      {"best_row",
       {{"x", {0, 1, 2, 3, 4, 5, 6, 9, 1, 2, 3, 4, 5, 6, 0, 1, 8, 3, 4, 5, 6}}, {"e", counted(28)}},
       rows(4, {6, 0, 2})},
      {"token_and_position",
       {{"e", Numbers(80, 0.5)},
        {"i", Numbers{-1, 3, 19, -20, 0, 1, 2, 3, 4, 5}},
        {"p", counted(24)}},
       of_each(rows(4, {0, 1, 2, 3, 4, 0, 1, 2, 3, 4}), [](double x) { return x + 0.5; })},
      {"where_from_end",
       {{"e", counted(36)}, {"i", {0, -1, -9, 8, 3, -4}}},
       rows(4, {0, 8, 0, 8, 3, 5}),
       true},
      {"positions_from_mask",
       {{"m", {0, 0, 1, 1, 1, 1, 1, 1, 1, 1}}, {"p", counted(32)}},
       rows(4, {7, 7, 0, 1, 2, 0, 1, 2, 3, 4}),
       true},
      {"ids_moved",
       {{"e", counted(36)}, {"i", {0, -1, -9, 7, 8, 3, -4, 7}}},
       rows(4, {0, 8, 8, 3, 0, 5}),
       true},
      {"index_of_index",
       {{"e", counted(36)}, {"r", {-9, -1, 0, 8, 3, -4}}, {"i", {-1, 0, 3}}},
       rows(4, {5, 0, 8}),
       true},
      {"int32_ids_cast",
       {{"e", counted(24)}, {"i", {0, 5, -1, -6, 3, 2}}},
       rows(4, {0, 5, 5, 0, 3, 2}),
       true},
      {"argmax_nan", {{"x", {1, NAN, 9, NAN, 2, 5, 4, 3, 2, 1, 0, 1, 2, 3, 9}}}, {1, 0, 4}},
  };
}

std::vector<Trial> ends() {
  return {
      {"acosh_3e19", {{"x", kAreas}}, of_each(kAreas, std::acosh)},
      {"cosh_89", {{"x", kHyperbolic}}, of_each(kHyperbolic, std::cosh)},
      {"pow_special",
       {{"a", {0, 0, -0.0, 1, kInfinite, -kInfinite, 2, -1, -1, 0, NAN, 5}},
        {"b", {0, -1, -3, NAN, 0, 3, kInfinite, kInfinite, 1e10, -kInfinite, 0, -kInfinite}}},
       {1, kInfinite, -kInfinite, 1, 1, -kInfinite, kInfinite, 1, 1, kInfinite, 1, 0}},
      {"clip_min_gt_max", {{"x", {0, 1.5, 3, NAN}}}, {1, 1, 1, NAN}},
      {"softmax_fully_masked",
       {{"c", {1, 1, 0, 0, 0, 0, 0, 0}}, {"x", Numbers(12, 2)}},
       {0.5, 0.5, 0,   0,   0.5, 0.5, 0,   0,   0.5, 0.5, 0,   0,
        NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN}},
  };
}

std::string file_of(const std::string& name) {
  return test::source_path("tests/trials/values_" + name + ".textproto");
}

graph::Graph graph_of(const Trial& trial) {
  const auto graph = load_onnx(file_of(trial.file));
  EXPECT_TRUE(graph) << describe(graph.error());
  return graph ? *graph : graph::Graph();
}

std::vector<std::byte> stored(const BufferSpec& spec, const Numbers& numbers) {
  std::vector<std::byte> bytes(static_cast<size_t>(spec.bytes()), std::byte{0xff});
  for (size_t i = 0; i < numbers.size(); ++i)
    store_from_double(spec.dtype, bytes.data(), i, numbers[i]);
  return bytes;
}

Tensors tensors_of(const Trial& trial, const graph::Graph& graph, const LaunchList& list) {
  Tensors out;
  for (const BufferSpec& spec : list.inputs) {
    const auto given = trial.inputs.find(spec.name);
    const auto id = graph.tensor_named(spec.name);
    if (given != trial.inputs.end())
      out[spec.name] = stored(spec, given->second);
    else if (id && graph.tensor(*id).constant)
      out[spec.name] = *graph.tensor(*id).constant;
    else
      ADD_FAILURE() << trial << " says nothing of " << spec.name;
  }
  for (const auto* specs : {&list.outputs, &list.workspaces})
    for (const BufferSpec& spec : *specs)
      out[spec.name] = stored(spec, {});
  return out;
}

void expect_numbers(const Trial& trial, const BufferSpec& spec,
                    const std::vector<std::byte>& found) {
  ASSERT_EQ(static_cast<size_t>(spec.elements()), trial.expected.size());
  for (size_t i = 0; i < trial.expected.size(); ++i) {
    const double wanted = trial.expected[i];
    const double got = load_as_double(spec.dtype, found.data(), i);
    const bool beyond = std::fabs(wanted) > static_cast<double>(std::numeric_limits<float>::max());
    if (std::isnan(wanted))
      EXPECT_TRUE(std::isnan(got)) << trial << ", element " << i << ": " << got;
    else if (beyond)
      EXPECT_EQ(got, std::copysign(kInfinite, wanted)) << trial << ", element " << i;
    else
      EXPECT_NEAR(got, wanted, 1e-6 * std::fabs(wanted)) << trial << ", element " << i;
  }
}

Status run_on_cpu(const LaunchList& list, Tensors& tensors) {
  WARPLOOM_TRY(const runtime::Binary binary, runtime::compile(list));
  WARPLOOM_TRY(const auto device, runtime::Executor::open(Engine::cpu));
  WARPLOOM_TRY(const auto loaded, device->load(list, binary));
  runtime::Bindings bindings;
  for (const auto& [name, bytes] : tensors) {
    WARPLOOM_TRY(bindings[name], device->allocate(std::ssize(bytes)));
    WARPLOOM_CHECK(device->upload(bindings[name], bytes.data(), std::ssize(bytes)));
  }
  WARPLOOM_TRY(const runtime::Call call, loaded.bind(bindings));
  WARPLOOM_CHECK(call());
  WARPLOOM_CHECK(device->synchronize());
  for (auto& [name, bytes] : tensors)
    WARPLOOM_CHECK(device->download(bindings[name], bytes.data(), std::ssize(bytes)));
  return ok();
}

// Every region under some legal schedule of a family that does nearly anything.
Result<LaunchList> some_plan(const graph::Graph& given, const target::Capabilities& capabilities) {
  WARPLOOM_TRY(graph::Graph primitive, graph::decompose(given));
  WARPLOOM_TRY(const graph::Graph graph,
               plan::lower_for_target(std::move(primitive), capabilities));
  WARPLOOM_TRY(const plan::Partition parts, plan::regions_of(graph, Track::fp32, capabilities));
  std::vector<LaunchList> made(parts.regions.size());
  std::vector<const LaunchList*> lists;
  Random random(7, given.name);
  for (size_t i = 0; i < made.size(); ++i) {
    lists.push_back(parts.regions[i].alias ? nullptr : &made[i]);
    if (parts.regions[i].alias) continue;
    const kernels::Region region{parts.regions[i].graph, Track::fp32};
    const auto families = kernels::families_for(region, capabilities);
    const auto schedule = test::random_schedule(*families.back(), random);
    if (!schedule) return fail({ErrorCode::kNoSchedule, "chance finds none"});
    WARPLOOM_TRY(made[i], kernels::build(region, *schedule, capabilities));
  }
  return plan::link(graph, parts, lists);
}

class Values : public testing::TestWithParam<Trial> {};

TEST_P(Values, AreRightOnTheCpu) {
  const Trial& trial = GetParam();
  const graph::Graph graph = graph_of(trial);
  const auto list = some_plan(graph, *target::capabilities_of("cpu"));
  ASSERT_TRUE(list) << describe(list.error());
  Tensors tensors = tensors_of(trial, *graph::decompose(graph), *list);
  const Status ran = run_on_cpu(*list, tensors);
  ASSERT_TRUE(ran) << describe(ran.error());
  expect_numbers(trial, list->outputs[0], tensors[list->outputs[0].name]);
}

TEST_P(Values, AreRightOnAnEmulatedGpu) {
  const Trial& trial = GetParam();
  const graph::Graph graph = graph_of(trial);
  const auto list = some_plan(graph, *target::capabilities_of("sm_90a"));
  if (!list && trial.counts && list.error().code == ErrorCode::kNoSchedule)
    GTEST_SKIP() << "a GPU has no kernels for this arithmetic of integers";
  ASSERT_TRUE(list) << describe(list.error());
  Tensors tensors = tensors_of(trial, *graph::decompose(graph), *list);
  runtime::EmulatedBuffers buffers;
  for (const auto* specs : {&list->inputs, &list->outputs})
    for (const BufferSpec& spec : *specs)
      buffers[spec.name] = tensors[spec.name];
  const auto done = runtime::emulate(*list, buffers);
  ASSERT_TRUE(done) << describe(done.error());
  expect_numbers(trial, list->outputs[0], tensors[list->outputs[0].name]);
}

std::string name_of(const testing::TestParamInfo<Trial>& one) {
  return one.param.file;
}

INSTANTIATE_TEST_SUITE_P(Indices, Values, testing::ValuesIn(indices()), name_of);
INSTANTIATE_TEST_SUITE_P(Ends, Values, testing::ValuesIn(ends()), name_of);

// Right kernels are accepted, whatever the seed: what the judge draws makes sense of a whole model,
// and of a region that is judged alone.
class ValuesAccepted : public testing::TestWithParam<std::string> {};

TEST_P(ValuesAccepted, ByTheJudge) {
  const ScratchFolder scratch("values-test");
  const std::string model = file_of(GetParam());
  for (const std::string seed : {"1", "2"}) {
    const auto ran = run_process(
        {"env", "XDG_CACHE_HOME=" + scratch.path().string(), test::built_path("warploom"),
         "optimize", model, "--target", "cpu", "--budget", "60s", "--candidates", "1", "--seed",
         seed, "--out", (scratch.path() / seed).string()},
        {.time = std::chrono::seconds(200)});
    ASSERT_TRUE(ran);
    EXPECT_TRUE(ran->succeeded()) << "seed " << seed << "\n" << ran->out << ran->err;
  }
}

INSTANTIATE_TEST_SUITE_P(Trials, ValuesAccepted,
                         testing::Values("gather_negative_index", "gather_elements_64x32",
                                         "gather_elements_short_axis", "embedding_reshaped_ids",
                                         "token_and_position", "best_row", "acosh_3e19", "cosh_89",
                                         "pow_special", "attn_causal_fltmin"),
                         [](const auto& one) { return one.param; });
}  // namespace
}  // namespace warploom
