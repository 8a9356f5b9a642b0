#include "kernels/nest_tiles.h"
namespace warploom::kernels {
using tile::Index;
namespace {
// The dimensions of a tensor, those that follow `axes` last and in their order.
std::vector<std::size_t> order(const Access& access, const std::vector<std::size_t>& axes) {
  std::vector<std::pair<int, std::size_t>> keys;
  for (std::size_t d = 0; d < access.at.size(); ++d) {
    int key = -1;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (access.at[d].steps[axes[i]] != 0) key = static_cast<int>(i);
    keys.emplace_back(key, d);
  }
  std::stable_sort(keys.begin(), keys.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::size_t> dims;
  for (const auto& [key, d] : keys) dims.push_back(d);
  return dims;
}
}  // namespace
tile::TensorId declare(Draft& draft, const std::string& name, const Nest& nest, const Access& access,
                       const std::vector<std::size_t>& axes, bool output) {
  std::vector<std::int64_t> shape, strides;
  for (const std::size_t d : order(access, axes)) {
    std::int64_t last = access.at[d].begin;  // of an output: beyond it lies what others write
    for (std::size_t a = 0; a < nest.axes.size(); ++a)
      last += std::max<std::int64_t>(0, access.at[d].steps[a] * (nest.axes[a] - 1));
    shape.push_back(output ? last + 1 : access.shape[d]);
    strides.push_back(access.strides[d]);
  }
  if (shape.empty()) shape = strides = {1};
  draft.buffers[name] = access.name;
  return output ? draft.b.output(name, access.dtype, shape, strides) : draft.b.global(name, access.dtype, shape, strides);
}

tile::Tile box(const tile::Builder& builder, tile::TensorId tensor, const Access& access, const std::vector<std::size_t>& axes,
               const NestTile& at) {
  std::vector<Index> offset;
  std::vector<std::int64_t> extent, step;
  for (const std::size_t d : order(access, axes)) {
    const Affine& c = access.at[d];
    Index sum = c.begin;
    extent.push_back(1), step.push_back(1);
    for (std::size_t a = 0; a < at.extent.size(); ++a) {
      if (c.steps[a] == 0) continue;
      sum = sum + at.origin[a] * c.steps[a];
      if (at.extent[a] > 1) extent.back() = at.extent[a], step.back() = c.steps[a];
    }
    offset.push_back(sum);
  }
  if (offset.empty()) offset = {0}, extent = step = {1};
  return builder.stepped(builder.tile(tensor, std::move(offset), std::move(extent)), std::move(step));
}
}  // namespace warploom::kernels
