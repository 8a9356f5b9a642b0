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
#include <cmath>
#include <cstring>
#include <limits>
#include "graph/parallel.h"

namespace warploom::verify {
namespace {
constexpr double kU32 = 0x1p-24;
constexpr double kU8Sums = 0x1p-14;  // of 8-bit floats: tensor cores keep about 14 bits of a sum

// The largest number of a type, and what may be lost where numbers are too small for its digits:
// steps below which it holds nothing but multiples of them. What is computed in fp32 may be flushed
// below 2^-126 on the way, and be scaled up to 2^10 times after that.
struct Limits {
  Dtype dtype;
  double largest;
  double step;
};

constexpr Limits kLimits[] = {{Dtype::f64, std::numeric_limits<double>::max(), 0},
                              {Dtype::bf16, 0x1.fep127, 0x1p-116},
                              {Dtype::f16, 65504, 0x1p-24},
                              {Dtype::e4m3, 448, 0x1p-9},
                              {Dtype::e5m2, 57344, 0x1p-16}};

Limits limits_of(Dtype dtype) {
  for (const Limits& row : kLimits)
    if (row.dtype == dtype) return row;
  return is_float(dtype) ? Limits{dtype, std::numeric_limits<float>::max(), 0x1p-116}
                         : Limits{dtype, HUGE_VAL, 0.5};
}

// What operands are rounded to, by Track.
constexpr std::optional<Dtype> kTrackTypes[] = {std::nullopt, Dtype::tf32, Dtype::bf16,
                                                Dtype::f16,   Dtype::e4m3, std::nullopt};

// One byte of poison may be a legitimate value, so 8-bit outputs rely on the comparison alone.
bool poisoned(Dtype dtype, const void* found, int64_t index) {
  constexpr uint32_t kTwice[] = {kPoison, kPoison};
  const int64_t bytes = bytes_of(dtype);
  return bytes > 1 &&
         std::memcmp(static_cast<const std::byte*>(found) + index * bytes, kTwice, bytes) == 0;
}

// What the norm of few elements allows on top: their rounding is chance.
double for_few(double squares, double fourths) {
  return fourths > 0 ? 1 + 3 * std::sqrt(fourths) / squares : 1;
}

double for_few(const Comparison& seen) {
  return for_few(seen.reference_squares, seen.reference_fourths);
}

// The longest sum in the graph: a contraction's k, a softmax's row.
int64_t longest_sum(const graph::Graph& given) {
  const auto primitive = graph::decompose(given);
  const graph::Graph& graph = primitive ? *primitive : given;
  int64_t longest = 1;
  for (const auto& node : graph.nodes) longest = std::max(longest, graph::terms_of(graph, node));
  return longest;
}
}  // namespace

Tolerance tolerance_of(const graph::Graph& graph, Track track, int output) {
  const Dtype out = graph.tensor(graph.outputs[output]).dtype;
  if (!is_float(out)) return {HUGE_VAL, 0, 0, 0.5, false};
  Tolerance t;
  t.absolute = limits_of(out).step;
  if (track == Track::tolerance) {
    const double allowed = bits_of(out) >= 32 ? 1e-4 : 1e-2;
    return {HUGE_VAL, 0, allowed, allowed, false};
  }
  double sum = (4 + 4 * std::sqrt(static_cast<double>(longest_sum(graph)))) * kU32;
  int rounding = 0;
  bool contracts = false;
  for (const auto& node : graph.nodes) {
    const graph::OpClass c = graph::class_of(node.op);
    rounding += !only_moves(c);
    contracts |= multiplies(c);
  }
  const double rounded = std::max(1, rounding) * std::max(unit_roundoff(out), kU32);
  const bool narrow_out = unit_roundoff(out) > kU32;
  const std::optional<Dtype> type = kTrackTypes[static_cast<size_t>(track)];
  if (!type && !narrow_out) return {kFp32Floor, sum, 0, t.absolute, true};  // strict fp32
  double u_in = 0;
  if (type && contracts) {
    const bool wide = std::ranges::any_of(graph.inputs, [&](graph::TensorId input) {
      const Dtype dtype = graph.tensor(input).dtype;
      return is_float(dtype) && unit_roundoff(dtype) < unit_roundoff(*type);
    });
    // Operands that are stored in 8 bits are exact in the product; what is lost is lost as the
    // tensor core adds.
    bool narrow = false;
    bool inexact = false;
    for (const graph::Node& node : graph.nodes)
      if (graph::is_scaling(node.op)) {
        narrow = true;
        inexact |= is_float(graph.tensor(node.inputs[0]).dtype);
      }
    if (inexact) sum *= kU8Sums / kU32;
    if (wide && !narrow) u_in = unit_roundoff(*type);
  }
  t.frobenius = 2 * u_in + rounded + sum;
  t.per_magnitude = 4 * u_in + sum + (narrow_out && rounding > 1 ? 2 * rounded : 0);
  t.relative = 2 * rounded;
  return t;
}

void Comparison::add(const Comparison& part) {
  if (part.worst.ratio > worst.ratio) worst = part.worst;
  for (const auto sum :
       {&Comparison::error_squares, &Comparison::reference_squares, &Comparison::reference_fourths,
        &Comparison::magnitude_squares, &Comparison::magnitude_fourths})
    this->*sum += part.*sum;
  compared += part.compared;
  largest_error = std::max(largest_error, part.largest_error);
  largest_reference = std::max(largest_reference, part.largest_reference);
  nonfinite.add(part.nonfinite);
  unwritten.add(part.unwritten);
  lost_nan.add(part.lost_nan);
  all_zero = all_zero && part.all_zero;
  zero_expected = zero_expected && part.zero_expected;
  beyond = beyond || part.beyond;
}

double Comparison::frobenius() const {
  if (error_squares == 0 || zero_expected) return 0;
  return reference_squares > 0 ? std::sqrt(error_squares / reference_squares) : HUGE_VAL;
}

double Comparison::max_error() const {
  if (largest_error == 0 || zero_expected) return 0;
  return largest_reference > 0 ? largest_error / largest_reference : HUGE_VAL;
}

void compare(Comparison& all, const Tolerance& tolerance, Dtype dtype, const void* found,
             const double* value, const double* magnitude, int64_t begin, int64_t count,
             bool marked) {
  const auto work = [=](Comparison& part, int64_t from, int64_t to) {
    Comparison sum;  // of its own, which the compiler keeps in registers
    const auto [_, largest, step] = limits_of(dtype);
    const bool floating = is_float(dtype);
    for (int64_t i = from; i < to; ++i) {
      const double c = dtype == Dtype::f32 ? static_cast<const float*>(found)[i]
                                           : load_as_double(dtype, found, i);
      const double r = value[i];
      const bool held =
          std::abs(r) <=
          largest;  // else the type cannot hold it: infinity or NaN is right, a plain number is not
      sum.beyond |= !held && std::isfinite(r);
      if (marked && std::isnan(magnitude[i]) && !std::isnan(r)) {
        if (c != r && poisoned(dtype, found, i)) sum.unwritten.add({1, begin + i});
        continue;
      }
      if (!held &&
          (std::isnan(r) ? std::isnan(c) : (c > 0) == (r > 0) && std::abs(c) >= largest * 0.9))
        continue;
      const bool nonfinite =
          held ? !std::isfinite(c) &&
                     std::abs(r) < largest * 0.99  // closer to the edge, rounding decides
               : std::isnan(c) && !std::isnan(r);
      if ((!std::isfinite(c) || !floating) && c != r && poisoned(dtype, found, i))
        sum.unwritten.add({1, begin + i});
      else if (nonfinite)
        sum.nonfinite.add({1, begin + i});
      else if (std::isnan(r))
        sum.lost_nan.add({1, begin + i});
      const double given = magnitude ? magnitude[i] : std::abs(r);
      const double e = held && !std::isfinite(given) ? std::abs(r) : given;
      if (std::isnan(r) || std::isnan(c) || (held ? std::isinf(c) : std::isnan(e))) continue;
      const double nearest = std::clamp(r, -largest, largest);
      const double error = std::abs(c - nearest);
      const double bound =
          tolerance.per_magnitude * e + tolerance.relative * std::abs(nearest) + tolerance.absolute;
      if (error > sum.worst.ratio * bound)
        sum.worst = {bound > 0 ? error / bound : HUGE_VAL, begin + i, c, r};
      if (!held) continue;
      if (c != 0) sum.all_zero = false;
      if (std::abs(r) > step) sum.zero_expected = false;
      sum.error_squares += error * error;
      sum.reference_squares += r * r;
      sum.reference_fourths += r * r * r * r;
      ++sum.compared;
      sum.magnitude_squares += e * e;
      sum.magnitude_fourths += e * e * e * e;
      sum.largest_error = std::max(sum.largest_error, error);
      sum.largest_reference = std::max(sum.largest_reference, std::abs(r));
    }
    part = sum;
  };
  for (const auto& part : graph::in_parallel<Comparison>(count, 1 << 16, work)) all.add(part);
}

void scan(Comparison& sum, Dtype dtype, const void* found, int64_t begin, int64_t count) {
  const auto work = [&](Comparison& part, int64_t from, int64_t to) {
    const auto mark = [&](auto poison) {
      const auto* words = static_cast<const decltype(poison)*>(found);
      for (int64_t i = from; i < to; ++i)
        if (words[i] == poison) part.unwritten.add({1, begin + i});
    };
    constexpr uint64_t kTwice = uint64_t{kPoison} << 32 | kPoison;
    if (bytes_of(dtype) == 2) mark(static_cast<uint16_t>(kTwice));
    if (bytes_of(dtype) == 4) mark(static_cast<uint32_t>(kTwice));
    if (bytes_of(dtype) == 8) mark(kTwice);
  };
  for (const auto& part : graph::in_parallel<Comparison>(count, 1 << 16, work)) sum.add(part);
}

double plain_error(const Comparison& seen) {
  const double few =
      std::max(for_few(seen), for_few(seen.magnitude_squares, seen.magnitude_fourths));
  return seen.reference_squares > 0
             ? 0.6 * kU32 * std::sqrt(seen.magnitude_squares / seen.reference_squares) * few
             : 0;
}

bool may_overflow(const Comparison& seen, Dtype dtype) {
  return seen.compared == 0 || seen.beyond ||
         16 * seen.largest_reference >= limits_of(dtype).largest;
}

double frobenius_bound(const Comparison& seen, const Tolerance& tolerance, double vendor_error) {
  double bound = std::max(tolerance.frobenius, vendor_error);
  if (tolerance.stand_in)
    bound = std::max(bound * for_few(seen),
                     vendor_error < 0 || tolerance.stands_in_always ? plain_error(seen) : 0);
  // Of numbers that small no kernel can keep more than the type has: 16-bit products of inputs
  // around 0.001 are such.
  if (seen.reference_squares > 0)
    bound +=
        tolerance.absolute * std::sqrt(static_cast<double>(seen.compared) / seen.reference_squares);
  return bound;
}

Status accept(const Comparison& seen, const Tolerance& tolerance, double vendor_error,
              const std::string& place) {
  if (seen.unwritten.count > 0)
    return fail(
        {ErrorCode::kCandidateUnwritten,
         "output elements were left unwritten or computed from what was never written", place,
         "every element written",
         fmt::format("{} elements, the first is {}", seen.unwritten.count, seen.unwritten.first)});
  if (seen.nonfinite.count > 0)
    return fail(
        {ErrorCode::kCandidateNonFinite,
         "the output has NaN or infinity where the reference has none", place, "finite values",
         fmt::format("{} elements, the first is {}", seen.nonfinite.count, seen.nonfinite.first)});
  if (seen.lost_nan.count > 0)
    return fail(
        {ErrorCode::kCandidateWrong, "the output has a number where the reference has NaN", place,
         "NaN",
         fmt::format("{} elements, the first is {}", seen.lost_nan.count, seen.lost_nan.first)});
  if (seen.all_zero && !seen.zero_expected)
    return fail({ErrorCode::kCandidateWrong, "the output is zero everywhere", place,
                 "the reference's values", "zeros"});
  const double bound = frobenius_bound(seen, tolerance, vendor_error);
  const double error = seen.frobenius();
  if (!(error <= bound) || !(seen.worst.ratio <= 1))
    return fail(
        {ErrorCode::kCandidateWrong, "the output differs from FP64 by more than the track allows",
         place,
         fmt::format("relative Frobenius error at most {:.3g}, every element within its bound",
                     bound),
         fmt::format(
             "relative Frobenius error {:.3g}; element {} is {:.9g} where FP64 has {:.9g}, {:.3g} "
             "times its bound",
             error, seen.worst.index, seen.worst.found, seen.worst.expected, seen.worst.ratio)});
  return ok();
}

void sum_lines(std::span<Line> lines, const graph::Projection& by, Dtype dtype, const void* found,
               int64_t first, int64_t count) {
  constexpr int64_t kRun = 4096;  // elements that are loaded together
  const int64_t runs = ceil_div(by.after, kRun);
  const int64_t most = std::max<int64_t>(1, kRun / by.after);  // rows of short lines
  graph::parallel_for(count * runs, 0, [&](int64_t task) {
    std::array<double, kRun> values;
    const int64_t slab = task / runs;
    const int64_t begin = task % runs * kRun;
    const int64_t length = std::min(kRun, by.after - begin);
    std::vector<Line> own(length);
    for (int64_t k = 0; k < by.extent; k += most) {
      const int64_t rows = std::min(most, by.extent - k);
      load_run(dtype, found, (slab * by.extent + k) * by.after + begin, 1, rows * length,
               values.data());
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < length; ++i) {
          const double value = values[row * length + i];
          own[i].sum += by.signs[k + row] * value;
          own[i].square += value * value;
        }
    }
    std::ranges::copy(own, lines.begin() + (first + slab) * by.after + begin);
  });
}

