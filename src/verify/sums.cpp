// Sums of a whole output's lines with random signs, against FP64's.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/parallel.h"
#include "graph/projection.h"
#include "verify/inputs.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
// Adds rows of neighbouring elements to the lines that these belong to; row r counts signs[r]
// times.
void add_rows(std::span<Line> lines, std::span<const double> signs, const double* values) {
  for (const double sign : signs)
    for (Line& line : lines) {
      const double value = *values++;
      line.sum += sign * value;
      line.square += value * value;
    }
}
}  // namespace

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
      const int64_t at = (slab * by.extent + k) * by.after + begin;
      load_run(dtype, found, at, 1, rows * length, values.data());
      const std::span signs(by.signs);
      add_rows(own, signs.subspan(k, rows), values.data());
    }
    const int64_t line = (first + slab) * by.after + begin;
    std::ranges::copy(own, lines.begin() + line);
  });
}

Bounds bounds_of(double allowed, double shown, InputFamily family) {
  const double slack = family == InputFamily::outliers ? 16 : 1;
  const double line = std::min(16 * allowed, std::max(allowed, 10 * shown));
  const double all = std::min(4 * allowed, std::max(allowed, 3 * shown));
  return {slack * line, slack * all};
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
  const double average = all / as_double(lines.size());
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
