// The reference of a problem: of what vendor::candidates() offers, the fastest that is right.
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/executor.h"
#include "runtime/timing.h"
#include "vendor/make.h"
#include "vendor/problem.h"
#include "verify/evaluator.h"
#include "verify/gpu_turn.h"
#include "verify/judge.h"
#include "verify/oracle.h"
#include "verify/setup.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
using runtime::Runnable;
using vendor::VendorProblem;

// Times the track's own bound that a reference may be off, for its arithmetic is not held to it.
constexpr double kFarOff = 64;
// A plain kernel must be so much faster than a library to stand in its place.
constexpr double kClearly = 0.9;
// Operations a second of plain kernels, at least; and how long one call of theirs may take.
constexpr double kPlainCpuRate = 3e8;
constexpr double kPlainGpuRate = 3e10;
constexpr double kMostPlainSeconds = 20;
constexpr size_t kFewSteps = 12;
constexpr double kLongCallMs = 100;
// What the first family's truth may take; and who has less than that to get ready compiles none.
constexpr double kTruthMs = 1500;
constexpr double kPlainReadyMs = 3000;
// Of the time to get ready, after which a reference that is found will do.
constexpr double kSeekingShare = 0.4;

// A product or a softmax alone is held to the letter of the fp32 track. Of others plain evaluation
// may stand in, too: a library's chain of calls may well round less in some places than any kernel.
bool is_strict(const VendorProblem& problem) {
  if (problem.steps.size() != 1) return false;
  const auto& only = problem.steps[0].operation;
  return std::holds_alternative<vendor::Matmul>(only) ||
         std::holds_alternative<vendor::Softmax>(only);
}

// Whether a kernel that is none of a library's has a part in it.
bool is_plain(const Runnable& kernel) {
  return kernel.name.find("plain") != std::string::npos;
}

// How long a reference is looked for, where there is a time to get ready: less once one is found.
double patience_ms(const Setup& setup, bool has_one) {
  if (setup.ready_ms <= 0) return HUGE_VAL;
  return (has_one ? kSeekingShare : 1) * setup.ready_ms;
}

// How far outputs are from FP64; nothing where elements are unwritten or not finite.
std::optional<double> error_in(std::span<const Comparison> seen) {
  double error = 0;
  for (const Comparison& output : seen) {
    if (output.unwritten.count > 0 || output.nonfinite.count > 0) return std::nullopt;
    error = std::max(error, output.frobenius());
  }
  return error;
}
}  // namespace

Result<std::optional<double>> Judge::error_of_reference(const Set& set) {
  std::vector<Comparison> seen;
  WARPLOOM_CHECK(run(vendor_, set));
  const Inputs& inputs = *set.inputs;
  WARPLOOM_CHECK(compare_outputs(seen, vendor_outputs_, inputs, inputs.truth.blocks));
  return error_in(seen);
}

// Libraries choose their algorithms by timing them in the first call.
Result<std::string> Judge::fault_of_reference(const Set& set) {
  const GpuTurn::Held timing = turn_->alone();
  std::vector<Comparison> seen;
  const auto start = std::chrono::steady_clock::now();
  WARPLOOM_CHECK(run(vendor_, set));
  first_call_ms_ = ms_since(start);
  const Inputs& inputs = *set.inputs;
  WARPLOOM_CHECK(compare_outputs(seen, vendor_outputs_, inputs, inputs.truth.blocks));
  first_error_ = error_in(seen);
  for (size_t n = 0; n < seen.size(); ++n) {
    const Comparison& output = seen[n];
    if (output.unwritten.count > 0)
      return fmt::format("leaves {} elements unwritten", output.unwritten.count);
    if (output.nonfinite.count > 0)
      return fmt::format("makes {} elements NaN or infinite", output.nonfinite.count);
    constexpr double kUnbounded = 0.01;
    const double frobenius = tolerances_[n].frobenius;
    const double tolerated = std::isfinite(frobenius) ? frobenius : kUnbounded;
    const double bound = kFarOff * std::max({tolerated, plain_error(output), 1e-6});
    if (!(output.frobenius() <= bound))
      return fmt::format("computes something else: {:.3g} off FP64 where {:.3g} is much",
                         output.frobenius(), bound);
  }
  return std::string();
}

Result<double> Judge::time_of_reference(const Set& set) {
  const GpuTurn::Held timing = turn_->alone();
  WARPLOOM_TRY(const runtime::Call call, bind(vendor_, set));
  const runtime::MeasureOptions quick{.min_samples = 1, .max_samples = 20, .budget_ms = 100};
  WARPLOOM_TRY(const std::vector<runtime::Samples> samples,
               runtime::measure(*device_, {{call}}, quick));
  return samples[0].median_us;
}

