// Integers to the ends of their types: emitted for the CPU and run, emitted for GPUs and emulated,
// bit by bit as the reference has them.
#include "base/integers.h"
#include <gtest/gtest.h>
#include "../codegen/cpu_run.h"
#include "base/random.h"
#include "codegen/emit.h"
#include "graph/reference.h"
#include "kernels/family.h"
#include "nets.h"
#include "runtime/emulate.h"
#include "tile/interpret.h"
#include "tile/print.h"
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
  return n.add(OpKind::Cast, {x}, {{"to", std::int64_t{onnx_type_of(to)}}});
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
      for (const std::int64_t axis : {0, 1})
        add(fmt::format("{}_{}_over_{}", name, graph::name_of(op), axis), [=](Net& n) {
          return n.add(op, {n.x({9, 37}, type)},
                       {{"axes", std::vector<std::int64_t>{axis}}, {"keepdims", std::int64_t{0}}});
        });
    for (const std::int64_t reverse : {0, 1})
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
      const TensorId joined = n.add(OpKind::Concat, {n.x({3, 5}, type), n.x({3, 4}, type)},
                                    {{"axis", std::int64_t{1}}});
      return n.add(OpKind::Add, {joined, n.x({9}, type)});
    });
  }
  return all;
}

// The ends of the type, what lies around 2^24, 2^31 and 2^53, and small numbers.
std::vector<std::byte> integers_of(const graph::Tensor& tensor, Random& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(graph::byte_count(tensor)));
  for (std::int64_t i = 0; i < graph::element_count(tensor.shape); ++i) {
    if (is_float(tensor.dtype)) {
      store_from_double(tensor.dtype, bytes.data(), static_cast<std::size_t>(i), random.normal());
      continue;
    }
    const int shift = std::array{0, 0, 23, 24, 31, 52, 53, 62, 63}[random.below(9)];
    auto value = static_cast<std::int64_t>(random.below(7)) - 3;
    if (shift > 0) value += static_cast<std::int64_t>(std::uint64_t{1} << shift);
    if (random.below(2) == 0) value = apply_integers(ValueOp::neg, value);
    store_integer(tensor.dtype, bytes.data(), i, value);
  }
  return bytes;
}

struct Data {
  std::vector<std::vector<std::byte>> inputs;
  graph::ValueAndMagnitude want;

  explicit Data(const graph::Graph& graph, std::uint64_t seed) {
    Random random(seed, "integers");
    for (const TensorId id : graph.inputs) inputs.push_back(integers_of(graph.tensor(id), random));
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
  for (std::size_t i = 0; i < want.integers.size(); ++i) {
    const std::int64_t found = load_integer(dtype, have.data(), static_cast<std::int64_t>(i));
    ASSERT_EQ(found, want.integers[i]) << "element " << i << " of " << what;
  }
}

struct Trial {
  const Named* net = nullptr;
  Schedule schedule = {};
  Family::Programs made = {};
  std::vector<Kernel> kernels = {};
};

TEST(Integers, OnACpuAreThoseOfTheReference) {
  const auto machine = *target::capabilities_of("cpu");
  const std::vector<Named> all = nets();
  std::vector<Trial> trials;
  CpuLibrary library;
  Random random(1, "integers");
  for (const Named& net : all)
    for (int i = 0; i < 2; ++i) {
      Trial trial{&net};
      const FamilyPtr family = direct_family({net.graph, Track::fp32}, machine);
      ASSERT_TRUE(family) << net.name;
      const auto schedule = test::random_schedule(*family, random);
      ASSERT_TRUE(schedule) << net.name;
      auto made = family->programs(trial.schedule = *schedule);
      ASSERT_TRUE(made) << net.name << describe(made.error());
      for (tile::Program& program : made->programs) {
        program.name = fmt::format("{}_{}_{}", net.name, i, trial.kernels.size());
        const auto valid = tile::verify(program);
        ASSERT_TRUE(valid) << describe(valid.error()) << tile::print(program);
        const auto kernel = codegen::emit_cpu(program, machine);
        ASSERT_TRUE(kernel) << describe(kernel.error()) << tile::print(program);
        library.add(trial.kernels.emplace_back(*kernel));
      }
      trial.made = std::move(*made);
      trials.push_back(std::move(trial));
    }
  ASSERT_TRUE(library.compile());
  for (Trial& trial : trials) {
    const graph::Graph& graph = trial.net->graph;
    Data data(graph, 7);
    const auto& tensor = graph.tensor(graph.outputs[0]);
    std::vector<std::byte> output(static_cast<std::size_t>(graph::byte_count(tensor)));
    std::vector<std::byte> meant = output;
    for (std::size_t k = 0; k < trial.kernels.size(); ++k) {
      std::vector<void*> pointers;
      tile::Buffers buffers;
      for (const Argument& arg : trial.kernels[k].args) {
        const std::string& name = trial.made.buffers[k].at(arg.buffer);
        pointers.push_back(output.data());
        buffers[arg.buffer] = meant;
        for (std::size_t i = 0; i < data.inputs.size(); ++i)
          if (graph.tensor(graph.inputs[i]).name == name) {
            pointers.back() = data.inputs[i].data();
            buffers[arg.buffer] = data.inputs[i];
          }
      }
      library.run(trial.kernels[k], pointers);
      const auto done = tile::interpret(trial.made.programs[k], buffers);
      ASSERT_TRUE(done) << describe(done.error());
    }
    const std::string what = trial.kernels[0].name + ": " + trial.schedule.text() + "\n" +
                             tile::print(trial.made.programs[0]);
    expect_equal(data.want, tensor.dtype, output, what);
    expect_equal(data.want, tensor.dtype, meant, "what the interpreter makes: " + what);
  }
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
  for (std::size_t i = 0; i < data.inputs.size(); ++i)
    buffers[list->inputs[i].name] = data.inputs[i];
  std::vector<std::byte> output(static_cast<std::size_t>(list->outputs[0].bytes()));
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
