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

void fragment_products(Draft& draft, const Precision& precision, TensorId acc, TensorId fa, TensorId fb,
                       const std::vector<std::int64_t>& a_shape, const std::vector<std::int64_t>& b_shape) {
  auto& t = draft.b;
  if (precision.operand != Dtype::tf32) {
    t.mma(acc, t.all(fa), t.all(fb));
    return;
  }
  const TensorId a = draft.reg("fa_tf32", Dtype::tf32, a_shape), b = draft.reg("fb_tf32", Dtype::tf32, b_shape);
  t.copy(t.all(fa), t.all(a));
  t.copy(t.all(fb), t.all(b));
  if (precision.terms > 1) {
    const TensorId a_rest = draft.reg("fa_rest", Dtype::tf32, a_shape), b_rest = draft.reg("fb_rest", Dtype::tf32, b_shape);
    t.map(a_rest, t.value(fa) - t.value(a));
    t.map(b_rest, t.value(fb) - t.value(b));
    t.mma(acc, t.all(a_rest), t.all(b));
    t.mma(acc, t.all(a), t.all(b_rest));
  }
  t.mma(acc, t.all(a), t.all(b));
}

TileOrder::TileOrder(const Contraction& contraction, NestTile tile, std::int64_t group, std::int64_t cluster)
    : c_(contraction),
      tile_(std::move(tile)),
      cluster_(cluster),
      tiles_m_(ceil_div(tile_.count(c_.nest, c_.m), cluster)),
      tiles_n_(tile_.count(c_.nest, c_.n)),
      batch_(tile_.count(c_.nest, c_.batch)) {
  // The divisor of tiles_m nearest to `group`, so that every group is whole.
  const auto distance = [&](std::int64_t w) { return w > group ? w * 8 / group : group * 8 / w; };
  for (std::int64_t w = 1; w <= tiles_m_; ++w)
    if (tiles_m_ % w == 0 && distance(w) < distance(width_)) width_ = w;
}

NestTile TileOrder::at(const Index& number) const {
  const Index in_batch = batch_ > 1 ? number % (tiles_m_ * tiles_n_) : number;
  const Index first = in_batch / (width_ * tiles_n_) * width_, within = in_batch % (width_ * tiles_n_);
  const Index m = first + within % width_;
  NestTile placed = tile_;
  placed.place(c_.nest, c_.m, cluster_ > 1 ? m * cluster_ + tile::cluster_rank() : m);
  placed.place(c_.nest, c_.n, within / width_);
  placed.place(c_.nest, c_.batch, batch_ > 1 ? number / (tiles_m_ * tiles_n_) : Index(0));
  return placed;
}

Prepared laid_anew(Family::Programs& out, const std::string& name, const Access& from, std::size_t row, std::size_t k,
                   bool along_k, const Precision& precision) {
  const auto dim_along = [&](std::size_t axis) {
    return at(std::ranges::find_if(from.at, [&](const Affine& c) { return c.steps[axis] != 0; }) - from.at.begin());
  };
  const std::size_t rank = from.at.size(), fast = dim_along(along_k ? k : row), slow = dim_along(along_k ? row : k);
  const std::vector<std::size_t> last = {dim_along(row), dim_along(k)};
  const bool transposes = from.strides[fast] != 1 && from.strides[slow] == 1;
  const auto workspace = [&](const std::string& suffix) {
    Access made = from;
    made.name = name + suffix;
    std::int64_t next = round_up(from.shape[fast], 16 / bytes_of(from.dtype));
    made.strides[fast] = 1;
    for (std::size_t d = rank; d-- > 0;)
      if (d != fast) made.strides[d] = next, next *= from.shape[d];
    out.workspaces.push_back({made.name, from.dtype, {next}});
    return made;
  };
  Prepared prepared{workspace("_ready"), {}};
  if (precision.terms > 1) prepared.low = workspace("_rest");

  // One block turns a tile: rounded to tf32, and what the rounding lost, or as it is. Rows and k are the last dimensions.
  const std::int64_t tile_rows = transposes ? 64 : along_k ? 32 : 128, tile_k = transposes ? 64 : 4096 / tile_rows;
  const std::vector<std::int64_t> shape = {tile_rows, tile_k};
  Draft draft("prepare_" + name);
  auto& b = draft.b;
  std::vector<std::size_t> dims;
  std::vector<Index> offset;
  std::int64_t others = 1;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != fast && d != slow) dims.push_back(d), others *= from.shape[d];
  std::int64_t below = others;
  for (const std::size_t d : dims) {
    below /= from.shape[d];
    offset.push_back(offset.empty() ? tile::block(2) / below : tile::block(2) / below % from.shape[d]);
  }
  dims.insert(dims.end(), last.begin(), last.end());
  offset.push_back(tile::block(1) * tile_rows), offset.push_back(tile::block(0) * tile_k);
  b.grid(ceil_div(from.shape[last[1]], tile_k), ceil_div(from.shape[last[0]], tile_rows), others).warps(8);
  const auto global = [&](const std::string& own, const Access& access, bool output) {
    std::vector<std::int64_t> sizes, strides, extent(rank - 2, 1);
    for (const std::size_t d : dims) sizes.push_back(access.shape[d]), strides.push_back(access.strides[d]);
    extent.insert(extent.end(), shape.begin(), shape.end());
    draft.buffers[own] = access.name;
    return b.tile(output ? b.output(own, access.dtype, sizes, strides) : b.global(own, access.dtype, sizes, strides), offset,
                  extent);
  };
  const tile::Tile source = global("X", from, false), high = global("X_ready", prepared.high, true);
  TensorId x = b.reg("x", from.dtype, shape);
  b.copy(source, b.all(x), 0, true);
  if (transposes) {
    const TensorId turned = b.shared("turn", from.dtype, shape), y = b.reg("y", from.dtype, shape);
    b.copy(b.all(x), b.all(turned));
    b.copy(b.all(turned), b.all(y));
    x = y;
  }
  const auto write = [&](const std::string& value, const tile::Value& of, const tile::Tile& to) {
    const TensorId rounded = b.reg(value, Dtype::f32, shape);
    b.map(rounded, tile::apply(ValueOp::round_tf32, {of}));
    b.copy(b.all(rounded), to);
    return rounded;
  };
  if (precision.operand != Dtype::tf32) {
    b.copy(b.all(x), high);
  } else {
    const TensorId rounded = write("rounded", b.value(x), high);
    if (precision.terms > 1) write("rest", b.value(x) - b.value(rounded), global("X_rest", prepared.low, true));
  }
  draft.finish(out);
  return prepared;
}

