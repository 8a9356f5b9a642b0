#include "layout/algebra.h"
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
  return Layout::list(std::move(parts));
}

// A leaf of extent above 1 and stride above 0 with the index at which it begins to count, and the gap before it: how many times
// its stride passes over all that the leaves of smaller stride reach.
struct Leaf : Mode {
  std::int64_t index = 1, gap = 1;
};

// (4,2,8):(8,0,1) → 8:1 at index 8, 4:8 at index 1: ascending by stride, equal strides in order.
std::vector<Leaf> sorted_leaves(const Layout& layout) {
  std::vector<Leaf> leaves;
  std::int64_t index = 1;
  for (const Mode& mode : layout.modes()) {
    if (mode.extent > 1 && mode.stride > 0) leaves.push_back({mode, index});
    index *= mode.extent;
  }
  std::stable_sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) { return a.stride < b.stride; });
  return leaves;
}

Result<std::vector<Leaf>> nested_leaves(const Layout& layout) {
  std::vector<Leaf> leaves = sorted_leaves(layout);
  std::int64_t reach = 1;
  for (Leaf& leaf : leaves) {
    if (leaf.stride % reach != 0 || leaf.stride < reach)
      return layout_error("a layout whose leaves do not nest has neither complement nor left inverse",
                          "leaves, sorted by stride, of which each stride is a multiple of extent x stride of the last",
                          to_string(layout));
    leaf.gap = leaf.stride / reach;
    reach = leaf.extent * leaf.stride;
  }
  return leaves;
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
      return layout_error(
          "the digits of a composition carry into each other",
          fmt::format("leaves that together stay below {} in mode {} of {}", modes[k].extent, k, to_string(Layout::flat(modes))),
          to_string(b));
    }
  }
  return result;
}

Result<Layout> complement(const Layout& a, std::int64_t bound) {
  std::vector<Mode> out;
  std::int64_t reach = 1;  // everything below is covered by A and the result so far
  WARPLOOM_TRY(const std::vector<Leaf> leaves, nested_leaves(filter(a)));
  for (const Leaf& leaf : leaves) {
    if (leaf.gap > 1) out.push_back({leaf.gap, reach});
    reach = leaf.extent * leaf.stride;
  }
  if (bound > reach) out.push_back({(bound + reach - 1) / reach, reach});
  return coalesce(Layout::flat(out));
}

Layout right_inverse(const Layout& a) {
  std::vector<Mode> out;
  std::int64_t reach = 1;
  for (const Leaf& leaf : sorted_leaves(a)) {
    if (leaf.stride > reach) break;     // nothing reaches integer `reach` by one leaf
    if (leaf.stride < reach) continue;  // overlaps what is covered
    out.push_back({leaf.extent, leaf.index});
    reach *= leaf.extent;
  }
  return coalesce(Layout::flat(out));
}

Result<Layout> left_inverse(const Layout& a) {
  for (const Mode& mode : a.modes())
    if (mode.stride == 0 && mode.extent > 1)
      return layout_error("a replicated layout has no left inverse", "no leaf of stride 0", to_string(a));
  std::vector<Mode> out;
  std::int64_t beyond = a.size();  // integers in gaps go to indices from here up, which keeps the whole a bijection
  WARPLOOM_TRY(const std::vector<Leaf> leaves, nested_leaves(a));
  for (const Leaf& leaf : leaves) {
    if (leaf.gap > 1) out.push_back({leaf.gap, beyond});
    beyond *= leaf.gap;
    out.push_back({leaf.extent, leaf.index});
  }
  return coalesce(Layout::flat(out));
}

Result<Layout> logical_divide(const Layout& a, const Layout& tiler) {
  const std::int64_t size = a.size();
  WARPLOOM_TRY(const Layout rest, complement(tiler, size));
  if (rest.size() * filter(tiler).size() != size)
    return layout_error("a tile does not divide the layout",
                        fmt::format("a tiler whose reach divides {}, the size of {}", size, to_string(a)), to_string(tiler));
  return compose(a, Layout::list({tiler, rest}));
}

Result<Layout> logical_product(const Layout& a, const Layout& b) {
  WARPLOOM_TRY(const Layout places, complement(a, a.size() * b.cosize()));
  WARPLOOM_TRY(const Layout copies, compose(places, b));
  return Layout::list({a, copies});
}

std::int64_t max_common_vector(const Layout& a, const Layout& b) {
  const std::vector<Mode> x = right_inverse(a).modes(), y = right_inverse(b).modes();
  std::int64_t common = 1;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (x[i].extent == 1 || y[i].extent == 1 || x[i].stride != y[i].stride) break;
    common *= std::min(x[i].extent, y[i].extent);
    if (x[i].extent != y[i].extent) break;  // coalesced inverses of which one turns off here: they agree no further
  }
  return common;
}

Result<std::pair<Layout, Layout>> group(const Layout& layout, std::int64_t n) {
  std::vector<Mode> first, second;
  std::int64_t left = n;
  for (const Mode& mode : layout.modes()) {
    if (mode.extent == 1) continue;
    if (left == 1) {
      second.push_back(mode);
    } else if (left > 0 && left % mode.extent == 0) {
      first.push_back(mode);
      left /= mode.extent;
    } else if (left > 0 && mode.extent % left == 0) {
      first.push_back({left, mode.stride});
      second.push_back({mode.extent / left, mode.stride * left});
      left = 1;
    } else {
      break;
    }
  }
  if (left != 1)
    return layout_error("a layout cannot be cut after so many indices",
                        fmt::format("a number that divides through the leaves of {} from the left", to_string(layout)),
                        fmt::format("{}", n));
  return std::pair{Layout::flat(first), Layout::flat(second)};
}

Result<std::pair<Layout, Layout>> common_reshape(const Layout& a, const Layout& b) {
  std::vector<Mode> x = a.modes(), y = b.modes(), cut_x, cut_y;
  for (auto* modes : {&x, &y}) {
    std::erase_if(*modes, [](const Mode& m) { return m.extent == 1; });
    std::reverse(modes->begin(), modes->end());  // the next leaf stands at the back
  }
  while (!x.empty() && !y.empty()) {
    const std::int64_t step = std::min(x.back().extent, y.back().extent);
    if (x.back().extent % step != 0 || y.back().extent % step != 0) break;
    const auto cut = [step](std::vector<Mode>& from, std::vector<Mode>& to) {
      Mode& leaf = from.back();
      to.push_back({step, leaf.stride});
      leaf = {leaf.extent / step, leaf.stride * step};  // what is left goes on where the cut ended
      if (leaf.extent == 1) from.pop_back();
    };
    cut(x, cut_x);
    cut(y, cut_y);
  }
  if (!x.empty() || !y.empty())
    return layout_error("two layouts have no common shape", "equal sizes and cuts that nest, as in " + to_string(a),
                        to_string(b));
  return std::pair{Layout::flat(cut_x), Layout::flat(cut_y)};
}
}  // namespace warploom::layout
