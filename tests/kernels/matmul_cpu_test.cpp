// Products on a CPU: kernels of matmul_cpu, with the programs that pack their operands, against the
// FP64 reference and the interpreter.
#include <gtest/gtest.h>
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
#include "base/casts.h"
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
#include "kernels/space_walk.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/program.h"
#include "tile/verify.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using Bytes = std::vector<std::byte>;

target::Capabilities machine(int vector_bytes = 0) {
  auto capabilities = *target::capabilities_of("cpu");
  if (vector_bytes > 0 && vector_bytes < capabilities.vector_bytes) {
    capabilities.vector_bytes = vector_bytes;
    capabilities.registers = 16;
  }
  capabilities.num_sms = 4;
  capabilities.has_bf16_dot = true;  // else the device interface computes the same
  return capabilities;
}

// How the operands of a product lie, and what follows it.
struct Form {
  bool transposed_a = false;
  bool transposed_b = false;
  int behind = 0;  // 1: a bias a column, 2: one a row and Gelu, 3: a residual as well
  Dtype dtype = Dtype::f32;
};

graph::Graph matmul(int64_t m, int64_t n, int64_t k, const Form& form = {}) {
  graph::Builder b("matmul");
  const Dtype dtype = form.dtype;
  const auto x = b.input("x", dtype, form.transposed_a ? graph::Shape{k, m} : graph::Shape{m, k});
  const auto w = b.input("w", dtype, form.transposed_b ? graph::Shape{n, k} : graph::Shape{k, n});
  graph::TensorId y =
      b.add(OpKind::Gemm, {x, w},
            {{"transA", int64_t{form.transposed_a}}, {"transB", int64_t{form.transposed_b}}});
  if (form.behind > 0) {
    const graph::Shape shape = form.behind == 1 ? graph::Shape{n} : graph::Shape{m, 1};
    y = b.add(OpKind::Add, {y, b.input("bias", dtype, shape)});
  }
  if (form.behind > 1) y = b.add(OpKind::Gelu, {y}, {{"approximate", std::string("none")}});
  if (form.behind > 2) y = b.add(OpKind::Mul, {y, b.input("residual", dtype, {m, n})});
  b.output(y);
  return *graph::decompose(*b.finish());
}

graph::Graph batched(const graph::Shape& a, const graph::Shape& b_shape, Dtype dtype = Dtype::f32) {
  graph::Builder b("batched");
  const auto x = b.input("x", dtype, a);
  b.output(b.add(OpKind::MatMul, {x, b.input("w", dtype, b_shape)}));
  return *b.finish();
}

graph::Graph with_reduced_rows(int64_t m, int64_t n, int64_t k, bool norm) {
  graph::Builder b("reduced");
  const auto x = b.input("x", Dtype::f32, {m, k});
  auto y = b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {k, n})});
  y = b.add(OpKind::Add, {y, b.input("bias", Dtype::f32, {n})});
  if (norm)
    y = b.add(OpKind::LayerNormalization,
              {y, b.input("scale", Dtype::f32, {n}), b.input("shift", Dtype::f32, {n})});
  else
    y = b.add(OpKind::Softmax, {y}, {{"axis", int64_t{-1}}});
  b.output(y);
  return *graph::decompose(*b.finish());
}

// A region under one config: its programs, their kernels, and the buffers by name.
struct Trial {
  Region region;
  KernelConfig config;
  Family::Programs made;
  std::vector<Kernel> kernels;
  std::map<std::string, Bytes> buffers;

  Trial(graph::Graph graph, const KernelConfig& chosen, const target::Capabilities& capabilities,
        int number, Track track = Track::fp32)
      : region(std::move(graph), track), config(chosen) {
    const FamilyPtr family = matmul_cpu_family(region, capabilities);
    auto programs = family->programs(config);
    EXPECT_TRUE(programs) << config.text();
    made = *std::move(programs);
    for (tile::Program& program : made.programs) {
      program.name += "_" + std::to_string(number);
      const auto valid = tile::verify(program);
      EXPECT_TRUE(valid) << config.text() << (valid ? "" : describe(valid.error()));
      const auto kernel = codegen::emit_cpu(program, capabilities);
      EXPECT_TRUE(kernel) << config.text() << (kernel ? "" : describe(kernel.error()));
      if (kernel) kernels.push_back(*kernel);
    }
    Random random(as_size(number) + 1, "matmul_cpu");
    for (const auto id : region.graph.inputs) {
      const auto& tensor = region.graph.tensor(id);
      Bytes& own = buffers[tensor.name];
      own.resize(as_size(graph::byte_count(tensor)));
      for (int64_t i = 0; i < graph::element_count(tensor.shape); ++i)
        store_from_double(tensor.dtype, own.data(), as_size(i), kSmall * random.normal());
    }
  }

