#include "base/hash.h"
#include "base/random.h"
#include "verify/judge.h"
namespace warploom::verify {
Result<const std::byte*> on_host(runtime::Executor& device, const runtime::Buffer& data, std::int64_t from, std::int64_t bytes,
                                 std::vector<std::byte>& copy) {
  if (device.engine() == Engine::cpu) return static_cast<const std::byte*>(data.address()) + from;
  copy.resize(static_cast<std::size_t>(bytes));
  WARPLOOM_CHECK(device.download(data, copy.data(), bytes, from));
  return static_cast<const std::byte*>(copy.data());
}

// Guards and inputs, after a launch. Large inputs are looked at in places only, unless `whole`.
Status Judge::check_run(const Contender& candidate, const Inputs& inputs, bool whole) {
  const graph::Graph& graph = setup_.graph;
  std::vector<std::byte> copy;
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    WARPLOOM_CHECK(check_guards(*device_, outputs_[i], graph.tensor(graph.outputs[i]).name));
  for (const auto& [name, workspace] : candidate.workspaces) WARPLOOM_CHECK(check_guards(*device_, workspace, name));
  for (std::size_t i = 0; i < given_.size(); ++i) {
    const std::string& name = graph.tensor(given_[i]).name;
    WARPLOOM_CHECK(check_guards(*device_, inputs.tensors[i], name));
    const runtime::Buffer& data = inputs.tensors[i].data;
    const std::vector<std::uint64_t>& hashes = inputs.hashes[i];
    const bool all = whole || data.bytes() <= (setup_.engine == Engine::cpu ? kScanBytes : kPiece);
    Random random(setup_.seed, "pieces");
    bool same = true;
    for (std::size_t n = 0; n < (all ? hashes.size() : 4) && same; ++n) {
      const std::size_t piece = all ? n : random.below(hashes.size());
      const std::int64_t from = static_cast<std::int64_t>(piece) * kPiece, bytes = std::min(kPiece, data.bytes() - from);
      WARPLOOM_TRY(const std::byte* const found, on_host(*device_, data, from, bytes, copy));
      same = hash64({reinterpret_cast<const char*>(found), static_cast<std::size_t>(bytes)}) == hashes[piece];
    }
    if (!same)
      return fail(
          {ErrorCode::kCandidateWroteInput, "a candidate changed an input", name, "the input as it was", "other bytes", ""});
  }
  return ok();
}
namespace {
constexpr std::int64_t kRun = 4096;  // elements whose errors are added up before they are compared with their bound

struct Difference {
  double worst = 0, reference = 0;  // the largest sum of squared errors of a run; the sum of all squares
  std::int64_t where = -1, total = 0;
};

Difference difference(Dtype dtype, const std::byte* mine, const std::byte* theirs, std::int64_t count) {
  const auto work = [&](Difference& out, std::int64_t begin, std::int64_t end) {
    std::vector<double> c(kRun), v(kRun);
    for (std::int64_t first = begin * kRun; first < std::min(count, end * kRun); first += kRun) {
      const std::int64_t length = std::min(kRun, count - first);
      load_run(dtype, mine, first, 1, length, c.data());
      load_run(dtype, theirs, first, 1, length, v.data());
      double error = 0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i) {
        if (!std::isfinite(v[i])) continue;
        error += (c[i] - v[i]) * (c[i] - v[i]);
        out.reference += v[i] * v[i];
        ++out.total;
      }
      if (!(error <= out.worst)) out.worst = error, out.where = first;
    }
  };
  Difference sum;
  for (const Difference& part : graph::in_parallel<Difference>((count + kRun - 1) / kRun, 16, work)) {
    if (!(part.worst <= sum.worst)) sum.worst = part.worst, sum.where = part.where;
    sum.reference += part.reference;
    sum.total += part.total;
  }
  return sum;
}
}  // namespace
Status Judge::compare_block(Comparison& sum, const Tensors& outputs, const Block& block) {
  const auto output = static_cast<std::size_t>(block.rows.output);
  const Dtype dtype = setup_.graph.tensor(setup_.graph.outputs[output]).dtype;
  const std::int64_t size = bytes_of(dtype), count = static_cast<std::int64_t>(block.value.size());
  std::vector<std::byte> copy;
  WARPLOOM_TRY(const std::byte* const found,
               on_host(*device_, outputs[output].data, block.first_element * size, count * size, copy));
  compare(sum, tolerances_[output], dtype, found, block.value.data(), block.magnitude.data(), block.first_element, count);
  return ok();
}

Result<std::vector<Comparison>> Judge::compared(const Inputs& inputs, const Tensors& outputs) {
  std::vector<Comparison> seen(outputs.size());
  for (const Block& block : inputs.truth.blocks)
    WARPLOOM_CHECK(compare_block(seen[static_cast<std::size_t>(block.rows.output)], outputs, block));
  return seen;
}

