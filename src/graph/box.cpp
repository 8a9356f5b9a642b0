#include "graph/box.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>
#include "graph/graph.h"
#include "graph/operators.h"

namespace warploom::graph {
Box whole(const Shape& shape) {
  return {Shape(shape.size(), 0), shape};
}

int64_t volume(const Box& box) {
  return element_count(box.size);
}

std::vector<int64_t> coordinates_of(const Shape& shape, int64_t flat) {
  std::vector<int64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i])
    at[i] = flat % shape[i];
  return at;
}

Box hull(const Box& a, const Box& b) {
  if (volume(a) == 0) return b;
  if (volume(b) == 0) return a;
  Box box = a;
  for (size_t i = 0; i < a.size.size(); ++i) {
    const int64_t end_of_a = a.begin[i] + a.size[i];
    const int64_t end_of_b = b.begin[i] + b.size[i];
    const int64_t end = std::max(end_of_a, end_of_b);
    box.begin[i] = std::min(a.begin[i], b.begin[i]);
    box.size[i] = end - box.begin[i];
  }
  return box;
}

Box reshaped(const Box& box, const Shape& from, const Shape& to) {
  if (volume(box) == 0) return {Shape(to.size(), 0), Shape(to.size(), 0)};
  int64_t low = 0;
  int64_t high = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    low = low * from[i] + box.begin[i];
    high = high * from[i] + box.begin[i] + box.size[i] - 1;
  }
  const auto first = coordinates_of(to, low);
  const auto last = coordinates_of(to, high);
  Box held = whole(to);
  for (size_t i = 0; i < to.size(); ++i) {
    held.begin[i] = first[i];
    held.size[i] = last[i] - first[i] + 1;
    if (first[i] != last[i]) break;  // this axis is a range, the later ones are whole
  }
  return held;
}

Box reach(const AxisSources& sources, const Shape& in, const Box& out) {
  Box box = whole(in);
  for (size_t i = 0; i < in.size(); ++i) {
    const AxisSource& source = sources[i];
    if (source.axis == AxisSource::kWhole) continue;
    const int64_t count = out.size[source.axis];
    const int64_t first = source.begin + out.begin[source.axis] * source.step;
    const int64_t last = first + (count - 1) * source.step;
    const int64_t window = (source.taps - 1) * source.dilation + 1;
    box.begin[i] = std::min(first, last);
    box.size[i] = count == 0 ? 0 : std::abs(last - first) + window;
  }
  return box;
}

Box inside(Box box, const Shape& in) {
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t own_end = box.begin[i] + box.size[i];
    const int64_t end = std::min(own_end, in[i]);
    box.begin[i] = std::max<int64_t>(box.begin[i], 0);
    box.size[i] = std::max<int64_t>(end - box.begin[i], 0);
  }
  return box;
}
}  // namespace warploom::graph
