// Which loop nests are sums of products to the family `direct`.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include "kernels/pieces/loop_nest_tiling.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels::direct {
namespace {
// Makes the dimensions of an access that follow the summed axes one, of all their elements, read at
// `element`; false where they do not lie so in memory.
bool flatten_sum(Access& access, const std::vector<size_t>& summed, const Affine& element) {
  int64_t size = 1;
  int64_t stride = 0;
  for (size_t d = access.at.size(); d-- > 0;) {
    if (!steps_along(access.at[d], summed)) continue;
    if (access.at[d].begin != 0) return false;  // backwards, as in transposed convolutions
    if (size == 1) stride = access.strides[d];
    if (access.strides[d] != stride * size) return false;
    size *= access.shape[d];
    access.erase(d);
  }
  access.shape.push_back(size);
  access.strides.push_back(stride);
  access.at.push_back(element);
  return true;
}

}  // namespace

std::optional<LoopNestTiling::Product> product_of(const LoopNestTiling& tiling) {
  const LoopNest& n = tiling.nest;
  const auto c = contraction_of(n);
  if (!c || !tiling.roles.y || c->scaled || !c->triangular_operands.empty()) return std::nullopt;
  const size_t x = *tiling.roles.x;
  const size_t y = *tiling.roles.y;
  const size_t k = c->k[0];
  const Access& a = n.loads[c->a];
  const Access& b = n.loads[c->b];
  if (!a.in_bounds || !a.uses(y) || a.uses(x) || b.uses(y) || !b.uses(x)) return std::nullopt;
  // Of a window with one channel no box holds both.
  for (const Affine& coordinate : b.at)
    if (coordinate.steps[k] != 0 && coordinate.steps[x] != 0) return std::nullopt;
  int64_t terms = 1;
  for (const size_t axis : c->k)
    terms *= n.axes[axis];
  LoopNestTiling::Product found;
  found.a = a;
  found.b = b;
  found.loads = {c->a, c->b};
  found.k = k;
  found.taps = terms / n.axes[k];
  found.domain_constraints = c->domain_constraints;
  found.part = part_within(*c);
  if (!flatten_sum(found.a, c->k, along(k, n.axes.size(), found.taps))) return std::nullopt;
  if (found.a.shape.back() != terms) return std::nullopt;
  return found;
}

MaybeAxis rows_axis_of(const LoopNestTiling& tiling) {
  MaybeAxis rows;
  for (size_t a = 0; a < tiling.roles.x.value_or(0); ++a)
    if (!tiling.reduced[a] && tiling.product->b.uses(a) && !tiling.product->a.uses(a)) rows = a;
  return rows;
}
}  // namespace warploom::kernels::direct
