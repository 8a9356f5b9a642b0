#include "kernels/gpu_matmul.h"

#include <fmt/format.h>

namespace warploom::kernels {

using tile::Index;
using tile::TensorId;

std::optional<Precision> precision_of(const MatmulRegion& region, Track track) {
  if (region.a.dtype != region.b.dtype) return std::nullopt;
  if (region.a.dtype == Dtype::bf16 && track != Track::fp16) return Precision{Dtype::bf16, 1};
  if (region.a.dtype == Dtype::f16 && track != Track::bf16) return Precision{Dtype::f16, 1};
  if (region.a.dtype != Dtype::f32) return std::nullopt;
  if (track == Track::tf32) return Precision{Dtype::tf32, 1};
  if (track == Track::fp32 || track == Track::tolerance) return Precision{Dtype::tf32, 3};
  return std::nullopt;
}

Error illegal(const Schedule& schedule, const std::string& expected, const std::string& found) {
  return {
      ErrorCode::kScheduleIllegal,     "the schedule's fields cannot hold together", schedule.text(), expected, found,
      "change one of the fields named"};
}

namespace {

// A workspace [batch…, rows, k rounded up to 4], dense; stretched batch axes stay stretched.
View workspace_view(Family::Programs& out, const std::string& name, const View& like) {
  const std::size_t rank = like.batch_rank();
  View view;
  view.name = name;
  view.dtype = Dtype::f32;
  view.shape = like.shape;
  view.strides.assign(rank + 2, 0);
  const std::int64_t row = round_up(like.shape[rank + 1], 4);
  std::int64_t next = row * like.shape[rank];
  view.strides[rank] = row;
  view.strides[rank + 1] = 1;
  for (std::size_t i = rank; i-- > 0;)
    if (like.shape[i] > 1) view.strides[i] = next, next *= like.shape[i];
  out.workspaces.push_back({name, Dtype::f32, {next}});
  return view;
}

bool ready(const View& view) {
  const std::size_t rank = view.batch_rank();
  for (std::size_t i = 0; i <= rank; ++i)
    if (view.shape[i] > 1 && view.strides[i] % 4) return false;
  return view.strides[rank + 1] == 1;
}

}  // namespace

Prepared prepare_operand(Family::Programs& out, const std::string& name, const View& view, const Precision& precision) {
  if (precision.operand != Dtype::tf32 || (precision.terms == 1 && ready(view))) return {view, {}};
  const std::size_t rank = view.batch_rank();
  const std::int64_t rows = view.shape[rank], k = view.shape[rank + 1];
  Prepared prepared;
  prepared.high = workspace_view(out, name + "_tf32", view);
  if (precision.terms > 1) prepared.low = workspace_view(out, name + "_rest", view);

  // One block turns a 32×128 tile (64×64 when it transposes): rounded to tf32, and what the rounding lost.
  const bool transposes = view.strides[rank + 1] != 1;
  const std::int64_t tile_rows = transposes ? 64 : 32, tile_k = transposes ? 64 : 128;
  Draft draft("prepare_" + name);
  auto& b = draft.b;
  std::int64_t batches = 1;
  for (std::size_t i = 0; i < rank; ++i) batches *= view.shape[i];
  b.grid(ceil_div(k, tile_k), ceil_div(rows, tile_rows), batches);
  b.warps(8);
  const TensorId src = draft.input("X", view);
  const TensorId high = draft.output("X_tf32", prepared.high);
  const TensorId low = precision.terms > 1 ? draft.output("X_rest", prepared.low) : -1;
  // A batch axis of size 1 here is stretched in the region; the grid counts this operand's own.
  std::vector<std::int64_t> own_batch(view.shape.begin(), view.shape.begin() + static_cast<std::ptrdiff_t>(rank));
  const Index row = tile::block(1) * tile_rows, column = tile::block(0) * tile_k;
  const auto extent = box(view, tile_rows, tile_k);
  const std::int64_t er = tile_rows, ek = tile_k;
  auto at = [&](TensorId tensor, const View& of) {
    return b.tile(tensor, offsets(of, own_batch, tile::block(2), row, column), extent);
  };
  TensorId x = b.reg("x", Dtype::f32, {er, ek});
  b.copy(at(src, view), b.all(x), 0, true);
  if (transposes) {
    const TensorId turned = b.shared("turn", Dtype::f32, {er, ek});
    const TensorId y = b.reg("y", Dtype::f32, {er, ek});
    b.copy(b.all(x), b.all(turned));
    b.copy(b.all(turned), b.all(y));
    x = y;
  }
  const TensorId rounded = b.reg("rounded", Dtype::f32, {er, ek});
  b.map(rounded, tile::apply(ValueOp::round_tf32, {b.value(x)}));
  b.copy(b.all(rounded), at(high, prepared.high));
  if (low >= 0) {
    const TensorId rest = b.reg("rest", Dtype::f32, {er, ek});
    b.map(rest, tile::apply(ValueOp::round_tf32, {b.value(x) - b.value(rounded)}));
    b.copy(b.all(rest), at(low, prepared.low));
  }
  out.programs.push_back(b.finish());
  out.buffers.push_back(draft.buffers);
  return prepared;
}

}  // namespace warploom::kernels
