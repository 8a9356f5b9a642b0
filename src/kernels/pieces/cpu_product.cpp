#include "kernels/pieces/cpu_product.h"
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/whole_product.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::Tile;

Index TileLine::first(const Index& task) const {
  const Index own = task * per_task;
  return count() % per_task == 0 ? own : tile::min(own, count() - per_task);
}

Index TileLine::origin(const Index& number) const {
  const Index own = number * tile;
  return size % tile == 0 ? own : tile::min(own, size - tile);
}

CpuProduct::CpuProduct(const Contraction& contraction, const MatmulCpuConfig& s, int64_t lanes,
                       const loopnest::ZeroPoints* zero_points)
    : c_(contraction),
      nest_(contraction.nest),
      s_(s),
      lanes_(lanes),
      zero_points_(zero_points),
      k_(contraction.k[0]),
      depth_(depth_of_block()),
      rows_(nest_.axes[c_.row], s.tile_m, s.tasks_m),
      columns_(nest_.axes[c_.column], s.tile_n, s.tasks_n),
      result_({c_.row, c_.column}),
      here_(nest_, {{c_.row, s.tile_m}, {c_.column, s.tile_n}}) {
  for (size_t a = 0; a < nest_.axes.size(); ++a)
    if (a != c_.row && a != c_.column && a != k_) walked_.push_back(a);
}

int64_t CpuProduct::tasks() const {
  return count_along(walked_) * rows_.tasks() * columns_.tasks();
}

std::vector<size_t> CpuProduct::outer_axes(const Access& access) const {
  std::vector<size_t> out;
  for (const size_t axis : walked_)
    if (access.uses(axis)) out.push_back(axis);
  return out;
}

int64_t CpuProduct::count_along(const std::vector<size_t>& axes) const {
  int64_t count = 1;
  for (const size_t axis : axes)
    count *= nest_.axes[axis];
  return count;
}

// The number of a place along these axes, the last one fastest.
Index CpuProduct::place_along(const std::vector<size_t>& axes, const TileCoord& at) const {
  Index place = 0;
  for (const size_t axis : axes)
    place = place * nest_.axes[axis] + at.origin[axis];
  return place;
}

void CpuProduct::add_to(Family::Programs& out) {
  if (s_.pack_a == PackedBy::program)
    pack_rows(out);
  else
    global_a_.emplace(draft_, "A", nest_, c_.access_a(), std::vector{c_.row, k_});
  if (s_.pack_b != PackedBy::program)
    global_b_.emplace(draft_, "B", nest_, c_.access_b(), std::vector{k_, c_.column});
  else if (takes_pairs())
    pack_pairs(out);
  else
    pack_panels(out);
  go_to_task();
  begin_width(columns_.tile, "");
  const int64_t whole = has_narrow_end() ? columns_.size / columns_.tile : columns_.per_task;
  t_.for_("j", 0, whole, 1, [&](const Index& j) {
    const Index number = first_panel_ + j;
    column(number, columns_.origin(number));
  });
  if (has_narrow_end()) {
    draft_.role = 1;
    begin_width(columns_.size % columns_.tile, "_end");
    column(whole, whole * columns_.tile);
    draft_.role = 0;
  }
  if (holds_rows()) finish_rows();
  draft_.finish(out);
}

// Tiles of so many columns from here on, and what holds theirs.
void CpuProduct::begin_width(int64_t width, const std::string& suffix) {
  width_ = width;
  here_.extent[c_.column] = width;
  part_ = t_.reg("part" + suffix, sum_type(), {rows_.tile, width});
  if (s_.pack_b == PackedBy::task)
    scratch_b_ = t_.shared("b" + suffix, Dtype::f32, {depth_, width});
  if (holds_rows() && sums_ < 0)
    sums_ = t_.shared("sums", Dtype::f32, {rows_.per_task, rows_.tile, columns_.size});
  if (!holds_rows() && blocks() > 1)
    sums_ = t_.shared("sums" + suffix, sum_type(), {rows_.per_task, rows_.tile, width});
}

// Whether the last column of tiles is narrower than others, by a vector at least, rather than moved
// back.
bool CpuProduct::has_narrow_end() const {
  const int64_t rest = columns_.size % columns_.tile;
  // Of tensors with one column the emitter has rows without padding.
  const bool is_narrower = rest > 1 && ceil_div(rest, lanes_) < ceil_div(columns_.tile, lanes_);
  const bool loads = c_.access_b().dtype == Dtype::f32 || rest % lanes_ == 0;
  const bool one_task = s_.tasks_n == 1 && columns_.size > columns_.tile;
  return one_task && is_narrower && loads && s_.step_k <= 0 && s_.pack_b != PackedBy::program;
}

int64_t CpuProduct::scratch_floats() const {
  const auto whole = [&](int64_t width) { return round_up(width, lanes_); };
  int64_t width = whole(columns_.tile);
  if (has_narrow_end()) width += whole(columns_.size % columns_.tile);
  const int64_t packed = s_.pack_b == PackedBy::task ? depth_ * width : 0;
  const int64_t rows = rows_.per_task * rows_.tile;
  if (holds_rows()) return packed + rows * whole(columns_.size);
  const int64_t floats = zero_points_ ? 2 : 1;  // of a sum
  return packed + (blocks() > 1 ? floats * rows * width : 0);
}

void CpuProduct::go_to_task() {
  const int64_t rows = rows_.tasks();
  const int64_t columns = columns_.tasks();
  t_.grid(tasks()).warps(1);
  first_row_ = rows_.first(tile::block(0) % rows);
  first_panel_ = columns_.first(tile::block(0) / rows % columns);
  TileCoord one(nest_);
  one.place(nest_, walked_, tile::block(0) / (rows * columns));
  here_.origin = one.origin;
}

void CpuProduct::column(const Index& number, const Index& origin) {
  panel_ = number;
  here_.origin[c_.column] = origin;
  const int64_t whole = blocks() - 1;
  if (whole == 1)
    block(0, 0, depth_, false);
  else if (whole > 1)
    t_.for_("k", 0, whole, 1, [&](const Index& k) { block(k, k * depth_, depth_, false); });
  block(whole, whole * depth_, depth_of_sum() - whole * depth_, true);
}

void CpuProduct::block(const Index& number, const Index& k, int64_t depth, bool last) {
  if (scratch_b_ >= 0) {
    TileCoord from = here_;
    from.origin[k_] = k;
    from.extent[k_] = depth;
    from.extent[c_.row] = 1;
    t_.copy(global_b_->at(from), t_.tile(scratch_b_, {0, 0}, {depth, width_}));
  }
  t_.for_("i", 0, rows_.per_task, 1, [&](const Index& i) {
    here_.origin[c_.row] = rows_.origin(first_row_ + i);
    take_over(i, number);
    multiply(k, depth);
    if (s_.step_k > 0) add_before(i, number);
    if (last && !holds_rows())
      store(draft_, c_, part_, here_, result_);
    else
      t_.copy(t_.all(part_), kept(i));
  });
}
}  // namespace warploom::kernels
