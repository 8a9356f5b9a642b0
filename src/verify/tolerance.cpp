// Where the constants come from.
//
// Sums. A sum of k products in sequence in a type of roundoff u has rounding errors u·|partial sum|
// that behave like independent ones: for operands of mean 0 their total has deviation about 0.4 u k
// against E = Σ|a||b| = 0.64 k, that is 0.64 u E; for positive operands about u √k E / 3. The
// largest of 10^8 such errors is within 6 deviations, 2 √k u E. Twice that, 4 √k u E, plus 4 u E
// for what follows the sum (scaling, an epilogue's steps, an approximate exp), is refused by no
// correct kernel, yet a missing term of the sum shows: it moves the result by E/k on average, which
// is larger up to k ~ 10^4, and on the families with few large values far beyond.
//
// Operands rounded to u_in. To nearest, a product errs by at most 2 u_in |a||b|, and by 0.6 u_in in
// the root mean square. Units that drop the low bits instead (tf32 operands passed as they are) err
// by twice that at most and by 1.5 u_in in the root mean square, most of it a common factor. So 4
// u_in E bounds every element and 2 u_in the Frobenius error, while operands in the next narrower
// type (bf16 in place of tf32: u four times larger, 2.4 u_in) are refused.
//
// Results rounded to u_out: each rounding moves an element by at most u_out |r|; a chain of d
// operators may round d times, and an epilogue may double what came before (hence the 2 in the
// element bound).
#include "verify/tolerance.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "verify/limits.h"

