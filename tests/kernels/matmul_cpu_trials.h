// Products on a CPU for the tests of matmul_cpu: graphs, and regions under configs at random, whose
// kernels are held against the FP64 reference and the interpreter.
#pragma once
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
#include "codegen/launch_list.h"
#include "cpu_trial.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "target/capabilities.h"
#include "tile/program.h"
#include "trials.h"

namespace warploom::kernels::matmul_cpu_trials {
using graph::OpKind;
using Bytes = std::vector<std::byte>;

inline target::Capabilities machine(int vector_bytes = 0) {
  auto capabilities = *target::capabilities_of("cpu");
  if (vector_bytes > 0 && vector_bytes < capabilities.vector_bytes) {
    capabilities.vector_bytes = vector_bytes;
    capabilities.registers = 16;
  }
  capabilities.num_sms = 4;
  capabilities.has_bf16_dot = true;  // else the device interface computes the same
  capabilities.has_bf16_tiles = capabilities.vector_bytes == 64;
  return capabilities;
}

// How the operands of a product lie, and what follows it.
struct Form {
  bool transposed_a = false;
  bool transposed_b = false;
  int behind = 0;  // 1: a bias a column, 2: one a row and Gelu, 3: a residual as well
  Dtype dtype = Dtype::f32;
};

inline graph::Graph matmul(int64_t m, int64_t n, int64_t k, const Form& form = {}) {
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

inline graph::Graph batched(const graph::Shape& a, const graph::Shape& b_shape,
                            Dtype dtype = Dtype::f32) {
  graph::Builder b("batched");
  const auto x = b.input("x", dtype, a);
  b.output(b.add(OpKind::MatMul, {x, b.input("w", dtype, b_shape)}));
  return *b.finish();
}

inline graph::Graph with_reduced_rows(int64_t m, int64_t n, int64_t k, bool norm) {
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

// Inputs are small: what a sum loses, an exponential makes no larger.
class Trial {
 public:
  Trial(graph::Graph graph, const KernelConfig& config, const target::Capabilities& capabilities,
        int number, Track track = Track::fp32)
      : random_(as_size(number) + 1, "matmul_cpu"),
        trial_(std::move(graph), config, capabilities, number, track,
               [this](const graph::Tensor&) { return 0.25 * random_.normal(); }) {}

  const std::vector<Kernel>& kernels() const { return trial_.kernels; }

  const graph::Tensor& output() const { return trial_.output(); }

  const Bytes& result() const { return trial_.result(); }

  Bytes& buffer(const std::string& name) { return trial_.buffers.at(name); }

  // By FP64.
  Result<std::vector<std::vector<double>>> wanted() const {
    return graph::evaluate(trial_.region.graph, trial_.inputs(), 1);
  }

  void call(CpuLibrary& library) { trial_.call(library); }

  void run(CpuLibrary& library) {
    trial_.call(library);
    compare("the kernel");
  }

  void interpret() {
    trial_.interpret();
    compare("the interpreter");
  }

 private:
  void compare(const std::string& who) {
    const Region& region = trial_.region;
    const auto want = wanted();
    ASSERT_TRUE(want) << describe(want.error());
    const double error = test::error_of((*want)[0], output().dtype, result());
    const bool rounds = region.track == Track::bf16;  // operands
    EXPECT_LT(error, test::allowed(rounds ? Dtype::bf16 : output().dtype))
        << who << " of " << trial_.config.text() << "\n"
        << to_text(region.graph);
  }

  Random random_;
  test::CpuTrial trial_;
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

  // By tiles, of one, two and three sides' width and height.
  void add_tiles(const graph::Graph& graph, Track track = Track::bf16) {
    const Region region(graph, track);
    const FamilyPtr family = matmul_cpu_family(region, capabilities_);
    ASSERT_TRUE(family) << to_text(graph);
    const size_t before = trials_.size();
    for (const PackedBy a : {PackedBy::nobody, PackedBy::program})
      for (int i = 0; i < 2; ++i)
        try_config(graph, *family, CpuInstruction::tile, a, PackedBy::program, track);
    EXPECT_GT(trials_.size(), before) << to_text(graph);
  }

  size_t run(const std::vector<std::string>& flags = {}) {
    CpuLibrary library;
    for (auto& trial : trials_)
      for (const Kernel& kernel : trial->kernels())
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
inline graph::Graph saturating(int64_t m, int64_t n, int64_t k) {
  graph::Builder b("saturating");
  const auto x = b.input("x", Dtype::f32, {m, k});
  const auto product = b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {k, n})});
  b.output(b.add(OpKind::Tanh, {product}));
  return *graph::decompose(*b.finish());
}
}  // namespace warploom::kernels::matmul_cpu_trials
