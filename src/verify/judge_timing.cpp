// Timed calls: each on a set of inputs drawn from a ring of them, of which some rows of FP64 are
// known, into poisoned outputs, and looked at when it is done. A candidate cannot tell a call that
// is timed from one that is checked: all are both.
//
// The rows that are looked at are drawn once for each set, at two places, and shared by all
// candidates; of the set that a screening looks at, all that it knows is.
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "codegen/prepare.h"
#include "common/warm_up.h"
#include "graph/reference.h"
#include "runtime/executor.h"
#include "runtime/noise.h"
#include "runtime/timing.h"
#include "verify/evaluator.h"
#include "verify/gpu_turn.h"
#include "verify/judge.h"
#include "verify/judge_parts.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"
#include "verify/truth_engine.h"
#include "verify/turns.h"

namespace warploom::verify {
namespace {
using graph::OutputRows;
using runtime::MeasureOptions;

// Problems up to this size may be short enough for a series.
constexpr int64_t kSeriesBytes = 16 << 20;
constexpr int64_t kMostSets = 16;      // of a series
constexpr int64_t kRing = 3;           // sets of inputs, where calls are not made in series
constexpr double kCheapSumsMs = 4;     // what sums of a set may take
constexpr double kLookedAtMs = 150;    // for the truth of the ring's sets, until when more are made
constexpr double kDearRow = 3e8;       // operations of a row that is too dear for any
constexpr double kCheapWhole = 1e6;    // and of an output whose rows are all looked at
constexpr int64_t kRowElements = 256;  // at least, of what is looked at at one place
// Of a larger output so much is poisoned and scanned, at another place each time.
constexpr int64_t kPartBytes = 4 << 20;
constexpr int64_t kGpuPartBytes = 256 << 10;  // and where it must be copied for that
constexpr int kStrictCalls = 9;               // that confirm a series

// Whether a time is so short, or what was taken off it so doubtful, that only a bound is known: by
// a tenth of the time, or by 3 % where it should be known better.
bool is_only_bounded(const Verdict& verdict, double doubt_us) {
  constexpr double kShortest = 20;  // us
  constexpr double kLong = 200;
  const double part = verdict.median_us < kLong ? 0.10 : 0.03;
  return verdict.median_us < kShortest || doubt_us > part * verdict.median_us;
}
}  // namespace

bool declares_atomic_sums(const LaunchList& list) {
  const auto has_atomic_arguments = [](const Kernel& kernel) {
    return std::ranges::any_of(kernel.args, &Argument::atomic);
  };
  return std::ranges::any_of(list.kernels, has_atomic_arguments);
}

// Rows of what the outputs should be for what the inputs hold now.
Result<const Truth*> Judge::truth_of(Inputs& inputs) {
  if (!inputs.truth.blocks.empty()) return &inputs.truth;
  Truth& truth = inputs.looked_at;
  if (!truth.blocks.empty()) return &truth;
  const auto start = std::chrono::steady_clock::now();
  Random random(setup_.seed + sample_, "looked at");
  for (int output = 0; output < as_int(outputs_.size()); ++output) {
    const OutputRows rows = graph::rows_of(setup_.graph, output);
    int64_t some = std::max<int64_t>(1, kRowElements / rows.elements);
    if (setup_.flops <= kCheapWhole) some = rows.count;
    const int64_t last = std::max<int64_t>(0, rows.count - some);
    constexpr int kPlaces = 2;
    for (int place = 0; place < kPlaces; ++place) {
      const auto begin = as_int64(random.below(as_uint64(last) + 1));
      const RowRange range{output, begin, std::min(rows.count, begin + some)};
      WARPLOOM_TRY(truth.blocks.emplace_back(),
                   evaluate_block(setup_.graph, inputs.bytes, range, truth_options_));
      if (some >= rows.count) break;
    }
  }
  if (sums_ms_ <= kCheapSumsMs) WARPLOOM_TRY(truth.sums, sums_of(inputs));
  looked_at_ms_ += ms_since(start);
  return &truth;
}

int64_t Judge::sets_of_ring() const {
  if (!own_outputs_) return kRing;
  const int64_t bytes = std::max<int64_t>(input_bytes_ + output_bytes_, 1);
  return std::clamp<int64_t>(2 * device_->info().cache_bytes / bytes + 1, 2, kMostSets);
}

// Other inputs of the screening's family, with outputs of their own for calls in series.
Result<Judge::Set> Judge::other_set(int64_t number) {
  Set made{std::make_shared<Inputs>(), outputs_, vendor_outputs_};
  made.inputs->family = kScreening[0];
  WARPLOOM_CHECK(fill_inputs(*made.inputs, setup_.seed + 0x9e3779b9u * as_uint64(number)));
  if (own_outputs_) WARPLOOM_TRY(made.outputs, make_outputs(*device_));
  if (own_outputs_ && vendor_.kernel.bind) WARPLOOM_TRY(made.vendor_outputs, make_outputs(here()));
  if (!is_on_gpu(*made.inputs)) WARPLOOM_CHECK(truth_of(*made.inputs));
  return made;
}

// The screening's first set, and others of its family: as many as make a series of calls, or a few
// that calls are drawn from. A row that is too dear to evaluate leaves the first alone.
Status Judge::make_ring(const Request& request) {
  const GpuTurn::Held working = turn_->share();
  WARPLOOM_TRY(const Set first, set_of(kScreening[0], request.check_ms));
  if (!ring_.empty()) {
    ring_[0] = first;
    return ok();
  }
  ring_.push_back(first);
  own_outputs_ = setup_.engine == Engine::cuda && input_bytes_ + output_bytes_ <= kSeriesBytes;
  const graph::OutputRows rows = graph::rows_of(setup_.graph);
  const auto parts = static_cast<double>(rows.independent ? rows.count : 1);
  const bool is_dear = !truth_ && setup_.flops / parts > kDearRow;
  if (!own_outputs_ && is_dear) return ok();
  const int64_t sets = sets_of_ring();
  const bool is_large = sets * input_bytes_ > kKeepBytes;
  for (int64_t number = 1; number < sets; ++number) {
    const bool is_enough = looked_at_ms_ > kLookedAtMs || (is_large && number > 1);
    if (!own_outputs_ && is_enough) return ok();
    Result<Set> made = other_set(number);
    // Large problems leave no room for another set.
    if (!made && made.error().code == ErrorCode::kOutOfMemory) return ok();
    if (!made) return fail(made.error());
    ring_.push_back(*std::move(made));
  }
  return ok();
}

// What is poisoned before a sample and scanned after it.
runtime::Buffer Judge::part_of(const runtime::Buffer& whole) const {
  const int64_t part = setup_.engine == Engine::cpu ? kPartBytes : kGpuPartBytes;
  if (whole.bytes() <= part) return whole;
  constexpr int64_t kPage = 4096;
  const auto pages = as_uint64((whole.bytes() - part) / kPage + 1);
  Random random(setup_.seed + sample_, "part");
  const auto page = as_int64(random.below(pages));
  return whole.slice(kPage * page, part);
}

Result<uint64_t> Judge::hash_of(const Tensors& outputs) {
  uint64_t hash = 0;
  if (truth_) return told(truth_->hash(looked(outputs)));
  for (const Guarded& output : outputs) {
    const int64_t bytes = output.data.bytes();
    if (bytes > kScanBytes) continue;
    WARPLOOM_TRY(const std::byte* const found, on_host(output.data, 0, bytes, copy_));
    hash = 3 * hash + hash_of_bytes(found, bytes);
  }
  return hash;
}

Status Judge::before_sample(const Contender& who, size_t calls) {
  ++sample_;
  if (runner_ && is_candidate(who)) return ok();  // before every call it poisons all itself
  // Foreign kernels find nothing of what a call before wrote.
  const auto poison = [&](const runtime::Buffer& data) {
    return device_->fill(who.foreign ? data : part_of(data), kPoison);
  };
  for (size_t i = 0; i < calls; ++i) {
    const Set& set = ring_[calls > 1 ? i : drawn(ring_.size())];
    for (const Guarded& output : outputs_of(who, set))
      WARPLOOM_CHECK(poison(output.data));
  }
  for (const auto& [name, workspace] : who.workspaces)
    if (!who.prepared.contains(name)) WARPLOOM_CHECK(poison(workspace.data));
  const std::span<const Set> ring(ring_);
  const bool in_series = calls > 1;
  WARPLOOM_CHECK(forget(who, in_series ? ring.first(calls) : ring.subspan(drawn(ring.size()), 1)));
  return device_->synchronize();
}

Status Judge::after_sample(const Contender& candidate, const Request& request, size_t calls) {
  const Set& set = ring_[drawn(ring_.size())];
  const Truth* truth = &set.inputs->truth;  // none where the GPU has it: it compares by itself
  if (!is_on_gpu(*set.inputs)) WARPLOOM_TRY(truth, truth_of(*set.inputs));
  std::vector<Comparison> seen;
  const CompareScope part{.whole = false, .seed = setup_.seed + sample_};
  WARPLOOM_CHECK(compare_outputs(seen, set.outputs, *set.inputs, truth->blocks, part));
  for (size_t output = 0; output < seen.size(); ++output) {
    const runtime::Buffer& data = set.outputs[output].data;
    WARPLOOM_CHECK(scan_output(seen[output], output, part_of(data)));
    Tolerance tolerance = tolerances_[output];
    tolerance.frobenius = HUGE_VAL;  // a few rows say little of the whole's norm
    WARPLOOM_CHECK(
        accept(seen[output], tolerance, set.inputs->vendor_error, "the output of timed calls"));
    if (data.bytes() <= kPartBytes || sample_ == first_sample_)
      WARPLOOM_CHECK(
          check_sums(output, data, *set.inputs, *truth, seen[output], "the output of timed calls"));
  }
  if (calls == 1) WARPLOOM_CHECK(same_bits(request, set));
  if (setup_.engine == Engine::cuda) return ok();  // once, at the end
  return check_run(candidate, set, false);
}

// The outputs are what the candidate made of these inputs before, where it did.
Status Judge::same_bits(const Request& request, const Set& set) {
  const bool in_turn = sample_ == first_sample_ || setup_.engine == Engine::cpu;
  if (!in_turn || declares_atomic_sums(request.list)) return ok();
  WARPLOOM_TRY(const uint64_t hash, hash_of(set.outputs));
  auto& known = set.inputs->output_hash;
  if (known.value_or(hash) != hash)
    return fail({ErrorCode::kCandidateUnstable,
                 "a candidate's output differs between two runs on the same inputs", "",
                 "the same bits", "other bits",
                 "declare atomic sums, or make the order of sums the same"});
  known = hash;
  return ok();
}

// Every element of what timed calls of a set left, where that is cheap.
Status Judge::check_whole(const Set& set) {
  std::vector<Comparison> seen;
  WARPLOOM_CHECK(compare_outputs(seen, set.outputs, *set.inputs, {}));
  for (size_t n = 0; n < seen.size(); ++n) {
    Tolerance tolerance = tolerances_[n];
    tolerance.frobenius = HUGE_VAL;  // the norm's was held before
    WARPLOOM_CHECK(accept(seen[n], tolerance, -1, "the output of timed calls"));
  }
  return ok();
}

// What the last timed calls of a series left: nothing unwritten, nothing outside, and near the
// vendor's where there is one.
Status Judge::check_ring() {
  for (const Set& set : ring_) {
    for (size_t i = 0; i < given_.size(); ++i)
      WARPLOOM_CHECK(
          check_guards(*device_, set.inputs->tensors[i], setup_.graph.tensor(given_[i]).name));
    for (size_t i = 0; i < set.outputs.size(); ++i)
      WARPLOOM_CHECK(check_guards(*device_, set.outputs[i], output(i).name));
    if (is_on_gpu(*set.inputs)) {
      WARPLOOM_CHECK(check_whole(set));
      continue;
    }
    for (size_t i = 0; i < set.outputs.size(); ++i) {
      Comparison seen;
      if (set.outputs[i].data.bytes() > kScanBytes) continue;
      WARPLOOM_CHECK(scan_output(seen, i, set.outputs[i].data));
      WARPLOOM_CHECK(accept(seen, tolerances_[i], -1, "the output of timed calls"));
    }
    WARPLOOM_CHECK(against_vendor(set));
  }
  return ok();
}

Result<Turns> Judge::take_turns(const Contest& contest) {
  const GpuTurn::Held timing = turn_->alone();
  first_sample_ = sample_ + 1;
  (void)device_->clocks_agree();  // of what was timed before
  // A hang shows in the first call; here a busy machine may take its time, and warming up counts.
  const double expected_ms = 10 * contest.options.budget_ms + 20'000;
  announce_(true, expected_ms);
  std::vector<int> measured;  // beside this process
  if (runner_ && runner_->process() > 0) measured.push_back(runner_->process());
  const runtime::NoiseWatch watch(measured, setup_.engine == Engine::cpu);
  auto samples = runtime::measure(*device_, contest.calls, contest.options);
  announce_(false, 0);
  Turns turns;
  WARPLOOM_TRY(turns.samples, std::move(samples));
  turns.noise = watch.since_start();
  for (const runtime::Samples& one : turns.samples)
    for (const double us : one.us)
      calls_ms_ += us * one.calls_per_sample / 1e3;
  return turns;
}

// What the clock outside says of the candidate's times.
Status Judge::second_clock(Contest contest) {
  Status agreed = device_->clocks_agree();
  contest.calls.resize(1);
  contest.options.min_samples = 7;
  contest.options.max_samples = 7;
  contest.options.warm_up_ms = 0;
  for (int more = 0; !agreed && more < 4; ++more) {
    // What a busy machine puts between the clocks is the same however long a sample is; what a
    // candidate hides is a share of it.
    contest.options.least_us *= 4;
    contest.options.most_times *= 4;
    WARPLOOM_CHECK(take_turns(contest));
    agreed = device_->clocks_agree();
  }
  return agreed;
}

// One a set: in a series each keeps its own of what it prepares, since each set has constants of
// its own. Where calls are drawn they share it, and prepare anew when the set is another.
Result<std::vector<Judge::Contender>> Judge::contenders_for(const Contender& candidate,
                                                            const LaunchList& list, size_t sets) {
  std::vector<Contender> contenders(sets, candidate);
  if (candidate.prepared.empty() || !own_outputs_) return contenders;
  for (size_t i = 1; i < sets; ++i) {
    contenders[i].workspaces.clear();
    WARPLOOM_CHECK(allocate_workspaces(list, contenders[i]));
  }
  return contenders;
}

// What the preparation takes: the median of a few runs.
Status Judge::time_prepare(Contender& candidate, const Set& set, const Request& request,
                           Verdict& verdict) {
  if (!candidate.kernel.prepare) return ok();
  constexpr int kRuns = 5;
  const GpuTurn::Held timing = turn_->alone();
  WARPLOOM_TRY(const runtime::Call call, bind_with(candidate, set, candidate.kernel.prepare));
  announce_(true, 10'000);
  std::vector<double> us;
  Status done = ok();
  for (int i = 0; i < kRuns && done; ++i) {
    const auto one = device_->time_us(call, 1);
    if (one)
      us.push_back(*one);
    else
      done = fail(one.error());
  }
  announce_(false, 0);
  candidate.prepared_of = set.inputs.get();
  WARPLOOM_CHECK(done);
  verdict.prepare_us = runtime::median_interval(us, setup_.seed).median_us;
  verdict.prepare_bytes = prepared_bytes(request.list);
  return ok();
}

MeasureOptions Judge::measuring(const Request& request, bool strictly) const {
  const bool cpu = setup_.engine == Engine::cpu;
  const bool in_series = cpu && !strictly;
  MeasureOptions options{.min_samples = request.min_samples,
                         .max_samples = request.max_samples,
                         .budget_ms = request.timing_ms,
                         .least_us = in_series ? runtime::kCpuSampleUs : 0.0,
                         .warm_us = in_series ? 5000.0 : 0.0,
                         .warm_up_ms = cpu || !request.warm_up ? 0.0 : wl::kGpuWarmUpMs,
                         .seed = setup_.seed};
  if (!own_outputs_) options.short_us = 0;  // no recording of calls on several sets
  options.pick = [this](size_t) { return drawn(ring_.size()); };
  return options;
}

// The candidate's calls, the vendor's beside them where these are wanted, and how they are
// measured. `contenders` are called as long as the contest is.
Result<Judge::Contest> Judge::contest_of(std::vector<Contender>& contenders,
                                         const Request& request) {
  const bool has_vendor = vendor_.kernel.bind && request.beside_reference;
  Contest contest;
  contest.calls.resize(has_vendor ? 2 : 1);
  for (size_t i = 0; i < ring_.size(); ++i) {
    WARPLOOM_TRY(contest.calls[0].emplace_back(), bind(contenders[i], ring_[i]));
    if (has_vendor) WARPLOOM_TRY(contest.calls[1].emplace_back(), bind(vendor_, ring_[i]));
  }
  contest.options = measuring(request, request.foreign);
  contest.options.around = [this, &contenders, &request](size_t which, size_t of, bool after) {
    const bool is_vendor = which != 0;
    if (is_vendor) return after ? ok() : before_sample(vendor_, of);
    return after ? after_sample(contenders[0], request, of) : before_candidate(contenders, of);
  };
  return contest;
}

// `calls` of the candidate come next: one on a set that is drawn, or one on each.
Status Judge::before_candidate(std::vector<Contender>& contenders, size_t calls) {
  WARPLOOM_CHECK(before_sample(contenders[0], calls));
  if (calls == 1) {
    const size_t set = drawn(ring_.size());
    return prepare(contenders[own_outputs_ ? set : 0], ring_[set]);
  }
  for (size_t i = 0; i < calls; ++i)
    WARPLOOM_CHECK(prepare(contenders[i], ring_[i]));
  return ok();
}

// Of a foreign candidate on a CPU: that it keeps nothing from call to call, and whether its time is
// so short that only a bound of it is known.
Status Judge::look_for_state(const Contest& contest, const Request& request, Verdict& verdict) {
  const bool atomic = declares_atomic_sums(request.list);
  announce_(true, 30'000);
  const Status found = runner_->look_for_state(contest.calls[0], !atomic);
  announce_(false, 0);
  WARPLOOM_CHECK(found);
  // Others that take turns with a candidate slow all of its calls, those that find something too.
  if (verdict.noise.busy())
    verdict.not_promised.emplace_back(
        "that it keeps nothing from call to call: the machine was busy while that was looked for");
  if (!is_only_bounded(verdict, runner_->doubt_us(verdict.samples))) return ok();
  verdict.time_is_bound = true;
  for (double* us : {&verdict.median_us, &verdict.low_us, &verdict.high_us})
    *us += verdict.overhead_us * static_cast<double>(runner_->overhead().rounds);
  verdict.speedup = {};
  return ok();
}

// A foreign candidate that keeps nothing from call to call may be called again and again.
Status Judge::time_in_series(Contest contest, const Request& request, Verdict& verdict) {
  verdict.strict_us = verdict.median_us;
  verdict.strict_low_us = verdict.low_us;
  verdict.strict_high_us = verdict.high_us;
  const auto around = contest.options.around;
  contest.options = measuring(request, false);
  contest.options.around = around;
  const auto measure_once = [&] { return take_turns(contest); };
  WARPLOOM_TRY(const Turns turns, believable_turns(measure_once, vendor_known_));
  take_figures(verdict, turns, setup_.seed);
  verdict.time_is_bound = false;
  verdict.path = TimedBy::series;
  return ok();
}

// Calls one by one, each as if it were the first, beside the figures of a series.
Status Judge::time_strictly(const Contest& contest, Verdict& verdict) {
  Contest strict = contest;
  strict.calls.resize(1);
  strict.options.least_us = 0;
  strict.options.warm_us = 0;
  strict.options.min_samples = kStrictCalls;
  strict.options.max_samples = kStrictCalls;
  WARPLOOM_TRY(const Turns turns, take_turns(strict));
  const runtime::Samples& samples = turns.samples.front();
  verdict.strict_us = samples.median_us;
  verdict.strict_low_us = samples.low_us;
  verdict.strict_high_us = samples.high_us;
  return ok();
}

Status Judge::time_candidate(const Contender& candidate, const Request& request, Verdict& verdict) {
  WARPLOOM_CHECK(make_ring(request));
  WARPLOOM_TRY(std::vector<Contender> contenders,
               contenders_for(candidate, request.list, ring_.size()));
  WARPLOOM_TRY(const Contest contest, contest_of(contenders, request));
  vendor_known_.flops = setup_.flops;
  vendor_known_.archived_us = request.reference_known_us;
  const auto measure_once = [&] { return take_turns(contest); };
  WARPLOOM_TRY(const Turns turns, believable_turns(measure_once, vendor_known_));
  take_figures(verdict, turns, setup_.seed);
  WARPLOOM_CHECK(time_prepare(contenders[0], ring_[0], request, verdict));
  verdict.floor_us = setup_.floor_us;
  // 3 % for the clock's own error: datasheet rates are not reached by that much.
  if (verdict.median_us < 0.97 * setup_.floor_us)
    return fail({ErrorCode::kCandidateTooFast, "a candidate was faster than the hardware can be",
                 "", fmt::format("at least {:.3f} us", setup_.floor_us),
                 fmt::format("{:.3f} us", verdict.median_us)});
  if (runner_) {
    verdict.path = request.foreign ? TimedBy::strict : TimedBy::series;
    verdict.overhead_us = runner_->overhead().us;
    verdict.overhead_spread_us = runner_->overhead().spread_us;
    if (!request.foreign) return request.whole ? time_strictly(contest, verdict) : ok();
    WARPLOOM_CHECK(look_for_state(contest, request, verdict));
    return request.series ? time_in_series(contest, request, verdict) : ok();
  }
  WARPLOOM_CHECK(second_clock(contest));
  // The other sets were used only if the calls were short enough to be timed in series.
  if (turns.samples.front().calls_per_sample > 1) WARPLOOM_CHECK(check_ring());
  return check_run(candidate, ring_[0], false);
}
}  // namespace warploom::verify
