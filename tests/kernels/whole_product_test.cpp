// Products of whole numbers of 8 bits on a CPU: to the last bit what the reference says, whatever
// their zero points are.
#include "loopnest/whole_product.h"
#include <gtest/gtest.h>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "../codegen/cpu_run.h"
#include "../graph/builder.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "cpu_trial.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "target/capabilities.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using graph::TensorId;
using Bytes = std::vector<std::byte>;

target::Capabilities machine(int vector_bytes = 64) {
  auto capabilities = *target::capabilities_of("cpu");
  if (vector_bytes < capabilities.vector_bytes) {
    capabilities.vector_bytes = vector_bytes;
    capabilities.registers = 16;
  }
  capabilities.num_sms = 4;
  return capabilities;
}

enum class Zero { none, input, lines, constant };  // `lines`: one a row of A, one a column of B

struct Form {
  int64_t m = 1;
  int64_t n = 1;
  int64_t k = 1;
  Dtype a = Dtype::u8;
  Dtype b = Dtype::i8;
  Zero zero_a = Zero::none;
  Zero zero_b = Zero::none;
};

TensorId zero_point(graph::Builder& b, const std::string& name, Dtype dtype, Zero zero,
                    int64_t lines) {
  if (zero == Zero::none) return graph::kAbsent;
  if (zero == Zero::constant) return b.constant(name, dtype, {}, std::array{77.0});
  return b.input(name, dtype, zero == Zero::lines ? graph::Shape{lines} : graph::Shape{});
}

graph::Graph product(const Form& form) {
  graph::Builder b("product");
  const auto x = b.input("x", form.a, {form.m, form.k});
  const auto w = b.input("w", form.b, {form.k, form.n});
  const auto zero_a = zero_point(b, "zero_a", form.a, form.zero_a, form.m);
  const auto zero_b = zero_point(b, "zero_b", form.b, form.zero_b, form.n);
  b.output(b.add(OpKind::MatMulInteger, {x, w, zero_a, zero_b}));
  return *graph::decompose(*b.finish());
}

// x u8 and w i8 with scales and zero points, to u8.
graph::Graph quantized(int64_t m, int64_t n, int64_t k) {
  graph::Builder b("quantized");
  const auto scale = [&](const std::string& name, double value) {
    return b.constant(name, Dtype::f32, {}, std::array{value});
  };
  const auto zero = [&](const std::string& name, Dtype dtype, double value) {
    return b.constant(name, dtype, {}, std::array{value});
  };
  const auto x = b.input("x", Dtype::u8, {m, k});
  const auto w = b.input("w", Dtype::i8, {k, n});
  b.output(b.add(OpKind::QLinearMatMul, {x, scale("x_scale", 0.02), zero("x_zero", Dtype::u8, 128),
                                         w, scale("w_scale", 0.01), zero("w_zero", Dtype::i8, 0),
                                         scale("y_scale", 0.9), zero("y_zero", Dtype::u8, 120)}));
  return *graph::decompose(*b.finish());
}

class Trial {
 public:
  Trial(graph::Graph graph, const KernelConfig& config, const target::Capabilities& capabilities,
        int number)
      : random_(as_size(number) + 1, "whole"),
        trial_(std::move(graph), config, capabilities, number, Track::fp32,
               [this](const graph::Tensor& tensor) {
                 const int64_t least = is_signed(tensor.dtype) ? -128 : 0;
                 return as_double(least + as_int64(random_.below(256)));
               }) {}

  const std::vector<Kernel>& kernels() const { return trial_.kernels; }

  const graph::Tensor& output() const { return trial_.output(); }

  void run(CpuLibrary& library) {
    trial_.call(library);
    compare("the kernel");
  }

  void interpret() {
    trial_.interpret();
    compare("the interpreter");
  }

 private:
  // Of floats that are rounded, one step at most.
  void compare(const std::string& who) {
    const auto want = graph::evaluate_exactly(trial_.region.graph, trial_.inputs(), 1);
    ASSERT_TRUE(want) << describe(want.error());
    const auto& numbers = (*want)[0].integers;
    const int64_t allowed = output().dtype == Dtype::i32 ? 0 : 1;
    for (int64_t i = 0; i < std::ssize(numbers); ++i) {
      const int64_t found = load_integer(output().dtype, trial_.result().data(), i);
      ASSERT_LE(std::abs(found - numbers[as_size(i)]), allowed)
          << "element " << i << " of " << who << ", " << trial_.config.text() << "\n"
          << to_text(trial_.region.graph);
    }
  }

  Random random_;
  test::CpuTrial trial_;
};

