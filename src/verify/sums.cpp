#include "verify/sums.h"
#include "graph/parallel.h"
namespace warploom::verify {
void sum_lines(std::span<Line> lines, const graph::Projection& by, Dtype dtype, const void* found, std::int64_t first,
               std::int64_t count) {
  constexpr std::int64_t kRun = 4096;  // elements that are loaded together
  const std::int64_t runs = ceil_div(by.after, kRun), most = std::max<std::int64_t>(1, kRun / by.after);  // rows of short lines
  graph::parallel_for(count * runs, 0, [&](std::int64_t task) {
    std::array<double, kRun> values;
    const std::int64_t slab = task / runs, begin = task % runs * kRun, length = std::min(kRun, by.after - begin);
    std::vector<Line> own(length);
    for (std::int64_t k = 0; k < by.extent; k += most) {
      const std::int64_t rows = std::min(most, by.extent - k);
      load_run(dtype, found, (slab * by.extent + k) * by.after + begin, 1, rows * length, values.data());
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t i = 0; i < length; ++i) {
          const double value = values[row * length + i];
          own[i].sum += by.signs[k + row] * value, own[i].square += value * value;
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

Status accept_sums(std::span<const Line> lines, std::span<const double> truth, const Bounds& bounds, const std::string& place) {
  double squares = 0, truths = 0, errors = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!std::isfinite(truth[i])) continue;  // infinity or NaN is right somewhere in it
    if (!std::isfinite(lines[i].square))
      return fail({ErrorCode::kCandidateNonFinite, "the output has NaN or infinity where the reference has none", place,
                   "finite values", fmt::format("some in line {} of {}", i, lines.size())});
    squares += lines[i].square, truths += truth[i] * truth[i];
  }
  const double all = std::max(squares, truths), average = all / static_cast<double>(lines.size());
  const auto refused = [&](const std::string& what, double allowed, double found) {
    return fail({ErrorCode::kCandidateWrong,
                 "the output's sums with random signs differ from FP64's by more than the track allows", place,
                 fmt::format("{} within {:.3g}", what, allowed), fmt::format("{:.3g}", found)});
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!std::isfinite(truth[i])) continue;
    const double error = std::abs(lines[i].sum - truth[i]), allowed = bounds.line * std::sqrt(std::max(lines[i].square, average));
    if (!(error <= allowed)) return refused(fmt::format("line {} of {}", i, lines.size()), allowed, error);
    errors += error * error;
  }
  const double allowed = bounds.all * std::sqrt(all);
  if (!(std::sqrt(errors) <= allowed)) return refused("all lines", allowed, std::sqrt(errors));
  return ok();
}
}  // namespace warploom::verify
