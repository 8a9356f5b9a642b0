#include "verify/oracle.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::verify {
namespace {
using graph::EvalOptions;
using graph::Graph;
using graph::OutputRows;

// Of a block, unless one row is longer.
constexpr int64_t kBlockElements = 1 << 21;
// Likewise where others do its products, who get their operands for each.
constexpr int64_t kProductsElements = 1 << 24;
// Outputs up to this size are kept whole where that is affordable.
constexpr int64_t kWholeElements = 1 << 23;

// Rows that go into one block.
int64_t block_rows(const OutputRows& rows, const EvalOptions& options) {
  const int64_t elements = options.products ? kProductsElements : kBlockElements;
  const int64_t fitting = elements / std::max<int64_t>(1, rows.elements);
  return std::clamp(fitting, int64_t{1}, rows.count);
}

// The first and the last row, where tails go wrong, then others at random.
std::vector<int64_t> scattered(int64_t count, size_t wanted, Random& random) {
  std::vector<int64_t> order = {0};
  std::set<int64_t> seen = {0};
  if (count > 1 && seen.insert(count - 1).second) order.push_back(count - 1);
  for (size_t tries = 0; order.size() < wanted && tries < 4 * wanted; ++tries) {
    const auto row = as_int64(random.below(as_uint64(count)));
    if (seen.insert(row).second) order.push_back(row);
  }
  return order;
}
}  // namespace

int64_t choices_in(const graph::Graph& graph) {
  using graph::OpKind;
  constexpr OpKind kChoices[] = {OpKind::Max,       OpKind::Min,       OpKind::Clip,
                                 OpKind::Relu,      OpKind::Softplus,  OpKind::HardSigmoid,
                                 OpKind::HardSwish, OpKind::ReduceMax, OpKind::ReduceMin,
                                 OpKind::MaxPool};
  return std::ranges::count_if(graph.nodes, [&](const graph::Node& node) {
    return std::ranges::find(kChoices, node.op) != std::end(kChoices);
  });
}

Result<Block> evaluate_block(const Graph& graph, std::span<const graph::Bytes> inputs,
                             const RowRange& rows, const EvalOptions& options) {
  auto found =
      graph::evaluate_magnitude_rows(graph, inputs, rows.output, rows.begin, rows.end, options);
  if (!found) return fail(found.error());
  graph::ValueAndMagnitude truth = *std::move(found);
  const int64_t before = rows.begin * graph::rows_of(graph, rows.output).elements;
  Block block{std::move(truth), rows, before};
  const bool nan = std::ranges::any_of(block.value, [](double value) { return std::isnan(value); });
  const int64_t choices = nan ? choices_in(graph) : 0;
  if (choices == 0) return block;
  EvalOptions dropping = options;
  dropping.drops_nan = true;
  WARPLOOM_TRY(truth, graph::evaluate_magnitude_rows(graph, inputs, rows.output, rows.begin,
                                                     rows.end, dropping));
  block.without_nan = std::move(truth.value);
  block.magnitude_without_nan = std::move(truth.magnitude);
  block.has_mixed_choices = choices > 1;
  return block;
}

Result<Truth> sample_truth(const Graph& graph, std::span<const graph::Bytes> inputs, uint64_t seed,
                           double flops, double budget_ms, const EvalOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const int outputs = as_int(graph.outputs.size());
  // FP64 evaluation reaches some 10^9 operations a second and core; half of that is assumed for two
  // cores. Products elsewhere are hundreds of times faster, but not the small ones among them.
  bool complete = flops / (options.products ? 1e8 : 1e6) <= budget_ms;
  for (int output = 0; output < outputs; ++output) {
    const OutputRows rows = graph::rows_of(graph, output);
    complete &= rows.count * rows.elements <= kWholeElements &&
                (rows.independent || rows.count <= block_rows(rows, options));
  }
  Truth truth;
  Random random(seed, "rows");
  Random order(seed, "order");
  for (int output = 0; output < outputs; ++output) {
    const OutputRows rows = graph::rows_of(graph, output);
    const double share = budget_ms * (output + 1) / outputs;
    std::vector<int64_t> sample;
    if (!complete) sample = scattered(rows.count, 32, random);
    std::set<int64_t> held;
    for (const int64_t row : sample) {
      const int64_t elements = as_int64(held.size()) * rows.elements;
      if (held.size() >= 2 && (ms_since(start) > share || elements > kWholeElements)) break;
      WARPLOOM_TRY(truth.blocks.emplace_back(),
                   evaluate_block(graph, inputs, {output, row, row + 1}, options));
      held.insert(row);
    }
    truth.rows += rows.count;
    held.insert(rows.count);
    int64_t row = 0;
    for (const int64_t stop : held) {  // between the rows that are held
      while (row < stop) {
        const int64_t end = std::min(stop, row + block_rows(rows, options));
        truth.missing.push_back({output, row, end});
        row = end;
      }
      row = stop + 1;
    }
  }
  order.shuffle(truth.missing);
  if (!complete) return truth;
  for (const RowRange& rows : truth.missing)
    WARPLOOM_TRY(truth.blocks.emplace_back(), evaluate_block(graph, inputs, rows, options));
  truth.missing.clear();
  return truth;
}
}  // namespace warploom::verify