Bounds bounds_of(double allowed, double shown, InputFamily family) {
  const double slack = family == InputFamily::outliers ? 16 : 1;
  return {slack * std::min(16 * allowed, std::max(allowed, 10 * shown)),
          slack * std::min(4 * allowed, std::max(allowed, 3 * shown))};
}

Status accept_sums(std::span<const Line> lines, std::span<const double> truth, const Bounds& bounds,
                   const std::string& place) {
  double squares = 0;
  double truths = 0;
  double errors = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!std::isfinite(truth[i])) continue;  // infinity or NaN is right somewhere in it
    if (!std::isfinite(lines[i].square))
      return fail({ErrorCode::kCandidateNonFinite,
                   "the output has NaN or infinity where the reference has none", place,
                   "finite values", fmt::format("some in line {} of {}", i, lines.size())});
    squares += lines[i].square;
    truths += truth[i] * truth[i];
  }
  const double all = std::max(squares, truths);
  const double average = all / static_cast<double>(lines.size());
  const auto refused = [&](const std::string& what, double allowed, double found) {
    return fail(
        {ErrorCode::kCandidateWrong,
         "the output's sums with random signs differ from FP64's by more than the track allows",
         place, fmt::format("{} within {:.3g}", what, allowed), fmt::format("{:.3g}", found)});
  };
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!std::isfinite(truth[i])) continue;
    const double error = std::abs(lines[i].sum - truth[i]);
    const double allowed = bounds.line * std::sqrt(std::max(lines[i].square, average));
    if (!(error <= allowed))
      return refused(fmt::format("line {} of {}", i, lines.size()), allowed, error);
    errors += error * error;
  }
  const double allowed = bounds.all * std::sqrt(all);
  if (!(std::sqrt(errors) <= allowed)) return refused("all lines", allowed, std::sqrt(errors));
  return ok();
}
}  // namespace warploom::verify
