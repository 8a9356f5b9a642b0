// Timed calls: each on contents of its own, which some rows of FP64 are known of, into poisoned
// outputs, and looked at when it is done. A candidate cannot tell a call that is timed from one
// that is checked: all are both.
//
// Contents are varied rather than made: in variant v some words of every input trade places, in
// variant 0 none, so that going back is exact and the truth of a variant's rows is worked out once
// for all candidates. The rows looked at are one that lies, by its share of the whole, where words
// were traded, and one at random.
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>
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
#include "verify/judge.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"
#include "verify/turns.h"

namespace warploom::verify {
namespace {
// Problems up to this size may be short enough for a series.
constexpr int64_t kSeriesBytes = 16 << 20;
constexpr int64_t kMostSets = 16;
constexpr int kVariants = 40;          // at most; more than a screening has samples
constexpr double kCheapSumsMs = 4;     // what sums of a variant may take
constexpr double kVariantsMs = 150;    // for their truth, until when no more are begun
constexpr double kDearRow = 3e8;       // operations of a row that is too dear for any
constexpr double kCheapWhole = 1e6;    // and of an output whose rows are all looked at
constexpr int64_t kRowElements = 256;  // at least, of what is looked at at one place
// Of a larger output so much is poisoned and scanned, at another place each time.
constexpr int64_t kPartBytes = 4 << 20;
constexpr int64_t kGpuPartBytes = 256 << 10;  // and where it must be copied for that

bool has_atomic_arguments(const Kernel& kernel) {
  return std::ranges::any_of(kernel.args, [](const Argument& argument) { return argument.atomic; });
}
}  // namespace

std::vector<Judge::Trade> Judge::trades_of(int variant) const {
  std::vector<Trade> trades;
  if (variant == 0) return trades;
  const int64_t most = setup_.engine == Engine::cpu ? 64 : 2;  // each is two transfers to a GPU
  Random random(setup_.seed + static_cast<uint64_t>(variant), "variant");
  for (size_t i = 0; i < setup_.graph.inputs.size(); ++i) {
    const int64_t words = graph::byte_count(setup_.graph.tensor(given_[i])) / 8;
    if (words <= 1) continue;
    const auto draw_word = [&] {
      const uint64_t word = random.below(static_cast<uint64_t>(words));
      return 8 * static_cast<int64_t>(word);
    };
    const int64_t count = std::clamp<int64_t>(words / 64, 1, most);
    for (int64_t n = 0; n < count; ++n) {
      // Braces: the first is drawn before the second.
      trades.push_back({i, draw_word(), draw_word()});
    }
  }
  return trades;
}

Status Judge::vary(Inputs& inputs, int variant) {
  std::vector<Trade> trades = trades_of(inputs.variant);
  std::ranges::reverse(trades);
  std::ranges::copy(trades_of(variant), std::back_inserter(trades));
  for (const Trade& trade : trades) {
    auto* const data = const_cast<std::byte*>(inputs.bytes[trade.input].data());
    std::swap_ranges(data + trade.a, data + trade.a + 8, data + trade.b);
    for (const int64_t at : {trade.a, trade.b})
      if (setup_.engine == Engine::cuda)
        WARPLOOM_CHECK(device_->upload(inputs.tensors[trade.input].data, data + at, 8, at));
  }
  inputs.variant = variant;
  return ok();
}

// The next in turn of those whose truth is affordable.
int Judge::next_variant(const Inputs& inputs) {
  const graph::OutputRows rows = graph::rows_of(setup_.graph);
  const int64_t parts = rows.independent ? rows.count : 1;
  if (setup_.flops / static_cast<double>(parts) > kDearRow) return 0;
  ++turn_;
  if (variants_ms_ < kVariantsMs) return turn_ % (1 + kVariants);
  const auto known = static_cast<size_t>(turn_) % (1 + inputs.variants.size());
  if (known == 0) return 0;
  const auto place = static_cast<ptrdiff_t>(known) - 1;
  return std::next(inputs.variants.begin(), place)->first;
}

// Rows of what the outputs should be for what the inputs hold now.
Result<const Truth*> Judge::truth_of(Inputs& inputs) {
  if (inputs.variant == 0 && !inputs.truth.blocks.empty()) return &inputs.truth;
  Truth& truth = inputs.variants[inputs.variant];
  std::vector<Block>& blocks = truth.blocks;
  if (!blocks.empty()) return &truth;
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Trade> trades = trades_of(inputs.variant);
  Random random(setup_.seed + static_cast<uint64_t>(inputs.variant), "looked at");
  for (int output = 0; output < static_cast<int>(outputs_.size()); ++output) {
    const graph::OutputRows rows = graph::rows_of(setup_.graph, output);
    int64_t some = std::max<int64_t>(1, kRowElements / rows.elements);
    if (setup_.flops <= kCheapWhole) some = rows.count;
    const auto count = static_cast<double>(rows.count);
    const int64_t last = std::max<int64_t>(0, rows.count - some);
    double traded = random.uniform();
    if (!trades.empty()) {
      const Trade& one = trades[random.below(trades.size())];
      const auto size = static_cast<double>(inputs.bytes[one.input].size());
      traded = static_cast<double>(one.a) / size;
    }
    for (const double place : {traded, random.uniform()}) {
      const auto row = static_cast<int64_t>(place * count);
      const int64_t begin = std::clamp<int64_t>(row, 0, last);
      const RowRange range{output, begin, std::min(rows.count, begin + some)};
      WARPLOOM_TRY(blocks.emplace_back(),
                   evaluate_block(setup_.graph, inputs.bytes, range, truth_options_));
      if (some >= rows.count) break;
    }
  }
  if (sums_ms_ <= kCheapSumsMs) WARPLOOM_TRY(truth.sums, sums_of(inputs));
  variants_ms_ += ms_since(start);
  return &truth;
}

// What is poisoned before a sample and scanned after it.
runtime::Buffer Judge::part_of(const runtime::Buffer& whole) const {
  const int64_t part = setup_.engine == Engine::cpu ? kPartBytes : kGpuPartBytes;
  if (whole.bytes() <= part) return whole;
  constexpr int64_t kPage = 4096;
  const auto pages = static_cast<uint64_t>((whole.bytes() - part) / kPage + 1);
  Random random(setup_.seed + sample_, "part");
  const auto page = static_cast<int64_t>(random.below(pages));
  return whole.slice(kPage * page, part);
}

Result<uint64_t> Judge::hash_of(const Tensors& outputs) {
  uint64_t hash = 0;
  for (const Guarded& output : outputs) {
    const int64_t bytes = output.data.bytes();
    if (bytes > kScanBytes) continue;
    WARPLOOM_TRY(const std::byte* const found, on_host(output.data, 0, bytes, copy_));
    hash = 3 * hash + hash_of_bytes(found, bytes);
  }
  return hash;
}

Status Judge::before_sample(const Contender& who, const std::vector<Set>& sets, size_t calls) {
  ++sample_;
  for (size_t i = 0; i < calls; ++i) {
    for (const Guarded& output : outputs_of(who, sets[i]))
      WARPLOOM_CHECK(device_->fill(part_of(output.data), kPoison));
    if (is_candidate(who) && i == chosen(calls))
      WARPLOOM_CHECK(vary(*sets[i].inputs, next_variant(*sets[i].inputs)));
  }
  for (const auto& [name, workspace] : who.workspaces)
    if (!who.prepared.contains(name))
      WARPLOOM_CHECK(device_->fill(part_of(workspace.data), kPoison));
  WARPLOOM_CHECK(forget(who, std::span(sets).first(calls)));
  return device_->synchronize();
}

Status Judge::after_sample(const Contender& candidate, const Request& request,
                           const std::vector<Set>& sets, size_t calls) {
  const Set& set = sets[chosen(calls)];
  WARPLOOM_TRY(const Truth* const truth, truth_of(*set.inputs));
  std::vector<Comparison> seen;
  WARPLOOM_CHECK(compare_blocks(seen, set.outputs, truth->blocks, set.inputs->family));
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
  const bool atomic = std::ranges::any_of(request.list.kernels, has_atomic_arguments);
  Inputs& inputs = *sets[0].inputs;
  const bool on_first_inputs = inputs.variant == 0 && calls == 1;
  const bool in_turn = sample_ == first_sample_ || setup_.engine == Engine::cpu;
  if (on_first_inputs && in_turn && !atomic) {
    WARPLOOM_TRY(const uint64_t hash, hash_of(outputs_));
    if (hash != first_hash_)
      return fail({ErrorCode::kCandidateUnstable,
                   "a candidate's output differs between two runs on the same inputs", "",
                   "the same bits", "other bits",
                   "declare atomic sums, or make the order of sums the same"});
  }
  if (setup_.engine == Engine::cuda) return ok();  // once, at the end
  WARPLOOM_CHECK(vary(inputs, 0));
  return check_run(candidate, sets[0], false);
}

Status Judge::make_series() {
  const int64_t bytes = input_bytes_ + output_bytes_;
  const int64_t cache = device_->info().cache_bytes;
  if (!series_.empty() || setup_.engine != Engine::cuda || bytes > kSeriesBytes) return ok();
  const int64_t enough = 2 * cache / std::max<int64_t>(bytes, 1) + 1;
  const int64_t sets = std::clamp<int64_t>(enough, 2, kMostSets);
  for (int64_t set = 1; set < sets; ++set) {
    Set made{std::make_shared<Inputs>(), {}, {}};
    made.inputs->family = kScreening[0];
    const uint64_t seed = setup_.seed + 0x9e3779b9u * static_cast<uint64_t>(set);
    WARPLOOM_CHECK(fill_inputs(*made.inputs, seed));
    WARPLOOM_TRY(made.outputs, make_outputs(*device_));
    if (vendor_.kernel.bind) WARPLOOM_TRY(made.vendor_outputs, make_outputs(here()));
    series_.push_back(std::move(made));
  }
  return ok();
}

// What the last timed calls left: nothing unwritten, nothing outside, and near the vendor's where
// there is one.
Status Judge::check_series(const std::vector<Set>& sets) {
  for (const Set& set : sets) {
    for (size_t i = 0; i < set.outputs.size(); ++i) {
      WARPLOOM_CHECK(check_guards(*device_, set.outputs[i], output(i).name));
      Comparison seen;
      if (set.outputs[i].data.bytes() > kScanBytes) continue;
      WARPLOOM_CHECK(scan_output(seen, i, set.outputs[i].data));
      WARPLOOM_CHECK(accept(seen, tolerances_[i], -1, "the output of timed calls"));
    }
    WARPLOOM_CHECK(against_vendor(set));
  }
  return ok();
}

Result<Turns> Judge::take_turns(const Contest& contest, const Set& set) {
  std::vector<runtime::Buffer> inputs;
  std::vector<runtime::Buffer> outputs;
  for (size_t i = 0; i < setup_.graph.inputs.size(); ++i)
    inputs.push_back(set.inputs->tensors[i].data);
  for (const Guarded& output : outputs_) outputs.push_back(output.data);
  turn_ = -1;  // the first sample is of variant 0
  first_sample_ = sample_ + 1;
  if (runner_) runner_->disturb(inputs, outputs, setup_.seed + sample_);
  (void)device_->clocks_agree();  // of what was timed before
  // A hang shows in the first call; here a busy machine may take its time, and warming up counts.
  const double expected_ms = 10 * contest.options.budget_ms + 20'000;
  announce_(true, expected_ms);
  std::vector<int> measured;  // beside this process
  if (runner_) measured.push_back(runner_->process());
  const runtime::NoiseWatch watch(measured, setup_.engine == Engine::cpu);
  auto samples = runtime::measure(*device_, contest.calls, contest.options);
  announce_(false, 0);
  Turns turns;
  WARPLOOM_TRY(turns.samples, std::move(samples));
  turns.noise = watch.since_start();
  for (const runtime::Samples& one : turns.samples)
    for (const double us : one.us) calls_ms_ += us * one.calls_per_sample / 1e3;
  return turns;
}

// What the clock outside says of the candidate's times.
Status Judge::second_clock(Contest contest, const Set& set) {
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
    WARPLOOM_CHECK(take_turns(contest, set));
    agreed = device_->clocks_agree();
  }
  return agreed;
}