  // Sums of such numbers are small: what a sum loses, an exponential makes no larger.
  static constexpr double kSmall = 0.25;

  const graph::Tensor& output() const { return region.graph.tensor(region.graph.outputs[0]); }

  void poison() {
    buffers[output().name].assign(as_size(graph::byte_count(output())), std::byte{0xff});
    for (const BufferSpec& each : made.workspaces)
      buffers[each.name].assign(as_size(each.shape[0] * 4), std::byte{0xff});
  }

  void call(CpuLibrary& library) {
    poison();
    for (const Kernel& kernel : kernels) {
      std::vector<void*> pointers;
      const auto& names = made.buffers[as_size(&kernel - kernels.data())];
      for (const auto& arg : kernel.args)
        pointers.push_back(buffers.at(names.at(arg.buffer)).data());
      library.run(kernel, pointers);
    }
  }

  void run(CpuLibrary& library) {
    call(library);
    compare("the kernel");
  }

  void interpret() {
    poison();
    for (size_t i = 0; i < made.programs.size(); ++i) {
      tile::Buffers given;
      for (const auto& [name, buffer] : made.buffers[i])
        given[name] = buffers.at(buffer);
      const auto status = tile::interpret(made.programs[i], given);
      ASSERT_TRUE(status) << config.text() << describe(status.error());
    }
    compare("the interpreter");
  }

  void compare(const std::string& who) {
    std::vector<graph::Bytes> views;
    for (const auto id : region.graph.inputs)
      views.emplace_back(buffers.at(region.graph.tensor(id).name));
    const auto want = graph::evaluate(region.graph, views, 1);
    ASSERT_TRUE(want) << describe(want.error());
    const double error = test::error_of((*want)[0], output().dtype, buffers.at(output().name));
    const bool rounds = region.track == Track::bf16;  // operands
    EXPECT_LT(error, test::allowed(rounds ? Dtype::bf16 : output().dtype))
        << who << " of " << config.text() << "\n"
        << to_text(region.graph);
  }
};

// Regions, each under configs at random: of every way to pack where it is legal.
class Trials {
 public:
  explicit Trials(int vector_bytes) : capabilities_(machine(vector_bytes)) {}

  void add(const graph::Graph& graph) {
    const Region region(graph, Track::fp32);
    const FamilyPtr family = matmul_cpu_family(region, capabilities_);
    ASSERT_TRUE(family) << to_text(graph);
    for (const PackedBy a : {PackedBy::nobody, PackedBy::program})
      for (const PackedBy b : {PackedBy::nobody, PackedBy::task, PackedBy::program})
        try_config(graph, *family, CpuInstruction::fma, a, b);
  }

  // By dot products: every operand as it may be packed for them.
  void add_pairs(const graph::Graph& graph, Track track = Track::bf16) {
    const Region region(graph, track);
    const FamilyPtr family = matmul_cpu_family(region, capabilities_);
    ASSERT_TRUE(family) << to_text(graph);
    const size_t before = trials_.size();
    for (const PackedBy a : {PackedBy::nobody, PackedBy::program})
      try_config(graph, *family, CpuInstruction::dot, a, PackedBy::program, track);
    EXPECT_GT(trials_.size(), before) << to_text(graph);
  }

  size_t run(const std::vector<std::string>& flags = {}) {
    CpuLibrary library;
    for (auto& trial : trials_)
      for (const Kernel& kernel : trial->kernels)
        library.add(kernel);
    if (!library.compile(flags)) return 0;
    for (auto& trial : trials_) {
      trial->run(library);
      if (graph::element_count(trial->output().shape) < 800) trial->interpret();
    }
    return trials_.size();
  }

