#include "kernels/kernel_builder.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "kernels/family.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Builder;
using tile::Tile;

// The dimensions of a tensor, those that follow `axes` last and in their order.
std::vector<size_t> order(const Access& access, const std::vector<size_t>& axes) {
  const auto place = [&](size_t d) {
    const auto& steps = access.at[d].steps;
    size_t last = 0;
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i] < steps.size() && steps[axes[i]] != 0) last = i + 1;
    return last;
  };
  std::vector<size_t> dims(access.at.size());
  std::iota(dims.begin(), dims.end(), size_t{0});
  std::ranges::stable_sort(dims, {}, place);
  return dims;
}
}  // namespace

TensorId KernelBuilder::reg(const std::string& stem, Dtype dtype,
                            const std::vector<int64_t>& shape) {
  const std::string own = name(stem, role);
  const auto [found, added] = named.try_emplace(own);
  if (added) found->second = b.reg(own, dtype, shape);
  return found->second;
}

TensorId KernelBuilder::workspace(const std::string& name, const std::string& buffer, Dtype dtype,
                                  const std::vector<int64_t>& shape) {
  workspaces.push_back({buffer, dtype, shape});
  buffers[name] = buffer;
  return b.output(name, dtype, shape);
}

void KernelBuilder::finish(Family::Programs& out) {
  out.programs.push_back(b.finish());
  out.buffers.push_back(std::move(buffers));
  out.workspaces.insert(out.workspaces.end(), workspaces.begin(), workspaces.end());
}

std::vector<size_t> axes_of(std::initializer_list<AxisIfAny> axes) {
  std::vector<size_t> out;
  for (const AxisIfAny axis : axes)
    if (axis) out.push_back(*axis);
  return out;
}

TileCoord::TileCoord(const LoopNest& nest,
                     std::initializer_list<std::pair<AxisIfAny, int64_t>> extents)
    : origin(nest.axes.size(), Index(0)), extent(nest.axes.size(), 1) {
  for (const auto& [axis, own] : extents)
    if (axis) extent[*axis] = own;
}

int64_t TileCoord::count(const LoopNest& nest, const std::vector<size_t>& axes) const {
  int64_t product = 1;
  for (const size_t axis : axes)
    product *= ceil_div(nest.axes[axis], extent[axis]);
  return product;
}

void TileCoord::place(const LoopNest& nest, const std::vector<size_t>& axes, const Index& number) {
  std::vector<int64_t> tiles;
  for (const size_t axis : axes)
    tiles.push_back(ceil_div(nest.axes[axis], extent[axis]));
  place(axes, tiles, number);
}

void TileCoord::place(const std::vector<size_t>& axes, const std::vector<int64_t>& tiles,
                      const Index& number) {
  int64_t below = 1;  // tiles of the faster axes
  for (size_t i = axes.size(); i-- > 0;) {
    const size_t axis = axes[i];
    if (tiles[i] > 1) {
      const Index rest = number / below;
      origin[axis] = (i == 0 ? rest : rest % tiles[i]) * extent[axis];
    }
    below *= tiles[i];
  }
}

Index TileCoord::first(const Affine& coordinate) const {
  Index sum = coordinate.begin;
  for (size_t a = 0; a < coordinate.steps.size(); ++a)
    sum = sum + origin[a] * coordinate.steps[a];
  return sum;
}

Index TileCoord::largest_but_for(const Affine& coordinate, size_t k) const {
  Index most = coordinate.begin;
  for (size_t a = 0; a < coordinate.steps.size(); ++a) {
    const int64_t step = coordinate.steps[a];
    if (step == 0 || a == k) continue;
    const Index end = step < 0 ? origin[a] : origin[a] + (extent[a] - 1);
    most = most + end * step;
  }
  return most;
}

