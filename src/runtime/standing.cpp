#include "runtime/standing.h"
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "runtime/noise.h"
#include "runtime/timing.h"

namespace warploom::runtime {
namespace {
constexpr double kWide = 0.1;   // ±10 %: more is no figure
constexpr int kLeastPairs = 6;  // of fewer not even the outermost hold the median with 95 %
constexpr std::string_view kNames[] = {"unknown", "undecided", "slower", "faster"};
}  // namespace

double uncertainty_of(const Ratio& ratio) {
  if (ratio.median <= 0) return 0;
  return (ratio.high - ratio.low) / (2 * ratio.median);
}

std::vector<std::string> why_undecided(const Ratio& ratio, const Noise& noise) {
  std::vector<std::string> why;
  if (ratio.median <= 0) return why;
  if (noise.busy()) why.push_back("the machine is busy");
  if (ratio.pairs < kLeastPairs) why.push_back("there are too few samples");
  if (uncertainty_of(ratio) > kWide) why.push_back("the interval is wide");
  if (ratio.low <= 1 && ratio.high >= 1) why.push_back("the interval holds 1");
  return why;
}

Standing standing_of(const Ratio& ratio, const Noise& noise) {
  if (ratio.median <= 0) return Standing::unknown;
  if (!why_undecided(ratio, noise).empty()) return Standing::undecided;
  return ratio.median > 1 ? Standing::faster : Standing::slower;
}

std::string_view name_of(Standing standing) {
  return kNames[as_size(standing)];
}
}  // namespace warploom::runtime