 private:
  void try_config(const graph::Graph& graph, const Family& family, CpuInstruction instruction,
                  PackedBy a, PackedBy b, Track track = Track::fp32) {
    const std::map<std::string, int64_t> fixed = {
        {"instruction", as_int(instruction)}, {"pack_a", as_int(a)}, {"pack_b", as_int(b)}};
    const auto config = test::random_schedule(family, random_, fixed, 200);
    if (!config) return;
    const int number = as_int(trials_.size());
    trials_.push_back(std::make_unique<Trial>(graph, *config, capabilities_, number, track));
  }

  target::Capabilities capabilities_;
  Random random_{3, "matmul_cpu"};
  std::vector<std::unique_ptr<Trial>> trials_;
};

// tanh(x · w)
graph::Graph saturating(int64_t m, int64_t n, int64_t k) {
  graph::Builder b("saturating");
  const auto x = b.input("x", Dtype::f32, {m, k});
  const auto product = b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {k, n})});
  b.output(b.add(OpKind::Tanh, {product}));
  return *graph::decompose(*b.finish());
}

void add_matmuls(Trials& trials) {
  for (int i = 0; i < 4; ++i) {
    Form form{(i & 1) != 0, (i & 2) != 0, i};
    trials.add(matmul(37, 83, 300, form));
    form.dtype = i < 2 ? Dtype::bf16 : Dtype::f16;
    trials.add(matmul(20, 48, 40, form));
  }
}

TEST(MatmulCpu, AgreesWithTheReference) {
  Trials trials(0);
  add_matmuls(trials);
  trials.add(matmul(1, 700, 90, {.behind = 1}));
  trials.add(matmul(5, 530, 600, {.behind = 3}));
  trials.add(matmul(9, 5, 1300));
  trials.add(batched({3, 10, 20}, {20, 30}));
  trials.add(batched({3, 10, 20}, {3, 20, 30}));
  trials.add(batched({2, 1, 5, 8}, {3, 8, 6}));
  trials.add(saturating(20, 70, 150));
  trials.add(with_reduced_rows(70, 90, 40, true));
  trials.add(with_reduced_rows(65, 33, 140, false));
  trials.add(saturating(20, 70, 70));
  EXPECT_GE(trials.run(), 50u);
}

TEST(MatmulCpu, AgreesOnNarrowerVectors) {
  if (machine().vector_bytes < 32) GTEST_SKIP() << "this machine has no AVX2";
  Trials trials(32);
  add_matmuls(trials);
  EXPECT_GE(trials.run({"-mavx2", "-mfma", "-mf16c"}), 30u);
}

// Odd numbers of terms, rows and columns, each orientation, batches, what follows, whole rows.
void add_pairs(Trials& trials) {
  for (int i = 0; i < 4; ++i) {
    const Form form{(i & 1) != 0, (i & 2) != 0, i, Dtype::bf16};
    trials.add_pairs(matmul(37, 83, 300, form));
    trials.add_pairs(matmul(21, 50, 41, form));
  }
  trials.add_pairs(matmul(40, 70, 130, {.behind = 1}));
  trials.add_pairs(matmul(1, 700, 90, {.dtype = Dtype::bf16}));
  trials.add_pairs(matmul(9, 5, 1301, {.dtype = Dtype::bf16}));
  trials.add_pairs(batched({3, 10, 20}, {20, 30}, Dtype::bf16));
  trials.add_pairs(batched({2, 1, 5, 9}, {3, 9, 6}, Dtype::bf16));
  trials.add_pairs(with_reduced_rows(70, 90, 40, true));
}

TEST(MatmulCpu, DotProductsAgreeWithTheReference) {
  Trials trials(0);
  add_pairs(trials);
  EXPECT_GE(trials.run(), 14u);
}

TEST(MatmulCpu, DotProductsAgreeOnNarrowerVectors) {
  if (machine().vector_bytes < 32) GTEST_SKIP() << "this machine has no AVX2";
  Trials trials(32);
  add_pairs(trials);
  EXPECT_GE(trials.run({"-mavx2", "-mfma", "-mf16c"}), 14u);
}

