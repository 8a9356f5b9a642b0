// What tests of the reference share: inputs drawn by chance (floats from -2 to 2, integers 0 or 1),
// and the fast reference held against the naive one.
#pragma once
#include <gtest/gtest.h>
#include <algorithm>
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
  for (const auto& bytes : data.bytes)
    data.spans.emplace_back(bytes);
  return data;
}

inline void expect_close(const std::vector<double>& a, const std::vector<double>& b,
                         const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-12 * (1 + std::fabs(b[i]))) << what << " at " << i;
}

// The same inputs, where only what is said to be read is left.
inline Data only_read(const Graph& graph, const Data& data, const std::vector<ElementRange>& read) {
  Data out;
  for (size_t i = 0; i < data.bytes.size(); ++i) {
    const int64_t size = bytes_of(graph.tensor(graph.inputs[i]).dtype);
    std::vector<std::byte>& bytes = out.bytes.emplace_back(data.bytes[i].size(), std::byte{0xff});
    const auto from = data.bytes[i].begin();
    std::copy(from + read[i].begin * size, from + read[i].end * size,
              bytes.begin() + read[i].begin * size);
  }
  for (const auto& bytes : out.bytes)
    out.spans.emplace_back(bytes);
  return out;
}

// A cut of an output's rows gives the numbers of the whole, with and without magnitudes, and from
// what it is said to read of the inputs alone.
inline void expect_cut(const Graph& graph, const Data& data, int output, int64_t begin, int64_t end,
                       const std::vector<double>& wanted) {
  const std::string text = to_text(graph);
  EvalOptions values;
  values.magnitudes = false;
  const auto part = evaluate_magnitude_rows(graph, data.spans, output, begin, end, values);
  const auto both = evaluate_magnitude_rows(graph, data.spans, output, begin, end);
  ASSERT_TRUE(part && both) << text;
  expect_close(part->value, wanted, text);
  EXPECT_TRUE(part->magnitude.empty());
  expect_close(both->value, wanted, text);
  ASSERT_EQ(both->magnitude.size(), wanted.size());
  const auto read = inputs_of_rows(graph, output, begin, end);
  ASSERT_TRUE(read) << text;
  const Data left = only_read(graph, data, *read);
  const auto of_it = evaluate_magnitude_rows(graph, left.spans, output, begin, end, values);
  ASSERT_TRUE(of_it) << text;
  expect_close(of_it->value, wanted, text);
}

inline void expect_cuts(const Graph& graph, const Data& data, int output,
                        const std::vector<double>& whole) {
  const OutputRows rows = rows_of(graph, output);
  const int64_t count = rows.count;
  ASSERT_EQ(count * rows.elements, std::ssize(whole)) << to_text(graph);
  const std::pair<int64_t, int64_t> cuts[] = {{0, count},
                                              {count / 3, count / 3 + (count + 1) / 2},
                                              {count - std::min<int64_t>(1, count), count}};
  for (const auto& [begin, end] : cuts) {
    const auto first = whole.begin() + begin * rows.elements;
    const auto last = whole.begin() + end * rows.elements;
    ASSERT_NO_FATAL_FAILURE(expect_cut(graph, data, output, begin, end, {first, last}));
  }
}

// Fast = naive; every cut into rows gives the same numbers, with and without magnitudes.
inline void check(Builder& b) {
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << graph.error().message << graph.error().found;
  const std::string text = to_text(*graph);
  const Data data = random_inputs(*graph);
  const auto naive = evaluate_naive(*graph, data.spans);
  const auto fast = evaluate(*graph, data.spans);
  ASSERT_TRUE(naive && fast) << text;
  for (size_t o = 0; o < naive->size(); ++o) {
    expect_close((*fast)[o], (*naive)[o], text);
    ASSERT_NO_FATAL_FAILURE(expect_cuts(*graph, data, static_cast<int>(o), (*naive)[o]));
  }
}

inline std::map<std::string, Attribute> window(std::vector<int64_t> kernel,
                                               std::vector<int64_t> strides,
                                               std::vector<int64_t> pads,
                                               std::vector<int64_t> dilations) {
  return {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}, {"dilations", dilations}};
}
}  // namespace warploom::graph
