// The GPU's oracle held to the CPU's on the same inputs, by the text that both engines share.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/steps.h"
#include "runtime/executor.h"
#include "verify/inputs.h"
#include "verify/truth_engine.h"

namespace warploom::verify {
inline bool same_number(double a, double b, double within) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) == std::isnan(b);
  return a == b || std::abs(a - b) <= within;
}

// Values to 1e-13 of E, but for those that come of a number beyond its type, whose E is NaN;
// magnitudes to 1e-6 of themselves, whole numbers exactly.
inline std::string difference(const graph::ValueAndMagnitude& wanted,
                              const graph::ValueAndMagnitude& found, bool exact) {
  for (size_t i = 0; i < wanted.value.size(); ++i) {
    if (exact && wanted.integers[i] != found.integers[i])
      return fmt::format("element {}: {} where {} is right", i, found.integers[i],
                         wanted.integers[i]);
    if (exact) continue;
    const double given = wanted.magnitude[i];
    if (std::isnan(given) && std::isnan(found.magnitude[i])) continue;
    const double size = std::isfinite(given) ? given : std::abs(wanted.value[i]);
    const double allowed = 1e-13 * std::max(size, std::abs(wanted.value[i])) + 1e-300;
    if (!same_number(wanted.value[i], found.value[i], allowed))
      return fmt::format("element {}: {:.17g} where {:.17g} is right, E {:.3g}", i, found.value[i],
                         wanted.value[i], given);
    if (!same_number(given, found.magnitude[i], 1e-6 * std::abs(given) + 1e-300))
      return fmt::format("element {}: magnitude {:.9g} where {:.9g} is right, value {:.9g}", i,
                         found.magnitude[i], given, wanted.value[i]);
  }
  return "";
}

// An output's truth from a row on.
inline void expect_truth(TruthEngine& engine, const graph::Graph& graph,
                         const std::vector<graph::Bytes>& inputs, int output, int64_t begin,
                         InputFamily family) {
  graph::EvalOptions options;
  options.marks = family != InputFamily::normal;
  const graph::Tensor& tensor = graph.tensor(graph.outputs[static_cast<size_t>(output)]);
  const int64_t rows = graph::rows_of(graph, output).count;
  const auto wanted = graph::evaluate_magnitude_rows(graph, inputs, output, begin, rows, options);
  const auto found = engine.truth(0, output, begin, rows);
  ASSERT_TRUE(wanted) << describe(wanted.error());
  ASSERT_TRUE(found) << describe(found.error());
  ASSERT_EQ(wanted->value.size(), found->value.size());
  EXPECT_EQ(difference(*wanted, *found, is_integer(tensor.dtype)), "")
      << name_of(family) << ", output " << output << " from row " << begin << "\n"
      << graph::to_text(graph);
}

// Every output of a graph on inputs of a family, whole and from the second row on.
inline void expect_truth(runtime::Executor& device, const graph::Graph& graph, InputFamily family,
                         uint64_t seed) {
  auto engine = TruthEngine::make(device, graph, Track::fp32);
  ASSERT_TRUE(engine) << describe(engine.error());
  const Status drawn = (*engine)->draw(0, family, seed);
  ASSERT_TRUE(drawn) << describe(drawn.error());
  std::vector<std::vector<std::byte>> inputs;
  const std::vector<runtime::Buffer> tensors = (*engine)->tensors(0);
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const int64_t bytes = graph::byte_count(graph.tensor(graph.inputs[i]));
    inputs.emplace_back(static_cast<size_t>(bytes));
    ASSERT_TRUE(device.download(tensors[i], inputs.back().data(), bytes));
  }
  const std::vector<graph::Bytes> bytes(inputs.begin(), inputs.end());
  for (int output = 0; output < static_cast<int>(graph.outputs.size()); ++output)
    for (const int64_t begin : {int64_t{0}, int64_t{1}}) {
      const int64_t rows = graph::rows_of(graph, output).count;
      expect_truth(**engine, graph, bytes, output, std::min(begin, rows), family);
      if (testing::Test::HasFailure()) return;
    }
}
}  // namespace warploom::verify
