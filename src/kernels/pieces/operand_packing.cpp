#include "kernels/pieces/operand_packing.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/fp16_split.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "tile/program.h"

namespace warploom::kernels {
bool is_whole(const Access& access) {
  const auto from_zero_on = [](const Affine& c) {
    return c.begin == 0 && std::ranges::min(c.steps) >= 0;
  };
  if (!access.in_bounds || access.gather_dim >= 0) return false;
  return std::ranges::all_of(access.at, from_zero_on);
}

bool stores_whole(const Contraction& c) {
  const auto epilogue = epilogue_of(c);
  const auto fits = [](const Access& access) {
    return is_whole(access) && is_computed_float(access.dtype);
  };
  const auto operand_fits = [&](int operand) { return fits(c.nest.loads[at(operand)]); };
  if (!epilogue || !std::ranges::all_of(c.nest.outputs, fits, &LoopNest::Output::place))
    return false;
  return std::ranges::all_of(*epilogue, operand_fits);
}

Prepared OperandPacking::convert(const std::vector<int64_t>& axes, const std::vector<size_t>& over,
                                 const Access& from, const Access& made, int64_t elements,
                                 int64_t across) const {
  const auto workspace = [&](const std::string& suffix) {
    Access access = made;
    access.name = name + suffix;
    access.dtype = precision.is_fp16_split() ? Dtype::f16 : from.dtype;
    out.workspaces.push_back({access.name, access.dtype, {elements}});
    return access;
  };
  LoopNest nest;
  nest.axes = axes;
  nest.loads = {from};
  nest.values = {{.kind = Kind::load}};
  const auto add_value = [&](Expr value) {
    nest.values.push_back(std::move(value));
    return as_int(nest.values.size()) - 1;
  };
  const auto add = [&](ValueOp op, std::vector<int> operands) {
    return add_value({.kind = Kind::apply, .op = op, .operands = std::move(operands)});
  };
  const auto rounded = [&](int value) {
    if (precision.operand == Dtype::tf32) return add(ValueOp::round_tf32, {value});
    if (!precision.is_fp16_split()) return value;
    return add_value({.kind = Kind::round, .dtype = Dtype::f16, .operands = {value}});
  };
  int whole = 0;
  Prepared prepared{workspace("_ready"), {}};
  if (precision.is_fp16_split()) {
    prepared.amax = fp16_split::measure_amax(out, name, axes, from, over, capabilities);
    nest.loads.push_back(prepared.amax);
    const int scale = fp16_split::add_row_scale(nest, 1);
    whole = add(ValueOp::mul, {whole, scale});
  }
  const int high = rounded(whole);
  nest.outputs = {{high, prepared.high}};
  if (precision.terms > 1) {
    prepared.low = workspace("_rest");
    const int rest = add(ValueOp::sub, {whole, high});
    nest.outputs.push_back({rounded(rest), prepared.low});
  }
  direct::add_program(out, "prepare_" + name, std::move(nest), 4096 / across, across, capabilities);
  return prepared;
}

Prepared OperandPacking::place(const Access& from, const std::vector<int64_t>& begin,
                               const std::vector<size_t>& over, const Access& made,
                               int64_t elements) const {
  // An axis for each dimension, the one along which new neighbours lie last, before it the old
  // one's.
  const size_t rank = made.shape.size();
  std::vector<size_t> dims(rank);
  std::iota(dims.begin(), dims.end(), size_t{0});
  const auto closest = [&](const graph::Shape& strides) {
    return at(std::ranges::min_element(strides) - strides.begin());
  };
  const size_t fast = closest(made.strides);
  const size_t slow = closest(from.strides);
  const auto place_of = [&](size_t d) {
    if (d == fast) return 2;
    return d == slow ? 1 : 0;
  };
  std::ranges::stable_sort(dims, {}, place_of);
  std::vector<int64_t> axes;
  std::vector<size_t> over_axes;
  std::vector<Affine> rows;  // the dimensions of a number a row
  Access source = from;
  Access target = made;
  for (const size_t d : dims) {
    if (std::ranges::count(over, d) > 0)
      over_axes.push_back(axes.size());
    else
      rows.push_back(made.at[d]);
    target.at[d] = along(axes.size(), rank);
    axes.push_back(made.shape[d]);
  }
  source.at = target.at;
  for (size_t d = 0; d < rank; ++d) {
    source.at[d].begin = begin[d];
    const bool inside = begin[d] >= 0 && begin[d] + made.shape[d] <= from.shape[d];
    source.in_bounds = source.in_bounds && inside;
  }
  int64_t across = 128;
  const bool turns = fast != slow;
  if (turns) across = std::clamp<int64_t>(power_of_two_above(made.shape[fast]), 4, 64);
  Prepared prepared = convert(axes, over_axes, source, target, elements, across);
  for (Access* access : {&prepared.high, &prepared.low})
    access->at = made.at;
  prepared.amax.at = std::move(rows);
  return prepared;
}

Prepared OperandPacking::repack(const Access& from, size_t row, size_t k, bool along_k) const {
  const size_t neighbours = along_k ? k : row;
  const auto moves = [&](const Affine& c) { return c.steps[neighbours] != 0; };
  const auto fast = at(std::ranges::find_if(from.at, moves) - from.at.begin());
  Access made = from;
  made.strides[fast] = 1;
  // TMA wants rows in steps of 16 bytes, and a box of 128 that begins within a line of the cache
  // reads two.
  const int64_t line = 128 / bytes_of(precision.operand);
  const int64_t length = from.shape[fast];
  const int64_t unit = length < line ? line / 8 : line;
  int64_t next = round_up(length, unit);
  for (size_t d = from.at.size(); d-- > 0;)
    if (d != fast) {
      made.strides[d] = next;
      next *= from.shape[d];
    }
  std::vector<size_t> over;
  for (size_t d = 0; d < from.at.size(); ++d)
    if (from.at[d].steps[k] != 0) over.push_back(d);
  return place(from, std::vector<int64_t>(from.at.size()), over, made, next);
}

Prepared OperandPacking::pack_for_tma(const Access& from, size_t row, size_t k) const {
  const bool along_row = from.stride(row) == 1 && from.stride(k) != 1;
  const bool along_k = bytes_of(precision.operand) != 2 || !along_row;
  const size_t fast = along_k ? k : row;
  // TMA reads neighbours along one axis, all else in steps of 16 bytes.
  bool readable = precision.terms == 1 && from.stride(fast) == 1;
  for (size_t d = 0; d < from.at.size(); ++d) {
    const int64_t stride_bytes = from.strides[d] * bytes_of(from.dtype);
    readable &= from.at[d].steps[fast] != 0 || stride_bytes % 16 == 0;
  }
  return readable ? Prepared{from, {}} : repack(from, row, k, along_k);
}

Contraction filled(Family::Programs& out, Contraction c, const Capabilities& capabilities) {
  for (const auto& [number, triangle] : c.triangular_operands) {
    Access& load = c.nest.loads[number];
    LoopNest nest;
    nest.axes = c.nest.axes;
    nest.loads = {load};
    nest.values = {{}, {.kind = Kind::load}, {.kind = Kind::index, .at = triangle}};
    nest.values.push_back({.kind = Kind::apply, .op = ValueOp::less, .operands = {2, 0}});
    nest.values.push_back({.kind = Kind::apply, .op = ValueOp::where, .operands = {3, 0, 1}});
    for (size_t a = 0; a < nest.axes.size(); ++a)
      if (!load.uses(a)) nest.axes[a] = 1;
    load.name = number == c.a ? "a_filled" : "b_filled";
    nest.outputs = {{4, load}};
    const int64_t elements = tile::span_of(load.shape, load.strides);
    out.workspaces.push_back({load.name, load.dtype, {elements}});
    const std::string program = "fill_" + load.name.substr(0, 1);
    direct::add_program(out, program, std::move(nest), 16, 128, capabilities);
  }
  return c;
}
}  // namespace warploom::kernels