std::pair<Index, Index> TileCoord::stages_within(const std::vector<Affine>& constraints, size_t k,
                                                 Index begin, Index end, int64_t turns) const {
  for (const Affine& constraint : constraints) {
    const Index most = largest_but_for(constraint, k);
    const int64_t step = constraint.steps[k];
    const int64_t deep = std::abs(step) * extent[k] * turns;
    if (step == 0) {
      // Behind all where even the most is below 0.
      const Index is_below = tile::max(tile::min(Index(0) - most, 1), 0);
      begin = begin + end * is_below;
    }
    if (step > 0) begin = tile::max(begin, (Index(step - 1) - most) / deep * turns);
    if (step < 0) end = tile::min(end, (most / deep + 1) * turns);
  }
  return {begin, end};
}

Value TileCoord::value_at(const Affine& coordinate, const std::vector<size_t>& axes) const {
  const Index start = first(coordinate);
  // An index that is the same for all elements.
  const auto number = [](const Index& index) {
    return tile::coordinate(0, index) - tile::coordinate(0);
  };
  std::optional<Value> sum;
  for (size_t i = 0; i < axes.size(); ++i) {
    // A dimension of size 1 may follow no axis of the nest at all (RowReduction::tiled_outer).
    if (axes[i] >= coordinate.steps.size() || coordinate.steps[axes[i]] == 0) continue;
    const auto step = as_double(coordinate.steps[axes[i]]);
    const bool takes_start = !sum && step == 1;
    const Value own = tile::coordinate(as_int(i), takes_start ? start : Index(0));
    Value next = step == 1 ? own : tile::constant(step) * own;
    if (!sum && !takes_start) next = std::move(next) + number(start);
    sum = sum ? std::move(*sum) + std::move(next) : std::move(next);
  }
  return sum ? *sum : number(start);
}

TensorTile::TensorTile(KernelBuilder& draft, const std::string& name, const LoopNest& nest,
                       const Access& access, const std::vector<size_t>& axes, bool output)
    : draft_(&draft), access_(access), dims_(order(access, axes)) {
  draft_->buffers[name] = access_.name;
  if (access_.is_gathered()) declare_gather_indices();
  declare(name, nest, output);
}

void TensorTile::declare_gather_indices() {
  const auto& indices = access_.gather_indices;
  if (draft_->gather_indices.contains(indices.name)) return;
  const std::string own = fmt::format("I{}", draft_->gather_indices.size());
  draft_->buffers[own] = indices.name;
  draft_->gather_indices[indices.name] = draft_->b.global(own, indices.dtype, indices.shape);
}

void TensorTile::declare(const std::string& name, const LoopNest& nest, bool output) {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  for (const size_t d : dims_) {
    // Beyond what is written lies what others write.
    const int64_t written = nest.range(access_.at[d]).second + 1;
    shape.push_back(output ? written : access_.shape[d]);
    strides.push_back(access_.strides[d]);
  }
  if (shape.empty()) {
    shape = {1};
    strides = {1};
  }
  const auto [known, is_new] = draft_->named.try_emplace(name);
  Builder& b = draft_->b;
  if (is_new && output) known->second = b.output(name, access_.dtype, shape, strides);
  if (is_new && !output) known->second = b.global(name, access_.dtype, shape, strides);
  tensor_ = known->second;
}

Tile TensorTile::at(const TileCoord& where) const {
  std::vector<Index> offset;
  std::vector<int64_t> size;
  std::vector<int64_t> step;
  for (const size_t d : dims_) {
    const Affine& c = access_.at[d];
    offset.push_back(where.first(c));
    size.push_back(1);
    step.push_back(1);
    for (const size_t a : stepped_axes(c)) {
      if (where.extent[a] <= 1) continue;
      size.back() = where.extent[a];
      step.back() = c.steps[a];
    }
  }
  if (offset.empty()) {
    offset = {0};
    size = {1};
    step = {1};
  }
  Builder& b = draft_->b;
  Tile box = b.tile(tensor_, std::move(offset), std::move(size));
  box = b.stepped(std::move(box), std::move(step));
  if (!access_.is_gathered()) return box;
  const auto gathered = as_size(access_.gather_dim);
  const auto dim = std::ranges::find(dims_, gathered) - dims_.begin();
  const TensorId indices = draft_->gather_indices.at(access_.gather_indices.name);
  return b.gathered(std::move(box), as_int(dim), indices);
}
}  // namespace warploom::kernels
