#include "search/measurer.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include "base/error.h"
#include "base/hash.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/compile_pool.h"
#include "search/device_lanes.h"
#include "search/task.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
constexpr size_t kMostKept = 4000;  // verdicts, for those that are built to the same
}  // namespace

bool is_fatal(ErrorCode code) {
  constexpr std::array kFatal = {
      ErrorCode::kNoCompiler,     ErrorCode::kNoDriver,      ErrorCode::kNoGpu,
      ErrorCode::kNoNvrtc,        ErrorCode::kGpuTooOld,     ErrorCode::kDiskFull,
      ErrorCode::kFileUnwritable, ErrorCode::kEvaluatorLost, ErrorCode::kInterrupted};
  return contains(kFatal, code);
}

Measurer::Measurer(const Task& task, const Budget& budget, CompilePool::Turns turns,
                   Milliseconds limit, const std::atomic<bool>* interrupted,
                   verify::EvaluatorPool* pool, FurtherDevices further, std::string first)
    : task_(task),
      budget_(budget),
      interrupted_(interrupted),
      evaluators_(pool),
      further_(std::move(further)),
      first_(std::move(first)),
      pool_(task.space.build, std::move(turns), limit) {}

// One that cannot be had is started when it is wanted, which says why.
void Measurer::begin(const verify::Setup& setup) {
  auto begun = verify::Evaluator::begin(setup, {.pool = evaluators_, .interrupted = interrupted_});
  if (begun) begun_ = *std::move(begun);
}

// What a set-up takes is what it says of itself where it began before this.
Status Measurer::start(const verify::Setup& setup, const Budget& budget) {
  const double before = budget_.spent();
  evaluator_ = std::exchange(begun_, std::nullopt);
  if (evaluator_) {
    const Status ready = evaluator_->await(budget.until());
    if (!ready) evaluator_.reset();
    if (!ready && ready.error().code == ErrorCode::kInterrupted) return ready;
  }
  if (!evaluator_) {
    auto started = verify::Evaluator::start(
        setup, {.pool = evaluators_, .interrupted = interrupted_, .until = budget.until()});
    WARPLOOM_TRY(evaluator_, std::move(started));
  }
  double once = 0;
  double all = 0;
  for (const verify::SetUpPart& part : evaluator_->ready().parts) {
    once += part.once ? part.seconds : 0;
    all += part.seconds;
  }
  costs_.set_up_took(std::max(all, budget_.spent() - before), once);
  costs_.family_took(evaluator_->ready().family_seconds);
  start_lanes(setup, budget);
  return ok();
}

void Measurer::start_lanes(const verify::Setup& setup, const Budget& budget) {
  if (further_.names.empty() || lanes_) return;
  lanes_.emplace(further_.names, further_.make);
  lanes_->start(setup, budget, evaluator_->ready().device);
}

// Further devices are given up: what is with them is judged by whoever is there next.
void Measurer::take_back() {
  if (!lanes_) return;
  for (DeviceLanes::Job& job : lanes_->give_back())
    returned_.push_back({.candidate = std::move(job.candidate), .list = std::move(job.list)});
  notes_ = lanes_->notes();
  lanes_.reset();
}

// One that cannot be had is started when it is wanted, which says why.
void Measurer::stand_by(const verify::Setup& setup) {
  auto begun = verify::Evaluator::begin(setup, {.pool = evaluators_, .interrupted = interrupted_});
  if (begun) standby_ = *std::move(begun);
  costs_.stands_by(standby_.has_value());
}

Status Measurer::start_fresh(const verify::Setup& setup, const Budget& budget) {
  evaluator_.reset();
  if (!standby_) return start(setup, budget);
  evaluator_ = std::move(standby_);
  standby_.reset();
  costs_.stands_by(false);
  const Status ready = evaluator_->await(budget.until());
  if (ready || ready.error().code == ErrorCode::kInterrupted) return ready;
  return start(setup, budget);
}

// What was recorded needs no compiler.
void Measurer::submit(Candidate candidate) {
  const bool compiles = !candidate.judged_here && !task_.recorded;
  pool_.put(std::move(candidate), compiles);
}

std::optional<Compiled> Measurer::next_compiled(Milliseconds wait) {
  if (returned_.empty()) return pool_.take(wait);
  Compiled out = std::move(returned_.front());
  returned_.pop_front();
  return out;
}

Result<std::optional<Candidate>> Measurer::take(Milliseconds wait, const verify::Request& request) {
  constexpr Milliseconds kLook{5};  // while devices are at work
  const auto until = std::chrono::steady_clock::now() + wait;
  while (true) {
    WARPLOOM_TRY(std::optional<Candidate> judged, take_from_lanes());
    if (judged) return judged;
    const bool are_busy = lanes_ && lanes_->pending() > 0;
    std::optional<Compiled> compiled = next_compiled(are_busy ? std::min(kLook, wait) : wait);
    const bool is_late = std::chrono::steady_clock::now() >= until;
    if (!compiled && (!are_busy || is_late)) return std::optional<Candidate>();
    if (!compiled) continue;
    costs_.compiling_took(compiled->seconds);
    if (hand_out(*compiled, request, true)) continue;
    hand_out_ahead(request);
    Candidate candidate = std::move(compiled->candidate);
    candidate.compile_seconds = compiled->seconds;
    if (!candidate.judged_here)
      WARPLOOM_CHECK(measure(candidate, std::move(compiled->list), request));
    if (lanes_ && candidate.judged_here) candidate.proposed["device"] = first_;
    return std::optional(std::move(candidate));
  }
}

