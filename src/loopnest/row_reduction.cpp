#include "loopnest/row_reduction.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include "loopnest/loop_nest.h"
#include "loopnest/row_reader.h"

namespace warploom::loopnest {
std::vector<int> RowPass::roots(const RowReduction& rows) const {
  std::vector<int> out;
  for (const int reduce : reduces)
    out.push_back(rows.term(reduce).operands[0]);
  if (!reduces.empty()) return out;
  for (size_t i = 0; i < rows.results.size(); ++i)
    if (rows.is_along_row(rows.nest.outputs[i].place)) out.push_back(rows.results[i]);
  return out;
}

int64_t RowReduction::count(const std::vector<size_t>& axes) const {
  int64_t product = 1;
  for (const size_t axis : axes)
    product *= size(axis);
  return product;
}

int64_t RowReduction::kept_sets() const {
  int count = 0;
  for (const RowPass& pass : passes)
    for (const auto& [term, set] : pass.kept)
      count = std::max(count, set + 1);
  return count;
}

bool RowReduction::fills_tile(const std::vector<bool>& varies) const {
  return std::ranges::all_of(dims,
                             [&](size_t axis) { return axis >= varies.size() || varies[axis]; });
}

std::optional<RowReduction> read_rows(const std::vector<LoopNest>& nests) {
  if (nests.size() != 1) return std::nullopt;
  if (std::ranges::any_of(nests[0].loads, &Access::is_gathered)) return std::nullopt;
  RowReduction rows;
  rows.nest = nests[0];
  if (!find_row_axes(rows) || !find_row_terms(rows)) return std::nullopt;
  find_row_passes(rows);
  choose_padding_values(rows);
  find_row_patterns(rows);
  return rows;
}
}  // namespace warploom::loopnest
