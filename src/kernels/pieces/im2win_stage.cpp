#include "kernels/pieces/im2win_stage.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/precision.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "tile/build.h"

namespace warploom::kernels {
namespace {
constexpr int64_t kMostRows = 256;  // of a box of TMA

// The filter's slower axis.
AxisIfAny filter_rows_of(const Contraction& c) {
  for (const size_t axis : c.k)
    if (axis != c.channel && axis != c.window) return axis;
  return std::nullopt;
}
}  // namespace

Im2winProduct::Im2winProduct(const Contraction& contraction, const Precision& used)
    : c(with_swapped_ab(contraction)),
      precision(used),
      second(second_column(contraction)),
      filter_rows(filter_rows_of(c)),
      x(input().dim_of(*c.window)),
      y(filter_rows ? input().dim_of(*filter_rows) : std::nullopt) {}

bool Im2winProduct::is_readable(const Access& from, size_t dim) const {
  const auto& steps = from.at[dim].steps;
  const auto moves = std::ranges::count_if(steps, [](int64_t step) { return step != 0; });
  if (std::ranges::min(steps) < 0) return false;
  const bool in_steps_of_16_bytes = dim == x || from.strides[dim] % 4 == 0;
  const int most_axes = dim == x || dim == y ? 2 : 1;
  return in_steps_of_16_bytes && moves <= most_axes;
}

bool Im2winProduct::reads_patches() const {
  const Access& from = input();
  const Access& weights = c.nest.loads[c.b];
  const auto plane = from.dim_of(*c.channel);
  const bool apart = x && plane && plane != x && plane != y && x != y;
  if (!apart || (filter_rows && !y) || from.at.size() > 5) return false;
  if (from.gather_dim >= 0 || weights.gather_dim >= 0 || from.padding_value != 0 ||
      weights.padding_value != 0)
    return false;
  if (from.strides[*x] != 1 || from.at[*x].steps[c.row] < 1 || from.at[*plane].begin != 0)
    return false;
  for (size_t d = 0; d < from.at.size(); ++d)
    if (!is_readable(from, d)) return false;
  const auto has_dim = [&](size_t axis) { return weights.dim_of(axis).has_value(); };
  return has_dim(c.column) && has_dim(*c.channel) && has_dim(*c.window);
}

Im2winStage::Im2winStage(const Im2winProduct& product, const Im2winConfig& s)
    : of(product),
      tile_q(s.tile_q),
      tile_p(s.tile_p),
      planes(s.block_c),
      taps(s.filter_rows_per_stage),
      tiles(tile_q * tile_p == 64 ? s.num_math_warpgroups : 1),
      planes_first(planes % (of.precision.is_fp16_split() ? 16 : 8) == 0),
      groups(of.size(of.c.channel) / planes),
      parts(ceil_div(of.size(of.filter_rows), taps)),
      across(planes_first ? of.size(of.c.window) : round_up(of.size(of.c.window), 4)),
      depth(planes * taps * across) {
  const Affine& along_row = of.input().at[*of.x];
  const Affine* down = of.y ? &of.input().at[*of.y] : nullptr;
  move_x = along_row.steps[of.c.row];
  move_y = down && of.second ? down->steps[*of.second] : 0;
  apart_x = along_row.steps[*of.c.window];
  apart_y = down ? down->steps[*of.filter_rows] : 0;
  first = along_row.begin & 3;
  begin = along_row.begin - first;
  size_patch();
  order_terms();
}

// Pixels beyond a row's end read on into the next row, which the last one needs too.
void Im2winStage::size_patch() {
  if (of.y) rows = (tile_p - 1) * move_y + (taps - 1) * apart_y + 1;
  // Rows of pixels that are not those of one plane.
  if (tile_p > 1 && move_y == 0) rows = kMostRows + 1;
  const int64_t pixels = of.y ? std::min(tile_q, of.size(of.c.row)) : tile_q;
  const int64_t window = (across - 1) * apart_x;
  const int64_t needed = round_up(first + (pixels - 1) * move_x + window + 1, 4);
  const int64_t last_column = first + (tile_q - 1) * move_x + window;
  const int64_t last_row = (tile_p - 1) * move_y + (taps - 1) * apart_y;
  while (true) {
    const int conflicts = widen(needed);
    const int64_t last = last_column + last_row * width;
    const bool whole_lines = conflicts > 1 && planes_first && rows % 2 == 0;  // planes of banks
    if (last < rows * width && !whole_lines) return;
    ++rows;
  }
}

// Sets the width to the one from `needed` on with the fewest bank conflicts, which it hands back.
int Im2winStage::widen(int64_t needed) {
  width = needed;
  int least = bank_conflicts(needed);
  for (int64_t wider = needed + 4; least > 1 && wider < needed + 32; wider += 4)
    if (const int ways = bank_conflicts(wider); ways < least) {
      width = wider;
      least = ways;
    }
  return least;
}

// How many words of one bank the 8 pixels and 4 elements of the sum that a warp reads at once want.
int Im2winStage::bank_conflicts(int64_t wide) const {
  const int64_t next = planes_first ? rows * wide : apart_x;
  const layout::TvLayout lanes{{8, 4}, {{4, {0, 1}}, {8, {1, 0}}}, {}};
  const layout::MemoryLayout patch{{{{8, move_x}}, {{4, next}}}, {}, 32};
  return layout::bank_conflict_ways(lanes, patch, 4);
}

// Lanes that read at once take 4 neighbours; of fp16x3 each has a pair, whose other one lies
// elsewhere.
void Im2winStage::order_terms() {
  const Term plane{of.c.channel, planes, rows * width};
  const Term tap{of.filter_rows, taps, apart_y * width};
  const Term element{of.c.window, across, apart_x};
  const auto part = [](const Term& term, int64_t extent, int64_t every = 1) {
    return Term{term.axis, extent, term.stride * every, every};
  };
  if (of.precision.is_fp16_split() && planes_first)
    terms = {part(tap, taps), part(element, across), part(plane, planes / 8, 8), part(plane, 4),
             part(plane, 2, 4)};
  else if (of.precision.is_fp16_split())
    terms = {part(plane, planes), part(element, across / 4, 4), part(tap, taps / 2, 2),
             part(element, 4), part(tap, 2)};
  else if (planes_first)
    terms = {tap, element, plane};
  else
    terms = {plane, tap, element};
}

TensorId Im2winStage::windows(tile::Builder& t, TensorId patch, const std::string& name) const {
  std::vector<int64_t> shape = {tile_p, tile_q};
  std::vector<int64_t> strides = {move_y * width, move_x};
  for (const Term& term : terms) {
    shape.push_back(term.extent);
    strides.push_back(term.stride);
  }
  return t.as_strided(name, patch, as_int(first), shape, strides);
}

Prepared Im2winStage::pack_weights(Family::Programs& out, const Capabilities& capabilities) const {
  const Contraction& c = of.c;
  graph::Shape axes = {groups, parts, of.size(c.column)};
  for (const Term& term : terms)
    axes.push_back(term.extent);
  Access source = c.nest.loads[c.b];
  Access made = {.shape = axes, .strides = graph::strides_of(axes)};
  for (Affine& place : source.at) {
    const std::vector<int64_t> steps =
        std::exchange(place.steps, std::vector<int64_t>(axes.size()));
    const auto follow = [&](AxisIfAny old, size_t axis, int64_t times = 1) {
      if (old) place.steps[axis] += steps[*old] * times;
    };
    follow(c.channel, 0, planes);
    follow(of.filter_rows, 1, taps);
    follow(c.column, 2);
    for (size_t i = 0; i < terms.size(); ++i)
      follow(terms[i].axis, 3 + i, terms[i].every);
  }
  source.in_bounds = false;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    made.at.push_back(along(axis, axes.size()));
  std::vector<size_t> over = {0, 1};
  for (size_t axis = 3; axis < axes.size(); ++axis)
    over.push_back(axis);
  const OperandPacking packing{out, "b", of.precision, capabilities};
  const int64_t elements = graph::element_count(axes);
  Prepared packed = packing.convert(axes, over, source, made, elements, 128);
  packed.amax.at = {along(c.column, c.nest.axes.size())};
  return packed;
}
}  // namespace warploom::kernels
