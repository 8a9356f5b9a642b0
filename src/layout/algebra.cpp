#include "layout/algebra.h"

#include <fmt/format.h>

#include <algorithm>

#include "layout/leaves.h"

namespace warploom::layout {
namespace {

// One leaf n:r of the right operand over the coalesced modes of the left one. `reach[k]` collects the largest
// digit that all leaves together put into mode k.
Result<Layout> compose_leaf(const std::vector<Mode>& a, Mode b, std::vector<std::int64_t>& reach) {
  if (b.extent == 1) return Layout(1, 0);
  if (b.stride == 0) return Layout(b.extent, 0);
  std::vector<Mode> out;
  const Mode whole = b;
  for (std::size_t k = 0; k < a.size() && b.extent > 1; ++k) {
    const auto [extent, stride] = a[k];
    if ((b.extent - 1) * b.stride < extent) {  // the rest fits into this mode
      out.push_back({b.extent, stride * b.stride});
      reach[k] += (b.extent - 1) * b.stride;
      b.extent = 1;
    } else if (b.stride % extent == 0) {  // steps over whole periods of this mode
      b.stride /= extent;
    } else if (extent % b.stride == 0 && b.extent % (extent / b.stride) == 0) {  // fills it, goes on in the next
      const std::int64_t here = extent / b.stride;
      out.push_back({here, stride * b.stride});
      reach[k] += (here - 1) * b.stride;
      b = {b.extent / here, 1};
    } else {
      break;
    }
  }
  if (b.extent > 1) {
    return layout_error("a composition does not walk whole digits of the left layout",
                        "strides and extents that divide those of " + to_string(Layout::flat(a)),
                        fmt::format("{}:{}", whole.extent, whole.stride));
  }
  return Layout::flat(out);
}

Result<Layout> compose_tree(const std::vector<Mode>& a, const Layout& b, std::vector<std::int64_t>& reach) {
  if (b.is_leaf()) return compose_leaf(a, b.mode(), reach);
  std::vector<Layout> parts;
  for (const Layout& part : b.parts()) {
    WARPLOOM_TRY(Layout composed, compose_tree(a, part, reach));
    parts.push_back(std::move(composed));
  }
  return make_layout(std::move(parts));
}

}  // namespace

Result<Layout> compose(const Layout& a, const Layout& b) {
  if (b.cosize() > a.size()) {
    return layout_error("the right layout of a composition leaves the left one",
                        fmt::format("integers below {}, the size of {}", a.size(), to_string(a)),
                        fmt::format("{} of cosize {}", to_string(b), b.cosize()));
  }
  const std::vector<Mode> modes = coalesce(a).modes();
  std::vector<std::int64_t> reach(modes.size(), 0);
  WARPLOOM_TRY(Layout result, compose_tree(modes, b, reach));
  for (std::size_t k = 0; k < modes.size(); ++k) {
    if (reach[k] >= modes[k].extent) {
      return layout_error("the digits of a composition carry into each other",
                          fmt::format("leaves that together stay below {} in mode {} of {}", modes[k].extent, k,
                                      to_string(Layout::flat(modes))),
                          to_string(b));
    }
  }
  return result;
}

Result<Layout> complement(const Layout& a, std::int64_t bound) {
  std::vector<Mode> out;
  std::int64_t reach = 1;  // everything below is covered by A and the result so far
  for (const Mode& mode : by_stride(leaves_with_index(filter(a)))) {
    if (mode.stride % reach != 0 || mode.stride < reach) {
      return layout_error("a layout whose leaves do not nest has no complement",
                          "leaves, sorted by stride, of which each stride is a multiple of extent x stride of the last",
                          to_string(a));
    }
    if (mode.stride > reach) out.push_back({mode.stride / reach, reach});
    reach = mode.extent * mode.stride;
  }
  if (bound > reach) out.push_back({(bound + reach - 1) / reach, reach});
  return coalesce(Layout::flat(out));
}

Result<Layout> logical_divide(const Layout& a, const Layout& tiler) {
  const std::int64_t size = a.size();
  WARPLOOM_TRY(Layout rest, complement(tiler, size));
  if (rest.size() * filter(tiler).size() != size) {
    return layout_error("a tile does not divide the layout",
                        fmt::format("a tiler whose reach divides {}, the size of {}", size, to_string(a)),
                        to_string(tiler));
  }
  return compose(a, make_layout({tiler, rest}));
}

Result<Layout> zipped_divide(const Layout& a, const std::vector<Layout>& tilers) {
  if (static_cast<int>(tilers.size()) != a.rank()) {
    return layout_error("a layout is divided by another number of tilers than it has parts",
                        fmt::format("{} tilers", a.rank()), fmt::format("{}", tilers.size()));
  }
  std::vector<Layout> tiles, rests;
  for (int d = 0; d < a.rank(); ++d) {
    WARPLOOM_TRY(const Layout divided, logical_divide(a.part(d), tilers[static_cast<std::size_t>(d)]));
    tiles.push_back(divided.part(0));
    rests.push_back(divided.part(1));
  }
  return make_layout({make_layout(std::move(tiles)), make_layout(std::move(rests))});
}

Result<Layout> logical_product(const Layout& a, const Layout& b) {
  WARPLOOM_TRY(const Layout places, complement(a, a.size() * b.cosize()));
  WARPLOOM_TRY(Layout copies, compose(places, b));
  return make_layout({a, std::move(copies)});
}

}  // namespace warploom::layout