// Whether the calls that timing it takes would be longer than all the time to get ready.
bool Judge::is_too_slow(double us) const {
  constexpr double kTimedCalls = 10;
  return truth_ && setup_.ready_ms > 0 && kTimedCalls * us > 1e3 * setup_.ready_ms;
}

tl::expected<double, std::string> Judge::try_reference(const vendor::Candidate& candidate,
                                                       const Set& set, bool timed) {
  auto made = candidate.make();
  if (!made) {
    const Error& error = made.error();
    const std::string found = error.found.empty() ? "" : ": " + error.found;
    return tl::unexpected(error.message + found);
  }
  vendor_.kernel = *std::move(made);
  const auto fault = fault_of_reference(set);
  if (!fault) return tl::unexpected(fault.error().message);
  if (!fault->empty()) return tl::unexpected(*fault);
  if (!timed) return 0;
  // To choose by, one call says enough of what takes long: a search has better things to wait for.
  if (first_call_ms_ > kLongCallMs) return 1e3 * first_call_ms_;
  const auto us = time_of_reference(set);
  if (!us) return tl::unexpected(us.error().message);
  return *us;
}

Result<std::optional<Judge::Reference>> Judge::fastest_reference(const Set& set, Ready& ready) {
  setup_.reference->constants = setup_.constants;
  const VendorProblem& problem = *setup_.reference;
  const auto was_chosen = [&](const vendor::Candidate& candidate) {
    return candidate.libraries == problem.chosen;
  };
  auto offered = vendor::candidates(here(), problem, setup_.track);
  note_part(ready, "loading libraries");
  // What was chosen before is tried first, and then alone.
  std::ranges::stable_partition(offered, was_chosen);
  const double rate = setup_.engine == Engine::cpu ? kPlainCpuRate : kPlainGpuRate;
  const bool long_if_plain = setup_.flops / rate > kMostPlainSeconds;
  // Plain kernels compete with a few calls of libraries, not with one, nor with a network.
  const size_t steps = problem.steps.size();
  const bool hurries = setup_.ready_ms > 0 && setup_.ready_ms < kPlainReadyMs;
  const bool plain_competes = steps > 1 && steps <= kFewSteps;
  const auto note = [&](const vendor::Candidate& candidate, const std::string& why) {
    ready.reference_notes.push_back(fmt::format("{}: {}", candidate.libraries, why));
  };
  const auto start = std::chrono::steady_clock::now();
  std::optional<Reference> best;
  for (const vendor::Candidate& candidate : offered) {
    const bool served = best && !is_plain(best->kernel);
    if (candidate.plain && served && !plain_competes) continue;
    if (candidate.plain && long_if_plain) {
      note(candidate, "would take too long");
      continue;
    }
    const bool is_late = ms_since(start) > patience_ms(setup_, best.has_value());
    if (is_late || (candidate.plain && hurries)) {
      note(candidate, "is left to who has more time");
      continue;
    }
    const bool known = was_chosen(candidate);
    const auto us = try_reference(candidate, set, !known || setup_.time_reference);
    if (!us) {
      note(candidate, us.error());
      continue;
    }
    if (is_too_slow(*us)) {
      note(candidate, fmt::format("takes {:.1f} s a call, too long to be timed", *us / 1e6));
      continue;
    }
    const double worth = candidate.plain && best ? kClearly : 1;
    if (!best || *us < worth * best->us)
      best = {vendor_.kernel, candidate.libraries, *us, first_error_};
    if (known) break;
  }
  return best;
}

Result<Judge::Set> Judge::first_set(double truth_ms) {
  const GpuTurn::Held working = turn_->share();
  return set_of(kScreening[0], truth_ms);
}

Status Judge::choose_reference(Ready& ready) {
  const double share_ms = setup_.ready_ms > 0 ? 0.4 * setup_.ready_ms : kTruthMs;
  WARPLOOM_TRY(const Set set, first_set(std::min(share_ms, kTruthMs)));
  note_part(ready, "inputs and FP64");
  if (is_on_gpu(*set.inputs)) ready.family_seconds = ready.parts.back().seconds;
  WARPLOOM_TRY(const std::optional<Reference> best, fastest_reference(set, ready));
  note_part(ready, "choosing a reference", setup_.reference->chosen.empty());
  vendor_.kernel = best ? best->kernel : Runnable{};
  if (!best) return ok();
  by_libraries_ = !is_plain(best->kernel);
  const bool strict = is_strict(*setup_.reference);
  for (Tolerance& tolerance : tolerances_)
    tolerance.stands_in_always = !strict;
  if (by_libraries_) set.inputs->vendor_error = best->error.value_or(-1);
  ready.reference = best->kernel.name;
  ready.reference_choice = best->libraries;
  ready.reference_error = best->error.value_or(-1);
  ready.reference_us = best->us;
  vendor_known_.here_us = best->us;
  return ok();
}
}  // namespace warploom::verify
