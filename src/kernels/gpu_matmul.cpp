#include "kernels/gpu_matmul.h"
namespace warploom::kernels {
using tile::Index;
using tile::TensorId;

std::optional<Precision> precision_of(Dtype a, Dtype b, Track track) {
  if (a != b) return std::nullopt;
  if (a == Dtype::bf16 && track != Track::fp16) return Precision{Dtype::bf16, 1};
  if (a == Dtype::f16 && track != Track::bf16) return Precision{Dtype::f16, 1};
  if (bits_of(a) == 8 && (track == Track::fp8 || track == Track::tolerance)) return Precision{a, 1};
  if (a != Dtype::f32) return std::nullopt;
  if (track == Track::tf32) return Precision{Dtype::tf32, 1};
  if (track == Track::fp32 || track == Track::tolerance) return Precision{Dtype::tf32, 3};
  return std::nullopt;
}

Status fits_shared(const Schedule& schedule, std::int64_t bytes, const target::Capabilities& capabilities) {
  if (bytes <= capabilities.shared_bytes) return ok();
  return fail({ErrorCode::kResourceLimit, "a block needs more shared memory than the target has", schedule.text(),
               fmt::format("at most {} bytes", capabilities.shared_bytes), fmt::format("{} bytes", bytes),
               "use fewer stages or a smaller tile"});
}

bool engine_reads(const View& view) {
  const std::size_t rank = view.batch_rank();
  const auto fast = static_cast<std::size_t>(view.fast_axis()) + rank;
  for (std::size_t i = 0; i < rank + 2; ++i)
    if (i != fast && view.shape[i] > 1 && view.strides[i] * bytes_of(view.dtype) % 16) return false;
  return view.strides[fast] == 1;
}

void fragment_products(Draft& draft, const Precision& precision, TensorId acc, TensorId fa, TensorId fb,
                       const std::vector<std::int64_t>& a_shape, const std::vector<std::int64_t>& b_shape) {
  auto& t = draft.b;
  if (precision.operand != Dtype::tf32) {
    t.mma(acc, t.all(fa), t.all(fb));
    return;
  }
  auto part = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    const auto known = draft.named.find(name);
    return known != draft.named.end() ? known->second : draft.named[name] = t.reg(name, Dtype::tf32, shape);
  };
  const TensorId a = part("fa_tf32", a_shape), b = part("fb_tf32", b_shape);
  t.copy(t.all(fa), t.all(a));
  t.copy(t.all(fb), t.all(b));
  if (precision.terms > 1) {
    const TensorId a_rest = part("fa_rest", a_shape), b_rest = part("fb_rest", b_shape);
    t.map(a_rest, t.value(fa) - t.value(a));
    t.map(b_rest, t.value(fb) - t.value(b));
    t.mma(acc, t.all(a_rest), t.all(b));
    t.mma(acc, t.all(a), t.all(b_rest));
  }
  t.mma(acc, t.all(a), t.all(b));
}

