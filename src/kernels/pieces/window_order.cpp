#include "kernels/pieces/window_order.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/operand_packing.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
constexpr size_t kMostDims = 5;  // of a tensor map

bool is_left(const Access& access, size_t d, const Contraction& c) {
  const auto [low, high] = c.nest.range(access.at[d]);
  return low < 0 || high >= access.shape[d];
}

// The dimension of pixels, never left, whose stride is nearest to that of the dimension `place`.
std::optional<size_t> nearest_pixels(const Access& access, size_t place, const Contraction& c) {
  const auto distance = [&](size_t d) {
    const auto stride = as_double(access.strides[d]);
    return std::abs(std::log(stride / as_double(access.strides[place])));
  };
  std::optional<size_t> nearest;
  for (size_t d = 0; d < access.at.size(); ++d) {
    if (!steps_along(access.at[d], c.n) || is_left(access, d, c)) continue;
    if (!nearest || distance(d) < distance(*nearest)) nearest = d;
  }
  return nearest;
}

// Makes the dimensions `pixels` and `place` one.
void join(Access& access, size_t pixels, size_t place, const Contraction& c) {
  int64_t& stride = access.strides[pixels];
  const int64_t place_stride = access.strides[place];
  const int64_t common = std::gcd(stride, place_stride);
  int64_t last = 0;
  for (size_t a = 0; a < c.nest.axes.size(); ++a) {
    int64_t& step = access.at[pixels].steps[a];
    const int64_t place_step = access.at[place].steps[a];
    step = (step * stride + place_step * place_stride) / common;
    last += step * (c.nest.axes[a] - 1);
  }
  stride = common;
  access.shape[pixels] = last + 1;
  access.erase(place);
}

}  // namespace

Access joined(const Access& from, const Contraction& c) {
  Access made = from;
  for (const size_t axis : c.k) {
    const auto is_place = [&](const Affine& dim) {
      return dim.steps[axis] != 0 && !steps_along(dim, c.n);
    };
    const auto alone = std::ranges::find_if(made.at, is_place);
    if (axis == c.channel || alone == made.at.end()) continue;
    const auto place = at(alone - made.at.begin());
    if (is_left(made, place, c)) continue;
    const auto pixels = nearest_pixels(made, place, c);
    if (pixels) join(made, *pixels, place, c);
  }
  return made;
}

namespace {
// Makes an operand in window order.
class WindowOperand {
 public:
  WindowOperand(const Contraction& c, const Access& from, int64_t channels)
      : c_(c),
        from_(from),
        channels_(channels),
        operand_{.from = from, .made = from, .seen = from} {
    const size_t axis = c.window.value_or(from.uses(c.column) ? c.column : c.row);
    channel_ = from.dim_of(*c.channel);
    across_ = from.dim_of(axis);
  }

  // Nothing where it does not serve.
  std::optional<WindowOrder::Operand> made() {
    if (!serves()) return std::nullopt;
    lay_in_memory();
    see();
    join_dimensions();
    if (operand_.seen.at.size() > kMostDims) return std::nullopt;
    return std::move(operand_);
  }

 private:
  bool serves() const {
    if (!channel_ || !across_ || channel_ == across_) return false;
    if (from_.gather_dim >= 0 || from_.padding_value != 0) return false;
    for (const Affine& dim : from_.at)
      if (std::ranges::any_of(dim.steps, [](int64_t step) { return step < 0; })) return false;
    const Affine& channel = from_.at[*channel_];
    for (size_t axis = 0; axis < channel.steps.size(); ++axis)
      if (axis != *c_.channel && channel.steps[axis] != 0) return false;
    const bool neighbours = !c_.window || from_.at[*across_].steps[*c_.window] == 1;
    return channel.begin == 0 && neighbours;
  }

  // Other dimensions, then places along a row, then channels.
  void lay_in_memory() {
    Access& made = operand_.made;
    for (size_t d = 0; d < from_.at.size(); ++d) {
      const int64_t begin = from_.at[d].begin;
      const int64_t last = c_.nest.range(from_.at[d]).second;
      operand_.begin.push_back(begin);
      made.shape[d] = d == *channel_ ? channels_ : last - begin + 1;
    }
    made.strides[*channel_] = 1;
    made.strides[*across_] = channels_;
    int64_t& next = operand_.elements;
    next = round_up(made.shape[*across_] * channels_, 16 / bytes_of(from_.dtype));
    for (size_t d = from_.at.size(); d-- > 0;) {
      if (d == *channel_ || d == *across_) continue;
      made.strides[d] = next;
      next *= made.shape[d];
    }
  }

