// Kernels of the CPU families against the FP64 reference, over shapes, orientations, types and
// epilogues.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "../codegen/cpu_run.h"
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/cpu_run.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;

const target::Capabilities& machine() {
  static const auto capabilities = *target::capabilities_of("cpu");
  return capabilities;
}

// A region with one schedule of its space, its programs and kernels, and random inputs.
struct Trial {
  Region region;
  KernelConfig schedule;
  Family::Programs programs;
  std::vector<Kernel> kernels;
  std::vector<std::vector<std::byte>> inputs;
  std::map<std::string, std::vector<std::byte>> workspaces;

  Trial(graph::Graph graph, FamilyPtr (*bind)(const Region&, const target::Capabilities&),
        Random& random, int number)
      : region(std::move(graph), Track::fp32) {
    const FamilyPtr family = bind(region, machine());
    EXPECT_TRUE(family) << to_text(region.graph);
    draw_schedule(*family, random);
    auto made = family->programs(schedule);
    EXPECT_TRUE(made.has_value()) << schedule.text() << (made ? "" : describe(made.error()));
    if (!made) return;
    programs = std::move(*made);
    emit(number);
    draw_inputs(random);
  }

  void draw_schedule(const Family& family, Random& random) {
    const Space space = family.space();
    schedule = KernelConfig(family.type());
    for (int attempt = 0; attempt < 100; ++attempt) {
      for (const Field& field : space.fields)
        schedule.set(field.number, field.values[random.below(field.values.size())]);
      if (family.legal(schedule)) break;
    }
  }

  void emit(int number) {
    for (tile::Program& program : programs.programs) {
      program.name += "_" + std::to_string(number);
      const auto valid = tile::verify(program);
      EXPECT_TRUE(valid.has_value()) << schedule.text() << (valid ? "" : describe(valid.error()));
      const auto emitted = codegen::emit_cpu(program, machine());
      EXPECT_TRUE(emitted.has_value())
          << schedule.text() << (emitted ? "" : describe(emitted.error()));
      if (emitted) kernels.push_back(*emitted);
    }
  }

  void draw_inputs(Random& random) {
    for (const auto id : region.graph.inputs) {
      const auto& tensor = region.graph.tensor(id);
      inputs.emplace_back(static_cast<size_t>(graph::byte_count(tensor)));
      for (int64_t i = 0; i < graph::element_count(tensor.shape); ++i)
        store_from_double(tensor.dtype, inputs.back().data(), static_cast<size_t>(i),
                          random.normal());
    }
  }

  // Of a program, by its name there.
  std::vector<std::byte>& buffer(size_t program, const std::string& name,
                                 std::vector<std::byte>& output) {
    const std::string& wanted = programs.buffers[program].at(name);
    for (size_t i = 0; i < inputs.size(); ++i)
      if (region.graph.tensor(region.graph.inputs[i]).name == wanted) return inputs[i];
    const auto workspace = workspaces.find(wanted);
    return workspace == workspaces.end() ? output : workspace->second;
  }

  void poison() {
    for (const BufferSpec& each : programs.workspaces)
      workspaces[each.name].assign(static_cast<size_t>(each.shape[0] * 4), std::byte{0xff});
  }

  void compare(const std::vector<std::byte>& output, const std::string& who) {
    std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
    const auto want = graph::evaluate(region.graph, views, 1);
    ASSERT_TRUE(want.has_value()) << describe(want.error());
    const Dtype dtype = region.graph.tensor(region.graph.outputs[0]).dtype;
    double worst = 0;
    double largest = 1e-30;
    for (size_t i = 0; i < (*want)[0].size(); ++i) {
      const double have = load_as_double(dtype, output.data(), i);
      const double meant = (*want)[0][i];
      worst = std::max(worst, std::isnan(have) ? HUGE_VAL : std::abs(have - meant));
      largest = std::max(largest, std::abs(meant));
    }
    EXPECT_LT(worst / largest, dtype == Dtype::f32 ? 3e-6 : 1e-2)
        << who << " of " << schedule.text() << "\n"
        << to_text(region.graph);
  }

  void run(CpuLibrary& library, bool interpreted) {
    const auto bytes =
        static_cast<size_t>(graph::byte_count(region.graph.tensor(region.graph.outputs[0])));
    std::vector<std::byte> output(bytes, std::byte{0xff});
    poison();
    for (size_t i = 0; i < kernels.size(); ++i) {
      std::vector<void*> pointers;
      for (const auto& arg : kernels[i].args)
        pointers.push_back(buffer(i, arg.buffer, output).data());
      library.run(kernels[i], pointers);
    }
    compare(output, "the kernel");
    if (interpreted) interpret(bytes);
  }