MatmulRegion exchanged(const MatmulRegion& region) {
  MatmulRegion out = region;
  out.a = region.b.transposed(), out.b = region.a.transposed(), out.out = region.out.transposed();
  for (View& operand : out.operands) operand = operand.transposed();
  std::swap(out.m, out.n);
  return out;
}
namespace {
// A workspace of the shape of `like` with `fast` (0: rows, 1: k) contiguous and every row of 16 bytes; stretched batch axes stay so.
View workspace_view(Family::Programs& out, const std::string& name, const View& like, int fast) {
  const std::size_t rank = like.batch_rank(), inner = rank + static_cast<std::size_t>(fast),
                    outer = rank + 1 - static_cast<std::size_t>(fast);
  View view;
  view.name = name, view.dtype = like.dtype, view.shape = like.shape;
  view.strides.assign(rank + 2, 0);
  view.strides[inner] = 1;
  view.strides[outer] = round_up(like.shape[inner], 16 / bytes_of(like.dtype));
  std::int64_t next = view.strides[outer] * like.shape[outer];
  for (std::size_t i = rank; i-- > 0;)
    if (like.shape[i] > 1) view.strides[i] = next, next *= like.shape[i];
  out.workspaces.push_back({name, like.dtype, {next}});
  return view;
}
}  // namespace
Prepared prepare_operand(Family::Programs& out, const std::string& name, const View& view, const Precision& precision) {
  const bool any_major = bytes_of(precision.operand) == 2, rounds = precision.operand == Dtype::tf32;
  const int fast = any_major ? view.fast_axis() : 1;
  const bool transposes = view.fast_axis() != fast;
  if (precision.terms == 1 && !transposes && engine_reads(view)) return {view, {}};
  const std::size_t rank = view.batch_rank();
  const std::int64_t rows = view.shape[rank], k = view.shape[rank + 1];
  Prepared prepared;
  prepared.high = workspace_view(out, name + "_ready", view, fast);
  if (precision.terms > 1) prepared.low = workspace_view(out, name + "_rest", view, fast);

  // One block turns a tile: rounded to tf32, and what the rounding lost, or as it is.
  const std::int64_t tile_rows = transposes ? 64 : fast == 1 ? 32 : 128, tile_k = transposes ? 64 : 4096 / tile_rows;
  Draft draft("prepare_" + name);
  auto& b = draft.b;
  // A batch axis of size 1 here is stretched in the region; the grid counts this operand's own.
  const std::vector<std::int64_t> own_batch(view.shape.begin(), view.shape.begin() + static_cast<std::ptrdiff_t>(rank));
  std::int64_t batches = 1;
  for (const auto size : own_batch) batches *= size;
  b.grid(ceil_div(k, tile_k), ceil_div(rows, tile_rows), batches);
  b.warps(8);
  const TensorId src = draft.input("X", view);
  const TensorId high = draft.output("X_ready", prepared.high);
  const TensorId low = precision.terms > 1 ? draft.output("X_rest", prepared.low) : -1;
  const Index row = tile::block(1) * tile_rows, column = tile::block(0) * tile_k;
  const auto extent = box(view, tile_rows, tile_k);
  const std::vector<std::int64_t> shape = {tile_rows, tile_k};
  auto at = [&](TensorId tensor, const View& of) {
    return b.tile(tensor, offsets(of, own_batch, tile::block(2), row, column), extent);
  };
  TensorId x = b.reg("x", view.dtype, shape);
  b.copy(at(src, view), b.all(x), 0, true);
  if (transposes) {
    const TensorId turned = b.shared("turn", view.dtype, shape);
    const TensorId y = b.reg("y", view.dtype, shape);
    b.copy(b.all(x), b.all(turned));
    b.copy(b.all(turned), b.all(y));
    x = y;
  }
  if (rounds) {
    const TensorId rounded = b.reg("rounded", Dtype::f32, shape);
    b.map(rounded, tile::apply(ValueOp::round_tf32, {b.value(x)}));
    b.copy(b.all(rounded), at(high, prepared.high));
    if (low >= 0) {
      const TensorId rest = b.reg("rest", Dtype::f32, shape);
      b.map(rest, tile::apply(ValueOp::round_tf32, {b.value(x) - b.value(rounded)}));
      b.copy(b.all(rest), at(low, prepared.low));
    }
  } else {
    b.copy(b.all(x), at(high, prepared.high));
  }
  out.programs.push_back(b.finish());
  out.buffers.push_back(draft.buffers);
  return prepared;
}

void sum_parts(Family::Programs& out, const MatmulRegion& region, const View& parts, std::int64_t split) {
  const std::int64_t rows = region.m < 16 ? 4 : 16, columns = 256;
  const TileOrder order{ceil_div(region.m, rows), ceil_div(region.n, columns), region.batch_count(), 1};
  Draft draft("sum_parts");
  auto& t = draft.b;
  t.grid(order.count()).warps(8);
  const TensorId P = draft.input("P", parts);
  std::vector<TensorId> operands;
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    operands.push_back(draft.input(fmt::format("E{}", i), region.operands[i]));
  const TensorId C = draft.output("C", region.out);
  const TileOrder::Position at = order.at(tile::block(0));
  const TensorId acc = t.reg("acc", Dtype::f32, {rows, columns}), x = t.reg("x", Dtype::f32, {rows, columns});
  for (std::int64_t s = 0; s < split; ++s) {
    const auto part = t.tile(P, {at.batch + s * order.batch, at.m * rows, at.n * columns}, {1, rows, columns});
    t.copy(part, t.all(s == 0 ? acc : x), 0, true);
    if (s > 0) t.map(acc, t.value(acc) + t.value(x));
  }
  const TensorId result = epilogue(draft, region, operands, acc, at, rows, columns);
  t.copy(t.all(result),
         t.tile(C, offsets(region.out, region.batch, at.batch, at.m * rows, at.n * columns), box(region.out, rows, columns)));
  out.programs.push_back(t.finish());
  out.buffers.push_back(draft.buffers);
}
}  // namespace warploom::kernels