  void see() {
    Access& seen = operand_.seen;
    seen.shape.clear();
    seen.strides.clear();
    seen.at.clear();
    seen.in_bounds = true;
    for (size_t d = 0; d < from_.at.size(); ++d)
      if (d != *channel_ && d != *across_) see_dimension(d);
    const auto& pixels = from_.at[*across_].steps;
    for (size_t axis = 0; axis < pixels.size(); ++axis)
      if (pixels[axis] != 0 && axis != c_.window) see_axis(axis, pixels[axis] * channels_);
    const int64_t window = c_.window ? c_.nest.axes[*c_.window] : 1;
    add(channels_ * window, 1, along(*c_.channel, c_.nest.axes.size()));
  }

  void see_dimension(size_t d) {
    const auto& steps = from_.at[d].steps;
    const int64_t stride = operand_.made.strides[d];
    // A tile has several of its elements, which must be neighbours.
    const bool apart = second_ && steps[*second_] > 1;
    if (!apart) return add(operand_.made.shape[d], stride, {0, steps});
    for (size_t axis = 0; axis < steps.size(); ++axis)
      if (steps[axis] != 0) see_axis(axis, steps[axis] * stride);
  }

  void see_axis(size_t axis, int64_t stride) {
    add(c_.nest.axes[axis], stride, along(axis, c_.nest.axes.size()));
  }

  void add(int64_t size, int64_t stride, Affine at) {
    operand_.seen.shape.push_back(size);
    operand_.seen.strides.push_back(stride);
    operand_.seen.at.push_back(std::move(at));
  }

  // Of dimensions that TMA has no room for, those of which a tile has one element are one where
  // they lie so.
  void join_dimensions() {
    const Access& seen = operand_.seen;
    for (size_t d = 0; seen.at.size() > kMostDims && d + 1 < seen.at.size();) {
      if (lie_as_one(d))
        join_with_next(d);
      else
        ++d;
    }
  }

  bool lie_as_one(size_t d) const {
    const Access& seen = operand_.seen;
    const auto tiled = axes_of({c_.row, c_.column, c_.channel, second_});
    if (steps_along(seen.at[d], tiled) || steps_along(seen.at[d + 1], tiled)) return false;
    return seen.strides[d] == seen.strides[d + 1] * seen.shape[d + 1];
  }

  void join_with_next(size_t d) {
    Access& seen = operand_.seen;
    const int64_t size = seen.shape[d + 1];
    for (size_t axis = 0; axis < c_.nest.axes.size(); ++axis)
      seen.at[d + 1].steps[axis] += seen.at[d].steps[axis] * size;
    seen.shape[d + 1] *= seen.shape[d];
    seen.erase(d);
  }

  const Contraction& c_;
  const Access& from_;
  int64_t channels_;
  WindowOrder::Operand operand_;
  std::optional<size_t> channel_;  // dimensions of channels, and of pixels beside each other
  std::optional<size_t> across_;
  std::optional<size_t> second_ = second_column(c_);
};
}  // namespace

std::optional<WindowOrder> window_order_of(const Contraction& c) {
  if (!c.channel || !c.batch.empty()) return std::nullopt;
  const Access& a = c.nest.loads[c.a];
  const Access b = joined(c.nest.loads[c.b], c);
  const auto across = b.dim_of(c.column);
  if (!across || (c.window && b.dim_of(*c.window) != across)) return std::nullopt;
  // As many channels as make the step from pixel to pixel a multiple of 16 bytes.
  int64_t channels = c.nest.axes[*c.channel];
  int64_t step = 1;  // without a window rows of weights are as long
  if (c.window) step = b.at[*across].steps[c.column];
  while (step * channels * bytes_of(b.dtype) % 16 != 0)
    ++channels;
  auto left = WindowOperand(c, a, channels).made();
  auto right = WindowOperand(c, b, channels).made();
  if (!left || !right) return std::nullopt;
  Contraction contraction = c;
  if (c.window) {
    std::erase(contraction.k, *c.window);
    channels *= std::exchange(contraction.nest.axes[*c.window], 1);
    contraction.window.reset();
  }
  contraction.nest.axes[*c.channel] = channels;
  return WindowOrder{std::move(contraction), *std::move(left), *std::move(right)};
}

Prepared WindowOrder::Operand::lay(const OperandPacking& preparation) const {
  const Prepared anew = preparation.place(from, begin, {}, made, elements);
  Prepared out{seen, seen};
  out.high.name = anew.high.name;
  out.low.name = anew.low.name;
  return out;
}
}  // namespace warploom::kernels
