// Shared memory: a layout for every shared tensor, and with it the instruction of every copy.
#pragma once
#include "synth/registers.h"
#include "synth/sites.h"
#include "synth/synthesize.h"
namespace warploom::synth {
// Fills solution.shared and solution.choices of copies; solution.registers must be complete.
Status solve_shared(const tile::Program& program, const std::vector<Site>& sites, const Bounds& bounds,
                    const target::Capabilities& capabilities, Solution& solution);

// A register layout seen over the dimensions of another tensor that it meets in a copy: wide dimensions correspond in order.
layout::TvLayout seen_from(const layout::TvLayout& registers, const std::vector<std::int64_t>& register_extent,
                           const std::vector<std::int64_t>& other_extent);

// Whether every element is seen as often as any other: not so where threads or values straddle dimensions that meet one together.
bool meets_whole(const layout::TvLayout& registers, const std::vector<std::int64_t>& register_extent,
                 const std::vector<std::int64_t>& other_extent);

// How many matrices of 8 rows of 16 bytes one matrix load or store can move for this register layout (1, 2 or 4), 0 when it does
// not have the shape. Plain form: lane%4 holds 4 bytes along the contiguous dimension, lane/4 the row. Transposed (2-byte
// elements only): lane%4 holds two rows, lane/4 the column.
int matrix_count(const layout::TvLayout& registers, const layout::MemoryLayout& memory, int contiguous, bool transpose);
}  // namespace warploom::synth
