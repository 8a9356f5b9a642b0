#include "verify/judge.h"
namespace warploom::verify {
namespace {
constexpr std::int64_t kSeriesBytes = 16 << 20;  // problems up to this size may be short enough for a series
constexpr std::int64_t kMostSets = 16;
}  // namespace
Status Judge::make_series() {
  const std::int64_t bytes = input_bytes_ + output_bytes_, cache = device_->info().cache_bytes;
  if (!series_.empty() || setup_.engine != Engine::cuda || bytes > kSeriesBytes) return ok();
  const std::int64_t sets = std::clamp<std::int64_t>(2 * cache / std::max<std::int64_t>(bytes, 1) + 1, 2, kMostSets);
  for (std::int64_t set = 1; set < sets; ++set) {
    Series made;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      std::vector<std::byte> host;
      WARPLOOM_TRY(Guarded buffer,
                   make_input(i, kScreening[0], setup_.seed + 0x9e3779b9u * static_cast<std::uint64_t>(set), &host));
      made.inputs.push_back(std::move(buffer));
    }
    WARPLOOM_TRY(made.outputs, make_outputs());
    if (vendor_) { WARPLOOM_TRY(made.vendor_outputs, make_outputs()); }
    series_.push_back(std::move(made));
  }
  return ok();
}

// Sets 1 and up of the candidate and, the first time, of the vendor's kernel.
Status Judge::bind_series(Candidate& candidate, bool vendor) {
  WARPLOOM_CHECK(make_series());
  for (std::size_t set = 0; set < series_.size(); ++set) {
    Series& series = series_[set];
    WARPLOOM_CHECK(bind_set(candidate, series.inputs, series.outputs, true, static_cast<int>(set) + 1));
    if (!vendor || vendor_in_series_) continue;
    WARPLOOM_TRY(const runtime::Bindings theirs, vendor_bindings(series.inputs, series.vendor_outputs));
    WARPLOOM_CHECK(vendor_->bind(theirs, static_cast<int>(set) + 1));
  }
  vendor_in_series_ = vendor_in_series_ || vendor;
  return ok();
}

// What the timed calls left in the other sets: nothing unwritten, nothing outside, and near the vendor's where it ran as well.
Status Judge::check_series(Inputs& inputs) {
  const graph::Graph& graph = setup_.graph;
  for (std::size_t set = 0; set < series_.size(); ++set) {
    Series& series = series_[set];
    for (std::size_t i = 0; i < series.outputs.size(); ++i) {
      const graph::Tensor& tensor = graph.tensor(graph.outputs[i]);
      WARPLOOM_CHECK(check_guards(*device_, series.outputs[i], tensor.name));
      Comparison seen;
      WARPLOOM_CHECK(scan_output(seen, series.outputs[i], tensor.dtype));
      WARPLOOM_CHECK(accept(seen, tolerances_[i], -1, "the output of timed calls"));
    }
    if (!vendor_in_series_) continue;
    WARPLOOM_CHECK(run_vendor(static_cast<int>(set) + 1));
    WARPLOOM_CHECK(against_vendor(series.outputs, series.vendor_outputs, inputs));
  }
  return ok();
}

Status Judge::time_candidate(Candidate& candidate, const Request& request, Verdict& verdict) {
  WARPLOOM_TRY(const std::shared_ptr<Inputs> inputs, inputs_of(kScreening[0], request.check_ms));
  std::vector<runtime::Runnable*> alternatives = {candidate.kernel.get()};
  if (vendor_ && request.beside_reference) {
    WARPLOOM_CHECK(bind_vendor(*inputs));
    alternatives.push_back(vendor_.get());
  }
  const runtime::MeasureOptions options{.warm_up = 1,
                                        .min_samples = request.min_samples,
                                        .max_samples = request.max_samples,
                                        .budget_ms = request.timing_ms,
                                        .seed = setup_.seed};
  // Poisoned, so that what the timed calls leave unwritten shows; a large output was poisoned before the first call only.
  WARPLOOM_CHECK(bind_set(candidate, inputs->tensors, outputs_, output_bytes_ <= kScanBytes));
  WARPLOOM_CHECK(bind_series(candidate, alternatives.size() > 1));
  announce_(true, 10 * request.timing_ms);
  Result<std::vector<runtime::Samples>> samples = runtime::measure(*device_, alternatives, options);
  announce_(false, 0);
  if (!samples) return fail(samples.error());
  const runtime::Samples& ours = samples->front();
  std::tie(verdict.median_us, verdict.low_us, verdict.high_us) = std::tie(ours.median_us, ours.low_us, ours.high_us);
  verdict.repeats = static_cast<int>(ours.us.size()) * ours.calls_per_sample;
  if (samples->size() > 1) {
    const runtime::Samples& theirs = (*samples)[1];
    std::tie(verdict.reference_us, verdict.reference_low_us, verdict.reference_high_us) =
        std::tie(theirs.median_us, theirs.low_us, theirs.high_us);
  }
  verdict.floor_us = setup_.floor_us;
  // 3 % for the clock's own error: datasheet rates are not reached by that much.
  if (verdict.median_us < 0.97 * setup_.floor_us)
    return fail({ErrorCode::kCandidateTooFast, "a candidate was faster than the hardware can be", "",
                 fmt::format("at least {:.3f} us", setup_.floor_us), fmt::format("{:.3f} us", verdict.median_us), ""});
  // What the timed calls left behind must be as right as the first call's; in shared memory it may be the vendor's, so the
  // candidate runs once more.
  WARPLOOM_CHECK(check_run(candidate, *inputs, false));
  if (shared_outputs_ && alternatives.size() > 1) WARPLOOM_CHECK(run_candidate(candidate, *inputs));
  // The other sets were used only if the calls were short enough to be timed in series.
  if (ours.calls_per_sample > 1) WARPLOOM_CHECK(check_series(*inputs));
  WARPLOOM_TRY(const std::vector<Comparison> seen, compared(*inputs, outputs_));
  for (std::size_t output = 0; output < seen.size(); ++output)
    WARPLOOM_CHECK(accept(seen[output], tolerances_[output], inputs->vendor_error, "the output of timed calls"));
  return ok();
}
}  // namespace warploom::verify
