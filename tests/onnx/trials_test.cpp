// Small models of kinds that people have reported trouble with.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "onnx/load.h"
#include "support/paths.h"

namespace warploom {
namespace {
namespace fs = std::filesystem;

graph::Graph trial(const std::string& name) {
  const fs::path file = test::source_path(fmt::format("tests/trials/operators_{}.textproto", name));
  auto graph = load_onnx(file);
  EXPECT_TRUE(graph) << describe(graph.error());
  return graph ? *graph : graph::Graph{};
}

// Inputs as bytes: f32, or integers of any type.
std::vector<double> made(const graph::Graph& graph,
                         const std::vector<std::vector<double>>& inputs) {
  std::vector<std::vector<std::byte>> data;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const graph::Tensor& tensor = graph.tensor(graph.inputs[i]);
    data.emplace_back(static_cast<size_t>(graph::byte_count(tensor)));
    for (size_t k = 0; k < inputs[i].size(); ++k)
      store_from_double(tensor.dtype, data[i].data(), k, inputs[i][k]);
  }
  const auto outputs = graph::evaluate(graph, std::vector<graph::Bytes>(data.begin(), data.end()));
  EXPECT_TRUE(outputs) << describe(outputs.error());
  return outputs ? (*outputs)[0] : std::vector<double>{};
}

TEST(Trials, IndicesOf32BitsAreCastAndGathered) {
  const graph::Graph graph = trial("int32_ids_cast");
  std::vector<double> table(24);
  std::vector<double> ids = {0, 5, 2, 1, 1, 3};
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<double>(i);
  const std::vector<double> rows = made(graph, {table, ids});
  ASSERT_EQ(rows.size(), 24U);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(rows[i], 4 * ids[i / 4] + static_cast<double>(i % 4));
}

TEST(Trials, FloatsOf8BitsSaturate) {
  EXPECT_EQ(made(trial("cast_e4m3_sat"), {{0, 1, -1, 0.3, 448, 1e6, -1e6, 17}}),
            (std::vector<double>{0, 1, -1, 0.3125, 448, 448, -448, 16}));
}

TEST(Trials, RestsOfFloatsHaveTheSignOfWhatIsDivided) {
  EXPECT_EQ(made(trial("fmod_plain"), {{-7.5, 7.5, 6, 5}, {2, -2, 3, 4}}),
            (std::vector<double>{-1.5, 1.5, 0, 1}));
}

TEST(Trials, FunctionsOfTheModelAreInlined) {
  const std::vector<double> y = made(trial("fn_local"), {{0, 1, -1, 2, -2, 3}});
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], 0.5 * (std::erf(1.0) + 1), 1e-12);
}

TEST(Trials, OthersLoadAndHaveNumbersForOutputs) {
  for (const char* name :
       {"concat_empty_input", "slice_minstep", "q_dq_block_zp", "noop_ReduceLogSum", "convt_4527",
        "convt_same_upper_outpad", "avgpool_ceil_cip", "avgpool_dil_asym", "gn21", "ln_bcast_scale",
        "pad_reflect_negpos", "resize_cubic_pt_1", "resize_tie_ceil"}) {
    const graph::Graph graph = trial(name);
    Random random(7, name);
    std::vector<std::vector<double>> inputs;
    for (const graph::TensorId id : graph.inputs) {
      const graph::Tensor& tensor = graph.tensor(id);
      inputs.emplace_back(static_cast<size_t>(graph::element_count(tensor.shape)));
      for (double& one : inputs.back())
        one = is_float(tensor.dtype) ? random.uniform() + 1 : 1;
    }
    const std::vector<double> y = made(graph, inputs);
    EXPECT_EQ(std::ssize(y), graph::element_count(graph.tensor(graph.outputs[0]).shape)) << name;
    for (const double one : y)
      EXPECT_TRUE(std::isfinite(one)) << name;
  }
}
}  // namespace
}  // namespace warploom
