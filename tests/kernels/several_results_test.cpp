// Regions that store several tensors, by every family that covers them: each result as the
// interpreter computes it agrees with FP64.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>
#include "../graph/builder.h"
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
#include "loopnest/loop_nest.h"
#include "support/problems.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using graph::TensorId;
using Attributes = std::map<std::string, graph::Attribute>;
using Names = std::set<std::string>;

const Attributes kLastAxis = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};
constexpr int kSchedules = 6;

target::Capabilities machine(const std::string& target) {
  auto capabilities = *target::capabilities_of(target);
  if (!capabilities.gpu) capabilities.num_sms = 2;
  return capabilities;
}

// Of a region on a target, the families that cover it.
Names families_of(const graph::Graph& graph, const std::string& target) {
  Names names;
  for (const FamilyPtr& family : families_for({graph, Track::fp32}, machine(target)))
    names.insert(family->name());
  return names;
}

using Tensors = std::map<std::string, std::vector<std::byte>>;

Tensors interpreted(const graph::Graph& graph, const Family& family, const KernelConfig& config,
                    const std::vector<std::vector<std::byte>>& inputs) {
  Tensors tensors;
  for (size_t i = 0; i < inputs.size(); ++i)
    tensors[graph.tensor(graph.inputs[i]).name] = inputs[i];
  const auto made = family.programs(config);
  EXPECT_TRUE(made) << config.text();
  if (!made) return tensors;
  const auto poison = [&](const std::string& name, int64_t bytes) {
    tensors[name].assign(static_cast<size_t>(bytes), std::byte{0xff});
  };
  for (const TensorId id : graph.outputs)
    poison(graph.tensor(id).name, graph::byte_count(graph.tensor(id)));
  for (const BufferSpec& workspace : made->workspaces)
    poison(workspace.name, workspace.bytes());
  for (size_t i = 0; i < made->programs.size(); ++i) {
    tile::Buffers buffers;
    for (const auto& [name, buffer] : made->buffers[i])
      buffers[name] = tensors[buffer];
    const auto done = tile::interpret(made->programs[i], buffers);
    EXPECT_TRUE(done) << config.text() << describe(done.error());
  }
  return tensors;
}

// Every family that covers the region on a target, under some schedules.
void expect_agreement(const graph::Graph& graph, const std::string& target) {
  const auto inputs = test::random_inputs(graph, 1);
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate(graph, views, 1);
  ASSERT_TRUE(want) << describe(want.error());
  for (const FamilyPtr& family : families_for({graph, Track::fp32}, machine(target))) {
    Random random(1, target + family->name() + graph.name);
    for (int i = 0; i < kSchedules; ++i) {
      const auto config = test::random_schedule(*family, random);
      if (!config) continue;
      const Tensors got = interpreted(graph, *family, *config, inputs);
      for (size_t o = 0; o < graph.outputs.size(); ++o) {
        const graph::Tensor& tensor = graph.tensor(graph.outputs[o]);
        EXPECT_LT(test::error_of((*want)[o], tensor.dtype, got.at(tensor.name)),
                  test::allowed(tensor.dtype))
            << "output " << o << " by " << config->text() << " on " << target;
      }
    }
  }
}

// relu(x·w + bias) and what else its readers want: the sum of it and a residual, or the sum alone.
graph::Graph product(bool norm) {
  graph::Builder b(norm ? "product_norm" : "product");
  const TensorId x = b.input("x", Dtype::f32, {70, 48});
  const TensorId y = b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {48, 96})});
  const TensorId h = b.add(OpKind::Add, {y, b.input("bias", Dtype::f32, {96})});
  b.output(h);
  if (norm)
    b.output(b.add(OpKind::LayerNormalization, {h, b.input("scale", Dtype::f32, {96})}));
  else
    b.output(b.add(OpKind::Add, {b.add(OpKind::Relu, {h}), b.input("r", Dtype::f32, {70, 96})}));
  return *graph::decompose(*b.finish());
}

// A convolution, and the sum of what an activation makes of it and a residual.
graph::Graph convolution() {
  graph::Builder b("convolution");
  const TensorId x = b.input("x", Dtype::f32, {2, 16, 9, 9});
  const TensorId y = b.add(OpKind::Conv, {x, b.input("w", Dtype::f32, {32, 16, 3, 3})});
  const TensorId h = b.add(OpKind::Relu, {y});
  b.output(h);
  b.output(b.add(OpKind::Add, {h, b.input("r", Dtype::f32, {2, 32, 7, 7})}));
  return *graph::decompose(*b.finish());
}

