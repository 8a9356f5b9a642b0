// Integers to the ends of their types: emitted for the CPU and run, emitted for GPUs and emulated,
// bit by bit as the reference has them.
#include "base/integers.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <ostream>
#include <string>
#include <utility>
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
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "runtime/compilers.h"
#include "runtime/emulate.h"
#include "support/large_integers.h"
#include "support/nets.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/print.h"
#include "tile/program.h"
#include "tile/verify.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using graph::TensorId;
using test::Attributes;
using test::Net;

struct Named {
  std::string name;
  graph::Graph graph;
  bool on_a_gpu = true;
};

std::ostream& operator<<(std::ostream& out, const Named& net) {
  return out << net.name;
}

TensorId cast(Net& n, TensorId x, Dtype to) {
  return n.add(OpKind::Cast, {x}, {{"to", int64_t{onnx_type_of(to)}}});
}

const Dtype kTypes[] = {Dtype::i64, Dtype::i32, Dtype::i8, Dtype::u8};

std::vector<Named> nets() {
  std::vector<Named> all;
  const auto add = [&](const std::string& name, const std::function<TensorId(Net&)>& build,
                       bool on_a_gpu = true) {
    Net n;
    const TensorId id = build(n);
    all.push_back({name, n.with({id}), on_a_gpu});
  };
  for (const Dtype type : kTypes) {
    const std::string name(name_of(type));
    for (const OpKind op : {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Div, OpKind::Max,
                            OpKind::Min, OpKind::Mod, OpKind::Less, OpKind::Equal})
      add(name + "_" + std::string(graph::name_of(op)),
          [=](Net& n) { return n.add(op, {n.x({5, 37}, type), n.x({37}, type)}); });
    for (const OpKind op : {OpKind::Neg, OpKind::Abs, OpKind::Sign})
      add(name + "_" + std::string(graph::name_of(op)),
          [=](Net& n) { return n.add(op, {n.x({5, 37}, type)}); });
    add(name + "_where_negative", [=](Net& n) {
      const TensorId x = n.x({5, 37}, type);
      const TensorId below = n.add(OpKind::Less, {x, n.x({37}, type)});
      return n.add(OpKind::Where, {below, n.add(OpKind::Add, {x, x}), x});
    });
    add(name + "_transposed",
        [=](Net& n) { return n.add(OpKind::Transpose, {n.x({6, 5, 7}, type)}); });
    add(name + "_padded",
        [=](Net& n) { return n.add(OpKind::Pad, {n.x({4, 5}, type), n.ints({1, 0, 0, 2})}); });
    for (const Dtype to : kTypes)
      if (to != type)
        add(name + "_to_" + std::string(name_of(to)),
            [=](Net& n) { return cast(n, n.x({5, 37}, type), to); });
    add(name + "_as_f32_and_back", [=](Net& n) {
      return n.add(OpKind::Mul, {cast(n, n.x({5, 37}, type), Dtype::f32), n.x({37})});
    });
  }
  for (const Dtype type : {Dtype::i64, Dtype::i32}) {
    const std::string name(name_of(type));
    for (const OpKind op :
         {OpKind::ReduceSum, OpKind::ReduceMax, OpKind::ReduceMin, OpKind::ReduceProd})
      for (const int64_t axis : {0, 1})
        add(fmt::format("{}_{}_over_{}", name, graph::name_of(op), axis), [=](Net& n) {
          return n.add(op, {n.x({9, 37}, type)},
                       {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{0}}});
        });
    for (const int64_t reverse : {0, 1})
      for (const double axis : {0.0, 1.0})
        add(
            fmt::format("{}_prefixes_{}_{}", name, axis, reverse),
            [=](Net& n) {
              return n.add(
                  OpKind::CumSum,
                  {n.x({9, 37}, type), n.constant("axis", Dtype::i64, {}, std::array{axis})},
                  {{"reverse", reverse}});
            },
            false);
    add(name + "_product",
        [=](Net& n) { return n.add(OpKind::MatMul, {n.x({7, 11}, type), n.x({11, 5}, type)}); });
    add(name + "_joined_and_added", [=](Net& n) {
      const TensorId joined =
          n.add(OpKind::Concat, {n.x({3, 5}, type), n.x({3, 4}, type)}, {{"axis", int64_t{1}}});
      return n.add(OpKind::Add, {joined, n.x({9}, type)});
    });
  }
  return all;
}

struct Data {
  std::vector<std::vector<std::byte>> inputs;
  graph::ValueAndMagnitude want;

  explicit Data(const graph::Graph& graph, uint64_t seed)
      : inputs(test::large_inputs(graph, seed)) {
    const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
    auto made = graph::evaluate_exactly(graph, views, 1);
    EXPECT_TRUE(made) << describe(made.error());
    if (made) want = std::move((*made)[0]);
  }
};

void expect_equal(const graph::ValueAndMagnitude& want, Dtype dtype,
                  const std::vector<std::byte>& have, const std::string& what) {
  if (is_float(dtype)) {
    EXPECT_LT(test::error_of(want.value, dtype, have), 1e-6) << what;
    return;
  }
  for (size_t i = 0; i < want.integers.size(); ++i) {
    const int64_t found = load_integer(dtype, have.data(), static_cast<int64_t>(i));
    ASSERT_EQ(found, want.integers[i]) << "element " << i << " of " << what;
  }
}

// A net's kernels by a schedule, in a library of many and then run there.
struct Trial {
  const Named& net;
  KernelConfig schedule;
  Family::Programs made = {};
  std::vector<Kernel> kernels = {};