Prepared prepare_operand(Family::Programs& out, const std::string& name, const Access& from, std::size_t row, std::size_t k,
                         const Precision& precision) {
  const bool along_k = bytes_of(precision.operand) != 2 || from.stride(row) != 1 || from.stride(k) == 1;
  const std::size_t fast = along_k ? k : row;
  // The copy engine reads neighbours along one axis, all else in steps of 16 bytes.
  bool readable = precision.terms == 1 && from.stride(fast) == 1;
  for (std::size_t d = 0; d < from.at.size(); ++d)
    readable &= from.at[d].steps[fast] != 0 || from.strides[d] * bytes_of(from.dtype) % 16 == 0;
  return readable ? Prepared{from, {}} : laid_anew(out, name, from, row, k, along_k, precision);
}

void store(Draft& draft, const Contraction& c, TensorId acc, const NestTile& tile, const std::vector<std::size_t>& axes,
           TensorId staging) {
  auto& t = draft.b;
  const Nest& nest = c.nest;
  const Nest::Output& output = nest.outputs[0];
  const auto columns_of = [&](const auto& uses) {
    std::int64_t columns = 1;
    for (std::size_t i = 1; i < axes.size(); ++i) columns *= uses(axes[i]) ? tile.extent[axes[i]] : 1;
    return columns;
  };
  const std::int64_t rows = tile.extent[axes[0]];
  std::map<int, TensorId> loaded;
  const auto loads = epilogue_of(c).value_or(std::vector<int>{});
  for (const int operand : loads) {
    const Access& load = nest.loads[at(operand)];
    const auto uses = [&](std::size_t axis) { return load.uses(axis); };
    const std::size_t i = loaded.size();
    const TensorId x = t.reg(fmt::format("e{}", i), load.dtype, {uses(axes[0]) ? rows : 1, columns_of(uses)});
    t.copy(box(draft, declare(draft, fmt::format("E{}", i), nest, load, axes), load, axes, tile), t.all(x), load.fill);
    loaded[operand] = x;
  }
  TensorId result = acc;
  if (at(output.value) != c.sum || t.dtype_of(acc) != output.place.dtype) {
    result = t.reg("result", output.place.dtype, {rows, columns_of([](std::size_t) { return true; })});
    const auto known = [&](int v) -> std::optional<tile::Value> {
      if (at(v) == c.sum) return t.value(acc);
      const NestValue& value = nest.values[at(v)];
      return value.kind == NestValue::Kind::load ? std::optional(t.value(loaded.at(value.load))) : std::nullopt;
    };
    t.map(result, made_of<tile::Value>(nest, output.value, known, tile::constant, tile::apply));
  }
  const tile::Tile destination = box(draft, declare(draft, "C", nest, output.place, axes, true), output.place, axes, tile);
  if (staging >= 0) t.copy(t.all(result), t.all(staging));
  t.copy(t.all(staging < 0 ? result : staging), destination);
}
}  // namespace warploom::kernels