namespace warploom::verify {
namespace {
using graph::Graph;
using graph::Node;

constexpr double kU32 = 0x1p-24;
constexpr double kU8Sums = 0x1p-14;  // of 8-bit floats: tensor cores keep about 14 bits of a sum

constexpr Limits kLimits[] = {{Dtype::f64, std::numeric_limits<double>::max(), 0},
                              {Dtype::bf16, 0x1.fep127, 0x1p-116},
                              {Dtype::f16, 65504, 0x1p-24},
                              {Dtype::e4m3, 448, 0x1p-9},
                              {Dtype::e5m2, 57344, 0x1p-16}};

// What operands are rounded to, by Track.
constexpr std::optional<Dtype> kTrackTypes[] = {std::nullopt, Dtype::tf32, Dtype::bf16,
                                                Dtype::f16,   Dtype::e4m3, std::nullopt};

// What the norm of few elements allows on top: their rounding is chance.
double for_few(double squares, double fourths) {
  return fourths > 0 ? 1 + 3 * std::sqrt(fourths) / squares : 1;
}

double for_few(const Comparison& seen) {
  return for_few(seen.reference_squares, seen.reference_fourths);
}

// The longest sum in the graph: a contraction's k, a softmax's row.
int64_t longest_sum(const Graph& given) {
  const auto primitive = graph::decompose(given);
  const Graph& graph = primitive ? *primitive : given;
  int64_t longest = 1;
  for (const auto& node : graph.nodes)
    longest = std::max(longest, graph::terms_of(graph, node));
  return longest;
}

std::string text_of(const Comparison::Marks& marks) {
  return fmt::format("{} elements, the first is {}", marks.count, marks.first);
}

// The operators of a graph: how many round their results, and whether any multiplies.
struct Steps {
  int rounding = 0;
  bool contracts = false;
};

Steps steps_of(const Graph& graph) {
  Steps steps;
  for (const Node& node : graph.nodes) {
    const auto kind = graph::class_of(node.op);
    steps.rounding += !only_moves(kind);
    steps.contracts |= multiplies(kind);
  }
  return steps;
}

// Whether operands are scaled values of a narrow type, and whether these are floats. Operands that
// are stored in 8 bits are exact in the product; what is lost is lost as the tensor core adds.
struct Scaling {
  bool any = false;
  bool inexact = false;
};

Scaling scaling_of(const Graph& graph) {
  Scaling scaling;
  for (const Node& node : graph.nodes) {
    if (!graph::is_scaling(node.op)) continue;
    scaling.any = true;
    scaling.inexact |= is_float(graph.tensor(node.inputs[0]).dtype);
  }
  return scaling;
}

// Whether an input holds more digits than `type`.
bool has_wider_inputs(const Graph& graph, Dtype type) {
  return std::ranges::any_of(graph.inputs, [&](graph::TensorId input) {
    const Dtype dtype = graph.tensor(input).dtype;
    return is_float(dtype) && unit_roundoff(dtype) < unit_roundoff(type);
  });
}
}  // namespace

Limits limits_of(Dtype dtype) {
  for (const Limits& row : kLimits)
    if (row.dtype == dtype) return row;
  if (!is_float(dtype)) return {dtype, HUGE_VAL, 0.5};
  return {dtype, std::numeric_limits<float>::max(), 0x1p-116};
}

Tolerance tolerance_of(const Graph& graph, Track track, int output) {
  const Dtype out = graph.tensor(graph.outputs[output]).dtype;
  if (!is_float(out)) return {.frobenius = HUGE_VAL, .absolute = 0.5};
  if (track == Track::tolerance) {
    const double allowed = bits_of(out) >= 32 ? 1e-4 : 1e-2;
    return {.frobenius = HUGE_VAL, .relative = allowed, .absolute = allowed};
  }
  const Steps steps = steps_of(graph);
  const double root = std::sqrt(as_double(longest_sum(graph)));
  double sum = (4 + 4 * root) * kU32;
  const bool narrow_out = unit_roundoff(out) > kU32;
  const std::optional<Dtype> type = kTrackTypes[as_size(track)];
  Tolerance t;
  t.absolute = limits_of(out).step;
  if (!type && !narrow_out) {  // strict fp32
    t.frobenius = kFp32Floor;
    t.per_magnitude = sum;
    t.stand_in = true;
    return t;
  }
  double u_in = 0;
  if (type && steps.contracts) {
    const Scaling scaling = scaling_of(graph);
    if (scaling.inexact) sum *= kU8Sums / kU32;
    if (!scaling.any && has_wider_inputs(graph, *type)) u_in = unit_roundoff(*type);
  }
  const double rounded = std::max(1, steps.rounding) * std::max(unit_roundoff(out), kU32);
  const double epilogue = narrow_out && steps.rounding > 1 ? 2 * rounded : 0;
  t.frobenius = 2 * u_in + rounded + sum;
  t.per_magnitude = 4 * u_in + sum + epilogue;
  t.relative = 2 * rounded;
  return t;
}

double plain_error(const Comparison& seen) {
  if (seen.reference_squares <= 0) return 0;
  const double few_magnitudes = for_few(seen.magnitude_squares, seen.magnitude_fourths);
  const double few = std::max(for_few(seen), few_magnitudes);
  const double condition = std::sqrt(seen.magnitude_squares / seen.reference_squares);
  return 0.6 * kU32 * condition * few;
}

bool may_overflow(const Comparison& seen, Dtype dtype) {
  return seen.compared == 0 || seen.beyond ||
         16 * seen.largest_reference >= limits_of(dtype).largest;
}

double frobenius_bound(const Comparison& seen, const Tolerance& tolerance, double vendor_error) {
  double bound = std::max(tolerance.frobenius, vendor_error);
  if (tolerance.stand_in) {
    const bool plain_counts = vendor_error < 0 || tolerance.stands_in_always;
    const double plain = plain_counts ? plain_error(seen) : 0;
    bound = std::max(bound * for_few(seen), plain);
  }
  if (seen.reference_squares <= 0) return bound;
  // Of numbers that small no kernel can keep more than the type has: 16-bit products of inputs
  // around 0.001 are such.
  const auto elements = as_double(seen.compared);
  return bound + tolerance.absolute * std::sqrt(elements / seen.reference_squares);
}

Status accept(const Comparison& seen, const Tolerance& tolerance, double vendor_error,
              const std::string& place) {
  const auto refuse = [&](ErrorCode code, const char* message, std::string expected,
                          std::string found) {
    return fail({code, message, place, std::move(expected), std::move(found)});
  };
  if (seen.unwritten.count > 0)
    return refuse(ErrorCode::kCandidateUnwritten,
                  "output elements were left unwritten or computed from what was never written",
                  "every element written", text_of(seen.unwritten));
  if (seen.nonfinite.count > 0)
    return refuse(ErrorCode::kCandidateNonFinite,
                  "the output has NaN or infinity where the reference has none", "finite values",
                  text_of(seen.nonfinite));
  if (seen.lost_nan.count > 0)
    return refuse(ErrorCode::kCandidateWrong, "the output has a number where the reference has NaN",
                  "NaN", text_of(seen.lost_nan));
  if (seen.lost_infinity.count > 0)
    return refuse(ErrorCode::kCandidateWrong,
                  "the output lacks an infinity, or its sign, where the reference has it",
                  "infinity of the reference's sign", text_of(seen.lost_infinity));
  if (seen.all_zero && !seen.zero_expected)
    return refuse(ErrorCode::kCandidateWrong, "the output is zero everywhere",
                  "the reference's values", "zeros");
  const double bound = frobenius_bound(seen, tolerance, vendor_error);
  const double error = seen.frobenius();
  if (error <= bound && seen.worst.ratio <= 1) return ok();
  const std::string worst =
      fmt::format("element {} is {:.9g} where FP64 has {:.9g}, {:.3g} times its bound",
                  seen.worst.index, seen.worst.found, seen.worst.expected, seen.worst.ratio);
  return refuse(
      ErrorCode::kCandidateWrong, "the output differs from FP64 by more than the track allows",
      fmt::format("relative Frobenius error at most {:.3g}, every element within its bound", bound),
      fmt::format("relative Frobenius error {:.3g}; {}", error, worst));
}
}  // namespace warploom::verify