  void interpret(size_t bytes) {
    std::vector<std::byte> meant(bytes, std::byte{0xff});
    poison();
    for (size_t i = 0; i < programs.programs.size(); ++i) {
      tile::Buffers buffers;
      for (const auto& [name, of] : programs.buffers[i])
        buffers[name] = buffer(i, name, meant);
      const auto status = tile::interpret(programs.programs[i], buffers);
      ASSERT_TRUE(status.has_value()) << schedule.text() << describe(status.error());
    }
    compare(meant, "the interpreter");
  }
};

graph::Graph matmul(int64_t m, int64_t n, int64_t k, bool ta, bool tb, int epilogue,
                    Dtype dtype = Dtype::f32) {
  graph::Builder b("matmul");
  const auto x = b.input("x", dtype, ta ? graph::Shape{k, m} : graph::Shape{m, k});
  const auto w = b.input("w", dtype, tb ? graph::Shape{n, k} : graph::Shape{k, n});
  graph::TensorId y =
      b.add(OpKind::Gemm, {x, w},
            {{"transA", int64_t{ta}}, {"transB", int64_t{tb}}, {"alpha", 1.0}, {"beta", 1.0}});
  if (epilogue > 0)
    y = b.add(OpKind::Add,
              {y, b.input("bias", dtype, epilogue == 2 ? graph::Shape{m, 1} : graph::Shape{n})});
  if (epilogue > 1) y = b.add(OpKind::Gelu, {y}, {{"approximate", std::string("none")}});
  if (epilogue > 2) y = b.add(OpKind::Mul, {y, b.input("residual", dtype, {m, n})});
  b.output(y);
  return *graph::decompose(*b.finish());
}

