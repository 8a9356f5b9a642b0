// The family `direct` on every sort of primitive: emitted for the CPU and run, emitted for GPUs and
// emulated, against FP64.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
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
using graph::TensorId;
using test::Attributes;
using test::Ints;
using test::Net;

struct Named {
  std::string name;
  graph::Graph graph;
};

std::ostream& operator<<(std::ostream& out, const Named& net) {
  return out << net.name;
}

// Adds a net by its name and what builds its one result.
auto adder_to(std::vector<Named>& all) {
  return [&all](const std::string& name, const std::function<TensorId(Net&)>& build) {
    Net n;
    const TensorId id = build(n);
    all.push_back({name, n.with({id})});
  };
}

void add_pointwise_and_moves(std::vector<Named>& all) {
  const auto add = adder_to(all);
  add("pointwise", [](Net& n) {
    const auto x = n.x({3, 7, 50});
    return n.add(OpKind::Gelu,
                 {n.add(OpKind::Mul, {n.add(OpKind::Add, {x, n.x({7, 1})}), n.x({50})})},
                 {{"approximate", std::string("tanh")}});
  });
  add("chain_of_one_axis", [](Net& n) {
    return n.add(OpKind::Relu, {n.add(OpKind::Sub, {n.x({5, 77}), n.x({5, 77})})});
  });
  add("bf16_chain", [](Net& n) {
    return n.add(OpKind::Relu,
                 {n.add(OpKind::Add, {n.x({9, 64}, Dtype::bf16), n.x({64}, Dtype::bf16)})});
  });
  add("rounds_in_between", [](Net& n) {
    const auto y = n.add(OpKind::Cast, {n.add(OpKind::Exp, {n.x({5, 33})})},
                         {{"to", int64_t{onnx_type_of(Dtype::bf16)}}});
    return n.add(OpKind::Neg,
                 {n.add(OpKind::Cast, {y}, {{"to", int64_t{onnx_type_of(Dtype::f32)}}})});
  });
  add("transpose", [](Net& n) { return n.transpose(n.x({70, 45}), {1, 0}); });
  add("transpose_of_three",
      [](Net& n) { return n.add(OpKind::Abs, {n.transpose(n.x({6, 20, 9}), {2, 0, 1})}); });
  add("slice_backwards",
      [](Net& n) { return n.slice(n.slice(n.x({6, 40}), 1, 38, 2, -3), 0, 1, 5); });
  add("concat", [](Net& n) {
    const auto both =
        n.add(OpKind::Concat, {n.x({4, 3, 10}), n.x({4, 5, 10})}, {{"axis", int64_t{1}}});
    return n.add(OpKind::Relu, {both});
  });
  add("gather", [](Net& n) {
    return n.add(OpKind::Add,
                 {n.add(OpKind::Gather, {n.x({11, 40}), n.x({3, 7}, Dtype::i64)}), n.x({7, 40})});
  });
  add("heads",
      [](Net& n) { return n.transpose(n.reshape(n.x({2, 9, 24}), {2, 9, 3, 8}), {0, 2, 1, 3}); });
  add("pad_of_a_sum", [](Net& n) {
    return n.add(OpKind::Pad, {n.add(OpKind::Exp, {n.x({5, 20})}), n.ints({1, 3, 0, 2})});
  });
  add("pad_of_bytes_by_a_fraction", [](Net& n) {
    const auto x =
        n.add(OpKind::Cast, {n.x({5, 20}, Dtype::i8)}, {{"to", int64_t{onnx_type_of(Dtype::f32)}}});
    return n.add(OpKind::Pad, {x, n.ints({1, 3, 0, 2}), n.number(99.5)});
  });
}

