// Text places: marks in a text that was put together, which say where its lines come from.
//
// A bundle's kernels are compiled with headers written out in the middle, and several kernels'
// texts as one (units.h). An error about a line of that helps nobody, so comments stand where lines
// of another text begin:
//
//   //: line 1 of mm_kernels.cpp
//   #define WL_VECTOR_BYTES 64
//   //: line 1 of device/cpu/wl_cpu.h        what an #include was
//   …
//   //: line 3 of mm_kernels.cpp
//
//   place_in(text, 4)                        // {"device/cpu/wl_cpu.h", 1}
//
// Who writes such comments by hand misleads about his own lines alone.
#pragma once
#include <string>
#include <string_view>

namespace warploom::runtime {
// Where a line of a text that was put together comes from.
struct TextPlace {
  std::string file;  // or a kernel; empty: the text has no marks above the line
  int line = 0;      // from 1 on
};

// A line that says of which line the next one is.
std::string place_mark(int line, std::string_view file);
TextPlace place_in(std::string_view text, int line);
// "gemm, line 12", "gemm, line 12 of mm_kernels.cpp"; the name alone where the line is 0.
std::string described(const std::string& name, const TextPlace& place);
}  // namespace warploom::runtime
