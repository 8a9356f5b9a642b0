#include "verify/judge.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/rows.h"
#include "base/units.h"
#include "codegen/launch_list.h"
#include "codegen/memory_plan.h"
#include "codegen/prepare.h"
#include "graph/graph.h"
#include "graph/projection.h"
#include "graph/reference.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "verify/coverage.h"
#include "verify/cpu_gate.h"
#include "verify/evaluator.h"
#include "verify/gpu_turn.h"
#include "verify/inputs.h"
#include "verify/judge_parts.h"
#include "verify/memory_group.h"
#include "verify/oracle.h"
#include "verify/runner.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
using runtime::Executor;
using Clock = std::chrono::steady_clock;

// As fp32 some 1e16, as bf16 pairs the like: who reads beyond an end gets a result that is visibly
// wrong.
std::vector<uint32_t> guard(uint32_t word, int64_t bytes) {
  return std::vector<uint32_t>(as_size(ceil_div(bytes, int64_t{4})), word);
}

// Where in the whole the bytes before the data and those behind it are, and how many.
struct Side {
  int64_t from;
  int64_t bytes;
};

std::array<Side, 2> sides_of(const Guarded& buffer) {
  const auto* const begin = static_cast<const char*>(buffer.whole.address());
  const int64_t before = static_cast<const char*>(buffer.data.address()) - begin;
  const int64_t end = before + buffer.data.bytes();
  return {Side{0, before}, Side{end, buffer.whole.bytes() - end}};
}
}  // namespace

// The data lies at the end of what is mapped, but for a guard; all that is left of it is guard.
Result<Guarded> allocate_guarded(Executor& device, int64_t bytes) {
  constexpr int64_t kAlignment = 4096;
  WARPLOOM_TRY(runtime::Buffer whole, device.allocate_apart(bytes + 2 * kGuardBytes));
  const int64_t at = (whole.bytes() - kGuardBytes - bytes) / kAlignment * kAlignment;
  // Neighbours differ: who copies one element too far must not leave a guard as it was. And nobody
  // knows them beforehand.
  static std::atomic<uint64_t> made = std::random_device()();
  Random random(++made, "guard");
  const uint32_t half = 0x5800u | as_uint32(random.below(1 << 11));
  const uint32_t word = half | half << 16;
  Guarded out{whole, whole.slice(at, bytes), word};
  for (const Side& side : sides_of(out))
    WARPLOOM_CHECK(device.upload(whole, guard(word, side.bytes).data(), side.bytes, side.from));
  return out;
}

Status check_guards(Executor& device, const Guarded& buffer, const std::string& name) {
  for (const Side& side : sides_of(buffer)) {
    const auto expected = guard(buffer.word, side.bytes);
    std::vector<uint32_t> found = expected;
    WARPLOOM_CHECK(device.download(buffer.whole, found.data(), side.bytes, side.from));
    if (found == expected) continue;
    return fail({ErrorCode::kCandidateWroteInput, "a candidate wrote outside its buffers", name,
                 "writes within the output",
                 fmt::format("changed bytes {} the buffer", side.from > 0 ? "behind" : "before")});
  }
  return ok();
}

uint64_t hash_of_bytes(const std::byte* data, int64_t count) {
  return hash64({reinterpret_cast<const char*>(data), as_size(count)});
}

Result<int64_t> await_memory(const std::function<Result<int64_t>()>& free_memory, int64_t wanted,
                             std::chrono::milliseconds pause) {
  WARPLOOM_TRY(int64_t free, free_memory());
  int64_t most = free;
  for (int quiet = 0; free < wanted && quiet < 60; ++quiet) {
    std::this_thread::sleep_for(pause);
    WARPLOOM_TRY(free, free_memory());
    if (free > most + wanted / 100) {
      most = free;
      quiet = 0;
    }
  }
  return free;
}

void Judge::note_part(Ready& ready, const char* name, bool once) {
  ready.parts.push_back({name, ms_since(noted_) / 1e3, once});
  noted_ = std::chrono::steady_clock::now();
}

