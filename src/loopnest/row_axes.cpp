// The axes of a row reduction: which the rows go along, and how they lie in memory.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <vector>
#include "base/casts.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reader.h"
#include "loopnest/row_reduction.h"

namespace warploom::loopnest {
namespace {
// Whether each dimension is a step of one along an axis of its own, of a type to compute with.
bool is_plain(const Access& access) {
  std::set<size_t> axes;
  for (const Affine& dim : access.at) {
    const auto stepped = stepped_axes(dim);
    if (stepped.empty()) continue;
    const bool is_an_axis = stepped.size() == 1 && dim.steps[stepped[0]] == 1;
    if (!is_an_axis || !axes.insert(stepped[0]).second) return false;
  }
  return is_computed(access.dtype);
}

size_t count_used(const Access& access, const std::vector<size_t>& axes) {
  const auto used = [&](size_t axis) { return access.uses(axis); };
  return as_size(std::ranges::count_if(axes, used));
}

// Whether all reductions go over the row, by operations that kernels combine by.
bool reduces_rows_alone(const RowReduction& rows) {
  return std::ranges::all_of(rows.nest.values, [&](const Expr& value) {
    if (value.kind != Kind::reduce) return true;
    const bool known = reduce_op(value.op).has_value();
    return known && value.axes.size() == rows.row.size();
  });
}

// Whether an output is written along all outer axes, and along all or none of the row's.
bool is_written_by_rows(const RowReduction& rows, const Access& place) {
  const size_t along_row = rows.is_along_row(place) ? rows.row.size() : 0;
  const bool along_all_outer = count_used(place, rows.outer) == rows.outer.size();
  return is_plain(place) && along_all_outer && count_used(place, rows.row) == along_row;
}
}  // namespace

bool find_row_axes(RowReduction& rows) {
  const LoopNest& nest = rows.nest;
  const auto reduced = nest.reduced();
  for (size_t i = 0; i < nest.axes.size(); ++i)
    (reduced[i] ? rows.row : rows.outer).push_back(i);
  const bool no_elements = std::ranges::count(nest.axes, 0) > 0;
  const bool empty = rows.row.empty() || no_elements;
  if (nest.scan() || nest.has_integers() || empty) return false;
  if (!reduces_rows_alone(rows) || !std::ranges::all_of(nest.loads, is_plain)) return false;
  for (const LoopNest::Output& output : nest.outputs)
    if (!is_written_by_rows(rows, output.place)) return false;

  // A load along all axes says how they lie in memory; without one this is a contraction, which
  // reads too much row by row.
  const auto all = std::ranges::find_if(nest.loads, [&](const Access& load) {
    const size_t used = count_used(load, rows.outer) + count_used(load, rows.row);
    return used == nest.axes.size();
  });
  if (all == nest.loads.end()) return false;
  const auto stride = [&](size_t axis) { return all->stride(axis); };
  std::ranges::stable_sort(rows.row, std::greater{}, stride);
  rows.tiled_outer = nest.axes.size();
  if (!rows.outer.empty()) rows.tiled_outer = rows.outer.back();
  for (const size_t axis : rows.outer) {
    if (stride(axis) != 1) continue;
    rows.tiled_outer = axis;
    rows.interleaved = true;
  }
  rows.dims = rows.row;
  const auto place = rows.interleaved ? rows.dims.end() : rows.dims.begin();
  rows.dims.insert(place, rows.tiled_outer);
  return true;
}
}  // namespace warploom::loopnest