TEST(MatmulCpu, DotProductsWantAProcessorThatHasThem) {
  const Region region(matmul(64, 64, 64, {.dtype = Dtype::bf16}), Track::bf16);
  const MatmulCpuConfig config{.tile_m = 6,
                               .tile_n = 64,
                               .block_k = 64,
                               .instruction = CpuInstruction::dot,
                               .pack_b = PackedBy::program};
  target::Capabilities capabilities = machine();
  EXPECT_TRUE(matmul_cpu_family(region, capabilities)->legal(config));
  capabilities.has_bf16_dot = false;
  const auto status = matmul_cpu_family(region, capabilities)->legal(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kScheduleIllegal);
}

TEST(MatmulCpu, DotProductsAreNotForWhatTheTrackMayNotRound) {
  const MatmulCpuConfig config{.tile_m = 6,
                               .tile_n = 64,
                               .block_k = 64,
                               .instruction = CpuInstruction::dot,
                               .pack_a = PackedBy::program,
                               .pack_b = PackedBy::program};
  const graph::Graph graph = matmul(64, 64, 64);
  EXPECT_TRUE(matmul_cpu_family(Region(graph, Track::bf16), machine())->legal(config));
  const auto status = matmul_cpu_family(Region(graph, Track::fp32), machine())->legal(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kScheduleIllegal);
}

TEST(MatmulCpu, GuessesDotProductsBeforeMultiplyAdds) {
  const Region region(matmul(512, 512, 512, {.dtype = Dtype::bf16}), Track::bf16);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  MatmulCpuConfig config{.tile_m = 6, .tile_n = 64, .block_k = 256};
  const double by_fma = family->guess(config);
  config.instruction = CpuInstruction::dot;
  config.pack_b = PackedBy::program;
  EXPECT_LT(family->guess(config), by_fma);
}

// Stores an infinity in a row of x and a NaN in a column of w, and sees where they come.
void expect_special_values_apart(const MatmulCpuConfig& config, Track track) {
  constexpr int64_t m = 13;
  constexpr int64_t n = 35;
  constexpr int64_t k = 21;
  Trial trial(matmul(m, n, k), config, machine(), as_int(track), track);
  auto* x = reinterpret_cast<float*>(trial.buffers.at("x").data());
  auto* w = reinterpret_cast<float*>(trial.buffers.at("w").data());
  x[12 * k + 20] = HUGE_VALF;
  w[20 * n + 34] = NAN;
  CpuLibrary library;
  for (const Kernel& kernel : trial.kernels)
    library.add(kernel);
  ASSERT_TRUE(library.compile());
  trial.call(library);
  const auto* y = reinterpret_cast<const float*>(trial.buffers.at(trial.output().name).data());
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float value = y[i * n + j];
      EXPECT_EQ(std::isnan(value), j == 34) << i << ", " << j;
      EXPECT_EQ(std::isinf(value), i == 12 && j != 34) << i << ", " << j;
    }
}

// An infinity reaches its row alone, and NaN its column: nothing is multiplied by what is padded.
TEST(MatmulCpu, KeepsInfinitiesAndNanToTheirRowsAndColumns) {
  MatmulCpuConfig config{.tile_m = 6,
                         .tile_n = 32,
                         .block_k = 11,
                         .pack_a = PackedBy::program,
                         .pack_b = PackedBy::program};
  expect_special_values_apart(config, Track::fp32);
  config.block_k = 12;
  config.instruction = CpuInstruction::dot;
  expect_special_values_apart(config, Track::bf16);
}

TEST(MatmulCpu, LongSumsOfOneSignStayWithinTheTrack) {
  constexpr int64_t k = 16384;
  const auto capabilities = machine();
  for (const int64_t block : {256, 512}) {
    const MatmulCpuConfig config{.tile_m = 4, .tile_n = 16, .block_k = block};
    Trial trial(matmul(4, 16, k), config, capabilities, as_int(block));
    for (const auto* name : {"x", "w"}) {
      auto* own = reinterpret_cast<float*>(trial.buffers.at(name).data());
      for (size_t i = 0; i < trial.buffers.at(name).size() / 4; ++i)
        own[i] = std::abs(own[i]);
    }
    CpuLibrary library;
    for (const Kernel& kernel : trial.kernels)
      library.add(kernel);
    ASSERT_TRUE(library.compile());
    trial.call(library);
    std::vector<graph::Bytes> views = {trial.buffers.at("x"), trial.buffers.at("w")};
    const auto want = graph::evaluate(trial.region.graph, views, 1);
    double wrong = 0;
    double all = 0;
    for (size_t i = 0; i < (*want)[0].size(); ++i) {
      const double meant = (*want)[0][i];
      wrong += std::pow(
          load_as_double(Dtype::f32, trial.buffers.at(trial.output().name).data(), i) - meant, 2);
      all += meant * meant;
    }
    EXPECT_LT(std::sqrt(wrong / all), 4.8e-7) << config.block_k;
  }
}

