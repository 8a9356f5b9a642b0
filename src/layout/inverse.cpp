// Inverses of integer layouts.
#include "layout/algebra.h"
#include "layout/leaves.h"

namespace warploom::layout {
namespace {

// The inverse of leaves that nest. Integers in a gap go to index `beyond` and up, which keeps the whole a
// bijection.
Result<Layout> inverse_with_gaps(const Layout& a, std::int64_t beyond) {
  std::vector<Mode> out;
  std::int64_t reach = 1;
  for (const IndexedMode& mode : by_stride(leaves_with_index(a))) {
    if (mode.stride % reach != 0 || mode.stride < reach) {
      return layout_error("a layout whose leaves do not nest has no left inverse",
                          "leaves, sorted by stride, of which each stride is a multiple of extent x stride of the last",
                          to_string(a));
    }
    if (const std::int64_t gap = mode.stride / reach; gap > 1) {
      out.push_back({gap, beyond});
      beyond *= gap;
    }
    out.push_back({mode.extent, mode.index});
    reach = mode.extent * mode.stride;
  }
  return coalesce(Layout::flat(out));
}

}  // namespace

Layout right_inverse(const Layout& a) {
  std::vector<Mode> out;
  std::int64_t reach = 1;
  for (const IndexedMode& mode : by_stride(leaves_with_index(a))) {
    if (mode.stride > reach) break;     // nothing reaches integer `reach` by one leaf
    if (mode.stride < reach) continue;  // overlaps what is covered
    out.push_back({mode.extent, mode.index});
    reach *= mode.extent;
  }
  return coalesce(Layout::flat(out));
}

Result<Layout> left_inverse(const Layout& a) {
  for (const Mode& mode : a.modes()) {
    if (mode.stride == 0 && mode.extent > 1) {
      return layout_error("a replicated layout has no left inverse", "no leaf of stride 0", to_string(a));
    }
  }
  return inverse_with_gaps(a, a.size());
}

Result<Layout> quasi_inverse(const Layout& a) { return inverse_with_gaps(a, a.size()); }

std::int64_t max_common_vector(const Layout& a, const Layout& b) {
  const std::vector<Mode> x = right_inverse(a).modes(), y = right_inverse(b).modes();
  std::int64_t common = 1;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i].extent == 1 || y[i].extent == 1 || x[i].stride != y[i].stride) break;
    common *= std::min(x[i].extent, y[i].extent);
    // Coalesced inverses of which one turns off here: they agree no further.
    if (x[i].extent != y[i].extent) break;
  }
  return common;
}

}  // namespace warploom::layout