// Looks for what is unwritten, in pieces.
Status Judge::scan_output(Comparison& sum, const Guarded& output, Dtype dtype) {
  constexpr std::int64_t kBytes = 32 << 20;
  std::vector<std::byte> copy;
  for (std::int64_t from = 0; from < output.data.bytes(); from += kBytes) {
    const std::int64_t bytes = std::min(kBytes, output.data.bytes() - from), size = bytes_of(dtype);
    WARPLOOM_TRY(const std::byte* const found, on_host(*device_, output.data, from, bytes, copy));
    scan(sum, dtype, found, from / size, bytes / size);
  }
  return ok();
}

// Candidate against vendor over whole outputs: cheap, and a wrong tile anywhere shows, not only in the sampled rows.
Status Judge::against_vendor(const Tensors& found, const Tensors& vendor, const Inputs& inputs) {
  for (std::size_t output = 0; output < found.size(); ++output) {
    const graph::Tensor& tensor = setup_.graph.tensor(setup_.graph.outputs[output]);
    // Both are within their bounds of the truth; a run of few elements may be several times worse than the whole.
    const double bound = 16 * std::max({tolerances_[output].frobenius, inputs.vendor_error, 1e-6});
    if (!is_float(tensor.dtype) || !std::isfinite(bound)) continue;
    std::vector<std::byte> mine_copy, their_copy;
    WARPLOOM_TRY(const std::byte* const mine, on_host(*device_, found[output].data, 0, found[output].data.bytes(), mine_copy));
    WARPLOOM_TRY(const std::byte* const theirs,
                 on_host(*device_, vendor[output].data, 0, vendor[output].data.bytes(), their_copy));
    const Difference seen = difference(tensor.dtype, mine, theirs, graph::element_count(tensor.shape));
    // The worst run's error against the typical size of a run.
    const double typical = seen.total > 0 ? seen.reference / static_cast<double>(seen.total) * kRun : 0;
    if (typical > 0 && !(seen.worst <= 16 * bound * bound * typical))
      return fail({ErrorCode::kCandidateWrong, "the output differs from the reference's", tensor.name,
                   fmt::format("elements {} and the {} behind it within {:.3g}", seen.where, kRun, 4 * bound),
                   fmt::format("{:.3g}", std::sqrt(seen.worst / typical)), ""});
  }
  return ok();
}

Result<Evidence> Judge::check_family(const Contender& candidate, Inputs& inputs, const Request& request, double check_ms) {
  const auto start = std::chrono::steady_clock::now();
  WARPLOOM_CHECK(run(candidate, inputs.tensors, outputs_));
  WARPLOOM_CHECK(check_run(candidate, inputs, request.whole));
  const graph::Graph& graph = setup_.graph;
  const std::string place = fmt::format("{} inputs, seed {}", name_of(inputs.family), setup_.seed);
  Evidence evidence{.family = inputs.family,
                    .seed = setup_.seed,
                    .reference_error = inputs.vendor_error,
                    .rows_checked = inputs.truth.rows_held,
                    .rows = inputs.truth.rows};
  WARPLOOM_TRY(std::vector<Comparison> seen, compared(inputs, outputs_));
  for (const auto& rows : request.whole ? inputs.truth.missing : std::vector<RowRange>()) {
    if (ms_since(start) > check_ms) break;
    WARPLOOM_TRY(const Block block, evaluate_block(graph, inputs.bytes, rows));
    WARPLOOM_CHECK(compare_block(seen[static_cast<std::size_t>(rows.output)], outputs_, block));
    evidence.rows_checked += rows.end - rows.begin;
  }
  const bool everything = evidence.rows_checked >= evidence.rows;
  for (std::size_t output = 0; output < seen.size(); ++output) {
    const Dtype dtype = graph.tensor(graph.outputs[output]).dtype;
    if (!everything && (request.whole || outputs_[output].data.bytes() <= kScanBytes))
      WARPLOOM_CHECK(scan_output(seen[output], outputs_[output], dtype));
    evidence.error = std::max(evidence.error, seen[output].frobenius());
    evidence.max_error = std::max(evidence.max_error, seen[output].max_error());
    evidence.worst_ratio = std::max(evidence.worst_ratio, seen[output].worst.ratio);
    evidence.bound = std::max({evidence.bound, tolerances_[output].frobenius, inputs.vendor_error});
    WARPLOOM_CHECK(accept(seen[output], tolerances_[output], inputs.vendor_error, place));
  }
  const bool beside = request.whole || inputs.family == kScreening[0];
  if (!everything && vendor_.kernel.bind && beside && !shared_outputs_ && output_bytes_ <= kScanBytes) {
    WARPLOOM_CHECK(run(vendor_, inputs.tensors, vendor_.outputs));
    WARPLOOM_CHECK(against_vendor(outputs_, vendor_.outputs, inputs));
  }
  return evidence;
}
}  // namespace warploom::verify