TEST(MatmulCpu, SumsBehindWhichTheResultSaturatesAreMadeInParts) {
  const Region region(saturating(40, 90, 300), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  MatmulCpuConfig config{.tile_m = 4, .tile_n = 32, .block_k = 300, .step_k = 32};
  const double in_parts = family->guess(config);
  EXPECT_TRUE(family->legal(config));
  config.step_k = 0;
  EXPECT_LT(in_parts, family->guess(config));
  const FamilyPtr plain = matmul_cpu_family(Region(matmul(40, 90, 300), Track::fp32), machine());
  config.step_k = 32;
  EXPECT_FALSE(plain->legal(config));
}

TEST(MatmulCpu, SaysWhatATileThatRegistersDoNotHoldLacks) {
  const Region region(matmul(64, 64, 64), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  const auto status = family->legal(MatmulCpuConfig{.tile_m = 32, .tile_n = 64, .block_k = 64});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kScheduleIllegal);
}

TEST(MatmulCpu, SaysThatPanelsBeyondTheCacheExceedTheResources) {
  const Region region(matmul(65536, 64, 1024), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  const auto status = family->legal(MatmulCpuConfig{.tile_m = 6, .tile_n = 64, .block_k = 256});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kResourceLimit);
}

// Several products, as attention's, and rows of which few fit: fusion counts on the family here.
TEST(MatmulCpu, HasAConfigWhereverRowsOfTheResultAreReduced) {
  graph::Builder b("scores");
  const auto q = b.input("q", Dtype::f32, {12, 512, 64});
  const auto k = b.input("k", Dtype::f32, {12, 64, 512});
  const auto scores = b.add(OpKind::MatMul, {q, k});
  b.output(b.add(OpKind::Softmax, {scores}, {{"axis", int64_t{-1}}}));
  const graph::Graph many = *graph::decompose(*b.finish());
  for (const graph::Graph& graph : {many, with_reduced_rows(8192, 4096, 64, false)})
    for (const int cores : {2, 4, 16}) {
      target::Capabilities capabilities = machine();
      capabilities.num_sms = cores;
      const FamilyPtr family = matmul_cpu_family(Region(graph, Track::fp32), capabilities);
      ASSERT_TRUE(family);
      bool is_found = false;
      SpaceWalk(*family).all([&](const KernelConfig&) {
        is_found = true;
        return false;
      });
      EXPECT_TRUE(is_found) << cores << " cores";
    }
}

TEST(MatmulCpu, LeavesWindowsAndTrianglesToLoops) {
  graph::Builder b("conv");
  const auto x = b.input("x", Dtype::f32, {1, 8, 12, 12});
  b.output(b.add(OpKind::Conv, {x, b.input("w", Dtype::f32, {8, 8, 3, 3})},
                 {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}));
  const Region region(*graph::decompose(*b.finish()), Track::fp32);
  EXPECT_FALSE(matmul_cpu_family(region, machine()));
}

TEST(MatmulCpu, GuessesThatRowsAPageApartArePacked) {
  const Region region(matmul(1024, 1024, 1024), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  MatmulCpuConfig config{.tile_m = 6, .tile_n = 64, .block_k = 256};
  const double in_place = family->guess(config);
  config.pack_b = PackedBy::task;
  EXPECT_LT(family->guess(config), in_place);
}

TEST(MatmulCpu, GuessesATileOfManyRowsBeforeOneOfFew) {
  const Region region(matmul(512, 512, 512), Track::fp32);
  const FamilyPtr family = matmul_cpu_family(region, machine());
  MatmulCpuConfig config{.tile_m = 6, .tile_n = 64, .block_k = 256, .pack_b = PackedBy::task};
  const double large = family->guess(config);
  config.tile_m = 2;
  EXPECT_LT(large, family->guess(config));
}
}  // namespace
}  // namespace warploom::kernels
