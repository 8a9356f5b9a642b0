// More whole calls of a foreign candidate, beyond one a family: a kernel that is wrong now and then
// is right in few calls of many (rare_errors.h).
//
// Where FP64 of the whole output is cheap each call is on inputs of its own, so that what is wrong
// for some numbers alone has as many tries. Else calls repeat on inputs whose outputs were found
// right, and must give the same bits.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "verify/evaluator.h"
#include "verify/judge.h"
#include "verify/oracle.h"
#include "verify/rare_errors.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
constexpr double kFreshMs = 10;      // of a call on inputs of its own, all told
constexpr double kCheapFlops = 2e7;  // of a problem whose truth is tried for that
const std::string kPlace = "one of many calls";
}  // namespace

// On inputs that no call had before, whose whole truth is made for it.
Status Judge::check_fresh(const Contender& candidate, Set& set, uint64_t seed) {
  Inputs& inputs = *set.inputs;
  WARPLOOM_CHECK(fill_inputs(inputs, seed));
  WARPLOOM_CHECK(make_truth(inputs, seed, HUGE_VAL));
  WARPLOOM_CHECK(run(candidate, set));
  WARPLOOM_CHECK(check_run(candidate, set, false));
  std::vector<Comparison> seen;
  WARPLOOM_CHECK(compare_outputs(seen, set.outputs, inputs, inputs.truth.blocks));
  for (size_t n = 0; n < seen.size(); ++n) {
    Tolerance tolerance = tolerances_[n];
    tolerance.frobenius = HUGE_VAL;  // each element's bound holds; the norm's was held before
    WARPLOOM_CHECK(accept(seen[n], tolerance, -1, kPlace));
  }
  WARPLOOM_TRY(inputs.output_hash, hash_of(set.outputs));
  return ok();
}

// On inputs whose outputs were compared whole: the same bits again.
Status Judge::check_repeated(const Contender& candidate, const Set& set) {
  WARPLOOM_CHECK(run(candidate, set));
  WARPLOOM_CHECK(check_run(candidate, set, false));
  WARPLOOM_TRY(const uint64_t hash, hash_of(set.outputs));
  if (set.inputs->output_hash == hash) return ok();
  return fail({ErrorCode::kCandidateUnstable,
               "a candidate's output differs between two runs on the same inputs", kPlace,
               "the same bits", "other bits",
               "declare atomic sums, or make the order of sums the same"});
}

Status Judge::check_again(const Contender& candidate, const Request& request, bool whole,
                          Verdict& verdict) {
  const bool asked = request.foreign && request.whole && whole && output_bytes_ <= kScanBytes;
  if (!asked) return ok();
  const auto start = std::chrono::steady_clock::now();
  Random random(setup_.seed, "again");
  int64_t calls = 0;
  int64_t inputs = 0;  // that calls were on, other than those of the families
  int64_t wanted = 0;
  if (!fresh_) fresh_ = std::make_shared<Inputs>();
  Set fresh{fresh_, outputs_, vendor_outputs_};
  fresh.inputs->family = kScreening[0];
  bool by_truth = setup_.flops <= kCheapFlops && 3 * input_bytes_ <= kKeepBytes;
  if (by_truth) {
    WARPLOOM_CHECK(check_fresh(candidate, fresh, random.next()));
    ++calls;
    ++inputs;
    wanted = whole_calls_for(true, ms_since(start));
    by_truth = ms_since(start) <= kFreshMs;
  }
  WARPLOOM_TRY(const Set first, set_of(kScreening[0], request.check_ms));
  const bool same_bits = !declares_atomic_sums(request.list) && first.inputs->output_hash;
  if (!by_truth && same_bits) {
    const auto again = std::chrono::steady_clock::now();
    WARPLOOM_CHECK(check_repeated(candidate, first));
    ++calls;
    wanted = whole_calls_for(true, ms_since(again));
  }
  constexpr double kMostMs = 3000;
  // Now and then the same inputs again: how many threads there are must not show in the bits.
  constexpr uint64_t kOneIn = 4;
  for (; (by_truth || same_bits) && calls < wanted && ms_since(start) < kMostMs; ++calls) {
    if (by_truth) WARPLOOM_CHECK(check_fresh(candidate, fresh, random.next()));
    inputs += by_truth;
    if (same_bits && (!by_truth || random.below(kOneIn) == 0))
      WARPLOOM_CHECK(check_repeated(candidate, by_truth ? fresh : first));
  }
  verdict.whole_calls += calls;
  verdict.whole_inputs += inputs;
  return ok();
}
}  // namespace warploom::verify