// The sum of two tensors under one shape, its norm under another, and the mean of its rows.
graph::Graph rows() {
  graph::Builder b("rows");
  const TensorId h = b.add(
      OpKind::Add, {b.input("x", Dtype::f32, {5, 14, 96}), b.input("r", Dtype::f32, {5, 14, 96})});
  b.output(h);
  const TensorId flat =
      b.add(OpKind::Reshape, {h, b.integers("shape", std::vector<int64_t>{70, 96})});
  b.output(b.add(OpKind::LayerNormalization, {flat, b.input("scale", Dtype::f32, {96})}));
  b.output(b.add(OpKind::ReduceMean, {flat}, kLastAxis));
  return *graph::decompose(*b.finish());
}

graph::Graph pointwise() {
  graph::Builder b("pointwise");
  const TensorId x = b.input("x", Dtype::f32, {70, 96});
  b.output(b.add(OpKind::Tanh, {x}));
  b.output(b.add(OpKind::Mul, {x, b.input("r", Dtype::f32, {70, 96})}));
  return *graph::decompose(*b.finish());
}

TEST(SeveralResults, OfAProductAgreeWithFp64) {
  EXPECT_TRUE(families_of(product(false), "cpu").contains("matmul_cpu"));
  EXPECT_TRUE(families_of(product(false), "sm_80").contains("matmul_mma"));
  EXPECT_TRUE(families_of(product(false), "sm_80").contains("matmul_simt"));
  EXPECT_TRUE(families_of(product(false), "sm_90a").contains("matmul_wgmma"));
  for (const std::string target : {"cpu", "sm_80", "sm_90a"})
    expect_agreement(product(false), target);
}

TEST(SeveralResults, OfAProductAndTheNormOfItsRowsAgreeWithFp64) {
  EXPECT_TRUE(families_of(product(true), "cpu").contains("matmul_cpu"));
  for (const std::string target : {"cpu", "sm_80", "sm_90a"})
    expect_agreement(product(true), target);
}

TEST(SeveralResults, OfAConvolutionAgreeWithFp64) {
  EXPECT_TRUE(families_of(convolution(), "cpu").contains("conv_cpu"));
  EXPECT_TRUE(families_of(convolution(), "sm_90a").contains("conv_wgmma"));
  for (const std::string target : {"cpu", "sm_80", "sm_90a"})
    expect_agreement(convolution(), target);
}

TEST(SeveralResults, OfRowsAgreeWithFp64) {
  EXPECT_TRUE(families_of(rows(), "cpu").contains("cpu_rowwise"));
  EXPECT_TRUE(families_of(rows(), "sm_90a").contains("rowwise"));
  for (const std::string target : {"cpu", "sm_90a"})
    expect_agreement(rows(), target);
}

TEST(SeveralResults, OfElementsAgreeWithFp64) {
  for (const std::string target : {"cpu", "sm_90a"}) {
    EXPECT_TRUE(families_of(pointwise(), target).contains("direct")) << target;
    expect_agreement(pointwise(), target);
  }
}

// A number, and what stretches it: every tile of the loops would store the number again.
TEST(SeveralResults, OfWhichOneIsStretchedAreRefusedByLoops) {
  graph::Builder b("stretched");
  const TensorId x = b.add(OpKind::Tanh, {b.input("x", Dtype::f32, {70, 1})});
  b.output(b.add(OpKind::Add, {x, b.input("r", Dtype::f32, {70, 96})}));
  b.output(x);
  const graph::Graph graph = *graph::decompose(*b.finish());
  EXPECT_EQ(nests_of(graph).size(), 1u);
  for (const std::string target : {"cpu", "sm_90a"})
    EXPECT_EQ(families_of(graph, target), Names{}) << target;
}

// Each is a kernel's nest, with values of its own.
TEST(SeveralResults, ThatShareNothingAreNestsOfTheirOwn) {
  graph::Builder b("apart");
  const TensorId x = b.input("x", Dtype::f32, {70, 96});
  b.output(b.add(OpKind::Tanh, {x}));
  const TensorId turned = b.add(OpKind::Transpose, {x}, {{"perm", std::vector<int64_t>{1, 0}}});
  b.output(b.add(OpKind::Exp, {turned}));
  EXPECT_EQ(nests_of(*graph::decompose(*b.finish())).size(), 2u);
}

TEST(SeveralResults, OfOneShareAreOneNest) {
  EXPECT_EQ(nests_of(rows()).size(), 1u);
  EXPECT_EQ(nests_of(pointwise()).size(), 1u);
  EXPECT_EQ(nests_of(product(true)).size(), 1u);
}
}  // namespace
}  // namespace warploom::kernels
