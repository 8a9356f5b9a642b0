// Leaves of a layout together with the index at which each begins to count: what inverses and complements
// sort.
#pragma once

#include <string>
#include <vector>

#include "layout/layout.h"

namespace warploom::layout {

struct IndexedMode : Mode {
  std::int64_t index = 1;  // product of the extents of the leaves to the left
};

// (4,2,8):(8,0,1) → 4:8 at 1, 8:1 at 8. Leaves of extent 1 or stride 0 are left out, but count towards the
// indices.
std::vector<IndexedMode> leaves_with_index(const Layout& layout);
std::vector<IndexedMode> by_stride(std::vector<IndexedMode> modes);  // ascending, equal strides in order

// The error of every operation here: ErrorCode::kLayout.
tl::unexpected<Error> layout_error(std::string message, std::string expected, std::string found);

}  // namespace warploom::layout
