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
    made.inputs.resize(given_.size());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      std::vector<std::byte> host;
      const std::uint64_t seed = setup_.seed + 0x9e3779b9u * static_cast<std::uint64_t>(set);
      WARPLOOM_CHECK(make_input(i, kScreening[0], seed, made.inputs[i], host));
    }
    WARPLOOM_TRY(made.outputs, make_outputs());
    if (vendor_.kernel.bind) { WARPLOOM_TRY(made.vendor_outputs, make_outputs()); }
    series_.push_back(std::move(made));
  }
  return ok();
}

// What the timed calls left in the other sets: nothing unwritten, nothing outside, and near the vendor's where there is one.
Status Judge::check_series(const Inputs& inputs) {
  const graph::Graph& graph = setup_.graph;
  for (const Series& series : series_) {
    for (std::size_t i = 0; i < series.outputs.size(); ++i) {
      const graph::Tensor& tensor = graph.tensor(graph.outputs[i]);
      WARPLOOM_CHECK(check_guards(*device_, series.outputs[i], tensor.name));
      Comparison seen;
      WARPLOOM_CHECK(scan_output(seen, series.outputs[i], tensor.dtype));
      WARPLOOM_CHECK(accept(seen, tolerances_[i], -1, "the output of timed calls"));
    }
    if (!vendor_.kernel.bind) continue;
    WARPLOOM_CHECK(run(vendor_, series.inputs, series.vendor_outputs));
    WARPLOOM_CHECK(against_vendor(series.outputs, series.vendor_outputs, inputs));
  }
  return ok();
}

Status Judge::time_candidate(const Contender& candidate, const Request& request, Verdict& verdict) {
  WARPLOOM_TRY(const std::shared_ptr<Inputs> inputs, inputs_of(kScreening[0], request.check_ms));
  WARPLOOM_CHECK(make_series());
  std::vector<std::vector<runtime::Call>> calls(vendor_.kernel.bind && request.beside_reference ? 2 : 1);
  const auto add = [&](const Tensors& given, const Tensors& outputs, const Tensors& vendor_outputs, bool poisoned) -> Status {
    if (poisoned) WARPLOOM_CHECK(poison(candidate, outputs));
    WARPLOOM_TRY(calls[0].emplace_back(), bind(candidate, given, outputs));
    if (calls.size() > 1) { WARPLOOM_TRY(calls[1].emplace_back(), bind(vendor_, given, vendor_outputs)); }
    return device_->synchronize();
  };
  // A large output was poisoned before the first call only.
  WARPLOOM_CHECK(add(inputs->tensors, outputs_, vendor_.outputs, output_bytes_ <= kScanBytes));
  for (const Series& set : series_) WARPLOOM_CHECK(add(set.inputs, set.outputs, set.vendor_outputs, true));
  const runtime::MeasureOptions options{.warm_up = 1,
                                        .min_samples = request.min_samples,
                                        .max_samples = request.max_samples,
                                        .budget_ms = request.timing_ms,
                                        .seed = setup_.seed};
  announce_(true, 10 * request.timing_ms);
  Result<std::vector<runtime::Samples>> samples = runtime::measure(*device_, calls, options);
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
  if (shared_outputs_ && calls.size() > 1) WARPLOOM_CHECK(run(candidate, inputs->tensors, outputs_));
  // The other sets were used only if the calls were short enough to be timed in series.
  if (ours.calls_per_sample > 1) WARPLOOM_CHECK(check_series(*inputs));
  WARPLOOM_TRY(const std::vector<Comparison> seen, compared(*inputs, outputs_));
  for (std::size_t output = 0; output < seen.size(); ++output)
    WARPLOOM_CHECK(accept(seen[output], tolerances_[output], inputs->vendor_error, "the output of timed calls"));
  return ok();
}
}  // namespace warploom::verify
