#include "verify/truth_engine.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/ranges.h"
#include "graph/reference.h"
#include "graph/steps.h"
#include "graph/track.h"
#include "runtime/executor.h"
#include "verify/inputs.h"
#include "verify/limits.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"
#include "verify/truth_kernels.h"
#include "verify/truth_steps.h"
#include "verify/truth_work.h"

namespace warploom::verify {
namespace {
constexpr int64_t kPartElements = 1 << 24;     // of an output that are made at once
constexpr int64_t kStorageElements = 1 << 26;  // of what is made on the way
// Of a device's memory, what all truth that is kept may take; and of what is free, one output's.
constexpr int64_t kKeptShare = 4;
constexpr int64_t kFreeShare = 2;

// Elements of the largest storage that steps make.
int64_t largest_of(const std::vector<graph::Steps>& lists) {
  int64_t most = 0;
  for (const graph::Steps& steps : lists)
    for (const graph::StepStorage& storage : steps.storages)
      if (storage.given == graph::kAbsent) most = std::max(most, storage.elements);
  return most;
}

// At most so many rows, whole slices of the output's leading axes where these fit: a convolution's
// rows of one channel are one product then.
int64_t whole_slices(const graph::Shape& output, size_t cut_axes, int64_t most) {
  int64_t slice = 1;
  for (size_t axis = cut_axes; axis-- > 0;) {
    const int64_t larger = slice * std::max<int64_t>(1, output[axis]);
    if (larger > most) break;
    slice = larger;
  }
  return most / slice * slice;
}

// How many rows of an output are made at once; all where each needs what the others do.
Result<int64_t> fitting_rows(const graph::Graph& graph, int output, const graph::OutputRows& rows) {
  if (!rows.independent || rows.count <= 1) return rows.count;
  int64_t some = kPartElements / std::max<int64_t>(1, rows.elements);
  some = std::clamp<int64_t>(some, 1, rows.count);
  while (some > 1) {
    WARPLOOM_TRY(const auto lists, graph::steps_for(graph, output, 0, some));
    if (largest_of(lists) <= kStorageElements) break;
    some = ceil_div(some, int64_t{2});
  }
  const graph::TensorId id = graph.outputs[static_cast<size_t>(output)];
  return whole_slices(graph.tensor(id).shape, rows.axes, some);
}

// What a block of the kernel saw, in the words of the CPU.
Comparison comparison_of(const tasks::Seen& seen) {
  Comparison out;
  out.error_squares = seen.error_squares;
  out.reference_squares = seen.reference_squares;
  out.reference_fourths = seen.reference_fourths;
  out.magnitude_squares = seen.magnitude_squares;
  out.magnitude_fourths = seen.magnitude_fourths;
  out.largest_error = seen.largest_error;
  out.largest_reference = seen.largest_reference;
  out.compared = seen.compared;
  out.worst = {seen.worst_ratio, seen.worst_index, seen.worst_found, seen.worst_expected};
  out.nonfinite = {seen.counts[0], seen.firsts[0]};
  out.unwritten = {seen.counts[1], seen.firsts[1]};
  out.lost_nan = {seen.counts[2], seen.firsts[2]};
  out.lost_infinity = {seen.counts[3], seen.firsts[3]};
  out.undetermined = seen.undetermined;
  out.all_zero = seen.has_number == 0;
  out.zero_expected = seen.expects_number == 0;
  out.beyond = seen.beyond != 0;
  return out;
}
}  // namespace

Result<std::unique_ptr<TruthEngine>> TruthEngine::make(runtime::Executor& device,
                                                       const graph::Graph& graph, Track track,
                                                       const graph::Ranges& ranges,
                                                       const std::set<ValueOp>& operations) {
  WARPLOOM_TRY(TruthWork work, truth_work_of(graph));
  work.operations.insert(operations.begin(), operations.end());
  WARPLOOM_TRY(TruthKernels kernels, TruthKernels::load(device, work));
  auto made = std::unique_ptr<TruthEngine>(new TruthEngine(device, std::move(kernels)));
  WARPLOOM_CHECK(made->set_up(graph, track, ranges));
  return made;
}

Status TruthEngine::set_up(const graph::Graph& graph, Track track, const graph::Ranges& ranges) {
  graph_ = graph;
  ranges_ = ranges;
  WARPLOOM_TRY(primitive_, graph::decompose(graph));
  for (const graph::TensorId id : graph_.inputs)
    if (bits_of(graph_.tensor(id).dtype) < 8)
      return fail({ErrorCode::kNoSchedule, "the GPU's oracle draws no inputs of less than a byte",
                   graph_.tensor(id).name, "types of whole bytes",
                   std::string(name_of(graph_.tensor(id).dtype))});
  for (int n = 0; n < static_cast<int>(graph_.outputs.size()); ++n) {
    tolerances_.push_back(tolerance_of(graph_, track, n));
    const graph::OutputRows rows = graph::rows_of(primitive_, n);
    rows_.push_back(rows);
    WARPLOOM_TRY(part_rows_.emplace_back(), fitting_rows(primitive_, n, rows));
  }
  choices_ = choices_in(graph_);
  by_element_ = graph::is_by_element(primitive_);
  WARPLOOM_CHECK(check_steps());
  WARPLOOM_CHECK(upload_constants());
  WARPLOOM_TRY(seen_,
               device_.allocate(kernels_.blocks() * static_cast<int64_t>(sizeof(tasks::Seen))));
  return ok();
}

Status TruthEngine::upload_constants() {
  const auto on_device = [&](const std::vector<std::byte>& bytes) -> Result<runtime::Buffer> {
    WARPLOOM_TRY(runtime::Buffer made, device_.allocate(std::ssize(bytes)));
    WARPLOOM_CHECK(device_.upload(made, bytes.data(), std::ssize(bytes)));
    return made;
  };
  for (size_t i = 0; i < primitive_.tensors.size(); ++i) {
    const auto& constant = primitive_.tensors[i].constant;
    const auto id = static_cast<graph::TensorId>(i);
    if (constant) WARPLOOM_TRY(constants_[id], on_device(*constant));
  }
  for (const graph::Tensor& tensor : graph_.tensors)
    if (tensor.constant) WARPLOOM_TRY(given_constants_.emplace_back(), on_device(*tensor.constant));
  return ok();
}

// One row says what all of them need.
Status TruthEngine::check_steps() const {
  for (int n = 0; n < static_cast<int>(rows_.size()); ++n) {
    const int64_t rows = std::min<int64_t>(1, rows_[static_cast<size_t>(n)].count);
    WARPLOOM_TRY(const auto lists, graph::steps_for(primitive_, n, 0, rows));
    for (const graph::Steps& steps : lists)
      WARPLOOM_CHECK(StepRunner::check(steps));
  }
  return ok();
}

void TruthEngine::give_back(Part part) {
  runner_.give_back(std::move(part.truth));
  runner_.give_back(std::move(part.without_nan));
}

void TruthEngine::give_back(std::vector<Part> parts) {
  for (Part& part : parts)
    give_back(std::move(part));
}

void TruthEngine::give_back(Set& set) {
  while (!set.kept.empty())
    forget_parts(set, set.kept.begin()->first);
}

void TruthEngine::forget(int set) {
  const auto known = sets_.find(set);
  if (known == sets_.end()) return;
  give_back(known->second);
  sets_.erase(known);
  runner_.forget_free();
}

std::vector<runtime::Buffer> TruthEngine::tensors(int set) const {
  const Set& of = sets_.at(set);
  std::vector<runtime::Buffer> all;
  for (const graph::TensorId id : primitive_.inputs)
    all.push_back(of.tensors[static_cast<size_t>(id)].data);
  all.insert(all.end(), given_constants_.begin(), given_constants_.end());
  return all;
}

Status TruthEngine::make_room(int set) {
  Set& made = sets_[set];
  give_back(made);
  made.family = InputFamily::normal;
  made.tensors.resize(primitive_.tensors.size());
  for (const auto& [id, data] : constants_)
    made.tensors[static_cast<size_t>(id)] = {data, primitive_.tensor(id).dtype};
  for (const graph::TensorId id : primitive_.inputs) {
    const graph::Tensor& tensor = primitive_.tensor(id);
    DeviceTensor& to = made.tensors[static_cast<size_t>(id)];
    to.dtype = tensor.dtype;
    if (!to.data) WARPLOOM_TRY(to.data, device_.allocate(graph::byte_count(tensor)));
  }
  return ok();
}

Status TruthEngine::put(int set, size_t input, const graph::ElementRange& range,
                        graph::Bytes whole) {
  const auto id = static_cast<size_t>(primitive_.inputs[input]);
  const DeviceTensor& to = sets_.at(set).tensors[id];
  const int64_t size = bytes_of(to.dtype);
  const int64_t begin = std::max<int64_t>(range.begin, 0) * size;
  const int64_t end = std::min(range.end * size, std::ssize(whole));
  if (end <= begin) return ok();
  return device_.upload(to.data, whole.data() + begin, end - begin, begin);
}

Status TruthEngine::draw(int set, InputFamily family, uint64_t seed) {
  WARPLOOM_CHECK(make_room(set));
  Set& made = sets_[set];
  made.family = family;
  made.seed = seed;
  const std::vector<Stream> streams = streams_of(graph_, family, seed, ranges_);
  for (size_t i = 0; i < streams.size(); ++i) {
    const auto id = static_cast<size_t>(primitive_.inputs[i]);
    WARPLOOM_CHECK(draw_tensor(streams[i], made.tensors[id].data));
  }
  return ok();
}

Status TruthEngine::draw_tensor(const Stream& stream, const runtime::Buffer& to) {
  const Drawing drawing = drawing_of(stream);
  runtime::Buffer ends;
  tasks::DrawTask task{.to = address_of(to), .type = static_cast<int64_t>(stream.dtype)};
  task.count = stream.elements;
  task.state = static_cast<int64_t>(drawing.state);
  task.shape = drawing.shape;
  task.elements = stream.elements;
  task.is_whole = drawing.is_whole;
  task.to_ends = drawing.to_ends;
  task.shift = drawing.shift;
  task.outlier = drawing.outlier;
  task.deviation = drawing.deviation;
  task.largest = drawing.assured;
  task.scale = static_cast<float>(stream.scale);
  task.low = drawing.lattice.low;
  task.step = drawing.lattice.step;
  task.numbers = drawing.lattice.count;
  task.least = stream.range.low;
  task.most = stream.range.high;
  task.nonzero = stream.range.nonzero;
  task.rare = stream.rare;
  task.only_negative = stream.only_negative;
  task.without_least = stream.without_least;
  task.without_zeros = stream.without_zeros;
  task.row = stream.row;
  task.rows_key = drawing.rows_key;
  task.span = drawing.span;
  if (!stream.ends.empty()) {
    const int64_t bytes = 4 * std::ssize(stream.ends);
    WARPLOOM_TRY(ends, device_.allocate(bytes));
    WARPLOOM_CHECK(device_.upload(ends, stream.ends.data(), bytes));
    task.ends = address_of(ends);
    task.end_count = std::ssize(stream.ends);
  }
  WARPLOOM_CHECK(kernels_.launch("truth_draw", task));
  return device_.synchronize();  // it reads the ends
}

Result<DevicePair> TruthEngine::rows(Set& set, int output, int64_t begin, int64_t end,
                                     bool drops_nan) {
  WARPLOOM_TRY(const auto lists, graph::steps_for(primitive_, output, begin, end));
  StepOptions options;
  options.drops_nan = drops_nan;
  options.marks = by_element_ || set.family != InputFamily::normal;
  if (lists.size() == 1) return runner_.run(lists[0], set.tensors, options);
  const graph::TensorId id = primitive_.outputs[static_cast<size_t>(output)];
  const bool whole = is_integer(primitive_.tensor(id).dtype);
  const int64_t count = (end - begin) * rows_[static_cast<size_t>(output)].elements;
  WARPLOOM_TRY(DevicePair all, runner_.make(count, !whole, whole ? Dtype::i64 : Dtype::f64));
  int64_t at = 0;
  for (const graph::Steps& steps : lists) {
    WARPLOOM_TRY(DevicePair made, runner_.run(steps, set.tensors, options));
    const int64_t some = steps.storages[static_cast<size_t>(steps.result)].elements;
    WARPLOOM_CHECK(runner_.copy(made, all, at, some));
    runner_.give_back(std::move(made));
    at += some;
  }
  return all;
}

Result<bool> TruthEngine::has_nan(const DevicePair& pair, int64_t count) {
  WARPLOOM_CHECK(device_.fill(seen_.slice(0, 8), 0));
  const tasks::NanTask task{pair.numbers(), count, address_of(seen_)};
  WARPLOOM_CHECK(kernels_.launch("truth_nan", task));
  int64_t found = 0;
  WARPLOOM_CHECK(device_.download(seen_, &found, 8, 0));
  return found != 0;
}

Result<TruthEngine::Part> TruthEngine::part_of(Set& set, int output, int64_t begin, int64_t end) {
  const int64_t elements = rows_[static_cast<size_t>(output)].elements;
  Part part{.first = begin * elements, .count = (end - begin) * elements};
  (void)runner_.take_beyond();
  WARPLOOM_TRY(part.truth, rows(set, output, begin, end, false));
  part.marked = runner_.take_beyond() && set.family != InputFamily::normal;
  const bool is_float = part.truth.dtype == Dtype::f64;
  if (choices_ == 0 || !is_float) return part;
  WARPLOOM_TRY(const bool nan, has_nan(part.truth, part.count));
  if (!nan) return part;
  WARPLOOM_TRY(part.without_nan, rows(set, output, begin, end, true));
  part.mixed = choices_ > 1;
  return part;
}

int64_t TruthEngine::bytes_of_truth(int output) const {
  const graph::OutputRows& rows = rows_[static_cast<size_t>(output)];
  return kElementBytes * rows.count * rows.elements;
}

Result<int64_t> TruthEngine::room_for_truth() const {
  WARPLOOM_TRY(const int64_t free, device_.free_memory());
  return std::min(device_.info().memory_bytes / kKeptShare - kept_bytes_, free / kFreeShare);
}

Status TruthEngine::for_parts(Set& set, int output, const Visit& visit) {
  const auto n = static_cast<size_t>(output);
  if (const auto kept = set.kept.find(output); kept != set.kept.end()) {
    for (const Part& part : kept->second)
      WARPLOOM_CHECK(visit(part));
    return ok();
  }
  WARPLOOM_TRY(const int64_t room, room_for_truth());
  const bool keeps = bytes_of_truth(output) <= room;
  std::vector<Part> parts;
  for (int64_t row = 0; row < rows_[n].count;) {
    const int64_t end = std::min(rows_[n].count, row + part_rows_[n]);
    Result<Part> part = part_of(set, output, row, end);
    const bool is_full = !part && part.error().code == ErrorCode::kOutOfMemory;
    if (is_full && part_rows_[n] > 1) {  // half as many may fit
      part_rows_[n] = ceil_div(std::min(part_rows_[n], end - row), int64_t{2});
      runner_.forget_free();
      continue;
    }
    if (!part) return fail(part.error());
    row = end;
    WARPLOOM_CHECK(visit(*part));
    if (keeps)
      parts.push_back(*std::move(part));
    else
      give_back(*std::move(part));
  }
  if (keeps) keep(set, output, std::move(parts));
  return ok();
}

// Some rows at a place that the seed says, where the truth is not at hand.
Status TruthEngine::for_place(Set& set, int output, const CompareScope& scope, const Visit& visit) {
  const auto n = static_cast<size_t>(output);
  const graph::OutputRows& rows = rows_[n];
  const int64_t wanted = scope.elements / std::max<int64_t>(1, rows.elements);
  const int64_t some = std::clamp<int64_t>(wanted, 1, std::min(part_rows_[n], rows.count));
  const bool whole = scope.whole || set.kept.contains(output) || some >= rows.count;
  if (whole || !rows.independent) return for_parts(set, output, visit);
  Random random(scope.seed, "place");
  const auto begin =
      static_cast<int64_t>(random.below(static_cast<uint64_t>(rows.count - some) + 1));
  WARPLOOM_TRY(Part part, part_of(set, output, begin, begin + some));
  WARPLOOM_CHECK(visit(part));
  give_back(std::move(part));
  return ok();
}

Status TruthEngine::compare_part(const Part& part, int output, const runtime::Buffer& found,
                                 bool is_normal, Comparison& sum) {
  if (part.count == 0) return ok();
  const auto n = static_cast<size_t>(output);
  const Dtype dtype = graph_.tensor(graph_.outputs[n]).dtype;
  const Limits limits = limits_of(dtype);
  tasks::CompareTask task{.type = static_cast<int64_t>(dtype), .truth = part.truth.numbers()};
  task.found = address_of(found) + part.first * bytes_of(dtype);
  if (part.without_nan.data) task.without_nan = part.without_nan.numbers();
  task.mixed = part.mixed;
  task.marked = part.mixed || (part.marked && !is_normal);
  task.begin = part.first;
  task.count = part.count;
  task.is_whole = is_integer(dtype);
  task.per_magnitude = tolerances_[n].per_magnitude;
  task.relative = tolerances_[n].relative;
  task.absolute = tolerances_[n].absolute;
  task.largest = limits.largest;
  task.step = limits.step;
  return compare_by(task, sum);
}

Status TruthEngine::compare_by(tasks::CompareTask task, Comparison& sum) {
  task.poison = runtime::kPoison;
  task.seen = address_of(seen_);
  WARPLOOM_CHECK(kernels_.launch("truth_compare", task));
  std::vector<tasks::Seen> seen(static_cast<size_t>(kernels_.blocks()));
  const auto bytes = static_cast<int64_t>(seen.size() * sizeof(tasks::Seen));
  WARPLOOM_CHECK(device_.download(seen_, seen.data(), bytes, 0));
  for (const tasks::Seen& block : seen)
    sum.add(comparison_of(block));
  return ok();
}

Result<std::vector<Comparison>> TruthEngine::compare(int set,
                                                     std::span<const runtime::Buffer> outputs,
                                                     const CompareScope& scope) {
  Set& of = sets_.at(set);
  const bool is_normal = of.family == InputFamily::normal;
  std::vector<Comparison> all(outputs.size());
  for (int n = 0; n < static_cast<int>(outputs.size()); ++n) {
    const auto place = static_cast<size_t>(n);
    const auto visit = [&](const Part& part) {
      return compare_part(part, n, outputs[place], is_normal, all[place]);
    };
    WARPLOOM_CHECK(for_place(of, n, scope, visit));
    if (scope.whole && of.sampled.contains(n))
      WARPLOOM_CHECK(scan_rest(of, n, outputs[place], all[place]));
  }
  return all;
}

Status TruthEngine::move(const runtime::Buffer& from, const runtime::Buffer& to) {
  const tasks::BytesTask task{address_of(from), address_of(to), to.bytes(), 0};
  return kernels_.launch("truth_move", task);
}

Result<bool> TruthEngine::same(const runtime::Buffer& a, const runtime::Buffer& b) {
  WARPLOOM_CHECK(device_.fill(seen_.slice(0, 8), 0));
  const tasks::BytesTask task{address_of(a), address_of(b), std::min(a.bytes(), b.bytes()),
                              address_of(seen_)};
  WARPLOOM_CHECK(kernels_.launch("truth_same", task));
  int64_t differs = 0;
  WARPLOOM_CHECK(device_.download(seen_, &differs, 8, 0));
  return differs == 0;
}

Result<uint64_t> TruthEngine::hash(const runtime::Buffer& data) {
  WARPLOOM_CHECK(device_.fill(seen_.slice(0, 8), 0));
  const tasks::HashTask task{address_of(data), data.bytes(), address_of(seen_)};
  WARPLOOM_CHECK(kernels_.launch("truth_hash", task));
  uint64_t hash = 0;
  WARPLOOM_CHECK(device_.download(seen_, &hash, 8, 0));
  return hash;
}

Result<graph::ValueAndMagnitude> TruthEngine::truth(int set, int output, int64_t begin,
                                                    int64_t end) {
  WARPLOOM_TRY(Part part, part_of(sets_.at(set), output, begin, end));
  const auto count = static_cast<size_t>(part.count);
  graph::ValueAndMagnitude out;
  out.value.resize(count);
  const int64_t bytes = 8 * part.count;
  if (part.truth.dtype == Dtype::i64) {
    out.integers.resize(count);
    WARPLOOM_CHECK(device_.download(part.truth.data, out.integers.data(), bytes, 0));
    std::ranges::copy(out.integers, out.value.begin());
  } else {
    WARPLOOM_CHECK(device_.download(part.truth.data, out.value.data(), bytes, 0));
  }
  out.magnitude.resize(count);
  if (part.truth.magnitude)
    WARPLOOM_CHECK(device_.download(part.truth.magnitude, out.magnitude.data(), bytes, 0));
  out.marked = part.marked;
  give_back(std::move(part));
  return out;
}
}  // namespace warploom::verify
