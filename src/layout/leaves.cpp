#include "layout/leaves.h"

#include <algorithm>

namespace warploom::layout {

std::vector<IndexedMode> leaves_with_index(const Layout& layout) {
  std::vector<IndexedMode> out;
  std::int64_t index = 1;
  for (const Mode& mode : layout.modes()) {
    if (mode.extent > 1 && mode.stride > 0) out.push_back({mode, index});
    index *= mode.extent;
  }
  return out;
}

std::vector<IndexedMode> by_stride(std::vector<IndexedMode> modes) {
  std::stable_sort(modes.begin(), modes.end(),
                   [](const IndexedMode& a, const IndexedMode& b) { return a.stride < b.stride; });
  return modes;
}

tl::unexpected<Error> layout_error(std::string message, std::string expected, std::string found) {
  return fail({.code = ErrorCode::kLayout,
               .message = std::move(message),
               .expected = std::move(expected),
               .found = std::move(found)});
}

}  // namespace warploom::layout