void add_reductions(std::vector<Named>& all) {
  const auto add = adder_to(all);
  add("sum_of_columns",
      [](Net& n) { return n.add(OpKind::ReduceSum, {n.x({33, 40}), n.ints({0})}); });
  add("mean_of_rows",
      [](Net& n) { return n.add(OpKind::ReduceMean, {n.x({33, 41}), n.ints({1})}); });
  add("largest_of_all", [](Net& n) {
    return n.add(OpKind::ReduceMax, {n.add(OpKind::Abs, {n.x({7, 300})}), n.ints({0, 1})});
  });
  add("product_in_the_middle",
      [](Net& n) { return n.add(OpKind::ReduceProd, {n.x({4, 6, 20}), n.ints({1})}); });
  add("norm_of_channels",
      [](Net& n) { return n.add(OpKind::ReduceMean, {n.x({2, 5, 6, 7}), n.ints({2, 3})}); });
  add("max_pool", [](Net& n) {
    return n.add(
        OpKind::MaxPool, {n.x({2, 3, 12, 17})},
        Attributes{
            {"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  });
  add("average_pool", [](Net& n) {
    return n.add(OpKind::AveragePool, {n.x({2, 3, 10, 20})},
                 Attributes{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  });
}

void add_triangles(std::vector<Named>& all) {
  const auto add = adder_to(all);
  const auto triangle = [](Net& n, TensorId x, int64_t upper, int64_t diagonal) {
    return n.add(OpKind::Trilu, {x, n.reshape(n.ints({diagonal}), {})}, {{"upper", upper}});
  };
  add("upper_triangle_of_a_product", [&](Net& n) {
    return triangle(n, n.add(OpKind::MatMul, {n.x({131, 45}), n.x({45, 141})}), 1, 3);
  });
  add("lower_triangle_of_a_product", [&](Net& n) {
    return triangle(n, n.add(OpKind::MatMul, {n.x({2, 131, 77}), n.x({2, 77, 137})}), 0, -20);
  });
  add("product_with_a_lower_triangle", [&](Net& n) {
    return n.add(OpKind::MatMul, {n.x({45, 131}), triangle(n, n.x({131, 141}), 0, 0)});
  });
}

void add_prefixes(std::vector<Named>& all) {
  const auto add = adder_to(all);
  const auto cum_sum = [](Net& n, TensorId x, int64_t axis, int64_t reverse = 0,
                          int64_t exclusive = 0) {
    return n.add(OpKind::CumSum, {x, n.ints({axis})},
                 {{"reverse", reverse}, {"exclusive", exclusive}});
  };
  add("prefixes_of_rows", [&](Net& n) { return cum_sum(n, n.x({9, 512}), 1); });
  add("prefixes_of_ragged_rows", [&](Net& n) { return cum_sum(n, n.x({5, 1037}), 1); });
  add("prefixes_of_short_rows", [&](Net& n) { return cum_sum(n, n.x({40, 3}), 1, 1); });
  add("prefixes_of_a_line", [&](Net& n) { return cum_sum(n, n.x({777}), 0, 1); });
  add("prefixes_from_the_end", [&](Net& n) { return cum_sum(n, n.x({6, 701}), 1, 1); });
  add("prefixes_without_the_own", [&](Net& n) { return cum_sum(n, n.x({6, 300}), 1, 0, 1); });
  add("prefixes_without_the_own_from_the_end",
      [&](Net& n) { return cum_sum(n, n.x({6, 299}), 1, 1, 1); });
  add("prefixes_of_columns", [&](Net& n) { return cum_sum(n, n.x({35, 130}), 0); });
  add("prefixes_of_columns_from_the_end",
      [&](Net& n) { return cum_sum(n, n.x({35, 130}), 0, 1, 1); });
  add("prefixes_in_the_middle", [&](Net& n) { return cum_sum(n, n.x({3, 40, 24}), 1); });
  add("prefixes_of_bf16", [&](Net& n) { return cum_sum(n, n.x({6, 256}, Dtype::bf16), 1); });
  add("prefixes_between_operators", [&](Net& n) {
    const auto term = n.add(OpKind::Mul, {n.add(OpKind::Tanh, {n.x({2, 5, 90})}), n.x({5, 1})});
    return n.add(OpKind::Relu, {n.add(OpKind::Add, {cum_sum(n, term, 2), n.x({90})})});
  });
  add("prefixes_of_prefixes", [&](Net& n) {
    const auto x = n.x({7, 150});
    return n.add(OpKind::Add,
                 {cum_sum(n, cum_sum(n, x, 1), 1), cum_sum(n, n.add(OpKind::Abs, {x}), 1)});
  });
  add("prefixes_of_a_column_beside_those_of_columns", [&](Net& n) {
    return n.add(OpKind::Add, {cum_sum(n, n.x({90, 1}), 0), cum_sum(n, n.x({90, 24}), 0)});
  });
  add("prefixes_of_two_inputs", [&](Net& n) {
    return n.add(OpKind::Mul, {cum_sum(n, n.x({3, 700}), 1), cum_sum(n, n.x({3, 700}), 1, 0, 1)});
  });
  add("prefixes_of_two_inputs_alike", [&](Net& n) {
    return n.add(OpKind::Add, {cum_sum(n, n.x({3, 700}), 1), cum_sum(n, n.x({3, 700}), 1)});
  });
  add("prefixes_of_flipped_rows", [&](Net& n) {
    return n.slice(cum_sum(n, n.slice(n.x({5, 260}), 1, -1, -1000, -1), 1), 1, -1, -1000, -1);
  });
  add("prefixes_behind_others", [&](Net& n) {
    return n.add(OpKind::Concat, {n.x({6, 1}), cum_sum(n, n.slice(n.x({6, 310}), 1, 0, -1), 1)},
                 {{"axis", int64_t{1}}});
  });
}

void add_moves_of_many_axes(std::vector<Named>& all) {
  const auto add = adder_to(all);
  add("pairs_turned_round", [&](Net& n) { return n.slice(n.x({3, 41, 20, 2}), 3, -1, -1000, -1); });
  add("squares_gathered_in_channels", [&](Net& n) {
    return n.add(OpKind::Transpose, {n.reshape(n.x({2, 5, 12, 2, 6, 2}), {2, 5, 12, 2, 6, 2})},
                 {{"perm", Ints{0, 1, 3, 5, 2, 4}}});
  });
}

void add_convolutions(std::vector<Named>& all) {
  const auto add = adder_to(all);
  const auto conv = [&](const std::string& name, const graph::Shape& x, const graph::Shape& w,
                        Attributes attributes, Dtype dtype = Dtype::f32) {
    add(name, [&](Net& n) {
      return n.add(
          OpKind::Relu,
          {n.add(OpKind::Conv, {n.x(x, dtype), n.x(w, dtype), n.x({w[0]}, dtype)}, attributes)});
    });
  };
  const Attributes padded{{"pads", Ints{1, 1, 1, 1}}};
  conv("conv", {1, 5, 9, 20}, {7, 5, 3, 3}, padded);
  conv("conv_strided", {1, 4, 9, 21}, {6, 4, 3, 3},
       {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  conv("conv_grouped", {2, 6, 5, 8}, {4, 3, 3, 1}, {{"group", int64_t{2}}});
  conv("conv_by_channel", {1, 6, 9, 18}, {6, 1, 3, 3},
       {{"pads", Ints{1, 1, 1, 1}}, {"group", int64_t{6}}});
  conv("conv_of_points", {1, 8, 6, 6}, {16, 8, 1, 1}, {});
  conv("conv_of_bf16", {1, 4, 6, 16}, {8, 4, 3, 3}, padded, Dtype::bf16);
}

void add_products(std::vector<Named>& all) {
  const auto add = adder_to(all);
  add("matmul", [](Net& n) { return n.add(OpKind::MatMul, {n.x({2, 9, 30}), n.x({30, 40})}); });
  add("gemm_of_transposed", [](Net& n) {
    return n.add(OpKind::Gemm, {n.x({19, 30}), n.x({12, 30}), n.x({12})}, {{"transB", int64_t{1}}});
  });
}

std::vector<Named> nets() {
  std::vector<Named> all;
  add_pointwise_and_moves(all);
  add_reductions(all);
  add_triangles(all);
  add_prefixes(all);
  add_moves_of_many_axes(all);
  add_convolutions(all);
  add_products(all);
  return all;
}

std::optional<KernelConfig> random_schedule(const Family& family, Random& random) {
  const Space space = family.space();
  const auto offers = [&](const std::string& name) {
    return std::ranges::count(space.fields, name, &Field::name) > 0;
  };
  for (int attempt = 0; attempt < 400; ++attempt) {
    KernelConfig schedule(family.type());
    for (const Field& field : space.fields)
      schedule.set(field.number, field.values[random.below(field.values.size())]);
    if (attempt % 2 == 0 && offers("blocked_product"))
      test::set_field(schedule, "blocked_product", 1);
    if (attempt % 2 == 0 && offers("ctas_per_scan"))
      test::set_field(schedule, "ctas_per_scan", 1 << (1 + random.below(2)));
    if (family.legal(schedule)) return schedule;
  }
  return std::nullopt;
}

// Normal numbers, and indices below 11.
std::vector<std::vector<std::byte>> inputs_of(const graph::Graph& graph) {
  auto inputs = test::random_inputs(graph, 1);
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const auto& tensor = graph.tensor(graph.inputs[i]); tensor.dtype == Dtype::i64)
      for (int64_t e = 0; e < graph::element_count(tensor.shape); ++e)
        store_from_double(tensor.dtype, inputs[i].data(), static_cast<size_t>(e),
                          static_cast<double>(e * 7 % 11 - (e % 2 ? 11 : 0)));  // from either end
  return inputs;
}

// Long rows, of one sign and of large values among small ones: within the fp32 track's bound
// however the row is cut.
TEST(Direct, PrefixesOfLongRowsKeepWhatRoundingLoses) {
  constexpr int64_t kSize = 1 << 15;
  Net n;
  const Region region{n.with({n.add(OpKind::CumSum, {n.x({3, kSize}), n.ints({1})})}), Track::fp32};
  auto inputs = test::random_inputs(region.graph, 5);
  for (size_t i = 0; i < 3 * kSize; ++i) {
    const double value = load_as_double(Dtype::f32, inputs[0].data(), i);
    const double offset[] = {0, 1000 + value, i % kSize < 64 ? 3e6 : 0.1 + 1e-3 * value};
    store_from_double(Dtype::f32, inputs[0].data(), i, offset[i / kSize] + (i < kSize ? value : 0));
  }
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate_magnitude_rows(region.graph, views, 0, 0, 3, 1);
  ASSERT_TRUE(want) << describe(want.error());
  for (const std::string target : {"cpu", "sm_90a"})
    for (const int64_t x : {16, 512}) {
      const FamilyPtr family = direct_family(region, *target::capabilities_of(target));
      const KernelConfig schedule = DirectConfig{.tile_x = x};
      const auto made = family->programs(schedule);
      ASSERT_TRUE(made) << describe(made.error());
      std::vector<std::byte> output(3 * kSize * 4);
      const auto status = tile::interpret(made->programs[0], {{"X0", inputs[0]}, {"Y0", output}});
      ASSERT_TRUE(status) << describe(status.error());
      for (size_t row = 0; row < 3; ++row) {
        double error = 0;
        double size = 0;
        double magnitude = 0;
        for (size_t i = row * kSize; i < (row + 1) * kSize; ++i) {
          error += std::pow(load_as_double(Dtype::f32, output.data(), i) - want->value[i], 2);
          size += std::pow(want->value[i], 2);
          magnitude += std::pow(want->magnitude[i], 2);
        }
        EXPECT_LT(std::sqrt(error / size),
                  0x1p-24 * std::max(8.0, 0.6 * std::sqrt(magnitude / size)))
            << "row " << row << ", tiles of " << x << " on " << target;
      }
    }
}

TEST(Direct, PrefixesThatOverflowStayInfinite) {
  constexpr size_t kSize = 2048;
  Net n;
  const Region region{n.with({n.add(OpKind::CumSum, {n.x({1, kSize}), n.ints({1})})}), Track::fp32};
  std::vector<float> x(kSize, 0x1p118f);
  std::vector<float> y(kSize);
  for (const std::string target : {"cpu", "sm_90a"}) {
    const KernelConfig schedule = DirectConfig{.tile_x = 64};
    const auto made = direct_family(region, *target::capabilities_of(target))->programs(schedule);
    ASSERT_TRUE(made) << describe(made.error());
    const auto status =
        tile::interpret(made->programs[0], {{"X0", std::as_writable_bytes(std::span(x))},
                                            {"Y0", std::as_writable_bytes(std::span(y))}});
    ASSERT_TRUE(status) << describe(status.error());
    EXPECT_EQ(y[1022], 1023 * 0x1p118f) << target;
    for (size_t i = 1023; i < kSize; ++i)
      ASSERT_EQ(y[i], HUGE_VALF) << target << " " << i;
  }
}

TEST(Direct, TilesGoOnOutsideShortAxesAndThoseThatAreReadBackwards) {
  Net n;
  const auto turned = n.add(OpKind::Transpose, {n.x({64, 48, 2, 2})}, {{"perm", Ints{1, 2, 0, 3}}});
  const Region region{n.with({n.slice(turned, 3, -1, -1000, -1)}), Track::fp32};
  const auto family = direct_family(region, *target::capabilities_of("sm_90a"));
  const KernelConfig schedule = DirectConfig{.tile_x = 128, .warps = 2};
  const auto legal = family->legal(schedule);
  EXPECT_TRUE(legal) << describe(legal.error());
  const auto made = family->programs(schedule);
  ASSERT_TRUE(made) << describe(made.error());
  EXPECT_EQ(made->programs[0].grid[0], 64 * 2);  // both of the second axis, and all of the first
}

TEST(Direct, CoversNoScansAlongTwoAxes) {
  Net n;
  const auto once = n.add(OpKind::CumSum, {n.x({6, 8}), n.ints({0})});
  const Region region{n.with({n.add(OpKind::CumSum, {once, n.ints({1})})}), Track::fp32};
  for (const std::string target : {"cpu", "sm_90a"})
    EXPECT_EQ(direct_family(region, *target::capabilities_of(target)), nullptr);
}

// The input of that name, or else the output.
void* memory_of(const std::string& name, const graph::Graph& graph,
                std::vector<std::vector<std::byte>>& inputs, std::vector<std::byte>& output) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (graph.tensor(graph.inputs[i]).name == name) return inputs[i].data();
  return output.data();
}

TEST(Direct, OnACpuAgreesWithTheReference) {
  const auto machine = *target::capabilities_of("cpu");

  struct Trial {
    Region region;
    KernelConfig schedule;
    Family::Programs made;
    std::vector<Kernel> kernels;
  };

  std::vector<Trial> trials;
  CpuLibrary library;
  Random random(1, "direct");
  for (const Named& net : nets())
    for (int i = 0; i < 4; ++i) {
      Trial trial{{net.graph, Track::fp32}, {}, {}, {}};
      const FamilyPtr family = direct_family(trial.region, machine);
      ASSERT_TRUE(family) << net.name;
      const auto schedule = random_schedule(*family, random);
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
    auto inputs = inputs_of(trial.region.graph);
    const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
    const auto want = graph::evaluate(trial.region.graph, views, 1);
    ASSERT_TRUE(want) << describe(want.error());
    const auto& tensor = trial.region.graph.tensor(trial.region.graph.outputs[0]);
    std::vector<std::byte> output(static_cast<size_t>(graph::byte_count(tensor)), std::byte{0xff});
    for (size_t k = 0; k < trial.kernels.size(); ++k) {
      std::vector<void*> pointers;
      for (const Argument& arg : trial.kernels[k].args) {
        const std::string& name = trial.made.buffers[k].at(arg.buffer);
        pointers.push_back(memory_of(name, trial.region.graph, inputs, output));
      }
      library.run(trial.kernels[k], pointers);
    }
    EXPECT_LT(test::error_of((*want)[0], tensor.dtype, output), test::allowed(tensor.dtype))
        << trial.kernels[0].name << ": " << trial.schedule.text() << "\n"
        << tile::print(trial.made.programs[0]);
  }
}

class DirectEmulated : public testing::TestWithParam<Named> {};

TEST_P(DirectEmulated, AgreesWithFp64AndHasNoHazard) {
  Random random(2, GetParam().name);
  for (const std::string target : {"sm_80", "sm_90a"}) {
    const auto capabilities = *target::capabilities_of(target);
    const Region region{GetParam().graph, Track::fp32};
    const auto schedule = random_schedule(*direct_family(region, capabilities), random);
    ASSERT_TRUE(schedule);
    const auto list = build(region, *schedule, capabilities);
    ASSERT_TRUE(list) << schedule->text() << describe(list.error());
    auto inputs = inputs_of(region.graph);
    runtime::EmulatedBuffers buffers;
    for (size_t i = 0; i < inputs.size(); ++i)
      buffers[list->inputs[i].name] = inputs[i];
    std::vector<std::byte> output(static_cast<size_t>(list->outputs[0].bytes()), std::byte{0xff});
    buffers[list->outputs[0].name] = output;
    const auto done = runtime::emulate(*list, buffers);
    ASSERT_TRUE(done) << schedule->text() << describe(done.error()) << list->kernels[0].source;
    const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
    const auto want = graph::evaluate(region.graph, views, 1);
    ASSERT_TRUE(want) << describe(want.error());
    EXPECT_LT(test::error_of((*want)[0], list->outputs[0].dtype, output),
              test::allowed(list->outputs[0].dtype))
        << schedule->text() << "\n"
        << list->kernels[0].source;
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, DirectEmulated, testing::ValuesIn(nets()),
                         [](const auto& one) { return one.param.name; });

TEST(DirectEmulated8Bits, AreDequantizedInBlocksWhereTheTargetConvertsThem) {
  Net n;
  const auto y = n.add(OpKind::DequantizeLinear, {n.x({12, 40}, Dtype::e4m3), n.x({12, 5})},
                       {{"axis", int64_t{1}}, {"block_size", int64_t{8}}});
  const Region region{n.with({y}), Track::fp32};
  EXPECT_FALSE(direct_family(region, *target::capabilities_of("sm_80")));
  EXPECT_TRUE(direct_family(region, *target::capabilities_of("cpu")));
  Random random(4, "eight bits");
  for (const std::string target : {"sm_89", "sm_90a"}) {
    const auto capabilities = *target::capabilities_of(target);
    const FamilyPtr family = direct_family(region, capabilities);
    ASSERT_TRUE(family);
    const auto schedule = random_schedule(*family, random);
    ASSERT_TRUE(schedule);
    const auto list = build(region, *schedule, capabilities);
    ASSERT_TRUE(list) << schedule->text() << describe(list.error());
    auto inputs = inputs_of(region.graph);
    const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
    const auto want = graph::evaluate(region.graph, views, 1);
    ASSERT_TRUE(want) << describe(want.error());
    std::vector<std::byte> output(static_cast<size_t>(list->outputs[0].bytes()), std::byte{0xff});
    runtime::EmulatedBuffers buffers{{list->outputs[0].name, output}};
    for (size_t i = 0; i < inputs.size(); ++i)
      buffers[list->inputs[i].name] = inputs[i];
    const auto done = runtime::emulate(*list, buffers);
    ASSERT_TRUE(done) << describe(done.error());
    EXPECT_LT(test::error_of((*want)[0], Dtype::f32, output), test::allowed(Dtype::f32));
  }
}
}  // namespace
}  // namespace warploom::kernels