  void emit(const std::string& name, CpuLibrary& library) {
    const auto machine = *target::capabilities_of("cpu");
    auto programs = direct_family({net.graph, Track::fp32}, machine)->programs(schedule);
    ASSERT_TRUE(programs) << net.name << describe(programs.error());
    made = std::move(*programs);
    for (tile::Program& program : made.programs) {
      program.name = fmt::format("{}_{}", name, kernels.size());
      const auto valid = tile::verify(program);
      ASSERT_TRUE(valid) << describe(valid.error()) << tile::print(program);
      const auto kernel = codegen::emit_cpu(program, machine);
      ASSERT_TRUE(kernel) << describe(kernel.error()) << tile::print(program);
      library.add(kernels.emplace_back(*kernel));
    }
  }

  void expect_agreement(CpuLibrary& library) {
    Data data(net.graph, 7);
    const auto& tensor = net.graph.tensor(net.graph.outputs[0]);
    std::vector<std::byte> output(static_cast<size_t>(graph::byte_count(tensor)));
    std::vector<std::byte> meant = output;
    for (size_t k = 0; k < kernels.size(); ++k) {
      std::vector<void*> pointers;
      tile::Buffers buffers;
      for (const Argument& arg : kernels[k].args) {
        const std::string& name = made.buffers[k].at(arg.buffer);
        pointers.push_back(output.data());
        buffers[arg.buffer] = meant;
        for (size_t i = 0; i < data.inputs.size(); ++i)
          if (net.graph.tensor(net.graph.inputs[i]).name == name) {
            pointers.back() = data.inputs[i].data();
            buffers[arg.buffer] = data.inputs[i];
          }
      }
      library.run(kernels[k], pointers);
      const auto done = tile::interpret(made.programs[k], buffers);
      ASSERT_TRUE(done) << describe(done.error());
    }
    const std::string what =
        kernels[0].name + ": " + schedule.text() + "\n" + tile::print(made.programs[0]);
    expect_equal(data.want, tensor.dtype, output, what);
    expect_equal(data.want, tensor.dtype, meant, "what the interpreter makes: " + what);
  }
};

TEST(Integers, OnACpuAreThoseOfTheReference) {
  const auto machine = *target::capabilities_of("cpu");
  const std::vector<Named> all = nets();
  std::vector<Trial> trials;
  CpuLibrary library;
  Random random(1, "integers");
  for (const Named& net : all)
    for (int i = 0; i < 2; ++i) {
      const FamilyPtr family = direct_family({net.graph, Track::fp32}, machine);
      ASSERT_TRUE(family) << net.name;
      const auto schedule = test::random_schedule(*family, random);
      ASSERT_TRUE(schedule) << net.name;
      trials.push_back({net, *schedule});
      ASSERT_NO_FATAL_FAILURE(trials.back().emit(fmt::format("{}_{}", net.name, i), library));
    }
  ASSERT_TRUE(library.compile());
  for (Trial& trial : trials)
    trial.expect_agreement(library);
}

// Where a compiler makes vectors of loads that each have a condition, with every flag that kernels
// are compiled with: rows in turn within a block, each element inside or not.
TEST(Integers, ArePaddedRightUnderTheFlagsOfKernels) {
  const std::vector<Named> all = nets();
  std::vector<Trial> trials;
  CpuLibrary library;
  for (const Named& net : all) {
    if (!net.name.ends_with("_padded")) continue;
    for (const int64_t rows : {0, 1}) {
      trials.push_back({net, DirectConfig{.tile_x = 7, .tile_y = 5, .row_by_row = rows == 1}});
      ASSERT_NO_FATAL_FAILURE(trials.back().emit(fmt::format("{}_{}", net.name, rows), library));
    }
  }
  ASSERT_EQ(trials.size(), 2 * std::size(kTypes));
  ASSERT_TRUE(library.compile(runtime::cpu_compile_flags()));
  for (Trial& trial : trials)
    trial.expect_agreement(library);
}

class IntegersEmulated : public testing::TestWithParam<Named> {};

TEST_P(IntegersEmulated, AreThoseOfTheReference) {
  if (!GetParam().on_a_gpu) GTEST_SKIP() << "no kernel of a GPU scans integers";
  const auto capabilities = *target::capabilities_of("sm_90a");
  const Region region{GetParam().graph, Track::fp32};
  const FamilyPtr family = direct_family(region, capabilities);
  ASSERT_TRUE(family);
  Random random(2, GetParam().name);
  const auto schedule = test::random_schedule(*family, random);
  ASSERT_TRUE(schedule);
  const auto list = build(region, *schedule, capabilities);
  ASSERT_TRUE(list) << schedule->text() << describe(list.error());
  Data data(region.graph, 7);
  runtime::EmulatedBuffers buffers;
  for (size_t i = 0; i < data.inputs.size(); ++i)
    buffers[list->inputs[i].name] = data.inputs[i];
  std::vector<std::byte> output(static_cast<size_t>(list->outputs[0].bytes()));
  buffers[list->outputs[0].name] = output;
  const auto done = runtime::emulate(*list, buffers);
  ASSERT_TRUE(done) << schedule->text() << describe(done.error()) << list->kernels[0].source;
  expect_equal(data.want, list->outputs[0].dtype, output,
               schedule->text() + "\n" + list->kernels[0].source);
}

INSTANTIATE_TEST_SUITE_P(Nets, IntegersEmulated, testing::ValuesIn(nets()),
                         [](const auto& one) { return one.param.name; });

TEST(Integers, HaveNoScansOnAGpu) {
  for (const Named& net : nets()) {
    if (net.on_a_gpu) continue;
    EXPECT_FALSE(direct_family({net.graph, Track::fp32}, *target::capabilities_of("sm_90a")))
        << net.name;
  }
}
}  // namespace
}  // namespace warploom::kernels
