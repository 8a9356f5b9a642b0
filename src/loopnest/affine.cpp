#include "loopnest/affine.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace warploom::loopnest {
Affine along(size_t axis, size_t axes, int64_t step) {
  Affine out{0, std::vector<int64_t>(axes)};
  out.steps[axis] = step;
  return out;
}

void add(Affine& to, const Affine& from, int64_t factor) {
  to.begin += from.begin * factor;
  if (to.steps.size() < from.steps.size()) to.steps.resize(from.steps.size());
  for (size_t a = 0; a < from.steps.size(); ++a)
    to.steps[a] += from.steps[a] * factor;
  while (!to.steps.empty() && to.steps.back() == 0)
    to.steps.pop_back();
}

bool steps_along(const Affine& coordinate, const std::vector<size_t>& axes) {
  return std::ranges::any_of(axes, [&](size_t axis) { return coordinate.steps[axis] != 0; });
}

std::vector<size_t> stepped_axes(const Affine& coordinate) {
  return stepped_axes(std::span(&coordinate, 1));
}

std::vector<size_t> stepped_axes(std::span<const Affine> coordinates) {
  std::vector<size_t> axes;
  for (const Affine& coordinate : coordinates)
    for (size_t a = 0; a < coordinate.steps.size(); ++a)
      if (coordinate.steps[a] != 0) axes.push_back(a);
  return axes;
}

std::pair<int64_t, int64_t> range_of(const Affine& coordinate, const std::vector<int64_t>& axes) {
  int64_t low = coordinate.begin;
  int64_t high = coordinate.begin;
  for (size_t a = 0; a < coordinate.steps.size(); ++a) {
    int64_t& end = coordinate.steps[a] < 0 ? low : high;
    end += coordinate.steps[a] * (axes[a] - 1);
  }
  return {low, high};
}
}  // namespace warploom::loopnest
