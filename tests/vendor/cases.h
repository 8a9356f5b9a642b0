// Graphs that libraries are asked for, and how references are held against FP64.
#pragma once
#include <gtest/gtest.h>
#include <functional>
#include <limits>
#include <optional>
#include "../graph/builder.h"
#include "base/random.h"
#include "graph/reference.h"
#include "vendor/make.h"
#include "vendor/match.h"

namespace warploom::vendor {
using graph::Builder, graph::OpKind, graph::TensorId;
using Integers = std::vector<int64_t>;

struct Case {
  std::string name;
  std::string calls;  // what the steps must be, in words
  std::function<TensorId(Builder&)> build;
};

inline void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

inline graph::Graph graph_of(const Case& one) {
  Builder builder(one.name);
  builder.output(one.build(builder));
  auto graph = builder.finish();
  EXPECT_TRUE(graph) << one.name << ": " << describe(graph.error());
  return graph ? *graph : graph::Graph{};
}

// Normal numbers; of variances, and what is called "positive", from 0.5 to 2.
inline std::vector<std::byte> filled(const graph::Tensor& tensor, uint64_t seed) {
  std::vector<std::byte> bytes(static_cast<size_t>(graph::byte_count(tensor)));
  Random random(seed, tensor.name);
  const bool positive = tensor.name.starts_with("positive");
  for (int64_t i = 0; i < graph::element_count(tensor.shape); ++i) {
    double value = positive ? 0.5 + 1.5 * random.uniform() : random.normal();
    if (!is_float(tensor.dtype)) value = static_cast<double>(random.below(3));
    store_from_double(tensor.dtype, bytes.data(), static_cast<size_t>(i), value);
  }
  return bytes;
}

// Buffers of a graph's inputs, filled, and of its outputs, poisoned.
inline runtime::Bindings buffers_of(runtime::Executor& device, const graph::Graph& graph,
                                    const std::vector<std::vector<std::byte>>& inputs) {
  runtime::Bindings buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto size = static_cast<int64_t>(inputs[i].size());
    auto buffer = device.allocate(size);
    EXPECT_TRUE(buffer && device.upload(*buffer, inputs[i].data(), size));
    buffers[graph.tensor(graph.inputs[i]).name] = *buffer;
  }
  for (const TensorId id : graph.outputs) {
    auto buffer = device.allocate(graph::byte_count(graph.tensor(id)));
    EXPECT_TRUE(buffer && device.fill(*buffer, runtime::kPoison));
    buffers[graph.tensor(id).name] = *buffer;
  }
  return buffers;
}

// What a reference computed of an output, against its truth; where that is no number, or the same
// infinity, nothing counts. Infinite where a number was to be, and none is.
inline double frobenius_error(const std::vector<std::byte>& found, Dtype dtype,
                              const std::vector<double>& truth) {
  double error = 0;
  double norm = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double expected = truth[i];
    const double got = load_as_double(dtype, found.data(), i);
    if (!std::isfinite(expected) && (got == expected || std::isnan(expected))) continue;
    if (std::isnan(got)) return std::numeric_limits<double>::infinity();
    error += (got - expected) * (got - expected);
    norm += expected * expected;
  }
  return norm > 0 ? std::sqrt(error / norm) : std::sqrt(error);
}

// The relative Frobenius error of a reference on random inputs, the worst output's; nothing with a
// failed expectation.
inline std::optional<double> error_of(runtime::Executor& device, const graph::Graph& graph,
                                      const runtime::Runnable& reference,
                                      const std::vector<std::vector<std::byte>>& inputs) {
  runtime::Bindings buffers = buffers_of(device, graph, inputs);
  const auto call = reference.bind(buffers);
  EXPECT_TRUE(call) << describe(call.error());
  const std::vector<graph::Bytes> bytes(inputs.begin(), inputs.end());
  const auto truth = graph::evaluate(graph, bytes);
  EXPECT_TRUE(truth) << describe(truth.error());
  if (!call || !truth) return std::nullopt;
  const auto ran = (*call)();
  EXPECT_TRUE(ran && device.synchronize()) << describe(ran.error());
  if (!ran) return std::nullopt;
  double worst = 0;
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::Tensor& tensor = graph.tensor(graph.outputs[o]);
    std::vector<std::byte> found(static_cast<size_t>(graph::byte_count(tensor)));
    EXPECT_TRUE(device.download(buffers[tensor.name], found.data(), std::ssize(found)));
    worst = std::max(worst, frobenius_error(found, tensor.dtype, (*truth)[o]));
  }
  return worst;
}

inline std::vector<std::vector<std::byte>> inputs_of(const graph::Graph& graph) {
  std::vector<std::vector<std::byte>> out;
  for (const TensorId id : graph.inputs)
    out.push_back(filled(graph.tensor(id), 1));
  return out;
}

std::vector<Case> library_cases();  // each of them a library of either engine serves
}  // namespace warploom::vendor
