#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/parallel.h"
#include "graph/projection.h"
#include "graph/reference.h"
#include "runtime/executor.h"
#include "verify/evaluator.h"
#include "verify/inputs.h"
#include "verify/judge.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"

namespace warploom::verify {
Result<const std::byte*> Judge::on_host(const runtime::Buffer& data, int64_t from, int64_t bytes,
                                        HostCopy& copy) {
  if (device_->engine() == Engine::cpu) return static_cast<const std::byte*>(data.address()) + from;
  if (copy.bytes < bytes) {
    copy = {};
    WARPLOOM_TRY(copy.memory, device_->host_memory(bytes));
    copy.bytes = bytes;
  }
  WARPLOOM_CHECK(device_->download(data, copy.memory.get(), bytes, from));
  return static_cast<const std::byte*>(copy.memory.get());
}

// Guards and inputs, after a launch. Large inputs are looked at in places only, unless `whole`.
Status Judge::check_run(const Contender& candidate, const Set& set, bool whole) {
  for (size_t i = 0; i < set.outputs.size(); ++i)
    WARPLOOM_CHECK(check_guards(*device_, set.outputs[i], output(i).name));
  for (const auto& [name, workspace] : candidate.workspaces)
    WARPLOOM_CHECK(check_guards(*device_, workspace, name));
  const auto name_of_input = [&](size_t i) { return setup_.graph.tensor(given_[i]).name; };
  std::optional<size_t> changed;
  if (is_on_gpu(*set.inputs))
    WARPLOOM_TRY(changed, told(truth_->changed(set.inputs->set, looked(set.inputs->tensors))));
  for (size_t i = 0; i < given_.size() && !changed; ++i) {
    WARPLOOM_CHECK(check_guards(*device_, set.inputs->tensors[i], name_of_input(i)));
    if (is_on_gpu(*set.inputs)) continue;
    WARPLOOM_TRY(const bool unchanged, is_unchanged(i, set, whole));
    if (!unchanged) changed = i;
  }
  if (!changed) return ok();
  return fail({ErrorCode::kCandidateWroteInput, "a candidate changed an input",
               name_of_input(*changed), "the input as it was", "other bytes"});
}

Result<bool> Judge::is_unchanged(size_t input, const Set& set, bool whole) {
  constexpr size_t kPlaces = 4;
  const auto& data = set.inputs->tensors[input].data;
  const std::vector<uint64_t>& hashes = set.inputs->hashes[input];
  const int64_t small = setup_.engine == Engine::cpu ? kScanBytes : kPiece;
  const bool all = whole || data.bytes() <= small;
  const size_t pieces = all ? hashes.size() : kPlaces;
  Random random(setup_.seed, "pieces");
  for (size_t n = 0; n < pieces; ++n) {
    const size_t piece = all ? n : random.below(hashes.size());
    const int64_t from = as_int64(piece) * kPiece;
    const int64_t bytes = std::min(kPiece, data.bytes() - from);
    WARPLOOM_TRY(const std::byte* const found, on_host(data, from, bytes, copy_));
    if (hash_of_bytes(found, bytes) != hashes[piece]) return false;
  }
  return true;
}

namespace {
// Where an element may be NaN or, where the kernel drops NaN, another number: the block with what
// the kernel chose.
Block as_chosen(const Block& block, Dtype dtype, const std::byte* found) {
  Block chosen = block;
  for (size_t i = 0; i < chosen.value.size(); ++i) {
    const bool dropped =
        std::isnan(chosen.value[i]) && !std::isnan(load_as_double(dtype, found, i));
    if (!dropped) continue;
    chosen.value[i] = block.without_nan[i];
    chosen.magnitude[i] = block.magnitude_without_nan[i];
    const bool is_free = block.has_mixed_choices && !std::isnan(block.without_nan[i]);
    if (is_free) chosen.magnitude[i] = std::numeric_limits<double>::quiet_NaN();
  }
  return chosen;
}

// Errors of runs of elements, squared, and what the runs hold, squared.
struct Runs {
  std::vector<double> errors;
  std::vector<double> squares;
};

constexpr int64_t kRun = 4096;  // elements of a run

// Of two outputs of one type: how far `mine` is from `theirs`, run by run.
Runs compare_runs(Dtype dtype, const std::byte* mine, const std::byte* theirs, int64_t count) {
  const int64_t runs = ceil_div(count, kRun);
  Runs out{std::vector<double>(runs), std::vector<double>(runs)};
  graph::parallel_for(runs, 0, [&](int64_t run) {
    std::array<double, kRun> c;
    std::array<double, kRun> v;
    const int64_t length = std::min(kRun, count - run * kRun);
    load_run(dtype, mine, run * kRun, 1, length, c.data());
    load_run(dtype, theirs, run * kRun, 1, length, v.data());
    // Summed apart from what other threads write nearby.
    double error = 0;
    double square = 0;
    for (size_t i = 0; i < as_size(length); ++i) {
      if (!std::isfinite(v[i])) continue;
      const double difference = c[i] - v[i];
      error += difference * difference;
      square += v[i] * v[i];
    }
    out.errors[run] = error;
    out.squares[run] = square;
  });
  return out;
}
}  // namespace

Status Judge::compare_blocks(std::vector<Comparison>& seen, const Tensors& outputs,
                             std::span<const Block> blocks, InputFamily family) {
  seen.resize(outputs.size());
  for (const Block& block : blocks) {
    const auto n = as_size(block.rows.output);
    const Dtype dtype = output(n).dtype;
    const int64_t size = bytes_of(dtype);
    const int64_t count = as_int64(block.value.size());
    WARPLOOM_TRY(const std::byte* const found,
                 on_host(outputs[n].data, block.first_element * size, count * size, copy_));
    if (block.silent(family)) {
      scan(seen[n], dtype, found, block.first_element, count);
      seen[n].beyond = true;
      continue;
    }
    if (is_integer(dtype)) {
      compare_integers(seen[n], dtype, found, block.integers.data(), block.first_element, count);
      continue;
    }
    const bool choice = !block.without_nan.empty();
    const Block chosen = choice ? as_chosen(block, dtype, found) : Block();
    const Block& expected = choice ? chosen : block;
    const bool marked =
        expected.has_mixed_choices || (block.marked && family != InputFamily::normal);
    compare(seen[n], tolerances_[n], dtype, found, expected.value.data(), expected.magnitude.data(),
            block.first_element, count, marked);
  }
  return ok();
}

// Looks for what is unwritten, in pieces.
Status Judge::scan_output(Comparison& sum, size_t n, const runtime::Buffer& data) {
  constexpr int64_t kBytes = 32 << 20;
  const Dtype dtype = output(n).dtype;
  for (int64_t from = 0; from < data.bytes(); from += kBytes) {
    const int64_t bytes = std::min(kBytes, data.bytes() - from);
    const int64_t size = bytes_of(dtype);
    WARPLOOM_TRY(const std::byte* const found, on_host(data, from, bytes, copy_));
    scan(sum, dtype, found, from / size, bytes / size);
  }
  return ok();
}

// Candidate against vendor over whole outputs: cheap, and a wrong tile anywhere shows, not only in
// the sampled rows.
Status Judge::against_vendor(const Set& set) {
  if (!by_libraries_ || output_bytes_ > kScanBytes) return ok();
  WARPLOOM_CHECK(run(vendor_, set));
  for (size_t n = 0; n < set.outputs.size(); ++n) {
    const auto& tensor = output(n);
    // Both are within their bounds of the truth; a run of few elements may be several times worse
    // than the whole.
    const double bound = 16 * std::max({tolerances_[n].frobenius, set.inputs->vendor_error, 1e-6});
    if (!is_float(tensor.dtype) || !std::isfinite(bound)) continue;
    const auto& ours = set.outputs[n].data;
    const auto& vendors = set.vendor_outputs[n].data;
    WARPLOOM_TRY(const std::byte* const mine, on_host(ours, 0, ours.bytes(), copy_));
    WARPLOOM_TRY(const std::byte* const theirs,
                 on_host(vendors, 0, vendors.bytes(), vendors_copy_));
    const int64_t count = graph::element_count(tensor.shape);
    const Runs runs = compare_runs(tensor.dtype, mine, theirs, count);
    // A run's error against the typical size of a run.
    const double all = std::reduce(runs.squares.begin(), runs.squares.end());
    const double typical = all / as_double(count) * kRun;
    const double allowed = 16 * bound * bound * typical;
    const auto is_far = [&](double error) { return !(error <= allowed); };
    const auto far = std::ranges::find_if(runs.errors, is_far);
    if (typical == 0 || far == runs.errors.end()) continue;
    const int64_t first = (far - runs.errors.begin()) * kRun;
    return fail(
        {ErrorCode::kCandidateWrong, "the output differs from the reference's", tensor.name,
         fmt::format("elements {} and the {} behind it within {:.3g}", first, kRun, 4 * bound),
         fmt::format("{:.3g}", std::sqrt(*far / typical))});
  }
  return ok();
}

Result<std::vector<std::vector<double>>> Judge::sums_of(const Inputs& inputs) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::vector<double>> sums(projections_.size());
  for (size_t n = 0; n < sums.size(); ++n) {
    if (!projections_[n] || projections_[n]->cost > kMostSums) continue;
    WARPLOOM_TRY(auto made, graph::evaluate(projections_[n]->graph, inputs.bytes, truth_options_));
    sums[n] = std::move(made[0]);
  }
  sums_ms_ = ms_since(start);
  return sums;
}

