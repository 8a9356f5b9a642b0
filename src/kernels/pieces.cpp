#include "kernels/pieces.h"
namespace warploom::kernels {
using tile::Index;
using tile::TensorId;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

TensorId Draft::input(const std::string& name, const View& view) {
  buffers[name] = view.name;
  return b.global(name, view.dtype, view.shape, view.strides);
}
TensorId Draft::output(const std::string& name, const View& view) {
  buffers[name] = view.name;
  return b.output(name, view.dtype, view.shape, view.strides);
}

std::vector<Index> offsets(const View& view, const std::vector<std::int64_t>& batch, const Index& batch_index, const Index& row,
                           const Index& column) {
  const std::size_t rank = view.batch_rank();
  std::vector<Index> out(rank + 2, Index(0));
  Index rest = batch_index;
  for (std::size_t i = rank; i-- > 0;) {
    const Index digit = i == 0 ? rest : rest % batch[i];
    if (view.shape[i] > 1) out[i] = digit;
    if (i > 0) rest = rest / batch[i];
  }
  if (view.shape[rank] > 1) out[rank] = row;
  if (view.shape[rank + 1] > 1) out[rank + 1] = column;
  return out;
}

std::vector<std::int64_t> extents(const View& view, std::int64_t rows, std::int64_t columns) {
  std::vector<std::int64_t> out(view.batch_rank(), 1);
  out.push_back(view.shape[view.batch_rank()] > 1 ? rows : 1);
  out.push_back(view.shape[view.batch_rank() + 1] > 1 ? columns : 1);
  return out;
}

std::vector<std::int64_t> box(const View& view, std::int64_t rows, std::int64_t columns) {
  std::vector<std::int64_t> out(view.batch_rank(), 1);
  out.push_back(rows);
  out.push_back(columns);
  return out;
}

TileOrder::Position TileOrder::at(const Index& linear) const {
  const Index in_batch = batch > 1 ? linear % (tiles_m * tiles_n) : linear;
  const Index which = batch > 1 ? linear / (tiles_m * tiles_n) : Index(0);
  // The divisor of tiles_m nearest to `group`, so that every group is whole.
  std::int64_t width = 1;
  auto distance = [&](std::int64_t w) { return w > group ? w * 8 / group : group * 8 / w; };
  for (std::int64_t w = 1; w <= tiles_m; ++w)
    if (tiles_m % w == 0 && distance(w) < distance(width)) width = w;
  const Index first = in_batch / (width * tiles_n) * width, within = in_batch % (width * tiles_n);
  return {which, first + within % width, within / width};
}

TensorId epilogue(Draft& draft, const MatmulRegion& region, const std::vector<TensorId>& operands, TensorId acc,
                  const TileOrder::Position& at, std::int64_t block_m, std::int64_t block_n) {
  auto& b = draft.b;
  std::vector<tile::Value> inputs = {b.value(acc)};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const View& view = region.operands[i];
    const auto extent = extents(view, block_m, block_n);
    const std::size_t rank = view.batch_rank();
    const TensorId loaded = b.reg(fmt::format("e{}", i), view.dtype, {extent[rank], extent[rank + 1]});
    b.copy(b.tile(operands[i], offsets(view, region.batch, at.batch, at.m * block_m, at.n * block_n), extent), b.all(loaded));
    inputs.push_back(b.value(loaded));
  }
  if (!region.has_epilogue && region.out.dtype == b.dtype_of(acc)) return acc;
  const TensorId out = b.reg("result", region.out.dtype, {block_m, block_n});
  b.map(out, region.has_epilogue ? to_value(region.epilogue, inputs) : inputs[0]);
  return out;
}
}  // namespace warploom::kernels
