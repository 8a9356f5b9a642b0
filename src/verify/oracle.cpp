#include "verify/oracle.h"
#include "base/random.h"
#include "graph/parallel.h"

namespace warploom::verify {
namespace {

using Clock = std::chrono::steady_clock;

int outputs_of(const graph::Graph& graph) { return static_cast<int>(graph.outputs.size()); }

// Rows that go into one block.
std::int64_t block_rows(const graph::Rows& rows) {
  return std::clamp<std::int64_t>(Oracle::kBlockElements / std::max<std::int64_t>(1, rows.elements), 1, rows.count);
}

// The first and the last row, where tails go wrong, then others at random.
std::vector<std::int64_t> scattered(std::int64_t count, std::size_t wanted, Random& random) {
  std::vector<std::int64_t> order = {0};
  std::set<std::int64_t> seen = {0};
  if (count > 1 && seen.insert(count - 1).second) order.push_back(count - 1);
  for (std::size_t tries = 0; order.size() < wanted && tries < 4 * wanted; ++tries) {
    const auto row = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
    if (seen.insert(row).second) order.push_back(row);
  }
  return order;
}

}  // namespace

Status Oracle::sample(std::span<const graph::Bytes> inputs, double flops, double budget_ms) {
  const auto start = Clock::now();
  blocks_.clear();
  bool small = true;
  for (int output = 0; output < outputs_of(*graph_); ++output) {
    const graph::Rows rows = graph::rows_of(*graph_, output);
    small =
        small && rows.count * rows.elements <= kWholeElements && (rows.independent || rows.count <= block_rows(rows));
  }
  // FP64 evaluation reaches some 10^9 operations a second and core; half of that is assumed for two cores.
  complete_ = small && flops / 1e6 <= budget_ms;
  Random random(seed_, "rows");
  for (int output = 0; output < outputs_of(*graph_); ++output) {
    const graph::Rows rows = graph::rows_of(*graph_, output);
    if (complete_) {
      const std::int64_t step = block_rows(rows);
      for (std::int64_t row = 0; row < rows.count; row += step) {
        WARPLOOM_TRY(Block block, evaluate(inputs, {output, row, std::min(rows.count, row + step)}));
        blocks_.push_back(std::move(block));
      }
      continue;
    }
    const double share = budget_ms * (output + 1) / outputs_of(*graph_);
    std::int64_t elements = 0;
    std::size_t taken = 0;
    for (const std::int64_t row : scattered(rows.count, 32, random)) {
      if (taken >= 2 && (ms_since(start) > share || elements > kWholeElements)) break;
      WARPLOOM_TRY(Block block, evaluate(inputs, {output, row, row + 1}));
      blocks_.push_back(std::move(block));
      elements += rows.elements;
      ++taken;
    }
  }
  return ok();
}

std::vector<RowRange> Oracle::missing() const {
  std::vector<RowRange> out;
  if (complete_) return out;
  for (int output = 0; output < outputs_of(*graph_); ++output) {
    const graph::Rows rows = graph::rows_of(*graph_, output);
    std::vector<std::int64_t> held;
    for (const auto& block : blocks_)
      if (block.rows.output == output) held.push_back(block.rows.begin);
    held.push_back(rows.count);
    std::sort(held.begin(), held.end());
    const std::int64_t step = block_rows(rows);
    std::int64_t row = 0;
    for (const std::int64_t stop : held) {  // held blocks are single rows here
      for (; row < stop; row += std::min(step, stop - row)) out.push_back({output, row, std::min(stop, row + step)});
      row = stop + 1;
    }
  }
  Random random(seed_, "order");
  random.shuffle(out);
  return out;
}

Result<Block> Oracle::evaluate(std::span<const graph::Bytes> inputs, const RowRange& rows) const {
  WARPLOOM_TRY(graph::ValueAndMagnitude truth,
               graph::evaluate_magnitude_rows(*graph_, inputs, rows.output, rows.begin, rows.end));
  return Block{rows, rows.begin * graph::rows_of(*graph_, rows.output).elements, std::move(truth.value),
               std::move(truth.magnitude)};
}

std::int64_t Oracle::total_rows() const {
  std::int64_t total = 0;
  for (int output = 0; output < outputs_of(*graph_); ++output) total += graph::rows_of(*graph_, output).count;
  return total;
}
std::int64_t Oracle::held_rows() const {
  std::int64_t held = 0;
  for (const auto& block : blocks_) held += block.rows.end - block.rows.begin;
  return held;
}

}  // namespace warploom::verify