std::vector<Form> forms() {
  std::vector<Form> out;
  for (const Dtype a : {Dtype::u8, Dtype::i8})
    for (const Dtype b : {Dtype::u8, Dtype::i8}) {
      out.push_back({.m = 19, .n = 37, .k = 600, .a = a, .b = b});
      out.push_back({21, 50, 41, a, b, Zero::input, Zero::input});
    }
  out.push_back({17, 33, 301, Dtype::u8, Dtype::i8, Zero::lines, Zero::lines});
  out.push_back({17, 33, 301, Dtype::i8, Dtype::u8, Zero::constant, Zero::none});
  out.push_back({7, 70, 1300, Dtype::u8, Dtype::u8, Zero::none, Zero::constant});
  return out;
}

void agree(int vector_bytes, const std::vector<std::string>& flags) {
  const target::Capabilities capabilities = machine(vector_bytes);
  std::vector<graph::Graph> graphs = {quantized(20, 45, 128), quantized(9, 33, 700)};
  for (const Form& form : forms())
    graphs.push_back(product(form));
  Random random(5, "whole");
  CpuLibrary library;
  std::vector<std::unique_ptr<Trial>> trials;
  for (const graph::Graph& graph : graphs) {
    const FamilyPtr family = family_for(Region(graph, Track::fp32), "matmul_cpu", capabilities);
    ASSERT_TRUE(family) << to_text(graph);
    for (int i = 0; i < 2; ++i) {
      const auto config = test::random_schedule(*family, random);
      ASSERT_TRUE(config) << to_text(graph);
      const int number = as_int(trials.size());
      trials.push_back(std::make_unique<Trial>(graph, *config, capabilities, number));
      for (const Kernel& kernel : trials.back()->kernels())
        library.add(kernel);
    }
  }
  if (!library.compile(flags)) return;
  for (auto& trial : trials) {
    trial->run(library);
    if (graph::element_count(trial->output().shape) < 1200) trial->interpret();
  }
}

TEST(WholeProduct, KernelsAgreeToTheLastBit) {
  agree(64, {});
}

TEST(WholeProduct, KernelsAgreeOnNarrowerVectors) {
  if (machine().vector_bytes < 32) GTEST_SKIP() << "this machine has no AVX2";
  agree(32, {"-mavx2", "-mfma", "-mf16c"});
}

TEST(WholeProduct, KernelsAgreeOnTheBaselineVectors) {
  agree(16, {"-msse2"});
}

TEST(WholeProduct, WhatIsSubtractedFromEachFactorIsItsZeroPoint) {
  const Region region(product({8, 16, 300, Dtype::u8, Dtype::i8, Zero::input, Zero::constant}),
                      Track::fp32);
  const auto whole = loopnest::whole_product_of(region.nests());
  ASSERT_TRUE(whole);
  const auto& c = whole->contraction;
  EXPECT_EQ(c.access_a().name, "x");
  const loopnest::ZeroPoint& of_a = whole->zero_points.at(c.a);
  ASSERT_TRUE(of_a.load);
  EXPECT_EQ(c.nest.loads[*of_a.load].name, "zero_a");
  EXPECT_EQ(whole->zero_points.at(c.b).number, 77);
}

TEST(WholeProduct, SumsThatLeave32BitsAreNoSuchProducts) {
  graph::Builder b("wide");
  const auto whole = [&](const std::string& name, const graph::Shape& shape) {
    const int64_t to = onnx_type_of(Dtype::i64);
    return b.add(OpKind::Cast, {b.input(name, Dtype::u8, shape)}, {{"to", to}});
  };
  b.output(b.add(OpKind::MatMul, {whole("x", {4, 40000}), whole("w", {40000, 8})}));
  const Region region(*graph::decompose(*b.finish()), Track::fp32);
  EXPECT_FALSE(loopnest::whole_product_of(region.nests()));
}

TEST(WholeProduct, MultiplyAddsAreRefused) {
  const Region region(product({.m = 8, .n = 32, .k = 64}), Track::fp32);
  const FamilyPtr family = family_for(region, "matmul_cpu", machine());
  ASSERT_TRUE(family);
  MatmulCpuConfig config{.tile_m = 4,
                         .tile_n = 32,
                         .block_k = 64,
                         .instruction = CpuInstruction::dot,
                         .pack_a = PackedBy::program,
                         .pack_b = PackedBy::program};
  EXPECT_TRUE(family->legal(config));
  config.instruction = CpuInstruction::fma;
  const auto status = family->legal(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kScheduleIllegal);
}
}  // namespace
}  // namespace warploom::kernels
