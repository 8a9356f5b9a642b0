// What tests of the reference share: inputs drawn by chance (floats from -2 to 2, integers 0 or 1),
// and the fast reference held against the naive one.
#pragma once
#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/random.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "naive.h"

namespace warploom::graph {
struct Data {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Bytes> spans;
};

inline Data random_inputs(const Graph& graph, uint64_t seed = 1) {
  Data data;
  Random random(seed);
  for (TensorId id : graph.inputs) {
    const Tensor& tensor = graph.tensor(id);
    data.bytes.emplace_back(static_cast<size_t>(byte_count(tensor)));
    for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
      const double value =
          is_float(tensor.dtype) ? 4 * random.uniform() - 2 : static_cast<double>(random.below(2));
      store_from_double(tensor.dtype, data.bytes.back().data(), static_cast<size_t>(i), value);
    }
  }
  for (const auto& bytes : data.bytes) data.spans.emplace_back(bytes);
  return data;
}

inline void expect_close(const std::vector<double>& a, const std::vector<double>& b,
                         const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-12 * (1 + std::fabs(b[i]))) << what << " at " << i;
}

// Fast = naive; every cut into rows gives the same numbers, with and without magnitudes.
inline void check(Builder& b) {
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << graph.error().message << graph.error().found;
  const std::string text = to_text(*graph);
  const Data data = random_inputs(*graph);
  EvalOptions values;
  values.magnitudes = false;
  const auto naive = evaluate_naive(*graph, data.spans);
  const auto fast = evaluate(*graph, data.spans);
  ASSERT_TRUE(naive && fast) << text;
  for (size_t o = 0; o < naive->size(); ++o) {
    expect_close((*fast)[o], (*naive)[o], text);
    const OutputRows rows = rows_of(*graph, static_cast<int>(o));
    ASSERT_EQ(rows.count * rows.elements, static_cast<int64_t>((*naive)[o].size())) << text;
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, rows.count},
                                     {rows.count / 3, rows.count / 3 + (rows.count + 1) / 2},
                                     {rows.count - std::min<int64_t>(1, rows.count), rows.count}}) {
      const auto part =
          evaluate_magnitude_rows(*graph, data.spans, static_cast<int>(o), begin, end, values);
      const auto both =
          evaluate_magnitude_rows(*graph, data.spans, static_cast<int>(o), begin, end);
      ASSERT_TRUE(part && both) << text;
      const std::vector<double> wanted((*naive)[o].begin() + begin * rows.elements,
                                       (*naive)[o].begin() + end * rows.elements);
      expect_close(part->value, wanted, text);
      EXPECT_TRUE(part->magnitude.empty());
      expect_close(both->value, wanted, text);
      ASSERT_EQ(both->magnitude.size(), wanted.size());
    }
  }
}

inline std::map<std::string, Attribute> window(std::vector<int64_t> kernel,
                                               std::vector<int64_t> strides,
                                               std::vector<int64_t> pads,
                                               std::vector<int64_t> dilations) {
  return {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}, {"dilations", dilations}};
}
}  // namespace warploom::graph
