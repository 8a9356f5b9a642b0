// Sums: a whole output against FP64 by its lines' sums with random signs (graph/projection.h), which cost no more than reading it.
// Within the room only.
#pragma once
#include "graph/projection.h"
#include "verify/inputs.h"
namespace warploom::verify {
struct Line {  // all elements that differ in the projected axis alone
  double sum = 0, square = 0;
};
// What sums may be off by, relative to the norm of what is summed.
struct Bounds {
  double line, all;
};
// An honest kernel's errors with random signs sum up to about their norm, and never to six times that. Of a line 16 times what the track
// allows are wrong, and over all lines, where chance evens out, 4 times; and so are 10 and 3 times what the rows that were compared with
// FP64 showed, where that is less; what the track allows of a norm is never wrong. Outliers that cancel leave what was rounded while they
// stood, which is no share of a norm, and no sample shows the few elements that have such: with them 16 times all that.
Bounds bounds_of(double allowed, double shown, InputFamily family);

// Sums `count` slabs of the output, extent·after elements each, from number `first` on, which `found` holds.
void sum_lines(std::span<Line> lines, const graph::Projection& by, Dtype dtype, const void* found, std::int64_t first,
               std::int64_t count);

// ok, candidate-wrong or candidate-non-finite. A line is measured against its own norm or an average line's, whichever is larger.
Status accept_sums(std::span<const Line> lines, std::span<const double> truth, const Bounds& bounds, const std::string& place);
}  // namespace warploom::verify
