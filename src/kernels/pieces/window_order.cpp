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
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/operand_packing.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
// Dimensions that move the same pixels as one, {p} and {kh} as {s · p + d · kh}: of those that are
// never left there is one for each axis. A place of the window moves the pixels whose stride is
// nearest to its own.
Access joined(const Access& from, const Contraction& c) {
  Access made = from;
  const auto left = [&](size_t d) {
    const auto [low, high] = c.nest.range(made.at[d]);
    return low < 0 || high >= made.shape[d];
  };
  for (const size_t axis : c.k) {
    const auto alone = std::ranges::find_if(
        made.at, [&](const Affine& dim) { return dim.steps[axis] != 0 && !steps_along(dim, c.n); });
    if (axis == c.channel || alone == made.at.end()) continue;
    const auto place = at(alone - made.at.begin());
    if (left(place)) continue;
    std::optional<size_t> into;
    const auto distance = [&](size_t d) {
      return std::abs(std::log(static_cast<double>(made.strides[d]) /
                               static_cast<double>(made.strides[place])));
    };
    for (size_t d = 0; d < made.at.size(); ++d)
      if (steps_along(made.at[d], c.n) && !left(d) && (!into || distance(d) < distance(*into)))
        into = d;
    if (!into) continue;
    int64_t& stride = made.strides[*into];
    int64_t last = 0;
    const int64_t common = std::gcd(stride, made.strides[place]);
    for (size_t a = 0; a < c.nest.axes.size(); ++a) {
      int64_t& step = made.at[*into].steps[a];
      step = (step * stride + made.at[place].steps[a] * made.strides[place]) / common;
      last += step * (c.nest.axes[a] - 1);
    }
    stride = common;
    made.shape[*into] = last + 1;
    made.erase(place);
  }
  return made;
}

std::optional<WindowOrder::Operand> operand_of(const Contraction& c, const Access& from,
                                               int64_t channels) {
  const auto channel = from.dim_of(*c.channel);
  const auto across = from.dim_of(c.window.value_or(from.uses(c.column) ? c.column : c.row));
  if (!channel || !across || channel == across || from.gather_dim >= 0 || from.padding_value != 0)
    return std::nullopt;
  WindowOrder::Operand operand{.from = from, .made = from, .seen = from};
  Access& made = operand.made;
  for (size_t d = 0; d < from.at.size(); ++d) {
    const auto& [begin, steps] = from.at[d];
    for (size_t axis = 0; axis < steps.size(); ++axis)
      if (steps[axis] < 0 || (d == *channel && axis != *c.channel && steps[axis] != 0))
        return std::nullopt;
    operand.begin.push_back(begin);
    made.shape[d] = d == *channel ? channels : c.nest.range(from.at[d]).second - begin + 1;
  }
  const Affine& pixels = from.at[*across];
  if (operand.begin[*channel] != 0 || (c.window && pixels.steps[*c.window] != 1))
    return std::nullopt;
  // In memory: other dimensions, then places along a row, then channels.
  made.strides[*channel] = 1;
  made.strides[*across] = channels;
  int64_t& next = operand.elements =
      round_up(made.shape[*across] * channels, 16 / bytes_of(from.dtype));
  for (size_t d = from.at.size(); d-- > 0;)
    if (d != *channel && d != *across) {
      made.strides[d] = next;
      next *= made.shape[d];
    }

  Access& seen = operand.seen;
  seen.shape.clear();
  seen.strides.clear();
  seen.at.clear();
  seen.in_bounds = true;
  const auto add = [&](int64_t size, int64_t stride, Affine at) {
    seen.shape.push_back(size);
    seen.strides.push_back(stride);
    seen.at.push_back(std::move(at));
  };
  const auto one = [&](size_t axis) { return along(axis, c.nest.axes.size()); };
  const auto second = second_column(c);
  for (size_t d = 0; d < from.at.size(); ++d) {
    if (d == *channel || d == *across) continue;
    const bool apart =
        second && from.at[d].steps[*second] >
                      1;  // a tile has several of its elements, which must be neighbours
    if (!apart) add(made.shape[d], made.strides[d], {0, from.at[d].steps});
    for (size_t axis = 0; apart && axis < c.nest.axes.size(); ++axis)
      if (const int64_t step = from.at[d].steps[axis]; step != 0)
        add(c.nest.axes[axis], step * made.strides[d], one(axis));
  }
  for (size_t axis = 0; axis < c.nest.axes.size(); ++axis)
    if (pixels.steps[axis] != 0 && axis != c.window)
      add(c.nest.axes[axis], pixels.steps[axis] * channels, one(axis));
  add(channels * (c.window ? c.nest.axes[*c.window] : 1), 1, one(*c.channel));
  // Of dimensions that the copy engine has no room for, those of which a tile has one element are
  // one where they lie so.
  const auto single = [&](size_t d) {
    return !steps_along(seen.at[d], axes_of({c.row, c.column, c.channel, second}));
  };
  for (size_t d = 0; seen.at.size() > 5 && d + 1 < seen.at.size();) {
    if (!single(d) || !single(d + 1) ||
        seen.strides[d] != seen.strides[d + 1] * seen.shape[d + 1]) {
      ++d;
      continue;
    }
    for (size_t axis = 0; axis < c.nest.axes.size(); ++axis)
      seen.at[d + 1].steps[axis] += seen.at[d].steps[axis] * seen.shape[d + 1];
    seen.shape[d + 1] *= seen.shape[d];
    seen.erase(d);
  }
  if (seen.at.size() > 5) return std::nullopt;
  return operand;
}
}  // namespace

std::optional<WindowOrder> window_order_of(const Contraction& c) {
  if (!c.channel || !c.batch.empty()) return std::nullopt;
  const Access& a = c.nest.loads[c.a];
  const Access b = joined(c.nest.loads[c.b], c);
  const auto across = b.dim_of(c.column);
  if (!across || (c.window && b.dim_of(*c.window) != across)) return std::nullopt;
  // As many channels as make the step from pixel to pixel a multiple of 16 bytes.
  int64_t channels = c.nest.axes[*c.channel];
  const int64_t step =
      c.window ? b.at[*across].steps[c.column] : 1;  // without a window rows of weights are as long
  while (step * channels * bytes_of(b.dtype) % 16 != 0) ++channels;
  auto left = operand_of(c, a, channels);
  auto right = operand_of(c, b, channels);
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
