// Operands of a product on a CPU packed by programs of their own.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/cpu_product.h"
#include "kernels/pieces/epilogue.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "loopnest/whole_product.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::Tile;

namespace {
// Bytes between rows or panels, so that they do not fall on the same sets of a cache.
constexpr int64_t kPad = 64;
// A task packs so many rows, of so many elements each at most.
constexpr int64_t kPackedRows = 16;
constexpr int64_t kPackedColumns = 1024;
constexpr int64_t kPackedTerms = 32;  // of pairs
}  // namespace

// A → [outer, rows, k], rows at a pitch. Pairs are read along the rows where terms are apart.
void CpuProduct::pack_rows(Family::Programs& out) {
  const Access& access = c_.access_a();
  const int64_t depth = depth_of_sum();
  const int64_t rows = std::min(kPackedRows, rows_.size);
  const int64_t columns = std::min(kPackedColumns, depth);
  const Dtype type = packed_type();
  const int64_t pad = kPad / bytes_of(type);
  const int64_t pitch = round_up(depth, pad) + pad;
  a_.outer = outer_axes(access);
  const std::vector<int64_t> shape = {count_along(a_.outer), rows_.size, depth};
  const std::vector<int64_t> strides = {rows_.size * pitch, pitch, 1};
  out.workspaces.push_back({"a_rows", type, {shape[0] * strides[0]}});

  KernelBuilder draft("pack_a");
  const bool along_rows = takes_pairs() && access.stride(k_) != 1;
  const auto ordered = [&](auto own) {
    if (along_rows) std::swap(own.end()[-1], own.end()[-2]);
    return own;
  };
  const std::vector<size_t> order = ordered(std::vector{c_.row, k_});
  const TensorTile from(draft, "A", nest_, access, order);
  TileCoord at(nest_, {{c_.row, rows}, {k_, columns}});
  auto axes = a_.outer;
  axes.insert(axes.end(), {c_.row, k_});
  at.place(nest_, axes, tile::block(0));
  at.origin[c_.row] = tile::min(at.origin[c_.row], rows_.size - rows);
  at.origin[k_] = tile::min(at.origin[k_], depth - columns);
  const TensorId to = draft.b.output("P", type, ordered(shape), ordered(strides));
  const TensorId held = draft.b.reg("rows", Dtype::f32, ordered(std::vector{rows, columns}));
  draft.buffers["P"] = "a_rows";
  draft.b.grid(at.count(nest_, axes)).warps(1);
  draft.b.copy(from.at(at), draft.b.all(held));
  subtract_zero_point(draft, held, c_.a, at, order);
  const std::vector<Index> origin = {place_along(a_.outer, at), at.origin[c_.row], at.origin[k_]};
  const std::vector<int64_t> extent = {1, rows, columns};
  draft.b.copy(draft.b.all(held), draft.b.tile(to, ordered(origin), ordered(extent)));
  draft.finish(out);

  a_.tensor = t_.global("A", type, shape, strides);
  draft_.buffers["A"] = "a_rows";
}

// B → [outer, panel, k, column of the panel].
void CpuProduct::pack_panels(Family::Programs& out) {
  const Access& access = c_.access_b();
  const int64_t depth = depth_of_sum();
  const int64_t rows = std::min(kPackedRows, depth);
  const int64_t pad = kPad / bytes_of(Dtype::f32);
  const int64_t width = round_up(columns_.tile, pad);
  b_.outer = outer_axes(access);
  const std::vector<int64_t> shape = {count_along(b_.outer), columns_.count(), depth,
                                      columns_.tile};
  const int64_t panel = depth * width + pad;
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

// B → [outer, panel, k / 2, 2, column of the panel], where the two are neighbours. Memory is read
// along columns, or along terms where these are neighbours.
void CpuProduct::pack_pairs(Family::Programs& out) {
  constexpr int64_t kPair = 2;
  const Access& access = c_.access_b();
  const int64_t depth = depth_of_sum();
  const int64_t terms = std::min(kPackedTerms, depth);
  const Dtype type = packed_type();
  const int64_t pad = kPad / bytes_of(type);
  const int64_t pitch = round_up(kPair * columns_.tile, pad);
  const int64_t panel = depth / kPair * pitch + pad;
  b_.outer = outer_axes(access);
  const std::vector<int64_t> shape = {count_along(b_.outer), columns_.count(), depth / kPair, kPair,
                                      columns_.tile};
  const std::vector<int64_t> strides = {shape[1] * panel, panel, pitch, 1, kPair};
  out.workspaces.push_back({"b_pairs", type, {shape[0] * strides[0]}});

  KernelBuilder draft("pack_b");
  const bool along_terms = access.stride(k_) == 1;
  const auto ordered = [&](auto own, int64_t columns_from) {
    if (along_terms) std::rotate(own.begin() + columns_from, own.end() - 1, own.end());
    return own;
  };
  const std::vector<size_t> order = ordered(std::vector{k_, c_.column}, 0);
  const TensorTile from(draft, "B", nest_, access, order);
  TileCoord at(nest_, {{k_, terms}, {c_.column, columns_.tile}});
  auto axes = b_.outer;
  axes.insert(axes.end(), {k_, c_.column});
  at.place(nest_, axes, tile::block(0));
  const Index number = tile::block(0) % columns_.count();
  at.origin[c_.column] = columns_.origin(number);
  at.origin[k_] = tile::min(at.origin[k_], depth - terms);
  const TensorId to = draft.b.output("P", type, ordered(shape, 2), ordered(strides, 2));
  const TensorId held =
      draft.b.reg("panel", Dtype::f32, ordered(std::vector{terms, columns_.tile}, 0));
  draft.buffers["P"] = "b_pairs";
  draft.b.grid(at.count(nest_, axes)).warps(1);
  draft.b.copy(from.at(at), draft.b.all(held));
  subtract_zero_point(draft, held, c_.b, at, order);
  const std::vector<Index> origin = {place_along(b_.outer, at), number, at.origin[k_] / kPair, 0,
                                     0};
  const std::vector<int64_t> extent = {1, 1, terms / kPair, kPair, columns_.tile};
  draft.b.copy(draft.b.all(held), draft.b.tile(to, ordered(origin, 2), ordered(extent, 2)));
  draft.finish(out);

  b_.tensor = t_.global("B", type, shape, strides);
  draft_.buffers["B"] = "b_pairs";
}

// Elements that are held, less their zero point; behind the last term they are 0.
void CpuProduct::subtract_zero_point(KernelBuilder& draft, TensorId held, size_t load,
                                     const TileCoord& at, const std::vector<size_t>& order) const {
  if (!zero_points_) return;
  auto& t = draft.b;
  const loopnest::ZeroPoint& zero = zero_points_->at(load);
  const bool has_odd_depth = nest_.axes[k_] < depth_of_sum();
  if (!zero.load && zero.number == 0) return;
  Value less = tile::constant(zero.number);
  if (zero.load)
    less = t.value(load_beside(draft, c_, "zero", nest_.loads[*zero.load], at, order, 1));
  Value element = t.value(held) - less;
  if (has_odd_depth) {
    const Value term = tile::coordinate(order[0] == k_ ? 0 : 1, at.origin[k_]);
    const Value inside = tile::less(term, tile::constant(as_double(nest_.axes[k_])));
    element = tile::where(inside, element, tile::constant(0));
  }
  t.map(held, element);
}
}  // namespace warploom::kernels