Result<Ready> Judge::prepare() {
  Ready ready;
  const graph::Graph& graph = setup_.graph;
  launch_truth();
  device_ = std::move(ahead_.device);
  if (!device_) WARPLOOM_TRY(device_, runtime::Executor::open(setup_.engine));
  note_part(ready, "opening the device");
  turn_ = std::make_unique<GpuTurn>(device_->info().place);
  start_truth();
  if (setup_.engine == Engine::cpu) {
    here_ = std::move(device_);
    WARPLOOM_TRY(auto runner, Runner::open(*here_));
    runner_ = runner.get();
    device_ = std::move(runner);
  }
  given_ = graph.inputs;
  for (size_t i = 0; i < graph.tensors.size(); ++i)
    if (graph.tensors[i].constant) given_.push_back(static_cast<graph::TensorId>(i));
  for (const auto id : given_)
    input_bytes_ += graph::byte_count(graph.tensor(id));
  for (const auto id : graph.outputs)
    output_bytes_ += graph::byte_count(graph.tensor(id));
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    tolerances_.push_back(tolerance_of(graph, setup_.track, as_int(i)));
    // The few values of narrower types are clamped to, so that nothing is linear in operands.
    const bool wide = bits_of(output(i).dtype) >= 16;
    auto& projection = projections_.emplace_back();
    if (wide) projection = graph::project(graph, as_int(i), setup_.seed);
  }
  for (int n = 0; n < static_cast<int>(graph.outputs.size()); ++n)
    rows_ += graph::rows_of(graph, n).count;
  WARPLOOM_CHECK(reserve_memory());
  WARPLOOM_TRY(outputs_, make_outputs(*device_));
  note_part(ready, "making room");
  await_truth();
  note_part(ready, "kernels that evaluate FP64", true);
  const runtime::DeviceInfo& info = device_->info();
  ready.device = info.name;
  ready.arch = info.arch;
  ready.environment = info.driver;
  ready.truth = truth_by_;
  if (!setup_.reference) return ready;

  vendor_outputs_ = outputs_;
  if (!shared_outputs_)
    WARPLOOM_TRY(vendor_outputs_, make_outputs(here()));  // which a candidate does not see
  WARPLOOM_CHECK(choose_reference(ready));
  ready.truth = truth_by_;
  return ready;
}

// Sees to it that inputs and outputs fit, and whether the reference has outputs of its own.
Status Judge::reserve_memory() {
  // Of the memory, for inputs, and outputs of the candidate and of the reference.
  constexpr double kShare = 0.7;
  const int64_t copies = runner_ ? 2 : 1;  // a cell has its own of the inputs
  const int64_t need = copies * input_bytes_ + output_bytes_;
  const auto with_reference = as_double(need + output_bytes_);
  const auto wanted = as_int64(with_reference / kShare);
  const auto free_memory = [this] { return device_->free_memory(); };
  WARPLOOM_TRY(const int64_t free, await_memory(free_memory, wanted));
  if (need > free)
    return fail({ErrorCode::kOutOfMemory, "the problem's tensors do not fit in memory",
                 setup_.graph.name, bytes_text(as_double(need)),
                 bytes_text(as_double(free)) + " free",
                 "take a smaller problem, or free memory (nvidia-smi lists users of a GPU's)"});
  shared_outputs_ = wanted > free;
  return ok();
}

std::set<std::string> Judge::names_of_outputs() const {
  std::set<std::string> names;
  for (const auto id : setup_.graph.outputs)
    names.insert(setup_.graph.tensor(id).name);
  return names;
}

// The candidate with its workspaces bound, so that they are guarded and poisoned as well. Those
// that share bytes by the memory plan lie in one guarded buffer, in the places that the plan gives
// them.
Result<Judge::Contender> Judge::load(const Request& request) {
  Contender made;
  LaunchList list = request.list;
  WARPLOOM_TRY(const runtime::Binary binary, runtime::compile(list, {.foreign = request.foreign}));
  const bool gpu = setup_.engine == Engine::cuda;
  if (gpu) WARPLOOM_CHECK(gate_on_gpu(list, binary, request.foreign, made));
  for (size_t i = 0; i < binary.images.size() && !gpu; ++i)
    WARPLOOM_CHECK(check_cpu_kernel(list, i, binary.images[i], request.foreign));
  const uint64_t number = ++judged_;
  forgotten_ = 0;
  if (runner_)
    runner_->begin({.seed = setup_.seed + number,
                    .limit_ms = request.candidate_limit_ms,
                    .foreign = request.foreign,
                    .outputs = names_of_outputs()});
  for (const auto& inputs : kept_)
    inputs->output_hash.reset();
  for (const Set& set : ring_)
    set.inputs->output_hash.reset();
  WARPLOOM_CHECK(allocate_workspaces(list, made));
  std::ranges::move(list.workspaces, std::back_inserter(list.outputs));
  list.workspaces.clear();
  WARPLOOM_TRY(made.kernel, device_->load(list, binary));
  return made;
}