// One a set: each keeps its own of what it prepares, since each set has constants of its own.
Result<std::vector<Judge::Contender>> Judge::contenders_for(const Contender& candidate,
                                                            const LaunchList& list, size_t sets) {
  std::vector<Contender> contenders(sets, candidate);
  if (candidate.prepared.empty()) return contenders;
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
  WARPLOOM_TRY(const runtime::Call call, bind_with(candidate, set, candidate.kernel.prepare));
  announce_(true, 10'000);
  std::vector<double> us;
  Status done = ok();
  for (int i = 0; i < kRuns && done; ++i) {
    const Result<double> one = device_->time_us(call, 1);
    if (one)
      us.push_back(*one);
    else
      done = fail(one.error());
  }
  announce_(false, 0);
  candidate.prepared_variant = set.inputs->variant;
  WARPLOOM_CHECK(done);
  verdict.prepare_us = runtime::median_interval(us, setup_.seed).median_us;
  verdict.prepare_bytes = prepared_bytes(request.list);
  return ok();
}

// The candidate's calls, the vendor's beside them where these are wanted, and how they are
// measured. `contenders` are called as long as the contest is.
Result<Judge::Contest> Judge::contest_of(std::vector<Contender>& contenders, const Request& request,
                                         const std::vector<Set>& sets) {
  const bool has_vendor = vendor_.kernel.bind && request.beside_reference;
  Contest contest;
  contest.calls.resize(has_vendor ? 2 : 1);
  for (size_t i = 0; i < sets.size(); ++i) {
    WARPLOOM_TRY(contest.calls[0].emplace_back(), bind(contenders[i], sets[i]));
    if (has_vendor) WARPLOOM_TRY(contest.calls[1].emplace_back(), bind(vendor_, sets[i]));
  }
  const bool cpu = setup_.engine == Engine::cpu;
  contest.options = {.min_samples = request.min_samples,
                     .max_samples = request.max_samples,
                     .budget_ms = request.timing_ms,
                     .least_us = cpu ? runtime::kCpuSampleUs : 0.0,
                     .warm_us = cpu ? 5000.0 : 0.0,
                     .warm_up_ms = cpu || !request.warm_up ? 0.0 : wl::kGpuWarmUpMs,
                     .seed = setup_.seed};
  contest.options.around = [this, &contenders, &request, &sets](size_t which, size_t of,
                                                                bool after) -> Status {
    if (after) return which == 0 ? after_sample(contenders[0], request, sets, of) : ok();
    WARPLOOM_CHECK(before_sample(which == 0 ? contenders[0] : vendor_, sets, of));
    for (size_t i = 0; which == 0 && i < of; ++i) WARPLOOM_CHECK(prepare(contenders[i], sets[i]));
    return ok();
  };
  return contest;
}

Status Judge::time_candidate(const Contender& candidate, const Request& request, Verdict& verdict) {
  WARPLOOM_CHECK(make_series());
  std::vector<Set> sets(1);
  WARPLOOM_TRY(sets[0], set_of(kScreening[0], request.check_ms));
  std::ranges::copy(series_, std::back_inserter(sets));
  WARPLOOM_TRY(std::vector<Contender> contenders,
               contenders_for(candidate, request.list, sets.size()));
  WARPLOOM_TRY(const Contest contest, contest_of(contenders, request, sets));
  vendor_known_.flops = setup_.flops;
  vendor_known_.archived_us = request.reference_known_us;
  const auto measure_once = [&] { return take_turns(contest, sets[0]); };
  WARPLOOM_TRY(const Turns turns, believable_turns(measure_once, vendor_known_));
  take_figures(verdict, turns, setup_.seed);
  WARPLOOM_CHECK(time_prepare(contenders[0], sets[0], request, verdict));
  verdict.floor_us = setup_.floor_us;
  // 3 % for the clock's own error: datasheet rates are not reached by that much.
  if (verdict.median_us < 0.97 * setup_.floor_us)
    return fail({ErrorCode::kCandidateTooFast, "a candidate was faster than the hardware can be",
                 "", fmt::format("at least {:.3f} us", setup_.floor_us),
                 fmt::format("{:.3f} us", verdict.median_us)});
  const Status agreed = second_clock(contest, sets[0]);
  if (runner_ || !agreed) return agreed;
  // The other sets were used only if the calls were short enough to be timed in series.
  if (turns.samples.front().calls_per_sample > 1) WARPLOOM_CHECK(check_series(sets));
  WARPLOOM_CHECK(vary(*sets[0].inputs, 0));
  return check_run(candidate, sets[0], false);
}
}  // namespace warploom::verify
