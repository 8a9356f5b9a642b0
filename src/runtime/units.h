// Units: which kernels of a launch list one compiler is given at once.
//
// A compiler takes a second to read the device headers and a few hundredths for a small kernel
// behind them. So the different texts of a list go to one compiler together, each in a namespace of
// its own, so that their helpers cannot meet; the kernels keep C linkage and so their names. Fifty
// pieces of a Concat are two units:
//
//   #define WL_VECTOR_BYTES 64                      what the texts begin with alike, once
//   #include "wl_cpu.h"
//   namespace part_0 { extern "C" void direct(…) … }
//   namespace part_1 { extern "C" void direct_2(…) … }
//
// A unit is kept small enough that several compilers share a long list, and that one which another
// list has as well is found in the cache: what a unit is depends on its list alone. A text has one
// of its own where it cannot stand beside others: on a GPU, whose compiler says of each text by
// itself how it uses registers; where it defines macros behind its beginning; where it names a
// kernel as another does.
//
// Within the room only.
#pragma once
#include "codegen/launch_list.h"

namespace warploom::runtime {
struct Unit {
  std::string text;
  int texts = 1;                // that it was made of
  std::vector<size_t> kernels;  // of the list, those that it defines
};

// In the order of the first kernels of each; every kernel is in one. `marked`: with marks of which
// kernel's text each line is (text_places.h), where several were put together.
std::vector<Unit> units_of(const LaunchList& list, bool marked = false);
}  // namespace warploom::runtime