Status Judge::allocate_workspaces(const LaunchList& list, Contender& made) {
  const auto kept = prepared_buffers(list);
  for (const MemoryBlock& block : blocks_of(memory_plan(list))) {
    auto buffer = allocate_guarded(*device_, block.bytes);
    if (!buffer && buffer.error().code == ErrorCode::kOutOfMemory)
      buffer.error().code = ErrorCode::kCandidateMemory;
    WARPLOOM_TRY(const Guarded guarded, buffer);
    const std::string name = listed(block.buffers, &PlacedBuffer::name);
    for (const PlacedBuffer& placed : block.buffers) {
      made.placed[placed.name] = guarded.data.slice(placed.offset - block.offset, placed.bytes);
      if (contains(kept, placed.name, &BufferSpec::name)) made.prepared.insert(name);
    }
    made.workspaces[name] = guarded;
  }
  return ok();
}

// What a candidate prepares may be of constants alone: all else must be in the time.
Status Judge::check_constants(const LaunchList& list) const {
  for (const std::string& name : list.constants) {
    const auto id = setup_.graph.tensor_named(name);
    const bool constant =
        setup_.constants.contains(name) || (id && setup_.graph.tensor(*id).constant.has_value());
    if (!constant)
      return fail({ErrorCode::kPlanInvalid, "a candidate prepares what is not constant", name,
                   "an initializer, or an input named by --constant", "an input of each call",
                   "name it as constant, or leave it out of the list's constants"});
  }
  return ok();
}

namespace {
constexpr double kMostSetMs = 1500;          // for the inputs of a family and their truth, on cores
constexpr double kMostInChecksMs = 120'000;  // of calls that are checked family by family

// In words, that families from this one on were not looked at.
std::string left_out(const std::vector<InputFamily>& families, size_t from) {
  std::vector<std::string_view> names;
  for (size_t i = from; i < families.size(); ++i)
    names.push_back(name_of(families[i]));
  return fmt::format(
      "that it is right on inputs of these families, for which there was no time: {}",
      fmt::join(names, ", "));
}

}  // namespace

// For a family's inputs and their truth. On a GPU that is nearly all that a family takes, and the
// first family, which all else is held against, has more of it; a foreign candidate's outputs are
// held against the truth whole, however long that takes.
double Judge::ms_for_set(const Request& request, const judging::FamilyTime& time) const {
  constexpr double kShareOfCores = 0.3;
  constexpr double kShareOfGpu = 0.7;
  constexpr double kFirstOfLeft = 0.25;
  if (!truth_)
    return std::min(request.whole ? kShareOfCores * time.share_ms : time.share_ms, kMostSetMs);
  if (request.foreign && request.whole) return HUGE_VAL;
  const double own = kShareOfGpu * time.share_ms;
  return time.is_first ? std::max(own, kFirstOfLeft * time.left_ms) : own;
}

// Inputs that a candidate is checked on; what they cover goes into the verdict.
std::vector<InputFamily> Judge::families_for(const Request& request, bool roomy,
                                             Verdict& verdict) const {
  verdict.special = request.exact ? SpecialValues::exact : request.list.special;
  if (request.whole) {
    Coverage all = coverage_of(setup_.graph, setup_.track, verdict.special, setup_.ranges);
    verdict.not_promised = std::move(all.not_promised);
    return std::move(all.families);
  }
  std::vector<InputFamily> families(kScreening.begin(), kScreening.end());
  if (!roomy) families.resize(1);
  return families;
}

