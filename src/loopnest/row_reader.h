// The steps in which read_rows() takes a nest apart, in their order. A step that is false finds
// that the nest is no row reduction.
#pragma once
#include "loopnest/row_reduction.h"

namespace warploom::loopnest {
bool find_row_axes(RowReduction& rows);          // row, outer, tiled_outer, dims
bool find_row_terms(RowReduction& rows);         // terms, results
void find_row_passes(RowReduction& rows);        // passes, and what they keep
void choose_padding_values(RowReduction& rows);  // padding_values, and which reductions are masked
void find_row_patterns(RowReduction& rows);      // online_softmax and the like
}  // namespace warploom::loopnest
