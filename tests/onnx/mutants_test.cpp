// Damaged models: never a crash, always quick.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>
#include "../graph/naive.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "damage.h"
#include "graph/graph.h"
#include "graph/naive.h"
#include "graph/reference.h"
#include "onnx/load.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;

// Small models to damage: the text examples, and binary ones where the test data of the ONNX
// package is installed.
std::vector<std::string> seeds() {
  std::vector<std::string> found;
  for (const char* name : {"matmul_bias_gelu_small", "softmax_small", "matmul_small"})
    found.push_back(*read_file(test::source_path(fmt::format("examples/{}.textproto", name))));
  for (const char* name : {"test_softmax_axis_0",
                           "test_gemm_all_attributes",
                           "test_reshape_extended_dims",
                           "test_clip",
                           "test_slice",
                           "test_matmul_3d",
                           "test_where_example",
                           "test_concat_2d_axis_0",
                           "test_cast_FLOAT_to_FLOAT16",
                           "test_constant",
                           "test_gather_0",
                           "test_squeeze",
                           "test_dropout_default",
                           "test_shape_start_1",
                           "test_max_example",
                           "test_expand_dim_changed",
                           "test_gelu_default_1",
                           "test_softplus_example_expanded",
                           "test_elu_expanded_ver18",
                           "test_layer_normalization_4d_axis1",
                           "test_batchnorm_example",
                           "test_instancenorm_example",
                           "test_reduce_log_sum_exp_keepdims_random",
                           "test_reduce_mean_do_not_keepdims_example",
                           "test_argmax_keepdims_example",
                           "test_spacetodepth",
                           "test_split_equal_parts_2d",
                           "test_conv_with_strides_padding",
                           "test_convtranspose_pads",
                           "test_maxpool_2d_ceil",
                           "test_averagepool_2d_pads",
                           "test_mvn",
                           "test_prelu_broadcast"}) {
    const auto content =
        read_file(fs::path("/usr/share/libonnx-testdata/data/node") / name / "model.onnx");
    if (content && parse_onnx(*content)) found.push_back(*content);
  }
  return found;
}

// Small graphs that were accepted must evaluate without incident, both ways.
void evaluate_small(const graph::Graph& graph) {
  int64_t elements = 0;
  for (const auto& tensor : graph.tensors)
    elements += graph::element_count(tensor.shape);
  if (elements > 20000) return;
  std::vector<std::vector<std::byte>> bytes;
  for (graph::TensorId id : graph.inputs)
    bytes.emplace_back(static_cast<size_t>(byte_count(graph.tensor(id))));
  const std::vector<graph::Bytes> inputs(bytes.begin(), bytes.end());
  const auto fast = graph::evaluate(graph, inputs, 1);
  const auto naive = graph::evaluate_naive(graph, inputs);
  ASSERT_TRUE(fast && naive);
  for (size_t i = 0; i < fast->size(); ++i)
    ASSERT_EQ((*fast)[i].size(), (*naive)[i].size());
}

TEST(Mutants, NeverCrashAndAreQuick) {
  const auto models = seeds();
  Random random(2026);
  int accepted = 0;
  int refused = 0;
  double slowest = 0;
  for (int i = 0; i < 6000; ++i) {
    const std::string& model = models[random.below(models.size())];
    const std::string bytes = damaged(model, random);
    const auto start = std::chrono::steady_clock::now();
    const auto graph = parse_onnx(bytes);
    slowest = std::max(
        slowest, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (graph) {
      evaluate_small(*graph);
    } else {
      EXPECT_NE(graph.error().code, ErrorCode::kInternal) << describe(graph.error());
    }
    (graph ? accepted : refused)++;
  }
  std::printf("%d models: %d mutants accepted, %d refused, slowest %.3f s\n",
              static_cast<int>(models.size()), accepted, refused, slowest);
  EXPECT_LT(slowest, 1.0);
}
}  // namespace
}  // namespace warploom
