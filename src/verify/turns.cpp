#include "verify/turns.h"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include "base/casts.h"
#include "base/error.h"
#include "runtime/noise.h"
#include "runtime/timing.h"
#include "verify/evaluator.h"

namespace warploom::verify {
namespace {
constexpr int kAgain = 2;

double least_known(double a, double b) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  return std::min(a, b);
}

// What a reference is capable of, by the fastest tenth of its samples.
double fast_of(const Turns& turns) {
  return runtime::quantile_of(turns.samples[1].us, 0.1);
}

Result<Turns> taken(const std::function<Result<Turns>()>& take, ReferenceKnown& known) {
  WARPLOOM_TRY(Turns turns, take());
  for (const runtime::Samples& samples : turns.samples)
    if (const std::optional<double> spread = runtime::spread_of(samples.us))
      turns.noise.spread = std::max(turns.noise.spread.value_or(0), *spread);
  if (turns.samples.size() < 2) return turns;
  const runtime::Samples& reference = turns.samples[1];
  if (known.archived_us > 0)
    turns.noise.reference_slowdown = reference.median_us / known.archived_us;
  runtime::Known beside;
  beside.flops = known.flops;
  beside.best_us = least_known(known.archived_us, known.here_us);
  beside.ours_us = turns.samples[0].median_us;
  turns.doubt = runtime::doubt_of(reference.us, beside);
  if (turns.doubt.words.empty()) known.here_us = least_known(known.here_us, reference.median_us);
  return turns;
}
}  // namespace

Result<Turns> believable_turns(const std::function<Result<Turns>()>& take, ReferenceKnown& known) {
  WARPLOOM_TRY(Turns kept, taken(take, known));
  for (int more = 0; more < kAgain && !kept.doubt.words.empty(); ++more) {
    WARPLOOM_TRY(Turns again, taken(take, known));
    if (again.doubt.words.empty() || fast_of(again) < fast_of(kept)) kept = std::move(again);
  }
  return kept;
}

void take_figures(Verdict& verdict, const Turns& turns, uint64_t seed) {
  const auto& ours = turns.samples.front();
  verdict.median_us = ours.median_us;
  verdict.low_us = ours.low_us;
  verdict.high_us = ours.high_us;
  verdict.samples = as_int(ours.us.size());
  verdict.repeats = verdict.samples * ours.calls_per_sample;
  verdict.noise = turns.noise;
  if (turns.samples.size() < 2) return;
  if (!turns.doubt.words.empty() && (turns.doubt.firm || turns.noise.busy())) {
    verdict.reference_dropped = turns.doubt.words;
    return;
  }
  const runtime::Samples& reference = turns.samples[1];
  verdict.reference_us = reference.median_us;
  verdict.reference_low_us = reference.low_us;
  verdict.reference_high_us = reference.high_us;
  verdict.speedup = runtime::ratio_of(ours.us, reference.us, seed);
}
}  // namespace warploom::verify
