// Tolerance: how far an output may be from FP64, by track.
//
// Two bounds, both must hold. The relative Frobenius error of the whole output, ‖c - r‖ / ‖r‖ ≤
// frobenius. And for every element, |c - r| ≤ per_magnitude · E + relative · |r| + absolute, where
// E is the first-order condition of the element (graph/reference.h; |A||B| for a matmul). Words:
// u32 = 2^-24 is fp32's unit roundoff, u_in the operands', u_out the output's, k the longest sum, d
// the operators that round.
//
//   fp32        frobenius  max(the vendor's error on the same inputs, 8 u32); where no vendor has
//                          it, 0.6 u32 ‖E‖/‖r‖ stands in: what plain fp32 evaluation is expected
//                          to reach. The norm of n elements allows 1 + 3 / √n times that, since
//                          the rounding of few is chance (n counts as (Σ r²)² / Σ r⁴, so that one
//                          large element is one; the same of E where it stands in).
//               element    (4 + 4 √k) u32 E
//   tf32, bf16, fp16, fp8
//               frobenius  max(the vendor's error, 2 u_in + d u_out + 4 √k u32)
//               element    (4 u_in + (4 + 4 √k) u32) E + 2 d u_out |r|
//   tolerance   element    1e-4 (fp32) or 1e-2 (16 bits), absolute and relative; no Frobenius bound
//
// In every track what is lost where numbers are too small for a type's digits (of fp32 and bf16
// 2^-116, of others their smallest step) is allowed for on top of both.
//
// tolerance.cpp derives the constants. u_in counts only where operands are stored wider than the
// track computes.
#pragma once
#include <span>
#include "graph/projection.h"
#include "graph/track.h"
#include "runtime/executor.h"
#include "verify/inputs.h"

namespace warploom::verify {
inline constexpr double kFp32Floor = 4.8e-7;  // 8 units of fp32 roundoff

struct Tolerance {
  double frobenius = 0;  // before the vendor's own error is taken into account; infinity: no bound
  double per_magnitude = 0;
  double relative = 0;
  double absolute = 0;
  bool stand_in = false;          // fp32: without a vendor, 0.6 u32 ‖E‖/‖r‖ may raise the bound
  bool stands_in_always = false;  // and beside one: where its reference is several calls
};

Tolerance tolerance_of(const graph::Graph& graph, Track track, int output);

// What a comparison of outputs with FP64 saw, added up block by block.
struct Comparison {
  double error_squares = 0;
  double reference_squares = 0;
  double reference_fourths = 0;
  double magnitude_squares = 0;
  double magnitude_fourths = 0;
  double largest_error = 0;
  double largest_reference = 0;
  int64_t compared = 0;  // elements of those sums

  struct Worst {
    double ratio = 0;    // |c - r| over its bound; above 1: refused
    int64_t index = -1;  // in the whole output
    double found = 0;
    double expected = 0;
  };

  Worst worst;  // the element with the largest ratio

  struct Marks {
    int64_t count = 0;
    int64_t first = -1;

    void add(const Marks& more) {
      const bool is_earlier = more.count > 0 && (count == 0 || more.first < first);
      if (is_earlier) first = more.first;
      count += more.count;
    }
  };

  Marks nonfinite;
  Marks unwritten;
  Marks lost_nan;            // a number where the reference has NaN
  Marks lost_infinity;       // not infinity of that sign where the reference has it
  int64_t undetermined = 0;  // elements that may be anything but unwritten

  bool all_zero = true;
  bool zero_expected = true;  // no reference is larger than the type's smallest step
  bool beyond = false;        // finite references that the type cannot hold

  void add(const Comparison& part);
  double frobenius() const;
  double max_error() const;  // largest error over largest reference
};

using runtime::kPoison;  // what outputs are filled with before every call

// Compares `count` elements of `found` (packed dtype) that start at element `begin` of the output
// with FP64. `marked`: one with a magnitude of NaN comes of a number that overflowed, and must be
// written, no more. Of two infinities or NaN the kind and the sign are compared.
void compare(Comparison& sum, const Tolerance& tolerance, Dtype dtype, const void* found,
             const double* value, const double* magnitude, int64_t begin, int64_t count,
             bool marked = false);
// The same of whole numbers, which must be equal.
void compare_integers(Comparison& sum, Dtype dtype, const void* found, const int64_t* value,
                      int64_t begin, int64_t count);
// Only looks for poison and non-finite values, for parts whose reference is not at hand.
void scan(Comparison& sum, Dtype dtype, const void* found, int64_t begin, int64_t count);

// What plain fp32 evaluation is expected to reach on these values, as above: 0.6 u32 ‖E‖/‖r‖ · (1 +
// 3 / √n); 0 where r is 0.
double plain_error(const Comparison& seen);

// Whether what was compared comes so near to the type's largest number that others may lie beyond:
// there infinity can be right.
bool may_overflow(const Comparison& seen, Dtype dtype);
// What the relative Frobenius error may be. `vendor_error`: the vendor's on the same inputs, below
// 0 where there is none.
double frobenius_bound(const Comparison& seen, const Tolerance& tolerance, double vendor_error);
// ok, or candidate-unwritten, candidate-non-finite, candidate-wrong with the figures.
Status accept(const Comparison& seen, const Tolerance& tolerance, double vendor_error,
              const std::string& place);

// Sums: a whole output against FP64 by its lines' sums with random signs (graph/projection.h), as
// cheap as reading it.
struct Line {  // all elements that differ in the projected axis alone
  double sum = 0;
  double square = 0;
};

// What sums may be off by, relative to the norm of what is summed.
struct Bounds {
  double line;
  double all;
};

// An honest kernel's errors with random signs sum up to about their norm, and never to six times
// that. Of a line 16 times what the track allows are wrong, and over all lines, where chance evens
// out, 4 times; and so are 10 and 3 times what the rows that were compared with FP64 showed, where
// that is less; what the track allows of a norm is never wrong. Outliers that cancel leave what was
// rounded while they stood, which is no share of a norm, and no sample shows the few elements that
// have such: with them 16 times all that.
Bounds bounds_of(double allowed, double shown, InputFamily family);

// Sums `count` slabs of the output, extent·after elements each, from number `first` on, which
// `found` holds.
void sum_lines(std::span<Line> lines, const graph::Projection& by, Dtype dtype, const void* found,
               int64_t first, int64_t count);

// ok, candidate-wrong or candidate-non-finite. A line is measured against its own norm or an
// average line's, whichever is larger.
Status accept_sums(std::span<const Line> lines, std::span<const double> truth, const Bounds& bounds,
                   const std::string& place);
}  // namespace warploom::verify
