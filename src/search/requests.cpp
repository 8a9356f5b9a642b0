#include "search/requests.h"
#include <algorithm>
#include "search/budget.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
// A judge that says nothing for longer than a search of `seconds` allows will not say more.
double own_limit_ms(double seconds) {
  return 1e3 * std::clamp(3 * seconds, 20.0, 900.0);
}
}  // namespace

verify::Request quick_request(double seconds, double known_us) {
  constexpr double kTimesSlower = 40;
  const double limit_ms = std::clamp(known_us / 1e3 * kTimesSlower, 2'000.0, 60'000.0);
  verify::Request request;
  request.check_ms = std::clamp(20 * seconds, 100.0, 1500.0);
  request.beside_reference = false;
  request.min_samples = 3;
  request.max_samples = 30;
  request.timing_ms = 60;
  request.candidate_limit_ms = known_us > 0 ? limit_ms : 10'000;
  request.own_limit_ms = own_limit_ms(seconds);
  return request;
}

verify::Request finalist_request(double seconds, double known_us) {
  verify::Request request = quick_request(seconds, known_us);
  request.beside_reference = true;
  request.min_samples = 5;
  request.max_samples = 100;
  request.timing_ms = std::clamp(20 * seconds, 100.0, 500.0);
  return request;
}

// Of the time about a third is for FP64. Where a reference is not believed both are timed three
// times, and strict calls, inputs and calls want the rest.
verify::Request whole_request(const Slice& slice, double limit_ms) {
  constexpr double kMost = 120;
  const double seconds = std::clamp(slice.soft.left(), 0.0, kMost);
  verify::Request request;
  request.whole = true;
  request.check_ms = std::clamp(0.35 * seconds, 0.1, 60.0) * 1e3;
  request.min_samples = 10;
  request.max_samples = 200;
  request.timing_ms = std::clamp(0.08 * seconds, 0.1, 2.0) * 1e3;
  request.candidate_limit_ms = limit_ms;
  request.own_limit_ms = own_limit_ms(seconds);
  request.until = slice.hard.until();
  return request;
}
}  // namespace warploom::search
