#include "verify/rare_errors.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include "base/casts.h"

namespace warploom::verify {
namespace {
constexpr double kConfidence = 0.99;
constexpr int64_t kWanted = 919;  // exclude 1 in 200
constexpr double kMostMs = 2000;  // for these calls and their checks
}  // namespace

double excluded_rate(int64_t calls) {
  if (calls <= 0) return 1;
  return -std::expm1(std::log(1 - kConfidence) / as_double(calls));
}

int64_t whole_calls_for(bool foreign, double call_ms) {
  if (!foreign) return 0;
  const double affordable = kMostMs / std::max(call_ms, 1e-3);
  return as_int64(std::min(as_double(kWanted), affordable));
}

std::string text_of_excluded(int64_t calls, int64_t inputs) {
  if (calls <= 0) return "no call was looked at whole: no rate of wrong calls is excluded";
  const auto one_in = [](int64_t tries) {
    return std::max(1.0, std::floor(1 / excluded_rate(tries) + 1e-9));
  };
  const auto plural = [](int64_t count) { return count == 1 ? "" : "s"; };
  std::string text = fmt::format(
      "a wrong call in more than 1 of {:.0f} is excluded with {:.0f} % confidence ({} whole "
      "call{})",
      one_in(calls), 100 * kConfidence, calls, plural(calls));
  if (inputs < calls)
    text += fmt::format("; one that depends on its inputs, in more than 1 of {:.0f} ({} input{})",
                        one_in(inputs), inputs, plural(inputs));
  return text;
}
}  // namespace warploom::verify
