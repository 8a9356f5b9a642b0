// Operations that recut a layout's leaves without changing what it gives for an index.
#include <fmt/format.h>

#include <algorithm>

#include "layout/algebra.h"
#include "layout/leaves.h"

namespace warploom::layout {

Result<std::pair<Layout, Layout>> group(const Layout& layout, std::int64_t n, bool skip_replicas) {
  std::vector<Mode> first, second;
  std::int64_t left = n;
  for (const Mode& mode : layout.modes()) {
    if (mode.extent == 1) continue;
    if (left == 1) {
      second.push_back(mode);
    } else if (skip_replicas && mode.stride == 0) {
      first.push_back(mode);
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
  if (left != 1) {
    return layout_error("a layout cannot be cut after so many indices",
                        fmt::format("a number that divides through the leaves of {} from the left", to_string(layout)),
                        fmt::format("{}", n));
  }
  return std::pair{Layout::flat(first), Layout::flat(second)};
}

Result<std::pair<Layout, Layout>> common_reshape(const Layout& a, const Layout& b) {
  std::vector<Mode> x = a.modes(), y = b.modes(), cut_x, cut_y;
  std::erase_if(x, [](const Mode& m) { return m.extent == 1; });
  std::erase_if(y, [](const Mode& m) { return m.extent == 1; });
  std::size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const std::int64_t step = std::min(x[i].extent, y[j].extent);
    if (x[i].extent % step != 0 || y[j].extent % step != 0) break;
    cut_x.push_back({step, x[i].stride});
    cut_y.push_back({step, y[j].stride});
    // What is left of a leaf goes on where the cut ended.
    const auto advance = [step](std::vector<Mode>& modes, std::size_t& at) {
      modes[at] = {modes[at].extent / step, modes[at].stride * step};
      if (modes[at].extent == 1) ++at;
    };
    advance(x, i);
    advance(y, j);
  }
  if (i < x.size() || j < y.size()) {
    return layout_error("two layouts have no common shape", "equal sizes and cuts that nest, as in " + to_string(a),
                        to_string(b));
  }
  return std::pair{Layout::flat(cut_x), Layout::flat(cut_y)};
}

Result<Layout> drop_stride_interval(const Layout& layout, std::int64_t low, std::int64_t high) {
  std::vector<Mode> out;
  const auto refuse = [&](const Mode& mode, std::int64_t bound) {
    return layout_error("a leaf straddles a bound at which it cannot be split",
                        fmt::format("leaves of {} that {} divides", to_string(layout), bound),
                        fmt::format("{}:{}", mode.extent, mode.stride));
  };
  for (Mode mode : layout.modes()) {
    // Cut at each bound that falls inside the leaf: below it, between, above it.
    for (const std::int64_t bound : {low, high}) {
      if (mode.stride == 0 || mode.stride >= bound || (mode.extent - 1) * mode.stride < bound) continue;
      if (bound % mode.stride != 0 || mode.extent % (bound / mode.stride) != 0) return refuse(mode, bound);
      const std::int64_t below = bound / mode.stride;
      out.push_back({below, mode.stride >= low ? 0 : mode.stride});
      mode = {mode.extent / below, bound};
    }
    out.push_back({mode.extent, mode.stride >= low && mode.stride < high ? 0 : mode.stride});
  }
  return Layout::flat(out);
}

}  // namespace warploom::layout