Status Judge::judge_into(const Request& request, Verdict& verdict) {
  if (request.list.engine != setup_.engine)
    return fail(
        {ErrorCode::kScheduleIllegal, "a candidate is for another engine than the problem"});
  WARPLOOM_CHECK(check_constants(request.list));
  WARPLOOM_TRY(Contender candidate, load(request));
  const bool roomy = 2 * input_bytes_ <= kKeepBytes;
  const std::vector<InputFamily> families = families_for(request, roomy, verdict);
  const size_t never_left_out = roomy ? 3 : 2;
  size_t left_out_from = families.size();
  const auto start = Clock::now();
  double dearest = 0;       // of the families so far, beyond its share, ms
  double in_checks_ms = 0;  // of that time, what the candidate's calls and looks at them took
  for (size_t i = 0; i < families.size(); ++i) {
    const GpuTurn::Held working = turn_->share();
    const double begun = ms_since(start);
    // A foreign candidate must not be slow so that less is looked at.
    const double left = request.check_ms - begun + (request.foreign ? in_checks_ms : 0);
    // When the time is up, families whose making alone is dear are left out and do not appear in
    // the evidence. Cheap ones are judged on a few rows.
    const bool is_late = left <= 0 && dearest > kMostSetMs;
    if (request.whole && i >= never_left_out && (is_late || in_checks_ms > kMostInChecksMs)) {
      left_out_from = i;
      break;
    }
    const auto families_left = as_double(families.size() - i);
    const double share = std::max(50.0, left / families_left);
    const double for_set = ms_for_set(request, {i == 0, share, left});
    WARPLOOM_TRY(const Set set, set_of(families[i], for_set));
    const double made = ms_since(start);
    const double before_ms = calls_ms_;
    WARPLOOM_TRY(Evidence evidence, check_family(candidate, set, request, 0.6 * share));
    if (i == 0) WARPLOOM_CHECK(check_speed(candidate, set, request, calls_ms_ - before_ms));
    const double over = ms_since(start);
    in_checks_ms += over - made;
    dearest = std::max(dearest, (request.foreign ? made : over) - begun - std::max(0.0, share));
    verdict.error = std::max(verdict.error, evidence.error);
    verdict.max_error = std::max(verdict.max_error, evidence.max_error);
    verdict.reference_error = std::max(verdict.reference_error, evidence.reference_error);
    verdict.whole_inputs += evidence.rows_checked == evidence.rows;
    verdict.evidence.push_back(std::move(evidence));
  }
  if (request.foreign && left_out_from < families.size())
    verdict.not_promised.push_back(left_out(families, left_out_from));
  verdict.whole_calls = verdict.whole_inputs;
  WARPLOOM_CHECK(look_at_reads(candidate, request, verdict));
  WARPLOOM_CHECK(check_again(candidate, request, verdict.whole_calls > 0, verdict));
  return time_candidate(candidate, request, verdict);
}

// What takes so much longer than the fastest so far is worth no more of the search's time: half a
// dozen calls more would follow. The first call begins by making a place for it; so a second one
// decides.
Status Judge::check_speed(const Contender& candidate, const Set& set, const Request& request,
                          double first_call_ms) {
  constexpr double kTimesSlower = 20;
  constexpr double kWorthMs = 100;
  const double most_ms = std::max(kWorthMs, kTimesSlower * request.best_us / 1e3);
  if (request.best_us <= 0 || first_call_ms <= most_ms) return ok();
  const double before_ms = calls_ms_;
  WARPLOOM_CHECK(run(candidate, set));
  const double call_ms = calls_ms_ - before_ms;
  if (call_ms <= most_ms) return ok();
  Error error{ErrorCode::kCandidateSlow, "a candidate is far slower than one that is known"};
  error.expected = fmt::format("a call within {:.0f} ms", most_ms);
  error.found = fmt::format("{:.0f} ms", call_ms);
  error.remedy = "nothing: the search goes on with others";
  return fail(error);
}

Verdict Judge::judge(const Request& request) {
  Verdict verdict;
  calls_ms_ = 0;
  const auto start = Clock::now();
  Status judged = judge_into(request, verdict);
  if (!judged && truth_lost_) {  // once more, with the truth of this machine's cores
    give_up_truth(*std::exchange(truth_lost_, std::nullopt));
    verdict = {};
    judged = judge_into(request, verdict);
  }
  verdict.judge_ms = ms_since(start) - calls_ms_;
  verdict.accepted = judged.has_value();
  if (!judged) verdict.error_found = judged.error();
  verdict.truth = truth_by_;
  verdict.sandbox = runner_ ? runner_->sandbox() : "no host code";
  if (request.foreign)
    verdict.sandbox += fmt::format("; its compiler: {}; {}", runtime::compiler_confinement(),
                                   memory_confinement());
  return verdict;
}
}  // namespace warploom::verify
