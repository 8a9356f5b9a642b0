#include "kernels/pieces/scan_walk.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_tile.h"
#include "kernels/pieces/loop_values.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels::direct {
using tile::ReduceOp;

namespace {
// Scans that go beyond a tile.
std::vector<size_t> carried_scans(const LoopTile& tile) {
  std::vector<size_t> scans;
  const size_t axis = *tile.tiling.scanned;
  if (tile.nest.axes[axis] <= tile.extent(axis)) return scans;
  for (size_t v = 0; v < tile.nest.values.size(); ++v)
    if (tile.nest.values[v].kind == Kind::scan) scans.push_back(v);
  return scans;
}
}  // namespace

ScanWalk::ScanWalk(LoopTile& tile, LoopValues& values)
    : t_(tile),
      values_(values),
      nest_(tile.nest),
      b_(tile.b),
      axis_(*tile.tiling.scanned),
      carried_(carried_scans(tile)),
      look_back_(tile, rounds(), std::ssize(carried_)) {}

int64_t ScanWalk::rounds() const {
  return ceil_div(nest_.axes[axis_], t_.extent(axis_) * t_.options.ctas_per_scan);
}

void ScanWalk::run() {
  for (size_t v = 0; v < nest_.values.size(); ++v)
    if (!nest_.values[v].varies[axis_]) values_.compute(v);
  start_carries();
  const auto at_turn = [&](const Index& turn) { step(turn); };
  if (t_.options.ctas_per_scan > 1) {
    prefetch(0);
    b_.for_("i", 0, rounds(), 1, at_turn);
    return;
  }
  const int64_t size = nest_.axes[axis_];
  const int64_t whole_tiles = size / t_.extent(axis_);
  if (whole_tiles > 1)
    b_.for_("i", 0, whole_tiles, 1, at_turn);
  else if (whole_tiles == 1)
    step(0);
  if (size % t_.extent(axis_) != 0) step(whole_tiles);
}

void ScanWalk::start_carries() {
  for (const size_t v : carried_)
    for (const char* const stem : {"before", "lost"})
      b_.fill(one_a_line(stem, v), 0);
}

// Loads come first: the first scan fetches what the next turn loads.
void ScanWalk::step(const Index& turn) {
  go_along(turn);
  const auto varies = [&](size_t v) { return nest_.values[v].varies[axis_]; };
  for (size_t v = 0; v < nest_.values.size(); ++v)
    if (varies(v) && nest_.values[v].kind == Kind::load) values_.compute(v);
  for (size_t v = 0; v < nest_.values.size(); ++v) {
    const Kind kind = nest_.values[v].kind;
    if (!varies(v) || kind == Kind::load) continue;
    if (kind == Kind::scan)
      scan(v);
    else
      values_.compute(v);
  }
  for (size_t i = 0; i < nest_.outputs.size(); ++i)
    values_.store(i);
  for (const size_t v : carried_)
    carry(v);
}

// To the tile of that turn; of CTAs that scan together each has one a round.
void ScanWalk::go_along(const Index& turn) {
  const int64_t ctas = t_.options.ctas_per_scan;
  const int64_t extent = t_.extent(axis_);
  const Index number = turn * ctas + (ctas > 1 ? t_.cta_rank() : Index(0));
  turn_ = turn;
  const Index last = nest_.axes[axis_] - extent;
  t_.move_to(axis_, t_.tiling.reverse ? last - number * extent : number * extent);
}

void ScanWalk::prefetch(const Index& turn) {
  const Index here = turn_;
  go_along(turn);
  values_.prefetch(axis_);
  go_along(here);
}

TensorId ScanWalk::one_a_line(const char* stem, size_t v) {
  auto varies = nest_.values[v].varies;
  varies[axis_] = false;
  return values_.reg(stem, v, varies);
}

void ScanWalk::scan(size_t v) {
  const Expr& value = nest_.values[v];
  const TensorId term = values_.reg("term", v, value.varies);
  const auto operand = as_size(value.operands[0]);
  values_.map(term, values_.expression_of(operand), value.integers);
  const TensorId own = scan_tile(v, term);
  if (!is_carried(v)) return values_.hold(v, own);
  const TensorId all = values_.reg("v", v, value.varies);
  values_.hold(v, all);
  const Value before = b_.value(one_a_line("before", v));
  if (value.integers) return b_.map_integers(all, before + b_.value(own));
  Value since = b_.value(one_a_line("lost", v));
  if (t_.options.ctas_per_scan > 1) since = b_.value(one_a_line("behind", v)) + since;
  b_.map(all, before + (b_.value(own) + since));
}

TensorId ScanWalk::scan_tile(size_t v, TensorId term) {
  const Expr& value = nest_.values[v];
  if (t_.extent(axis_) == 1) {
    if (is_carried(v)) values_.map(one_a_line("total", v), b_.value(term), value.integers);
    return term;
  }
  const int dim = t_.dim_of(axis_);
  const TensorId prefixes = values_.reg("prefix", v, value.varies);
  const auto scan_own = [&] { b_.scan(prefixes, term, dim, ReduceOp::sum, t_.tiling.reverse); };
  if (is_carried(v)) b_.reduce(one_a_line("total", v), term, dim, ReduceOp::sum);
  if (t_.options.ctas_per_scan == 1) {
    scan_own();
    return prefixes;
  }
  const auto number = std::ranges::find(carried_, v) - carried_.begin();
  const auto meanwhile = [&] {
    if (number == 0) prefetch(turn_ + 1);
    scan_own();
  };
  const TensorId total = one_a_line("total", v);
  look_back_.exchange({v, number, axis_, value.varies, total}, turn_, meanwhile);
  return prefixes;
}

// before ← before + total, and what rounding loses of it.
void ScanWalk::carry(size_t v) {
  const TensorId before = one_a_line("before", v);
  const TensorId lost = one_a_line("lost", v);
  const TensorId sum = one_a_line("sum", v);
  const Value total = b_.value(one_a_line("total", v));
  if (nest_.values[v].integers) return b_.map_integers(before, b_.value(before) + total);
  b_.map(sum, b_.value(before) + total);
  const Value added = b_.value(sum) - b_.value(before);
  b_.map(lost, b_.value(lost) + (total - added));
  b_.map(lost, tile::finite_or_0(b_.value(lost)));
  b_.map(before, b_.value(sum));
}
}  // namespace warploom::kernels::direct
