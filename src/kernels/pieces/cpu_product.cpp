#include "kernels/pieces/cpu_product.h"
#include <algorithm>
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
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Tile;

// Floats between rows or panels, so that they do not fall on the same sets of a cache.
constexpr int64_t kPad = 16;
// A task packs so many rows, of so many elements each at most.
constexpr int64_t kPackedRows = 16;
constexpr int64_t kPackedColumns = 1024;
}  // namespace

Index TileLine::first(const Index& task) const {
  const Index own = task * per_task;
  return count() % per_task == 0 ? own : tile::min(own, count() - per_task);
}

Index TileLine::origin(const Index& number) const {
  const Index own = number * tile;
  return size % tile == 0 ? own : tile::min(own, size - tile);
}

CpuProduct::CpuProduct(const Contraction& contraction, const MatmulCpuConfig& s, int64_t lanes)
    : c_(contraction),
      nest_(contraction.nest),
      s_(s),
      lanes_(lanes),
      k_(contraction.k[0]),
      depth_(ceil_div(nest_.axes[k_], ceil_div(nest_.axes[k_], s.block_k))),
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

// A → [outer, rows, k], rows at a pitch.
void CpuProduct::pack_rows(Family::Programs& out) {
  const Access& access = c_.access_a();
  const int64_t depth = depth_of_sum();
  const int64_t rows = std::min(kPackedRows, rows_.size);
  const int64_t columns = std::min(kPackedColumns, depth);
  const int64_t pitch = round_up(depth, kPad) + kPad;
  a_.outer = outer_axes(access);
  const std::vector<int64_t> shape = {count_along(a_.outer), rows_.size, depth};
  const std::vector<int64_t> strides = {rows_.size * pitch, pitch, 1};
  out.workspaces.push_back({"a_rows", Dtype::f32, {shape[0] * strides[0]}});

  KernelBuilder draft("pack_a");
  const TensorTile from(draft, "A", nest_, access, {c_.row, k_});
  TileCoord at(nest_, {{c_.row, rows}, {k_, columns}});
  auto axes = a_.outer;
  axes.insert(axes.end(), {c_.row, k_});
  at.place(nest_, axes, tile::block(0));
  at.origin[c_.row] = tile::min(at.origin[c_.row], rows_.size - rows);
  at.origin[k_] = tile::min(at.origin[k_], depth - columns);
  const TensorId to = draft.b.output("P", Dtype::f32, shape, strides);
  const TensorId held = draft.b.reg("rows", Dtype::f32, {rows, columns});
  draft.buffers["P"] = "a_rows";
  draft.b.grid(at.count(nest_, axes)).warps(1);
  draft.b.copy(from.at(at), draft.b.all(held));
  const Tile place = draft.b.tile(to, {place_along(a_.outer, at), at.origin[c_.row], at.origin[k_]},
                                  {1, rows, columns});
  draft.b.copy(draft.b.all(held), place);
  draft.finish(out);

  a_.tensor = t_.global("A", Dtype::f32, shape, strides);
  draft_.buffers["A"] = "a_rows";
}

// B → [outer, panel, k, column of the panel].
void CpuProduct::pack_panels(Family::Programs& out) {
  const Access& access = c_.access_b();
  const int64_t depth = depth_of_sum();
  const int64_t rows = std::min(kPackedRows, depth);
  const int64_t width = round_up(columns_.tile, kPad);
  b_.outer = outer_axes(access);
  const std::vector<int64_t> shape = {count_along(b_.outer), columns_.count(), depth,
                                      columns_.tile};
  const int64_t panel = depth * width + kPad;
  const std::vector<int64_t> strides = {shape[1] * panel, panel, width, 1};
  out.workspaces.push_back({"b_panels", Dtype::f32, {shape[0] * strides[0]}});

  KernelBuilder draft("pack_b");
  const TensorTile from(draft, "B", nest_, access, {k_, c_.column});
  TileCoord at(nest_, {{k_, rows}, {c_.column, columns_.tile}});
  auto axes = b_.outer;
  axes.insert(axes.end(), {k_, c_.column});
  at.place(nest_, axes, tile::block(0));
  const Index number = tile::block(0) % columns_.count();
  at.origin[c_.column] = columns_.origin(number);
  at.origin[k_] = tile::min(at.origin[k_], depth - rows);
  const TensorId to = draft.b.output("P", Dtype::f32, shape, strides);
  const TensorId held = draft.b.reg("panel", Dtype::f32, {rows, columns_.tile});
  draft.buffers["P"] = "b_panels";
  draft.b.grid(at.count(nest_, axes)).warps(1);
  draft.b.copy(from.at(at), draft.b.all(held));
  const Tile place = draft.b.tile(to, {place_along(b_.outer, at), number, at.origin[k_], 0},
                                  {1, 1, rows, columns_.tile});
  draft.b.copy(draft.b.all(held), place);
  draft.finish(out);

  b_.tensor = t_.global("B", Dtype::f32, shape, strides);
  draft_.buffers["B"] = "b_panels";
}

