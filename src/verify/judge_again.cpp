// More whole calls of a foreign candidate, beyond one a family: a kernel that is wrong now and then
// is right in few calls of many (rare_errors.h).
//
// Where FP64 of the whole output is cheap each call is on inputs of its own, so that what is wrong
// for some numbers alone has as many tries. Else calls repeat on inputs whose outputs were found
// right, and must give the same bits.
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "verify/evaluator.h"
#include "verify/inputs.h"
#include "verify/judge.h"
#include "verify/oracle.h"
#include "verify/rare_errors.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
constexpr double kFreshMs = 10;      // of a call on inputs of its own, all told
constexpr double kCheapFlops = 2e7;  // of a problem whose truth is tried for that
const std::string kPlace = "one of many calls";

// What few numbers bring about may take many tries: of every family that is in force, and most of
// those that have numbers of all kinds, of which the types with 16 bits have few.
InputFamily family_for(int64_t call, const Verdict& verdict) {
  const auto& known = verdict.evidence;
  if (call % 2 == 0) return kScreening[0];
  const bool has_ends = contains(known, InputFamily::ends, &Evidence::family);
  if (call % 4 == 1 && has_ends) return InputFamily::ends;
  return known[as_size(call / 2) % known.size()].family;
}
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

// The first of the calls says how long one takes, and so how many more there are.
Result<Judge::MoreCalls> Judge::first_again(const Contender& candidate, const Request& request,
                                            Set& fresh, Random& random) {
  const auto start = std::chrono::steady_clock::now();
  MoreCalls out{.by_truth = setup_.flops <= kCheapFlops && 3 * input_bytes_ <= kKeepBytes};
  if (out.by_truth) {
    WARPLOOM_CHECK(check_fresh(candidate, fresh, random.next()));
    ++out.calls;
    ++out.inputs;
    out.wanted = whole_calls_for(true, ms_since(start));
    out.by_truth = ms_since(start) <= kFreshMs;
  }
  WARPLOOM_TRY(out.first, set_of(kScreening[0], request.check_ms));
  out.same_bits = !declares_atomic_sums(request.list) && out.first.inputs->output_hash;
  if (out.by_truth || !out.same_bits) return out;
  const auto again = std::chrono::steady_clock::now();
  WARPLOOM_CHECK(check_repeated(candidate, out.first));
  ++out.calls;
  out.wanted = whole_calls_for(true, ms_since(again));
  return out;
}

// What a foreign candidate reads, in one call of each of its kernels.
Status Judge::look_at_reads(const Contender& candidate, const Request& request, Verdict& verdict) {
  if (!runner_ || !request.foreign || !request.whole) return ok();
  constexpr double kExpectedMs = 20'000;
  WARPLOOM_TRY(const Set set, set_of(kScreening[0], request.check_ms));
  if (candidate.kernel.prepare) {
    WARPLOOM_TRY(const runtime::Call prepare, bind_with(candidate, set, candidate.kernel.prepare));
    WARPLOOM_CHECK(run_call(candidate, prepare));
  }
  WARPLOOM_TRY(const runtime::Call call, bind(candidate, set));
  announce_(true, kExpectedMs);
  const auto seen = runner_->look_at_reads(call);
  announce_(false, 0);
  if (!seen) return fail(seen.error());
  const auto is_shared = [](const Kernel& kernel) {
    return kernel.grid[0] * kernel.grid[1] * kernel.grid[2] > 1;
  };
  if (std::ranges::any_of(request.list.kernels, is_shared))
    verdict.not_promised.emplace_back(
        "what caches and branch predictors tell of earlier calls, where one thread counts the time "
        "for another");
  if (seen->left_out > 0)
    verdict.not_promised.push_back(
        fmt::format("that it reads its own memory alone: for {} of its functions there was no time",
                    seen->left_out));
  if (seen->seen == 0)
    verdict.not_promised.emplace_back(
        "that it reads its own memory alone: this system lets nobody look at its instructions");
  return ok();
}

Status Judge::check_again(const Contender& candidate, const Request& request, bool whole,
                          Verdict& verdict) {
  const bool asked = request.foreign && request.whole && whole && output_bytes_ <= kScanBytes;
  if (!asked) return ok();
  const auto start = std::chrono::steady_clock::now();
  Random random(setup_.seed, "again");
  if (!fresh_) fresh_ = std::make_shared<Inputs>();
  Set fresh{fresh_, outputs_, vendor_outputs_};
  fresh.inputs->family = kScreening[0];
  WARPLOOM_TRY(MoreCalls more, first_again(candidate, request, fresh, random));
  constexpr double kMostMs = 3000;
  // Now and then the same inputs again: how many threads there are must not show in the bits.
  constexpr uint64_t kOneIn = 4;
  if (!more.by_truth && !more.same_bits) more.wanted = more.calls;
  for (; more.calls < more.wanted && ms_since(start) < kMostMs; ++more.calls) {
    if (more.by_truth) {
      fresh.inputs->family = family_for(more.calls, verdict);
      WARPLOOM_CHECK(check_fresh(candidate, fresh, random.next()));
    }
    more.inputs += more.by_truth;
    if (more.same_bits && (!more.by_truth || random.below(kOneIn) == 0))
      WARPLOOM_CHECK(check_repeated(candidate, more.by_truth ? fresh : more.first));
  }
  verdict.whole_calls += more.calls;
  verdict.whole_inputs += more.inputs;
  return ok();
}
}  // namespace warploom::verify