// Whether they were: outputs too large for a screening, and those of which some elements may be too
// large for their type, have none.
Result<bool> Judge::check_sums(size_t n, const runtime::Buffer& data, const Inputs& inputs,
                               const Truth& truth, const Comparison& seen,
                               const std::string& place) {
  const double allowed = frobenius_bound(seen, tolerances_[n], inputs.vendor_error);
  const bool none = truth.sums.empty() || truth.sums[n].empty() || !std::isfinite(allowed);
  if (none || data.bytes() > kScanBytes) return false;
  if (is_wide(inputs.family) || may_overflow(seen, output(n).dtype)) return false;
  constexpr int64_t kBytes = 32 << 20;
  const graph::Projection& by = *projections_[n];
  const int64_t slab = by.extent * by.after * bytes_of(output(n).dtype);
  const int64_t piece = std::max<int64_t>(1, kBytes / slab);
  std::vector<Line> lines(truth.sums[n].size());
  for (int64_t from = 0; from < by.before; from += piece) {
    const int64_t count = std::min(piece, by.before - from);
    WARPLOOM_TRY(const std::byte* const found, on_host(data, from * slab, count * slab, copy_));
    sum_lines(lines, by, output(n).dtype, found, from, count);
  }
  const Bounds bounds = bounds_of(allowed, seen.frobenius(), inputs.family);
  WARPLOOM_CHECK(accept_sums(lines, truth.sums[n], bounds, place));
  return true;
}

