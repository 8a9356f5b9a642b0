#include "kernels/kernel_builder.h"

namespace warploom::kernels {
namespace {
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
  for (const size_t axis : axes) product *= ceil_div(nest.axes[axis], extent[axis]);
  return product;
}

void TileCoord::place(const LoopNest& nest, const std::vector<size_t>& axes, const Index& number) {
  int64_t below = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t tiles = ceil_div(nest.axes[axes[i]], extent[axes[i]]);
    if (tiles > 1)
      origin[axes[i]] = (i == 0 ? number / below : number / below % tiles) * extent[axes[i]];
    below *= tiles;
  }
}

Index TileCoord::first(const Affine& coordinate) const {
  Index sum = coordinate.begin;
  for (size_t a = 0; a < coordinate.steps.size(); ++a) sum = sum + origin[a] * coordinate.steps[a];
  return sum;
}

std::pair<Index, Index> TileCoord::slots_within(const std::vector<Affine>& bounds, size_t k,
                                                Index begin, Index end, int64_t turns) const {
  for (const Affine& bound : bounds) {
    Index most = bound.begin;
    for (size_t a = 0; a < bound.steps.size(); ++a)
      if (const auto step = bound.steps[a]; step != 0 && a != k)
        most = most + (step < 0 ? origin[a] : origin[a] + (extent[a] - 1)) * step;
    const int64_t step = bound.steps[k];
    const int64_t deep = std::abs(step) * extent[k] * turns;
    if (step == 0)
      begin = begin + end * tile::max(tile::min(Index(0) - most, 1),
                                      0);  // behind all where even the most is below 0
    if (step > 0) begin = tile::max(begin, (Index(step - 1) - most) / deep * turns);
    if (step < 0) end = tile::min(end, (most / deep + 1) * turns);
  }
  return {begin, end};
}

Value TileCoord::value_at(const Affine& coordinate, const std::vector<size_t>& axes) const {
  const Index start = first(coordinate);
  const auto number = [](const Index& index) {
    return tile::coordinate(0, index) - tile::coordinate(0);
  };
  std::optional<Value> sum;
  for (size_t i = 0; i < axes.size(); ++i) {
    // A dimension of size 1 may follow no axis of the nest at all (RowReduction::across).
    if (axes[i] >= coordinate.steps.size() || coordinate.steps[axes[i]] == 0) continue;
    const auto step = static_cast<double>(coordinate.steps[axes[i]]);
    const Value own = tile::coordinate(static_cast<int>(i), sum || step != 1 ? Index(0) : start);
    Value next = step == 1 ? own : tile::constant(step) * own;
    if (!sum && step != 1) next = std::move(next) + number(start);
    sum = sum ? std::move(*sum) + std::move(next) : std::move(next);
  }
  return sum ? *sum : number(start);
}

TensorTile::TensorTile(KernelBuilder& draft, const std::string& name, const LoopNest& nest,
                       const Access& access, const std::vector<size_t>& axes, bool output)
    : draft_(&draft), access_(access), dims_(order(access, axes)) {
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  for (const size_t d : dims_) {
    shape.push_back(output ? nest.range(access.at[d]).second + 1
                           : access.shape[d]);  // beyond that lies what others write
    strides.push_back(access.strides[d]);
  }
  if (shape.empty()) shape = strides = {1};
  draft.buffers[name] = access.name;
  if (const auto& lookup = access.gather_indices;
      access.gather_dim >= 0 && !draft.lookups.contains(lookup.name)) {
    const std::string own = fmt::format("I{}", draft.lookups.size());
    draft.buffers[own] = lookup.name;
    draft.lookups[lookup.name] = draft.b.global(own, lookup.dtype, lookup.shape);
  }
  const auto [known, fresh] = draft.named.try_emplace(name);
  if (fresh)
    known->second = output ? draft.b.output(name, access.dtype, shape, strides)
                           : draft.b.global(name, access.dtype, shape, strides);
  tensor_ = known->second;
}

tile::Tile TensorTile::at(const TileCoord& where) const {
  std::vector<Index> offset;
  std::vector<int64_t> size;
  std::vector<int64_t> step;
  for (const size_t d : dims_) {
    const Affine& c = access_.at[d];
    offset.push_back(where.first(c));
    size.push_back(1);
    step.push_back(1);
    for (size_t a = 0; a < c.steps.size(); ++a)
      if (c.steps[a] != 0 && where.extent[a] > 1) {
        size.back() = where.extent[a];
        step.back() = c.steps[a];
      }
  }
  if (offset.empty()) {
    offset = {0};
    size = step = {1};
  }
  tile::Tile tile = draft_->b.stepped(draft_->b.tile(tensor_, std::move(offset), std::move(size)),
                                      std::move(step));
  if (access_.gather_dim < 0) return tile;
  const auto dim =
      std::ranges::find(dims_, static_cast<size_t>(access_.gather_dim)) - dims_.begin();
  return draft_->b.gathered(std::move(tile), static_cast<int>(dim),
                            draft_->lookups.at(access_.gather_indices.name));
}
}  // namespace warploom::kernels
