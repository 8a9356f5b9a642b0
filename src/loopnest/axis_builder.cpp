#include "loopnest/axis_builder.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include "base/casts.h"
#include "graph/graph.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
using graph::Shape;

// Kernels know nests of a few reductions, and regions have at most 64 nodes: none that a kernel
// covers comes near.
static constexpr size_t kMostAxes = 128;

Affine AxisBuilder::add_axis(int64_t size) {
  constexpr int64_t kLongestInner = 1 << 20;
  const int request = requests_++;
  Affine out;
  if (size <= 1) return out;
  if (axes_.size() >= kMostAxes) {
    too_many_ = true;
    return out;
  }
  const int64_t power_of_two = size & -size;  // the largest that divides the size
  const int64_t inner = std::min(power_of_two, kLongestInner);
  if (size > kLongestAxis && inner > 1) splits_.try_emplace(request, Shape{size / inner, inner});
  const auto split = splits_.find(request);
  const Shape sizes = split == splits_.end() ? Shape{size} : split->second;
  int64_t step = size;
  for (size_t part = 0; part < sizes.size(); ++part) {
    origins_.push_back({request, part});
    axes_.push_back(sizes[part]);
    step /= sizes[part];
    add(out, along(axes_.size() - 1, axes_.size(), step));
  }
  return out;
}

// Cuts an axis into an outer one and one of `inner` elements.
void AxisBuilder::request_split(size_t axis, int64_t inner) {
  const Origin origin = origins_[axis];
  Shape& sizes = splits_[origin.request];
  if (sizes.empty()) sizes = {axes_[axis]};
  sizes[origin.part] /= inner;
  sizes.insert(sizes.begin() + as_int64(origin.part) + 1, inner);
  split_requested_ = true;
}

bool AxisBuilder::lies_in(const Affine& coordinate, int64_t begin, int64_t end) const {
  const auto [low, high] = range_of(coordinate, axes_);
  return low >= begin && high < end;
}

bool AxisBuilder::in_bounds(const Coordinates& coordinates, const Shape& shape) const {
  for (size_t d = 0; d < coordinates.size(); ++d)
    if (!lies_in(coordinates[d], 0, shape[d])) return false;
  return true;
}

bool AxisBuilder::covers(const Affine& coordinate, int64_t size) const {
  auto axes = stepped_axes(coordinate);
  std::ranges::sort(axes, {}, [&](size_t axis) { return coordinate.steps[axis]; });
  int64_t step = 1;
  for (const size_t axis : axes) {
    if (coordinate.steps[axis] != step) return false;
    step *= axes_[axis];
  }
  return coordinate.begin == 0 && step == size;
}

std::optional<Coordinates> AxisBuilder::digits(const Affine& flat, const Shape& sizes) {
  Coordinates out(sizes.size());
  const Shape weights = graph::strides_of(sizes);
  int64_t rest = flat.begin;
  for (size_t d = 0; d < sizes.size(); ++d) {
    out[d].begin = rest / weights[d];
    rest %= weights[d];
  }
  for (const size_t axis : stepped_axes(flat)) {
    const int64_t step = flat.steps[axis];
    const int64_t pace = std::abs(step);
    // The outermost digit that the axis steps along in whole steps.
    size_t d = 0;
    while (d + 1 < sizes.size() && (weights[d] > pace || pace % weights[d] != 0))
      ++d;
    if (pace % weights[d] != 0) return std::nullopt;
    const int64_t next_weight = d > 0 ? weights[d - 1] : 0;
    const bool carries = d > 0 && pace * axes_[axis] > next_weight && next_weight % pace == 0;
    if (carries) {  // it runs on into the next digit
      const int64_t inner = next_weight / pace;
      if (inner > 1 && axes_[axis] % inner == 0) request_split(axis, inner);
      return std::nullopt;
    }
    add(out[d], along(axis, axes_.size(), step / weights[d]));
  }
  if (!in_bounds(out, sizes)) return std::nullopt;
  return out;
}
}  // namespace warploom::loopnest
