#include "verify/truth_steps.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/pointwise.h"
#include "graph/steps.h"
#include "runtime/executor.h"
#include "verify/truth_kernels.h"
#include "verify/truth_work.h"

namespace warploom::verify {
namespace {
using graph::ExpressionTerm;
using tasks::kMostAxes, tasks::kMostInputs, tasks::kMostSlots, tasks::kMostTerms;

constexpr int64_t kGranule = 1 << 9;       // bytes that memory is kept in multiples of
constexpr int64_t kLongReduction = 64;     // terms that a block shares
constexpr int64_t kFewResults = 1 << 14;   // where a thread each leaves most of a GPU idle
constexpr int64_t kLeastOfPart = 1 << 12;  // terms of a reduction's part

tl::unexpected<Error> too_large(const char* what, int64_t most, int64_t found) {
  return fail({ErrorCode::kNoSchedule, "the GPU's oracle has no room for a step of the graph", "",
               fmt::format("at most {} {}", most, what), std::to_string(found)});
}

// A box with the views of it, whose neighbouring axes are one where all views step through them as
// through one.
struct Folded {
  graph::Shape size;
  std::vector<std::vector<int64_t>> strides;  // of each view
};

Folded folded(const graph::Shape& size, const std::vector<std::vector<int64_t>>& views) {
  Folded out;
  out.strides.resize(views.size());
  for (size_t axis = 0; axis < size.size(); ++axis) {
    if (size[axis] == 1) continue;
    bool joins = !out.size.empty();
    for (size_t v = 0; v < views.size() && joins; ++v)
      joins = out.strides[v].back() == views[v][axis] * size[axis];
    if (joins)
      out.size.back() *= size[axis];
    else
      out.size.push_back(size[axis]);
    for (size_t v = 0; v < views.size(); ++v) {
      if (joins)
        out.strides[v].back() = views[v][axis];
      else
        out.strides[v].push_back(views[v][axis]);
    }
  }
  if (!out.size.empty()) return out;
  out.size = {1};
  for (auto& strides : out.strides)
    strides = {0};
  return out;
}

std::vector<int64_t> strides_in(const graph::StepView& view, size_t rank) {
  std::vector<int64_t> strides = view.strides;
  strides.resize(rank, 0);
  return strides;
}

Status check_axes(const Folded& box) {
  if (std::ssize(box.size) <= kMostAxes) return ok();
  return too_large("axes", kMostAxes, std::ssize(box.size));
}

tasks::Box box_of(const graph::Shape& size) {
  tasks::Box box{std::ssize(size), graph::element_count(size), {}};
  std::ranges::copy(size, box.size);
  return box;
}

tasks::Strided strided(const tasks::Numbers& of, int64_t origin,
                       const std::vector<int64_t>& strides) {
  tasks::Strided view{of, origin, {}};
  std::ranges::copy(strides, view.strides);
  return view;
}

std::vector<std::vector<int64_t>> views_of(const graph::PointwiseStep& work) {
  std::vector<std::vector<int64_t>> views;
  for (const auto& input : work.inputs)
    if (input) views.push_back(strides_in(*input, work.size.size()));
  views.push_back(graph::strides_of(work.size));
  return views;
}

// The terms with a slot each, which a later term takes over when nothing reads them any more;
// nothing where there are too few.
std::optional<std::vector<int>> slots_of(const std::vector<ExpressionTerm>& terms) {
  std::vector<size_t> last_use(terms.size());
  for (size_t t = 0; t < terms.size(); ++t) {
    const bool applies = terms[t].kind == ExpressionTerm::Kind::apply;
    for (int k = 0; applies && k < arity_of(terms[t].op); ++k)
      last_use[static_cast<size_t>(terms[t].args[k])] = t;
  }
  std::vector<int> slots;
  std::vector<int> free;
  int used = 0;
  for (size_t t = 0; t < terms.size(); ++t) {
    // What this term reads last it may write over: its arguments are read before.
    for (size_t before = 0; before < t; ++before)
      if (last_use[before] == t) free.push_back(slots[before]);
    if (free.empty()) free.push_back(used++);
    slots.push_back(free.back());
    free.pop_back();
    if (last_use[t] == 0) last_use[t] = terms.size();
  }
  if (used > kMostSlots) return std::nullopt;
  return slots;
}

Status check_pointwise(const graph::PointwiseStep& work) {
  const auto terms = std::ssize(work.expression.terms);
  const auto inputs = std::ssize(work.inputs);
  if (terms > kMostTerms) return too_large("terms", kMostTerms, terms);
  if (inputs > kMostInputs) return too_large("inputs", kMostInputs, inputs);
  if (!slots_of(work.expression.terms)) return too_large("numbers at once", kMostSlots, terms);
  return check_axes(folded(work.size, views_of(work)));
}

tasks::Term term_of(const ExpressionTerm& term, const std::vector<int>& slots, size_t number) {
  tasks::Term made{};
  made.slot = slots[number];
  made.value = term.value;
  if (term.kind == ExpressionTerm::Kind::input) {
    made.op = term.input;
  } else if (term.kind == ExpressionTerm::Kind::constant) {
    made.kind = 1;
  } else {
    made.kind = 2;
    made.op = static_cast<int64_t>(term.op);
    made.arity = arity_of(term.op);
    for (int k = 0; k < made.arity; ++k)
      made.args[k] = slots[static_cast<size_t>(term.args[k])];
  }
  return made;
}

// Whether the kernels' tables hold the axes of a step.
Status check_step(const graph::PointwiseStep& work) {
  return check_pointwise(work);
}

Status check_step(const graph::CopyStep& work) {
  std::vector<std::vector<int64_t>> views = {work.to.strides};
  if (work.from) views.push_back(strides_in(*work.from, work.size.size()));
  return check_axes(folded(work.size, views));
}

Status check_step(const graph::GatherStep& work) {
  return check_axes(
      folded(work.size, {work.from.strides, work.index.strides, graph::strides_of(work.size)}));
}

Status check_step(const graph::ReduceStep& work) {
  WARPLOOM_CHECK(check_axes(folded(work.size, {work.from.strides, graph::strides_of(work.size)})));
  return check_axes(folded(work.taps, {work.steps}));
}

Status check_step(const graph::ScanStep& work) {
  return check_axes(folded(work.size, {work.from.strides, work.to.strides}));
}

Status check_step(const graph::ProductStep&) {
  return ok();
}
}  // namespace

tasks::Numbers DevicePair::numbers() const {
  return {address_of(data), magnitude ? address_of(magnitude) : 0, static_cast<int64_t>(dtype)};
}

Status StepRunner::check(const graph::Steps& steps) {
  for (const graph::Step& step : steps.steps)
    WARPLOOM_CHECK(std::visit([](const auto& work) { return check_step(work); }, step.work));
  return ok();
}

Result<runtime::Buffer> StepRunner::take(int64_t bytes) {
  const int64_t wanted = round_up(std::max<int64_t>(bytes, 1), kGranule);
  const auto fitting = free_.lower_bound(wanted);
  if (fitting != free_.end() && fitting->first <= 2 * wanted) {
    const runtime::Buffer buffer = fitting->second;
    free_.erase(fitting);
    return buffer;
  }
  Result<runtime::Buffer> made = device_.allocate(wanted);
  const bool is_full = !made && made.error().code == ErrorCode::kOutOfMemory;
  if (is_full && !free_.empty()) {
    forget_free();
    made = device_.allocate(wanted);
  }
  return made;
}

void StepRunner::give(runtime::Buffer buffer) {
  if (buffer) free_.emplace(buffer.bytes(), std::move(buffer));
}

void StepRunner::give_back(DevicePair pair) {
  give(std::move(pair.data));
  give(std::move(pair.magnitude));
}

void StepRunner::forget_free() {
  (void)device_.synchronize();  // what still runs may use it
  free_.clear();
}

Result<DevicePair> StepRunner::make(int64_t elements, bool with_magnitudes, Dtype dtype) {
  DevicePair made{.dtype = dtype};
  WARPLOOM_TRY(made.data, take(8 * elements));
  if (with_magnitudes) WARPLOOM_TRY(made.magnitude, take(8 * elements));
  return made;
}

Result<DevicePair> StepRunner::run(const graph::Steps& steps, std::span<const DeviceTensor> given,
                                   const StepOptions& options) {
  Running running{steps, given, options, std::vector<DevicePair>(steps.storages.size())};
  Status done = ok();
  for (size_t i = 0; i < steps.steps.size() && done; ++i) {
    const graph::Step& step = steps.steps[i];
    const auto to = static_cast<size_t>(step.to);
    DevicePair& made = running.made[to];
    const graph::StepStorage& storage = steps.storages[to];
    if (!made.data) {
      Result<DevicePair> room = make(storage.elements, !storage.is_exact, storage.dtype);
      if (room)
        made = *room;
      else
        done = fail(room.error());
    }
    if (done) done = carry_out(running, step);
    if (done && step.marks && options.marks) done = mark(running, step);
    for (size_t s = 0; s < steps.storages.size(); ++s) {
      const bool is_done = steps.storages[s].last_use == i && running.made[s].data;
      if (is_done) give_back(std::exchange(running.made[s], {}));
    }
  }
  DevicePair result = std::exchange(running.made[static_cast<size_t>(steps.result)], {});
  for (DevicePair& left : running.made)
    give_back(std::move(left));
  if (done) return result;
  give_back(std::move(result));
  return fail(done.error());
}

Status StepRunner::carry_out(Running& running, const graph::Step& step) {
  const auto by_kind = [&](const auto& work) -> Status {
    using Work = std::decay_t<decltype(work)>;
    if constexpr (std::is_same_v<Work, graph::PointwiseStep>) return pointwise(running, step, work);
    if constexpr (std::is_same_v<Work, graph::CopyStep>) return moved(running, step, work);
    if constexpr (std::is_same_v<Work, graph::GatherStep>) return gather(running, step, work);
    if constexpr (std::is_same_v<Work, graph::ReduceStep>) return reduce(running, step, work);
    if constexpr (std::is_same_v<Work, graph::ScanStep>) return scan(running, step, work);
    if constexpr (std::is_same_v<Work, graph::ProductStep>) return product(running, step, work);
  };
  return std::visit(by_kind, step.work);
}

Status StepRunner::pointwise(Running& running, const graph::Step& step,
                             const graph::PointwiseStep& work) {
  if (graph::element_count(work.size) == 0) return ok();
  WARPLOOM_CHECK(check_pointwise(work));
  const Folded box = folded(work.size, views_of(work));
  const auto& terms = work.expression.terms;
  const std::vector<int> slots = *slots_of(terms);
  tasks::PointwiseTask task{.box = box_of(box.size), .to = running.numbers(step.to)};
  task.inputs = std::ssize(work.inputs);
  size_t view = 0;
  for (size_t k = 0; k < work.inputs.size(); ++k) {
    if (!work.inputs[k]) continue;
    const graph::StepView& input = *work.inputs[k];
    task.input[k] = strided(running.numbers(input.storage), input.origin, box.strides[view++]);
  }
  task.terms = std::ssize(terms);
  for (size_t t = 0; t < terms.size(); ++t)
    task.term[t] = term_of(terms[t], slots, t);
  task.power = work.power;
  task.integers = work.integers;
  task.wraps = work.wraps;
  task.rounds = work.rounds;
  task.saturates = work.saturates;
  task.type = static_cast<int64_t>(step.dtype);
  task.drops_nan = running.options.drops_nan;
  return kernels_.launch(pointwise_kernel(step, work), task);
}

Status StepRunner::moved(Running& running, const graph::Step& step, const graph::CopyStep& work) {
  if (graph::element_count(work.size) == 0) return ok();
  std::vector<std::vector<int64_t>> views = {strides_in(work.to, work.size.size())};
  if (work.from) views.push_back(strides_in(*work.from, work.size.size()));
  const Folded box = folded(work.size, views);
  WARPLOOM_CHECK(check_axes(box));
  tasks::CopyTask task{.box = box_of(box.size)};
  task.to = strided(running.numbers(work.to.storage), work.to.origin, box.strides[0]);
  if (work.from)
    task.from = strided(running.numbers(work.from->storage), work.from->origin, box.strides[1]);
  task.value = work.value;
  task.whole = work.whole;
  task.is_whole = running.is_whole(step);
  return kernels_.launch("truth_copy", task);
}

Status StepRunner::gather(Running& running, const graph::Step& step,
                          const graph::GatherStep& work) {
  if (graph::element_count(work.size) == 0) return ok();
  const size_t rank = work.size.size();
  const Folded box = folded(work.size, {strides_in(work.from, rank), strides_in(work.index, rank),
                                        graph::strides_of(work.size)});
  WARPLOOM_CHECK(check_axes(box));
  tasks::GatherTask task{.box = box_of(box.size)};
  task.from = strided(running.numbers(work.from.storage), work.from.origin, box.strides[0]);
  task.index = strided(running.numbers(work.index.storage), work.index.origin, box.strides[1]);
  task.stride = work.stride;
  task.extent = work.extent;
  task.to = running.numbers(step.to);
  task.is_whole = running.is_whole(step);
  return kernels_.launch("truth_gather", task);
}

Status StepRunner::reduce(Running& running, const graph::Step& step,
                          const graph::ReduceStep& work) {
  const int64_t results = graph::element_count(work.size);
  if (results == 0) return ok();
  const Folded box =
      folded(work.size, {strides_in(work.from, work.size.size()), graph::strides_of(work.size)});
  const Folded taps = folded(work.taps, {work.steps});
  WARPLOOM_CHECK(check_axes(box));
  WARPLOOM_CHECK(check_axes(taps));
  const int64_t terms = graph::element_count(work.taps);
  tasks::ReduceTask task{.box = box_of(box.size)};
  task.from = strided(running.numbers(work.from.storage), work.from.origin, box.strides[0]);
  task.taps = box_of(taps.size);
  task.taps.count = terms;
  std::ranges::copy(taps.strides[0], task.steps);
  task.op = static_cast<int64_t>(work.op);
  task.start = work.start;
  task.start_whole = work.start_whole;
  task.type = static_cast<int64_t>(step.dtype);
  task.drops_nan = running.options.drops_nan;
  task.is_whole = running.is_whole(step);
  task.parts = 1;
  task.to = running.numbers(step.to);
  // Neighbouring threads read neighbours where they share a line; else where each has a result.
  const bool along = taps.strides[0].back() == 1 || box.strides[0].back() != 1;
  const bool together = terms >= kLongReduction && (along || results <= kFewResults);
  if (!together) return kernels_.launch("truth_reduce_each", task);
  const int64_t most_parts = terms / kLeastOfPart;
  const int64_t wanted = kernels_.blocks() / results;
  task.parts = task.is_whole ? 1 : std::clamp<int64_t>(most_parts, 1, std::max<int64_t>(wanted, 1));
  if (task.parts == 1) return kernels_.launch("truth_reduce_together", task);
  WARPLOOM_TRY(const DevicePair parts, make(results * task.parts, true));
  task.to = parts.numbers();
  WARPLOOM_CHECK(kernels_.launch("truth_reduce_together", task));
  tasks::MergeTask merge{.count = results, .parts = task.parts, .part_step = 1};
  merge.result_step = task.parts;
  merge.op = task.op;
  merge.drops_nan = task.drops_nan;
  merge.from = parts.numbers();
  merge.to = running.numbers(step.to);
  WARPLOOM_CHECK(kernels_.launch("truth_merge", merge));
  give_back(parts);
  return ok();
}

Status StepRunner::scan(Running& running, const graph::Step& step, const graph::ScanStep& work) {
  const int64_t lines = graph::element_count(work.size);
  if (lines == 0) return ok();
  const size_t rank = work.size.size();
  const Folded box = folded(work.size, {strides_in(work.from, rank), strides_in(work.to, rank)});
  WARPLOOM_CHECK(check_axes(box));
  tasks::ScanTask task{.box = box_of(box.size)};
  // The views' origins are of the lines' own first elements.
  task.from = strided(running.numbers(work.from.storage), work.from.origin, box.strides[0]);
  task.to = strided(running.numbers(work.to.storage), work.to.origin, box.strides[1]);
  task.extent = work.extent;
  task.begin = work.begin;
  task.count = work.count;
  task.from_stride = work.from_stride;
  task.to_stride = work.to_stride;
  task.reverse = work.reverse;
  task.type = static_cast<int64_t>(step.dtype);
  task.is_whole = running.is_whole(step);
  const bool along = work.from_stride == 1 || lines <= kFewResults;
  const bool together = !task.is_whole && work.extent >= kLongReduction && along;
  return kernels_.launch(together ? "truth_scan_together" : "truth_scan_each", task);
}

Status StepRunner::mark(Running& running, const graph::Step& step) {
  const graph::StepStorage& storage = running.steps.storages[static_cast<size_t>(step.to)];
  const bool can_overflow = is_float(step.dtype) && step.dtype != Dtype::f64;
  if (!can_overflow || storage.is_exact || storage.elements == 0) return ok();
  WARPLOOM_TRY(const runtime::Buffer found, take(8));
  WARPLOOM_CHECK(device_.fill(found.slice(0, 8), 0));
  tasks::MarkTask task{.of = running.numbers(step.to), .count = storage.elements};
  task.type = static_cast<int64_t>(step.dtype);
  task.stored = !step.is_last;
  task.sums = step.sums;
  task.found = address_of(found);
  WARPLOOM_CHECK(kernels_.launch("truth_mark", task));
  int64_t answer = 0;
  WARPLOOM_CHECK(device_.download(found, &answer, 8));
  give(found);
  beyond_ = beyond_ || answer != 0;
  return ok();
}

Status StepRunner::copy(const DevicePair& from, const DevicePair& to, int64_t at, int64_t count) {
  if (count == 0) return ok();
  tasks::CopyTask task{.box = box_of({count})};
  task.from = strided(from.numbers(), 0, {1});
  task.to = strided(to.numbers(), at, {1});
  task.is_whole = to.dtype == Dtype::i64;
  return kernels_.launch("truth_copy", task);
}
}  // namespace warploom::verify