graph::Graph batched(const graph::Shape& a, const graph::Shape& w, bool transposed) {
  graph::Builder b("batched");
  const auto x = b.input("x", Dtype::f32, a);
  auto y = b.input("w", Dtype::f32, w);
  std::vector<int64_t> order(w.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = static_cast<int64_t>(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  if (transposed) y = b.add(OpKind::Transpose, {y}, {{"perm", order}});
  b.output(b.add(OpKind::MatMul, {x, y}));
  return *b.finish();
}

graph::Graph softmax(const graph::Shape& shape, int64_t axis, bool log, bool around,
                     Dtype dtype = Dtype::f32) {
  graph::Builder b("softmax");
  auto x = b.input("x", dtype, shape);
  if (around) x = b.add(OpKind::Mul, {x, b.input("scale", dtype, {shape.back()})});
  x = b.add(log ? OpKind::LogSoftmax : OpKind::Softmax, {x}, {{"axis", axis}});
  if (around) x = b.add(OpKind::Relu, {x});
  b.output(x);
  return *graph::decompose(*b.finish());
}

void run_all(std::vector<std::unique_ptr<Trial>>& trials) {
  CpuLibrary library;
  for (auto& trial : trials)
    for (const Kernel& kernel : trial->kernels)
      library.add(kernel);
  if (!library.compile()) return;
  for (auto& trial : trials) {
    const auto& shape = trial->region.graph.tensor(trial->region.graph.outputs[0]).shape;
    trial->run(library, graph::element_count(shape) < 3000);
  }
}

Dtype dtype_of_matmul(int i) {
  if (i == 12) return Dtype::bf16;
  return i == 13 ? Dtype::f16 : Dtype::f32;
}

TEST(CpuFamilies, MatmulsAgreeWithTheReference) {
  Random random(1, "cpu matmul");
  std::vector<std::unique_ptr<Trial>> trials;
  const auto add = [&](graph::Graph graph) {
    trials.push_back(std::make_unique<Trial>(std::move(graph), direct_family, random,
                                             static_cast<int>(trials.size())));
  };
  for (int i = 0; i < 14; ++i) {
    const auto size = [&] { return static_cast<int64_t>(2 + random.below(i % 3 == 0 ? 20 : 150)); };
    add(matmul(size(), size(), size(), (i & 1) != 0, (i & 2) != 0,
               static_cast<int>(random.below(4)), dtype_of_matmul(i)));
  }
  add(matmul(1, 70, 33, false, false, 1));
  add(matmul(1, 70, 33, false, true, 1));
  add(matmul(90, 1, 40, false, false, 2));
  add(matmul(20, 30, 700, false, false, 3));
  add(batched({3, 10, 20}, {20, 30}, false));
  add(batched({3, 10, 20}, {3, 30, 20}, true));
  add(batched({2, 1, 5, 8}, {3, 8, 6}, false));
  add(batched({20}, {2, 20, 17}, false));
  run_all(trials);
}

TEST(CpuFamilies, SoftmaxesAgreeWithTheReference) {
  Random random(2, "cpu softmax");
  std::vector<std::unique_ptr<Trial>> trials;
  const auto add = [&](graph::Graph graph) {
    trials.push_back(std::make_unique<Trial>(std::move(graph), rowwise_cpu_family, random,
                                             static_cast<int>(trials.size())));
  };
  for (int i = 0; i < 10; ++i) {
    const auto size = static_cast<int64_t>(1 + random.below(i % 2 ? 9000 : 300));
    add(softmax({static_cast<int64_t>(1 + random.below(5)), size}, -1, i % 3 == 0, false,
                i == 9 ? Dtype::bf16 : Dtype::f32));
  }
  add(softmax({2, 3, 60}, 2, false, true));
  add(softmax({7, 1200}, -1, true, true));
  add(softmax({100}, 0, false, false));
  add(softmax({2, 40000}, -1, false, false));
  run_all(trials);
}

struct Windows {
  std::vector<int64_t> strides = {1, 1};
  std::vector<int64_t> pads = {0, 0, 0, 0};
  std::vector<int64_t> dilations = {1, 1};
  int64_t group = 1;
};

enum class Behind : uint8_t { nothing, bias, residual, image_scale };

graph::Graph convolution(const graph::Shape& x, const graph::Shape& w, const Windows& windows,
                         Behind behind = Behind::nothing, Dtype dtype = Dtype::f32) {
  graph::Builder b("convolution");
  auto y = b.add(OpKind::Conv, {b.input("x", dtype, x), b.input("w", dtype, w)},
                 {{"strides", windows.strides},
                  {"pads", windows.pads},
                  {"dilations", windows.dilations},
                  {"group", windows.group}});
  const graph::Shape shape = b.finish()->tensor(y).shape;
  if (behind == Behind::bias)
    y = b.add(OpKind::Add, {y, b.input("bias", dtype, {1, shape[1], 1, 1})});
  if (behind == Behind::residual) y = b.add(OpKind::Add, {y, b.input("r", dtype, shape)});
  if (behind == Behind::image_scale)
    y = b.add(OpKind::Mul, {y, b.input("s", dtype, {shape[0], shape[1], 1, 1})});
  if (behind != Behind::nothing) y = b.add(OpKind::Relu, {y});
  b.output(y);
  return *graph::decompose(*b.finish());
}

// Channels last, in and out.
graph::Graph channels_last(const graph::Shape& x, const graph::Shape& w, const Windows& windows) {
  graph::Builder b("channels_last");
  const auto input = b.add(OpKind::Transpose, {b.input("x", Dtype::f32, x)},
                           {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  const auto y = b.add(OpKind::Conv, {input, b.input("w", Dtype::f32, w)},
                       {{"strides", windows.strides},
                        {"pads", windows.pads},
                        {"dilations", windows.dilations},
                        {"group", windows.group}});
  b.output(b.add(OpKind::Transpose, {y}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}}));
  return *graph::decompose(*b.finish());
}

TEST(CpuFamilies, ConvolutionsAgreeWithTheReference) {
  Random random(3, "cpu convolution");
  std::vector<std::unique_ptr<Trial>> trials;
  const auto add = [&](graph::Graph graph) {
    trials.push_back(std::make_unique<Trial>(std::move(graph), conv_cpu_family, random,
                                             static_cast<int>(trials.size())));
  };
  const Windows padded{.pads = {1, 1, 1, 1}};
  for (int i = 0; i < 6; ++i) {
    const auto size = [&](uint64_t most) { return static_cast<int64_t>(2 + random.below(most)); };
    const auto behind = static_cast<Behind>(random.below(4));
    const int64_t channels = size(40);
    add(convolution({size(3), channels, size(12), size(30)}, {size(70), channels, 3, 3}, padded,
                    behind));
  }
  for (const int64_t width : {16, 33, 48})
    add(convolution({1, 8, 5, width}, {36, 8, 3, 3}, padded));
  add(convolution({2, 3, 21, 23}, {32, 3, 7, 7}, {.strides = {2, 2}, .pads = {3, 3, 3, 3}}));
  add(convolution({2, 1, 9, 11}, {17, 1, 3, 3}, padded, Behind::bias));
  add(convolution({1, 20, 13, 13}, {48, 20, 1, 1}, {}, Behind::bias));
  add(convolution({2, 20, 13, 13}, {40, 20, 1, 1}, {.strides = {2, 2}}, Behind::residual));
  add(convolution({1, 8, 15, 15}, {16, 8, 3, 3}, {.dilations = {2, 3}}, Behind::image_scale));
  add(convolution({1, 8, 15, 15}, {16, 8, 3, 3}, {.strides = {2, 1}, .pads = {0, 2, 1, 0}}));
  add(convolution({2, 24, 9, 9}, {36, 8, 3, 3}, {.pads = {1, 1, 1, 1}, .group = 3}));
  add(convolution({2, 16, 10, 12}, {33, 16, 3, 3}, padded, Behind::residual, Dtype::bf16));
  add(channels_last({2, 9, 10, 16}, {24, 16, 3, 3}, padded));
  add(channels_last({2, 9, 10, 16}, {24, 16, 1, 1}, {}));
  run_all(trials);
}

graph::Graph pooled(const graph::Shape& x, const graph::Shape& w, OpKind pool, int64_t side,
                    int64_t stride) {
  graph::Builder b("pooled");
  auto y = b.add(OpKind::Conv, {b.input("x", Dtype::f32, x), b.input("w", Dtype::f32, w)},
                 {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  y = b.add(OpKind::Add, {y, b.input("bias", Dtype::f32, {1, w[0], 1, 1})});
  y = b.add(OpKind::Relu, {y});
  b.output(b.add(pool, {y},
                 {{"kernel_shape", std::vector<int64_t>{side, side}},
                  {"strides", std::vector<int64_t>{stride, stride}}}));
  return *graph::decompose(*b.finish());
}

TEST(CpuFamilies, PooledConvolutionsAgreeWithTheReference) {
  Random random(4, "cpu pools");
  std::vector<std::unique_ptr<Trial>> trials;
  const auto add = [&](graph::Graph graph) {
    trials.push_back(std::make_unique<Trial>(std::move(graph), conv_cpu_family, random,
                                             static_cast<int>(trials.size())));
  };
  add(pooled({2, 12, 16, 20}, {40, 12, 3, 3}, OpKind::MaxPool, 2, 2));
  add(pooled({2, 3, 13, 11}, {20, 3, 3, 3}, OpKind::MaxPool, 3, 3));
  add(pooled({2, 3, 14, 14}, {32, 3, 3, 3}, OpKind::MaxPool, 2, 3));
  add(pooled({1, 3, 14, 14}, {32, 3, 5, 5}, OpKind::MaxPool, 2, 3));
  add(pooled({2, 12, 16, 20}, {33, 12, 1, 1}, OpKind::AveragePool, 2, 2));
  run_all(trials);
}

TEST(CpuFamilies, PoolsWhoseWindowsOverlapAreNotPartOfAConvolution) {
  const Region region(pooled({1, 3, 14, 14}, {32, 3, 3, 3}, OpKind::MaxPool, 3, 2), Track::fp32);
  EXPECT_FALSE(conv_cpu_family(region, machine()));
}

TEST(CpuFamilies, ConvolutionsOfOneChannelEachAreNoProducts) {
  const Region region(convolution({1, 8, 9, 9}, {8, 1, 3, 3}, {.group = 8}), Track::fp32);
  EXPECT_FALSE(conv_cpu_family(region, machine()));
}

Region region_of(graph::Graph graph) {
  return {std::move(graph), Track::fp32};
}

TEST(CpuFamilies, BlocksBeyondTheCacheExceedTheResources) {
  const Region region = region_of(matmul(8192, 8192, 8192, false, false, 0));
  const KernelConfig schedule =
      DirectConfig{.tile_x = 8, .tile_y = 4096, .blocked_product = true, .block_k = 512};
  const auto status = direct_family(region, machine())->legal(schedule);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kResourceLimit);
}
}  // namespace
}  // namespace warploom::kernels