void CpuProduct::add_to(Family::Programs& out) {
  if (s_.pack_a == PackedBy::program)
    pack_rows(out);
  else
    global_a_.emplace(draft_, "A", nest_, c_.access_a(), std::vector{c_.row, k_});
  if (s_.pack_b == PackedBy::program)
    pack_panels(out);
  else
    global_b_.emplace(draft_, "B", nest_, c_.access_b(), std::vector{k_, c_.column});
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
  part_ = t_.reg("part" + suffix, Dtype::f32, {rows_.tile, width});
  if (s_.pack_b == PackedBy::task)
    scratch_b_ = t_.shared("b" + suffix, Dtype::f32, {depth_, width});
  if (holds_rows() && sums_ < 0)
    sums_ = t_.shared("sums", Dtype::f32, {rows_.per_task, rows_.tile, columns_.size});
  if (!holds_rows() && blocks() > 1)
    sums_ = t_.shared("sums" + suffix, Dtype::f32, {rows_.per_task, rows_.tile, width});
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
  return packed + (blocks() > 1 ? rows * width : 0);
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

Tile CpuProduct::kept(const Index& row) const {
  const Index column = holds_rows() ? here_.origin[c_.column] : Index(0);
  return t_.tile(sums_, {row, 0, column}, {1, rows_.tile, width_});
}

// What follows sums that are whole rows, one row after another.
void CpuProduct::finish_rows() {
  const TensorId row = t_.reg("row", Dtype::f32, {1, columns_.size});
  t_.for_("i", 0, rows_.per_task, 1, [&](const Index& i) {
    t_.for_("r", 0, rows_.tile, 1, [&](const Index& r) {
      TileCoord whole = here_;
      whole.origin[c_.row] = rows_.origin(first_row_ + i) + r;
      whole.origin[c_.column] = 0;
      whole.extent[c_.row] = 1;
      whole.extent[c_.column] = columns_.size;
      t_.copy(t_.tile(sums_, {i, r, 0}, {1, 1, columns_.size}), t_.all(row));
      store(draft_, c_, row, whole, result_);
    });
  });
}

// What a product adds its own sum to: 0, or what the blocks before have summed.
void CpuProduct::take_over(const Index& row, const Index& number) {
  const auto copy = [&] { t_.copy(kept(row), t_.all(part_)); };
  const bool adds = blocks() > 1 && s_.step_k <= 0;
  const auto known = number.constant();
  if (adds && known.value_or(0) > 0) return copy();
  t_.fill(part_, 0);
  if (adds && !known) t_.if_less(0, number, copy);
}

// Where a block is several products, each would add to all that was before: it is added behind
// them.
void CpuProduct::add_before(const Index& row, const Index& number) {
  if (blocks() == 1) return;
  const TensorId before = draft_.reg("before", Dtype::f32, {rows_.tile, width_});
  const auto add = [&] {
    t_.copy(kept(row), t_.all(before));
    t_.map(part_, t_.value(before) + t_.value(part_));
  };
  const auto known = number.constant();
  if (known.value_or(0) > 0) return add();
  if (!known) t_.if_less(0, number, add);
}

Tile CpuProduct::rows_of_a(const Index& k, int64_t depth) const {
  if (a_.tensor >= 0)
    return t_.tile(a_.tensor, {place_along(a_.outer, here_), here_.origin[c_.row], k},
                   {1, rows_.tile, depth});
  TileCoord from = here_;
  from.origin[k_] = k;
  from.extent[k_] = depth;
  return global_a_->at(from);
}

// In the tensor, or packed by a program.
Tile CpuProduct::panel_of_b(const Index& k, int64_t depth) const {
  if (b_.tensor >= 0)
    return t_.tile(b_.tensor, {place_along(b_.outer, here_), panel_, k, 0}, {1, 1, depth, width_});
  TileCoord from = here_;
  from.origin[k_] = k;
  from.extent[k_] = depth;
  return global_b_->at(from);
}

// part = A · b. Where the tile is wider than registers hold, some terms at a time.
void CpuProduct::multiply(const Index& k, int64_t depth) {
  const int64_t step = s_.step_k <= 0 ? depth : std::min(s_.step_k, depth);
  const auto take = [&](const Index& at, int64_t deep) {
    const Tile b =
        scratch_b_ >= 0 ? t_.tile(scratch_b_, {at, 0}, {deep, width_}) : panel_of_b(k + at, deep);
    t_.mma(part_, rows_of_a(k + at, deep), b);
  };
  if (step == depth) return take(0, depth);
  t_.for_("p", 0, depth / step, 1, [&](const Index& p) { take(p * step, step); });
  if (const int64_t rest = depth % step; rest > 0) take(depth - rest, rest);
}
}  // namespace warploom::kernels
