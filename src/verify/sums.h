// Sums: a whole output against FP64 by its lines' sums with random signs (graph/projection.h), which cost no more than reading it.
// Within the room only.
#pragma once
#include "graph/projection.h"
namespace warploom::verify {
struct Line {  // all elements that differ in the projected axis alone
  double sum = 0, square = 0;
};
// Sums `count` slabs of the output, extent·after elements each, from number `first` on, which `found` holds.
void sum_lines(std::span<Line> lines, const graph::Projection& by, Dtype dtype, const void* found, std::int64_t first,
               std::int64_t count);

// ok, candidate-wrong or candidate-non-finite. A line's errors with random signs sum up to about their norm, and never to six times
// that, so 16 times what the track allows (`bound`, relative) of the line's norm, or of an average line's, is wrong; over all lines,
// where chance evens out, 4 times. Sums of integers are exact.
Status accept_sums(std::span<const Line> lines, std::span<const double> truth, Dtype dtype, double bound,
                   const std::string& place);
}  // namespace warploom::verify
