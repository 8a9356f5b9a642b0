// Affine: a coordinate of a loop nest, begin + Σ steps[a] · i_a, i_a being the index along axis a.
//
//   2p + kh - 1 over the axes (co, p, q, ci, kh, kw)   →   begin -1, steps {0, 2, 0, 0, 1, 0}
//
// Coordinates are in elements of the dimension that they address. Steps may be negative.
#pragma once
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace warploom::loopnest {
inline size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

struct Affine {
  int64_t begin = 0;
  std::vector<int64_t> steps;  // one an axis of the nest
  friend auto operator<=>(const Affine&, const Affine&) = default;
};

using Coordinates = std::vector<Affine>;  // one a dimension of a tensor

// step · (the index along `axis`), in a nest of `axes` axes.
Affine along(size_t axis, size_t axes, int64_t step = 1);

// to += from · factor. Trailing steps of 0 are dropped, so that equal coordinates compare equal
// while a nest still gains axes.
void add(Affine& to, const Affine& from, int64_t factor = 1);

// Whether a coordinate steps along one of the axes.
bool steps_along(const Affine& coordinate, const std::vector<size_t>& axes);

// The axes that coordinates step along: ascending for each of them, one coordinate after another.
std::vector<size_t> stepped_axes(const Affine& coordinate);
std::vector<size_t> stepped_axes(std::span<const Affine> coordinates);

// The least and the greatest value of a coordinate over axes of these sizes.
std::pair<int64_t, int64_t> range_of(const Affine& coordinate, const std::vector<int64_t>& axes);
}  // namespace warploom::loopnest
