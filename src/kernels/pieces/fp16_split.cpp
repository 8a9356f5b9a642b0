#include "kernels/pieces/fp16_split.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels::fp16_split {
namespace {
using tile::ReduceOp;

// of a tile
constexpr int64_t kElements = 8192;
constexpr int64_t kWarps = 8;
}  // namespace

int add_row_scale(LoopNest& nest, int load) {
  const auto add = [&](Expr value) {
    nest.values.push_back(std::move(value));
    return as_int(nest.values.size()) - 1;
  };
  const auto apply = [&](ValueOp op, std::vector<int> operands) {
    return add({.kind = Kind::apply, .op = op, .operands = std::move(operands)});
  };
  const int most = add({.kind = Kind::load, .load = load});
  const int least = add({.value = kLeast});
  const int largest = add({.value = kLargest});
  const int at_least = apply(ValueOp::max, {most, least});
  const int inverse = apply(ValueOp::inverse_binade, {at_least});
  return apply(ValueOp::mul, {inverse, largest});
}

namespace {
// Read without steps backwards, which no box has: the largest is the same from either end.
Access forwards(const Access& read, const std::vector<int64_t>& axes,
                const std::vector<size_t>& over) {
  Access from = read;
  for (Affine& place : from.at)
    for (const size_t a : over) {
      int64_t& step = place.steps[a];
      if (step >= 0) continue;
      place.begin += step * (axes[a] - 1);
      step = -step;
    }
  return from;
}
}  // namespace

Access measure_amax(Family::Programs& out, const std::string& name,
                    const std::vector<int64_t>& axes, const Access& read,
                    const std::vector<size_t>& over, const Capabilities& capabilities) {
  LoopNest nest;
  nest.axes = axes;
  const Access from = forwards(read, axes, over);
  const auto is_over = [&](size_t a) { return std::ranges::count(over, a) > 0; };
  std::vector<size_t> all(axes.size());
  std::vector<size_t> rest;
  std::iota(all.begin(), all.end(), size_t{0});
  std::ranges::copy_if(all, std::back_inserter(rest), [&](size_t a) { return !is_over(a); });
  // Tiles of neighbours in memory, and of the longest axis of the other kind.
  const auto distance = [&](size_t a) {
    const bool moves = axes[a] > 1 && from.stride(a) != 0;
    return std::pair(moves ? std::abs(from.stride(a)) : INT64_MAX, -axes[a]);
  };
  const size_t fast = std::ranges::min(all, {}, distance);
  std::optional<size_t> other;
  for (const size_t a : all)
    if (is_over(a) != is_over(fast) && (!other || axes[a] > axes[*other])) other = a;
  TileCoord tile(nest);
  const int64_t longest = other ? 256 : kElements;
  const int64_t wide = std::min<int64_t>(power_of_two_above(axes[fast]), longest);
  tile.extent[fast] = wide;
  if (other) tile.extent[*other] = std::min(power_of_two_above(axes[*other]), kElements / wide);
  const auto tiled = axes_of({other, fast});

  KernelBuilder draft("measure_" + name);
  auto& t = draft.b;
  const TensorTile X(draft, "X", nest, from, tiled);
  Access most{.name = name + "_most", .dtype = Dtype::f32};
  for (const size_t a : rest) {
    most.shape.push_back(axes[a]);
    most.at.push_back(along(a, axes.size()));
  }
  most.strides = graph::strides_of(most.shape);
  const int64_t elements = graph::element_count(most.shape);
  out.workspaces.push_back({most.name, Dtype::f32, {elements}});
  const TensorTile M(draft, "M", nest, most, tiled, true);
  t.zeroed(draft.named.at("M"));
  // As many blocks as fill the GPU several times, each over a part of every row that it measures.
  const int64_t lines = tile.count(nest, rest);
  const int64_t turns = tile.count(nest, over);
  const int64_t parts = std::clamp<int64_t>(8 * capabilities.num_sms / lines, 1, turns);
  const int64_t each = ceil_div(turns, parts);
  t.grid(lines * ceil_div(turns, each)).warps(kWarps);
  std::vector<int64_t> shape;
  for (const size_t a : tiled)
    shape.push_back(tile.extent[a]);
  const TensorId x = draft.reg("x", from.dtype, shape);
  const TensorId found = draft.reg("found", Dtype::f32, shape);
  tile.place(nest, rest, tile::block(0) % lines);
  const Index first = tile::block(0) / lines * each;
  t.fill(found, 0);
  t.for_("turn", first, tile::min(first + each, Index(turns)), 1, [&](const Index& turn) {
    tile.place(nest, over, turn);
    t.copy(X.at(tile), t.all(x), from.padding_value);
    const Value magnitude = tile::apply(ValueOp::abs, {t.value(x)});
    t.map(found, tile::max(t.value(found), magnitude));
  });
  TensorId whole = found;
  for (size_t d = 0; d < tiled.size(); ++d) {
    if (!is_over(tiled[d])) continue;
    shape[d] = 1;
    const TensorId less = draft.reg(fmt::format("most{}", d), Dtype::f32, shape);
    t.reduce(less, whole, as_int(d), ReduceOp::max);
    whole = less;
  }
  tile::Copy copy{t.all(whole), M.at(tile)};
  copy.combine = ReduceOp::max;
  t.add(std::move(copy));
  draft.finish(out);
  return most;
}
}  // namespace warploom::kernels::fp16_split
