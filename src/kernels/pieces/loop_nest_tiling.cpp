#include "kernels/pieces/loop_nest_tiling.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/kernel_builder.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels::direct {
namespace {
// Whether no reduction is made of another one, all go over the same axes, and nothing behind them
// varies along those.
bool has_one_level(const LoopNest& nest, const std::vector<bool>& reduced) {
  std::vector<bool> behind(nest.values.size(), false);  // a reduction
  const Expr* first = nullptr;
  for (size_t v = 0; v < nest.values.size(); ++v) {
    const Expr& value = nest.values[v];
    for (const int operand : value.operands)
      behind[v] = behind[v] || behind[as_size(operand)];
    if (value.kind == Kind::reduce) {
      if (behind[v] || (first && first->axes != value.axes)) return false;
      first = &value;
      behind[v] = true;
    }
    for (size_t a = 0; a < nest.axes.size(); ++a)
      if (behind[v] && value.varies[a] && reduced[a]) return false;
  }
  for (const LoopNest::Output& output : nest.outputs)
    for (size_t a = 0; a < nest.axes.size(); ++a)
      if (reduced[a] && (output.place.uses(a) || nest.value(output.value).varies[a])) return false;
  return true;
}

// Whether a nest with a scan reduces nothing, and scans along one axis in one direction.
bool scans_alike(const LoopNest& nest, const Expr& scan) {
  return std::ranges::all_of(nest.values, [&](const Expr& value) {
    if (value.kind == Kind::reduce) return false;
    if (value.kind != Kind::scan) return true;
    return value.axes == scan.axes && value.reverse == scan.reverse;
  });
}

// Whether a dimension of a load follows both axes: no box has several elements along both then.
bool share_a_dimension(const LoopNest& nest, size_t a, size_t b) {
  const auto follows_both = [&](const Affine& c) { return c.steps[a] != 0 && c.steps[b] != 0; };
  return std::ranges::any_of(
      nest.loads, [&](const Access& load) { return std::ranges::any_of(load.at, follows_both); });
}

// Whether a load is read backwards along an axis: no box goes along it then.
bool is_read_backwards(const LoopNest& nest, size_t axis) {
  const auto goes_back = [&](const Affine& c) { return c.steps[axis] < 0; };
  return std::ranges::any_of(
      nest.loads, [&](const Access& load) { return std::ranges::any_of(load.at, goes_back); });
}

class RoleFinder {
 public:
  RoleFinder(LoopNestTiling& tiling, bool gpu)
      : tiling_(tiling), n_(tiling.nest), roles_(tiling.roles), gpu_(gpu) {}

  void find() {
    for (size_t a = 0; a < n_.axes.size(); ++a)
      if (is_free(a)) roles_.x = a;
    for (const Access& load : n_.loads)
      follow(load);
    if (!roles_.y && reduces()) roles_.y = axis_of_reuse();
    for (size_t a = roles_.x.value_or(0); a-- > 0 && !roles_.y;)
      if (is_free(a)) roles_.y = a;
    if (tiling_.scanned && tiling_.scanned != roles_.x) roles_.y = tiling_.scanned;
    find_wide_axes();
    find_window();
  }

 private:
  bool is_free(size_t axis) const { return !tiling_.reduced[axis] && n_.axes[axis] > 1; }

  bool reduces() const { return std::ranges::count(tiling_.reduced, true) > 0; }

  // The axis along which a load lies in memory.
  void follow(const Access& load) {
    constexpr int64_t kFar = 8;  // elements between neighbours along x
    const MaybeAxis own = fastest(load);
    if (!own || own == roles_.x) return;
    if (!tiling_.reduced[*own]) {
      roles_.y = own;
      return;
    }
    if (gpu_ && n_.has_integers()) return;  // threads of a GPU combine floats alone
    const int64_t stride = stride_along(load, roles_.x);
    if (stride == 0 || (stride > kFar && n_.loads.size() == 1)) roles_.reduction = own;
  }

  // The last axis before x along which a load is used again that varies along x, and another one
  // varies that does not.
  MaybeAxis axis_of_reuse() const {
    if (!roles_.x) return std::nullopt;
    const size_t x = *roles_.x;
    for (const Access& load : n_.loads)
      for (const Access& other : n_.loads) {
        if (!load.uses(x) || other.uses(x)) continue;
        for (size_t a = x; a-- > 0;)
          if (!tiling_.reduced[a] && !load.uses(a) && other.uses(a)) return a;
      }
    return std::nullopt;
  }

  void find_wide_axes() {
    if (!roles_.x) return;
    const bool goes_on = gpu_ && !tiling_.scanned && !reduces();
    for (size_t a = *roles_.x + 1; goes_on && a-- > 0;)
      if (can_go_on_along(a)) tiling_.wide.push_back(a);
    if (tiling_.wide.empty()) tiling_.wide.push_back(*roles_.x);
  }

  bool can_go_on_along(size_t axis) const {
    if (!is_free(axis) || axis == roles_.y || is_read_backwards(n_, axis)) return false;
    if (roles_.y && share_a_dimension(n_, axis, *roles_.y)) return false;
    return std::ranges::none_of(tiling_.wide,
                                [&](size_t other) { return share_a_dimension(n_, axis, other); });
  }

  void find_window() {
    int64_t longest = 1;
    for (size_t a = 0; a < n_.axes.size(); ++a) {
      if (!tiling_.reduced[a]) continue;
      roles_.window *= n_.axes[a];
      longest = std::max(longest, n_.axes[a]);
    }
    if (roles_.window > longest) roles_.window /= longest;
  }

  LoopNestTiling& tiling_;
  const LoopNest& n_;
  TilingRoles& roles_;
  bool gpu_;
};
}  // namespace

std::optional<LoopNestTiling> tiling_of(LoopNest nest, bool gpu) {
  LoopNestTiling tiling{.nest = std::move(nest)};
  tiling.reduced = tiling.nest.reduced();
  if (!has_one_level(tiling.nest, tiling.reduced)) return std::nullopt;
  if (const Expr* const scan = tiling.nest.scan()) {
    if (!scans_alike(tiling.nest, *scan)) return std::nullopt;
    tiling.scanned = scan->axes[0];
    tiling.reverse = scan->reverse;
  }
  RoleFinder(tiling, gpu).find();
  if (!gpu) tiling.product = product_of(tiling);
  if (tiling.product) tiling.roles.z = rows_axis_of(tiling);
  return tiling;
}

bool LoopNestTiling::is_read_along(size_t axis) const {
  const auto lies_along = [&](const Access& load) {
    return roles.x && axis != *roles.x && fastest(load) == axis && load.uses(*roles.x);
  };
  const bool reduces = std::ranges::find(reduced, true) != reduced.end();
  return !reduces && !scanned && std::ranges::any_of(nest.loads, lies_along);
}

MaybeAxis fastest(const Access& access) {
  MaybeAxis best;
  const size_t axes = access.at.empty() ? 0 : access.at[0].steps.size();
  for (size_t a = 0; a < axes; ++a) {
    const int64_t stride = stride_along(access, a);
    if (stride > 0 && (!best || stride < stride_along(access, best))) best = a;
  }
  return best;
}

int64_t widest(const LoopNestTiling& tiling) {
  int64_t elements = 1;
  for (const size_t axis : tiling.wide) {
    const int64_t size = tiling.nest.axes[axis];
    elements *= axis == tiling.wide.back() ? size : power_of_two_above(size);
  }
  return elements;
}
}  // namespace warploom::kernels::direct
