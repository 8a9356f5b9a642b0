// Pictures of layouts, as text and as SVG: a row of the tile a line, dimensions before the last two one below the other.
//
// Of a thread-value layout each cell says which thread holds the element in which value, T3V1; "+" marks an element that several
// (thread, value) pairs hold, of which the first is named; "." one that none holds.
//
//   tile 2x4, thread [2 : (1,0)] [2 : (0,2)], value [2 : (0,1)]     T0V0 T0V1 T2V0 T2V1
//                                                                  T1V0 T1V1 T3V0 T3V1
//
// Of a memory layout each cell is the shared-memory bank (0 to 31) that holds the element's first byte. In SVG a colour stands for a
// thread, or for a bank. Of rows and columns beyond `most` the last line says that they are left out.
#pragma once
#include "layout/memory_layout.h"
namespace warploom::layout {
std::string draw_text(const TvLayout& layout, std::int64_t most = 64);
std::string draw_text(const MemoryLayout& layout, std::int64_t most = 64);
std::string draw_svg(const TvLayout& layout, std::int64_t most = 64);
std::string draw_svg(const MemoryLayout& layout, std::int64_t most = 64);
}  // namespace warploom::layout
