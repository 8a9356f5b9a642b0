// Four ways to compute the same thing, on random problems under random legal schedules: the
// interpreter of tile programs, the emulated CUDA text, the CPU target's compiled code, and FP64
// evaluation of the graph. All must agree.

#include <gtest/gtest.h>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "runtime/compile.h"
#include "runtime/emulate.h"
#include "runtime/executor.h"
#include "support/problems.h"
#include "support/sample.h"
#include "target/capabilities.h"
#include "tile/interpret.h"

namespace warploom {
namespace {
using kernels::Family;
using kernels::KernelConfig;
using kernels::Region;

constexpr int kProblems = 500;
constexpr int kShards = 20;
constexpr int kSampled = 200;  // of them in CI

using Tensors = std::map<std::string, std::vector<std::byte>>;

Region random_region(Random& random) {
  auto any = [&](std::initializer_list<int64_t> values) {
    return *(values.begin() + random.below(values.size()));
  };
  if (random.below(3) == 0) {
    const Dtype dtype = random.below(3) ? Dtype::f32 : Dtype::bf16;
    const auto columns = random.below(2) ? any({32, 64, 128, 512, 1024})
                                         : static_cast<int64_t>(1 + random.below(1500));
    return {test::softmax_graph(static_cast<int64_t>(1 + random.below(6)), columns, dtype,
                                random.below(4) == 0),
            dtype == Dtype::f32 ? Track::fp32 : Track::bf16};
  }
  test::MatmulShape shape{static_cast<int64_t>(2 + random.below(140)),
                          static_cast<int64_t>(2 + random.below(140)),
                          static_cast<int64_t>(2 + random.below(150))};
  if (random.below(2)) {
    shape.m = any({64, 128});
    shape.n = any({64, 128, 136});
    shape.k = any({32, 64, 128});
  }
  if (random.below(5) == 0) shape.batch = {static_cast<int64_t>(1 + random.below(3))};
  shape.transpose_a = random.below(3) == 0;
  shape.transpose_b = random.below(3) == 0;
  shape.bias = random.below(2);
  shape.gelu = random.below(3) == 0;
  static constexpr std::pair<Dtype, Track> kTypes[] = {
      {Dtype::f32, Track::fp32}, {Dtype::f32, Track::tf32}, {Dtype::bf16, Track::bf16},
      {Dtype::f16, Track::fp16}, {Dtype::e4m3, Track::fp8}, {Dtype::e5m2, Track::fp8},
      {Dtype::i8, Track::fp8}};
  const auto [dtype, track] = kTypes[random.below(std::size(kTypes))];
  if (bits_of(dtype) == 8 && random.below(2)) {
    shape.batch.clear();
    shape.block = any({32, 64, 128});
    shape.k = shape.block * any({1, 2, 3});
    shape.columns = any({1, 1, 32, 128});
    shape.n = shape.columns * any({2, 3});
  }
  return {test::matmul_graph(shape, dtype), track};
}

// Prefix sums along one of three axes, between pointwise operators.
Region random_prefixes(Random& random) {
  graph::Builder b("prefixes");
  const auto size = [&](uint64_t most) { return static_cast<int64_t>(1 + random.below(most)); };
  const bool narrow = random.below(4) == 0;
  const int64_t axis = size(3) - 1;
  auto x = b.input("x", narrow ? Dtype::bf16 : Dtype::f32,
                   {size(4), size(40), size(random.below(2) ? 40 : 900)});
  if (random.below(2)) x = b.add(graph::OpKind::Tanh, {x});
  const auto choice = [&] { return static_cast<int64_t>(random.below(2)); };
  x = b.add(graph::OpKind::CumSum, {x, b.integers("axis", std::array{axis})},
            {{"reverse", choice()}, {"exclusive", choice()}});
  if (random.below(2)) x = b.add(graph::OpKind::Relu, {x});
  b.output(x);
  return {*graph::decompose(*b.finish()), narrow ? Track::bf16 : Track::fp32};
}

// A legal schedule of one of the families, drawn at random; small tiles more often, for the
// emulator's sake.
std::optional<std::pair<kernels::FamilyPtr, KernelConfig>> random_schedule(
    const Region& region, const target::Capabilities& capabilities, Random& random) {
  const auto families = kernels::families_for(region, capabilities);
  for (int attempt = 0; attempt < 500 && !families.empty(); ++attempt) {
    const kernels::FamilyPtr& family = families[random.below(families.size())];
    KernelConfig schedule(family->type());
    for (const auto& field : family->space().fields) {
      auto value = field.values[random.below(field.values.size())];
      if (field.name.starts_with("block_") && value > 128)
        value = field.values[random.below(field.values.size())];
      schedule.set(field.number, value);
    }
    if (!family->legal(schedule)) continue;
    const auto built = family->layout_candidate(schedule) > 0
                           ? kernels::build(region, schedule, capabilities)
                           : LaunchList{};
    if (built || built.error().code != ErrorCode::kScheduleIllegal)
      return std::pair{family, schedule};
  }
  return std::nullopt;
}

double error_of(const std::vector<std::byte>& got, Dtype dtype, const std::vector<double>& want) {
  double difference = 0;
  double size = 1e-30;
  for (size_t i = 0; i < want.size(); ++i) {
    const double d = load_as_double(dtype, got.data(), i) - want[i];
    difference += d * d;
    size += want[i] * want[i];
  }
  return std::sqrt(difference / size);
}

Tensors poisoned(const Region& region, const std::vector<std::vector<std::byte>>& inputs,
                 const std::vector<BufferSpec>& workspaces) {
  Tensors tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors[region.graph.tensor(region.graph.inputs[i]).name] = inputs[i];
  const auto& out = region.graph.tensor(region.graph.outputs[0]);
  tensors[out.name].assign(static_cast<size_t>(graph::byte_count(out)), std::byte{0xff});
  for (const auto& w : workspaces)
    tensors[w.name].assign(static_cast<size_t>(w.bytes()), std::byte{0xff});
  return tensors;
}

Status interpret_all(const Region& region, const Family& family, const KernelConfig& schedule,
                     const std::vector<std::vector<std::byte>>& inputs,
                     std::vector<std::byte>& out) {
  WARPLOOM_TRY(const Family::Programs made, family.programs(schedule));
  Tensors tensors = poisoned(region, inputs, made.workspaces);
  for (size_t i = 0; i < made.programs.size(); ++i) {
    tile::Buffers buffers;
    for (const auto& [name, buffer] : made.buffers[i])
      buffers[name] = tensors[buffer];
    WARPLOOM_CHECK(tile::interpret(made.programs[i], buffers));
  }
  out = tensors[region.graph.tensor(region.graph.outputs[0]).name];
  return ok();
}

Status emulate_all(const Region& region, const KernelConfig& schedule,
                   const target::Capabilities& capabilities, uint64_t seed,
                   const std::vector<std::vector<std::byte>>& inputs, std::vector<std::byte>& out) {
  WARPLOOM_TRY(const LaunchList list, kernels::build(region, schedule, capabilities));
  Tensors tensors = poisoned(region, inputs, {});
  runtime::EmulatedBuffers buffers;
  for (auto& [name, bytes] : tensors)
    buffers[name] = bytes;
  WARPLOOM_CHECK(runtime::emulate(list, buffers, {seed}));
  out = tensors[list.outputs[0].name];
  return ok();
}

Status run_on_cpu(const Region& region, const KernelConfig& schedule,
                  const target::Capabilities& capabilities,
                  const std::vector<std::vector<std::byte>>& inputs, std::vector<std::byte>& out) {
  WARPLOOM_TRY(const LaunchList list, kernels::build(region, schedule, capabilities));
  WARPLOOM_TRY(const runtime::Binary binary, runtime::compile(list));
  WARPLOOM_TRY(const auto device, runtime::Executor::open(Engine::cpu));
  WARPLOOM_TRY(const auto loaded, device->load(list, binary));
  runtime::Bindings bindings;
  for (const auto& [name, bytes] : poisoned(region, inputs, {})) {
    WARPLOOM_TRY(bindings[name], device->allocate(static_cast<int64_t>(bytes.size())));
    WARPLOOM_CHECK(
        device->upload(bindings[name], bytes.data(), static_cast<int64_t>(bytes.size())));
  }
  WARPLOOM_TRY(const runtime::Call call, loaded.bind(bindings));
  WARPLOOM_CHECK(call());
  WARPLOOM_CHECK(device->synchronize());
  out.resize(static_cast<size_t>(list.outputs[0].bytes()));
  return device->download(bindings[list.outputs[0].name], out.data(), list.outputs[0].bytes());
}

double tolerance_of(Track track) {
  switch (track) {
    case Track::bf16: return 6e-3;
    case Track::fp16: return 8e-4;
    case Track::tf32: return 1.2e-3;
    case Track::fp8: return 4e-4;
    default: return 1e-6;
  }
}

class Agreement : public testing::TestWithParam<int> {};

TEST_P(Agreement, InterpreterEmulatorCpuAndFp64) {
  const int problems = test::whole() ? kProblems : kSampled;
  const int first = static_cast<int>(Random(test::sample_seed(), "agreement").below(kProblems));
  if (GetParam() == 0) test::note_sample("random problems that agree", problems, kProblems);
  for (int i = GetParam(); i < problems; i += kShards) {
    const int problem = (first + i) % kProblems;
    Random random(static_cast<uint64_t>(problem), "agreement");
    const Region region = problem % 10 == 7 ? random_prefixes(random) : random_region(random);
    const auto inputs = test::random_inputs(region.graph, static_cast<uint64_t>(problem));
    const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
    const auto want = graph::evaluate(region.graph, views, 1);
    ASSERT_TRUE(want.has_value()) << describe(want.error());
    const auto& output = region.graph.tensor(region.graph.outputs[0]);
    auto check = [&](const char* way, const std::string& schedule, const Status& status,
                     const std::vector<std::byte>& got) {
      ASSERT_TRUE(status.has_value())
          << way << " of problem " << problem << " under " << schedule << "\n"
          << to_text(region.graph) << describe(status.error());
      EXPECT_LE(error_of(got, output.dtype, (*want)[0]), tolerance_of(region.track))
          << way << " of problem " << problem << " under " << schedule << "\n"
          << to_text(region.graph);
    };
    std::vector<std::byte> got;
    for (const char* target : {problem % 2 ? "sm_90a" : "sm_80", "cpu"}) {
      const auto capabilities = *target::capabilities_of(target);
      const auto drawn = random_schedule(region, capabilities, random);
      if (!drawn) continue;
      const auto& [family, schedule] = *drawn;
      check("interpreter", schedule.text(), interpret_all(region, *family, schedule, inputs, got),
            got);
      if (capabilities.gpu) {
        check("emulator", schedule.text(),
              emulate_all(region, schedule, capabilities, static_cast<uint64_t>(problem), inputs,
                          got),
              got);
      } else {
        check("cpu", schedule.text(), run_on_cpu(region, schedule, capabilities, inputs, got), got);
      }
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RandomProblems, Agreement, testing::Range(0, kShards));
}  // namespace
}  // namespace warploom