// To a further device: one that is idle, or that has nothing waiting. What is known already, or has
// failed before, is no work for it.
bool Measurer::hand_out(Compiled& compiled, const verify::Request& request, bool is_idle) {
  if (!lanes_ || compiled.candidate.judged_here || !compiled.list) return false;
  if (is_idle ? !lanes_->has_idle() : !lanes_->has_room()) return false;
  if (screened_.contains(key_of(*compiled.list, request))) return false;
  compiled.candidate.compile_seconds = compiled.seconds;
  DeviceLanes::Job job{std::move(compiled.candidate), *std::move(compiled.list), request};
  job.request.list = job.list;
  job.request.foreign = job.list.foreign;
  job.request.series = job.list.foreign;
  lanes_->put(std::move(job));
  return true;
}

// While one is judged here, the others shall not stand idle.
void Measurer::hand_out_ahead(const verify::Request& request) {
  while (lanes_ && lanes_->has_room() && returned_.empty()) {
    std::optional<Compiled> another = pool_.take(Milliseconds(0));
    if (!another) return;
    costs_.compiling_took(another->seconds);
    if (!hand_out(*another, request, false)) returned_.push_back(*std::move(another));
  }
}

// The next that a further device judged. What one was lost with comes back to be judged here.
Result<std::optional<Candidate>> Measurer::take_from_lanes() {
  while (lanes_) {
    std::optional<DeviceLanes::Done> done = lanes_->take();
    if (!done) break;
    Candidate candidate = std::move(done->job.candidate);
    if (!done->verdict && done->verdict.error().code == ErrorCode::kInterrupted)
      return fail(done->verdict.error());
    if (!done->verdict) {
      returned_.push_back({.candidate = std::move(candidate), .list = std::move(done->job.list)});
      continue;
    }
    costs_.judging_took(done->seconds);
    candidate.list = std::move(done->job.list);
    candidate.verdict = *std::move(done->verdict);
    candidate.proposed["device"] = done->device;
    const std::string key = key_of(candidate.list, done->job.request);
    if (!key.empty() && screened_.size() < kMostKept) screened_.emplace(key, candidate.verdict);
    WARPLOOM_CHECK(settle(candidate, done->job.request));
    return std::optional(std::move(candidate));
  }
  return std::optional<Candidate>();
}

Status Measurer::measure(Candidate& candidate, Result<LaunchList> list, verify::Request request) {
  if (list) {
    candidate.list = std::move(*list);
    request.list = candidate.list;
    // A stranger's text has a process to itself; its time compares with others' by a series.
    request.foreign = candidate.list.foreign;
    request.series = candidate.list.foreign;
    WARPLOOM_CHECK(judge(candidate, request));
  } else {
    candidate.verdict = {.error_found = list.error()};
  }
  return settle(candidate, request);
}

// What follows of its verdict.
Status Measurer::settle(Candidate& candidate, const verify::Request& request) {
  const verify::Verdict& verdict = candidate.verdict;
  if (!verdict.accepted && is_fatal(verdict.error_found.code)) return fail(verdict.error_found);
  candidate.judged_here = true;
  candidate.promoted = request.whole && verdict.accepted;
  candidate.strain = std::max(candidate.strain, strain_of(verdict));
  if (candidate.screened_us == 0 && verdict.accepted) candidate.screened_us = verdict.median_us;
  if (!verdict.accepted) note_refusal(candidate);
  return ok();
}

// What a screening of a list is known by; "": it is none.
std::string Measurer::key_of(const LaunchList& list, const verify::Request& request) const {
  const bool screens = !request.whole && !request.beside_reference && !task_.recorded;
  return screens ? hash_hex(to_json(list).dump()) : "";
}

Status Measurer::judge(Candidate& candidate, const verify::Request& request) {
  const std::string text = key_of(candidate.list, request);
  if (const auto known = screened_.find(text); known != screened_.end()) {
    candidate.verdict = known->second;
    return ok();
  }
  const double before = budget_.spent();
  auto verdict =
      task_.recorded ? task_.recorded(candidate.config, request) : evaluator_->judge(request);
  WARPLOOM_TRY(candidate.verdict, std::move(verdict));
  costs_.judging_took(budget_.spent() - before);
  if (!text.empty() && screened_.size() < kMostKept) screened_.emplace(text, candidate.verdict);
  return ok();
}

void Measurer::note_refusal(const Candidate& candidate) {
  const Error& why = candidate.verdict.error_found;
  ++refused_by_code_[std::string(code_text(why.code))];
  if (refused_++ > 0) return;
  first_refusal_ =
      fmt::format("; the first: {}: {} {}", candidate.config.text(), why.message, why.found);
}

std::string Measurer::refusals() const {
  if (refused_by_code_.empty()) return "none was judged";
  const auto counted = [](const auto& code) {
    return fmt::format("{} {}", code.second, code.first);
  };
  return listed(refused_by_code_, counted) + first_refusal_;
}
}  // namespace warploom::search