// Where truth is on the GPU all rows are compared there; else those whose truth is known, and as
// many of the others as there is time for.
Result<bool> Judge::compare_family(std::vector<Comparison>& seen, const Set& set,
                                   const Request& request, double check_ms, Evidence& evidence) {
  const auto start = std::chrono::steady_clock::now();
  const Inputs& inputs = *set.inputs;
  if (is_on_gpu(inputs)) {
    evidence.rows_checked = inputs.rows_known;
    WARPLOOM_CHECK(compare_outputs(seen, set.outputs, inputs, {}));
    return inputs.rows_known >= rows_;
  }
  int64_t held = 0;
  const auto compared = [&](std::span<const Block> blocks) -> Status {
    for (const Block& block : blocks) {
      const int64_t rows = block.rows.end - block.rows.begin;
      held += rows;
      evidence.rows_checked += block.silent(inputs.family) ? 0 : rows;
    }
    return compare_blocks(seen, set.outputs, blocks, inputs.family);
  };
  WARPLOOM_CHECK(compared(inputs.truth.blocks));
  for (const RowRange& rows : inputs.truth.missing) {
    if (!request.whole || ms_since(start) > check_ms) break;
    WARPLOOM_TRY(const Block block,
                 evaluate_block(setup_.graph, inputs.bytes, rows, options_for(inputs.family)));
    WARPLOOM_CHECK(compared({&block, 1}));
  }
  return held >= rows_;
}

Result<Evidence> Judge::check_family(const Contender& candidate, const Set& set,
                                     const Request& request, double check_ms) {
  const auto start = std::chrono::steady_clock::now();
  const Inputs& inputs = *set.inputs;
  WARPLOOM_CHECK(run(candidate, set));
  WARPLOOM_CHECK(check_run(candidate, set, request.whole));
  WARPLOOM_TRY(set.inputs->output_hash, hash_of(set.outputs));
  Evidence evidence{.family = inputs.family,
                    .seed = setup_.seed,
                    .reference_error = inputs.vendor_error,
                    .rows = rows_};
  const double left_ms = check_ms - ms_since(start);
  std::vector<Comparison> seen;
  WARPLOOM_TRY(const bool everything, compare_family(seen, set, request, left_ms, evidence));
  for (size_t n = 0; n < seen.size(); ++n) {
    const auto& data = set.outputs[n].data;
    const bool is_small = request.whole || data.bytes() <= kScanBytes;
    const bool scanned = is_small && !is_on_gpu(inputs);  // which looks everywhere by itself
    if (!everything && scanned) WARPLOOM_CHECK(scan_output(seen[n], n, data));
    WARPLOOM_CHECK(accept_output(n, set, seen[n], everything, evidence));
  }
  // At the ends of ranges the reference sets no standard: infinities are no numbers to subtract.
  const bool in_turn = request.whole || inputs.family == kScreening[0];
  const bool beside = in_turn && !is_wide(inputs.family);
  if (!everything && beside && !shared_outputs_) WARPLOOM_CHECK(against_vendor(set));
  return evidence;
}

// Adds what was seen of an output to the evidence, and holds it against its bounds; where not all
// rows were compared, its sums as well.
Status Judge::accept_output(size_t n, const Set& set, const Comparison& seen, bool everything,
                            Evidence& evidence) {
  const Inputs& inputs = *set.inputs;
  const Tolerance& tolerance = tolerances_[n];
  const std::string place = fmt::format("{} inputs, seed {}", name_of(inputs.family), setup_.seed);
  evidence.error = std::max(evidence.error, seen.frobenius());
  evidence.max_error = std::max(evidence.max_error, seen.max_error());
  evidence.undetermined += seen.undetermined;
  evidence.worst_ratio = std::max(evidence.worst_ratio, seen.worst.ratio);
  evidence.bound = std::max({evidence.bound, tolerance.frobenius, inputs.vendor_error});
  WARPLOOM_CHECK(accept(seen, tolerance, inputs.vendor_error, place));
  if (everything) return ok();
  const auto& data = set.outputs[n].data;
  WARPLOOM_TRY(const bool summed, check_sums(n, data, inputs, inputs.truth, seen, place));
  if (summed) evidence.sums_checked += std::ssize(inputs.truth.sums[n]);
  return ok();
}
}  // namespace warploom::verify
