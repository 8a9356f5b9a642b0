#include "verify/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "base/hash.h"
#include "base/random.h"
#include "runtime/compile.h"

namespace warploom::verify {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

// Input families of a screening: the first is also the one timed.
constexpr std::array kScreening = {InputFamily::normal, InputFamily::shifted};
constexpr std::int64_t kKeepBytes = std::int64_t{2} << 30;    // inputs of both screening families stay resident up to this
constexpr std::int64_t kScanBytes = std::int64_t{256} << 20;  // outputs that are downloaded and scanned whole in a screening
constexpr std::int64_t kPiece = std::int64_t{8} << 20;        // bytes downloaded at once

std::uint64_t hash_bytes(const void* data, std::int64_t bytes) {
  return hash64({static_cast<const char*>(data), static_cast<std::size_t>(bytes)});
}

bool is_fault(ErrorCode code) {
  return code == ErrorCode::kCandidateCrashed || code == ErrorCode::kCandidateHung || code == ErrorCode::kCudaCall ||
         code == ErrorCode::kCandidateWroteInput || code == ErrorCode::kCandidateMemory;
}

}  // namespace

struct Judge::Inputs {
  InputFamily family = InputFamily::normal;
  std::vector<Guarded> tensors;
  std::vector<std::vector<std::byte>> host;  // GPU only; on the CPU the tensors themselves are read
  std::vector<graph::Bytes> bytes;
  std::vector<std::uint64_t> hashes;         // of each tensor, whole
  std::optional<Oracle> oracle;
  double vendor_error = -1;
  bool vendor_judged = false;
};

struct Judge::Candidate {
  LaunchList list;                    // with its workspaces turned into outputs, so that they are guarded and poisoned as well
  std::vector<Guarded> workspaces;
  std::unique_ptr<runtime::Runnable> kernel;
};

Judge::~Judge() {
  vendor_.reset();  // before the device
}

Result<std::unique_ptr<Judge>> Judge::open(Setup setup, Announce announce) {
  std::unique_ptr<Judge> judge(new Judge(std::move(setup), std::move(announce)));
  WARPLOOM_CHECK(judge->prepare());
  return judge;
}

Result<std::vector<Guarded>> Judge::make_outputs() {
  std::vector<Guarded> out;
  for (const auto id : setup_.graph.outputs) {
    WARPLOOM_TRY(Guarded buffer, allocate_guarded(*device_, graph::byte_count(setup_.graph.tensor(id))));
    out.push_back(std::move(buffer));
  }
  return out;
}

Status Judge::prepare() {
  const graph::Graph& graph = setup_.graph;
  WARPLOOM_TRY(device_, runtime::Executor::open(setup_.engine, setup_.ordinal));
  for (const auto id : graph.inputs) input_bytes_ += graph::byte_count(graph.tensor(id));
  for (const auto id : graph.outputs) output_bytes_ += graph::byte_count(graph.tensor(id));
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    tolerances_.push_back(tolerance_of(graph, setup_.track, static_cast<int>(i)));
  WARPLOOM_TRY(const std::int64_t free, device_->free_memory());
  const std::int64_t need = input_bytes_ + output_bytes_;
  if (need > free)
    return fail({ErrorCode::kOutOfMemory, "the problem's tensors do not fit in memory", graph.name,
                 fmt::format("{:.1f} GB", static_cast<double>(need) / 1e9),
                 fmt::format("{:.1f} GB free", static_cast<double>(free) / 1e9), "take a smaller problem or another machine"});
  shared_outputs_ = static_cast<double>(need + output_bytes_) > 0.7 * static_cast<double>(free);
  WARPLOOM_TRY(outputs_, make_outputs());
  const runtime::DeviceInfo& info = device_->info();
  ready_.device = info.name;
  ready_.arch = info.arch;
  ready_.environment = info.driver;
  if (!setup_.reference) return ok();

  if (shared_outputs_) {
    vendor_outputs_ = outputs_;
  } else {
    WARPLOOM_TRY(vendor_outputs_, make_outputs());
  }
  auto vendor = runtime::vendor_reference(*device_, setup_.reference->problem);
  if (!vendor) return fail(vendor.error());
  vendor_ = std::move(*vendor);
  WARPLOOM_TRY(const std::shared_ptr<Inputs> inputs, inputs_of(kScreening[0], 1500));
  ready_.reference = vendor_->name();
  ready_.reference_error = inputs->vendor_error;
  if (!setup_.time_reference) return ok();
  runtime::Runnable* alternative = vendor_.get();
  runtime::MeasureOptions quick;
  quick.warm_up = 0;  // it has just run
  quick.min_samples = 1;
  quick.max_samples = 20;
  quick.budget_ms = 100;
  WARPLOOM_TRY(const std::vector<runtime::Samples> samples, runtime::measure(*device_, {&alternative, 1}, quick));
  ready_.reference_us = samples[0].median_us;
  return ok();
}

Result<runtime::Bindings> Judge::vendor_bindings(const Inputs& inputs, const std::vector<Guarded>& outputs) const {
  const graph::Graph& graph = setup_.graph;
  runtime::Bindings bindings;
  for (const auto& [buffer, tensor] : setup_.reference->buffers) {
    for (std::size_t i = 0; i < graph.inputs.size(); ++i)
      if (graph.tensor(graph.inputs[i]).name == tensor) bindings[buffer] = inputs.tensors[i].data;
    for (std::size_t i = 0; i < graph.outputs.size(); ++i)
      if (graph.tensor(graph.outputs[i]).name == tensor) bindings[buffer] = outputs[i].data;
    if (bindings.count(buffer) == 0)  // a constant
      return fail({ErrorCode::kInternal, "the reference needs a tensor that is neither input nor output", tensor, "", "", ""});
  }
  return bindings;
}

// One family's inputs, from memory or made now. When memory is scarce the new ones take the place, and the very buffers, of the
// last: nothing that is bound to those buffers then needs binding anew.
Result<std::shared_ptr<Judge::Inputs>> Judge::inputs_of(InputFamily family, double check_ms) {
  for (const auto& inputs : kept_)
    if (inputs->family == family) return inputs;
  const graph::Graph& graph = setup_.graph;
  auto made = std::make_shared<Inputs>();
  made->family = family;
  if (!kept_.empty() && static_cast<std::int64_t>(kept_.size() + 1) * input_bytes_ > kKeepBytes) {
    made->tensors = std::move(kept_.back()->tensors);
    made->host = std::move(kept_.back()->host);
    kept_.pop_back();
  }
  made->tensors.resize(graph.inputs.size());
  made->host.resize(setup_.engine == Engine::cpu ? 0 : graph.inputs.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const graph::Tensor& tensor = graph.tensor(graph.inputs[i]);
    const std::int64_t bytes = graph::byte_count(tensor), count = graph::element_count(tensor.shape);
    Guarded& buffer = made->tensors[i];
    if (!buffer.whole) {
      WARPLOOM_TRY(buffer, allocate_guarded(*device_, bytes));
    }
    const Stream stream = stream_of(graph, static_cast<int>(i), family, setup_.seed);
    if (setup_.engine == Engine::cpu) {
      fill(stream, buffer.data.address(), 0, count);
      made->bytes.emplace_back(static_cast<const std::byte*>(buffer.data.address()), static_cast<std::size_t>(bytes));
    } else {
      auto& host = made->host[i];
      host.resize(static_cast<std::size_t>(bytes));
      fill(stream, host.data(), 0, count);
      WARPLOOM_CHECK(device_->upload(buffer.data, host.data(), bytes));
      made->bytes.emplace_back(host.data(), host.size());
    }
    made->hashes.push_back(hash_bytes(made->bytes.back().data(), bytes));
  }
  made->oracle.emplace(graph, setup_.seed);
  WARPLOOM_CHECK(made->oracle->sample(made->bytes, setup_.flops, check_ms));
  if (vendor_) WARPLOOM_CHECK(judge_vendor(*made));
  kept_.push_back(made);
  return made;
}

bool Judge::vendor_bound_to(const Inputs& inputs) const {
  std::vector<void*> addresses;
  for (const auto& tensor : inputs.tensors) addresses.push_back(tensor.data.address());
  return vendor_ && addresses == vendor_bound_;
}

// Binding may make a library choose its algorithm anew, so it is done only where the buffers differ.
Status Judge::bind_vendor(const Inputs& inputs) {
  if (vendor_bound_to(inputs)) return ok();
  WARPLOOM_TRY(const runtime::Bindings bindings, vendor_bindings(inputs, vendor_outputs_));
  WARPLOOM_CHECK(vendor_->bind(bindings));
  vendor_bound_.clear();
  for (const auto& tensor : inputs.tensors) vendor_bound_.push_back(tensor.data.address());
  return ok();
}

// The vendor's own error on these inputs, which the fp32 track allows candidates as well.
Status Judge::judge_vendor(Inputs& inputs) {
  WARPLOOM_CHECK(bind_vendor(inputs));
  for (const auto& output : vendor_outputs_) WARPLOOM_CHECK(poison(*device_, output));
  WARPLOOM_CHECK(vendor_->launch());
  WARPLOOM_CHECK(device_->synchronize());
  Comparison seen;
  std::swap(outputs_, vendor_outputs_);
  Candidate nobody;
  Status compared = ok();
  for (const auto& block : inputs.oracle->blocks()) {
    compared = compare_block(seen, nobody, block);
    if (!compared) break;
  }
  std::swap(outputs_, vendor_outputs_);
  WARPLOOM_CHECK(compared);
  inputs.vendor_judged = true;
  // A vendor kernel that leaves elements unwritten or not finite sets no standard.
  if (seen.unwritten == 0 && seen.nonfinite == 0) inputs.vendor_error = seen.frobenius();
  return ok();
}

Result<std::unique_ptr<Judge::Candidate>> Judge::load(const Request& request) {
  auto made = std::make_unique<Candidate>();
  made->list = request.list;
  WARPLOOM_TRY(const runtime::Binary binary, runtime::compile(request.list));
  for (const auto& workspace : request.list.workspaces) {
    Result<Guarded> buffer = allocate_guarded(*device_, workspace.bytes());
    if (!buffer) {
      Error error = buffer.error();
      if (error.code == ErrorCode::kOutOfMemory) error.code = ErrorCode::kCandidateMemory;
      return fail(std::move(error));
    }
    made->workspaces.push_back(std::move(*buffer));
    made->list.outputs.push_back(workspace);
  }
  made->list.workspaces.clear();
  WARPLOOM_TRY(made->kernel, device_->load(made->list, binary));
  return made;
}

Status Judge::bind_candidate(Candidate& candidate, const Inputs& inputs, bool poisoned) {
  runtime::Bindings bindings;
  const graph::Graph& graph = setup_.graph;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i)
    bindings[graph.tensor(graph.inputs[i]).name] = inputs.tensors[i].data;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    bindings[graph.tensor(graph.outputs[i]).name] = outputs_[i].data;
    if (poisoned) WARPLOOM_CHECK(poison(*device_, outputs_[i]));
  }
  for (std::size_t i = 0; i < candidate.workspaces.size(); ++i) {
    bindings[candidate.list.outputs[graph.outputs.size() + i].name] = candidate.workspaces[i].data;
    if (poisoned) WARPLOOM_CHECK(poison(*device_, candidate.workspaces[i]));
  }
  WARPLOOM_CHECK(candidate.kernel->bind(bindings));
  return device_->synchronize();
}

Status Judge::run_candidate(Candidate& candidate, const Inputs& inputs) {
  WARPLOOM_CHECK(bind_candidate(candidate, inputs, true));
  announce_(true, 0);
  Status launched = candidate.kernel->launch();
  if (launched) launched = device_->synchronize();
  announce_(false, 0);
  return launched;
}

// Guards and inputs, after a launch. Large inputs are looked at in places only, unless `whole`.
Status Judge::check_run(Candidate& candidate, Inputs& inputs, bool whole) {
  const graph::Graph& graph = setup_.graph;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i)
    WARPLOOM_CHECK(check_guards(*device_, outputs_[i], graph.tensor(graph.outputs[i]).name));
  for (std::size_t i = 0; i < candidate.workspaces.size(); ++i)
    WARPLOOM_CHECK(check_guards(*device_, candidate.workspaces[i], candidate.list.outputs[graph.outputs.size() + i].name));
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    const std::string& name = graph.tensor(graph.inputs[i]).name;
    WARPLOOM_CHECK(check_guards(*device_, inputs.tensors[i], name));
    const runtime::Buffer& data = inputs.tensors[i].data;
    bool same = true;
    if (setup_.engine == Engine::cpu && (whole || data.bytes() <= kScanBytes)) {
      same = hash_bytes(data.address(), data.bytes()) == inputs.hashes[i];
    } else {
      // Against the host's copy on the GPU, against a fresh making of the same slice on the CPU.
      Random random(setup_.seed, "slices");
      const bool all = whole || data.bytes() <= kPiece;
      const std::int64_t pieces = all ? (data.bytes() + kPiece - 1) / kPiece : 8, length = all ? kPiece : 64 << 10;
      const std::int64_t size = bytes_of(graph.tensor(graph.inputs[i]).dtype);
      std::vector<std::byte> found(static_cast<std::size_t>(length)), expected(static_cast<std::size_t>(length));
      for (std::int64_t piece = 0; piece < pieces && same; ++piece) {
        std::int64_t from = piece * kPiece;
        if (!all) from = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(data.bytes() - length))) / 64 * 64;
        const std::int64_t bytes = std::min(length, data.bytes() - from);
        WARPLOOM_CHECK(device_->download(data, found.data(), bytes, from));
        if (setup_.engine == Engine::cpu) {
          fill(stream_of(graph, static_cast<int>(i), inputs.family, setup_.seed), expected.data(), from / size, bytes / size);
        } else {
          std::memcpy(expected.data(), inputs.host[i].data() + from, static_cast<std::size_t>(bytes));
        }
        same = std::memcmp(found.data(), expected.data(), static_cast<std::size_t>(bytes)) == 0;
      }
    }
    if (!same)
      return fail({ErrorCode::kCandidateWroteInput, "a candidate changed an input", name, "the input as it was", "other bytes", ""});
  }
  return ok();
}

Status Judge::compare_block(Comparison& sum, Candidate&, const Block& block) {
  const auto output = static_cast<std::size_t>(block.rows.output);
  const Dtype dtype = setup_.graph.tensor(setup_.graph.outputs[output]).dtype;
  const std::int64_t size = bytes_of(dtype), count = static_cast<std::int64_t>(block.value.size());
  const runtime::Buffer& data = outputs_[output].data;
  if (setup_.engine == Engine::cpu) {
    compare(sum, tolerances_[output], dtype, static_cast<const std::byte*>(data.address()) + block.first_element * size,
            block.value.data(), block.magnitude.data(), block.first_element, count);
    return ok();
  }
  std::vector<std::byte> found(static_cast<std::size_t>(count * size));
  WARPLOOM_CHECK(device_->download(data, found.data(), count * size, block.first_element * size));
  compare(sum, tolerances_[output], dtype, found.data(), block.value.data(), block.magnitude.data(), block.first_element, count);
  return ok();
}

namespace {

// Calls `each(bytes, first element, count)` for pieces of a buffer, wherever it lies.
template <class Each>
Status in_pieces(runtime::Executor& device, const runtime::Buffer& data, Dtype dtype, Each each) {
  const std::int64_t size = bytes_of(dtype);
  if (device.engine() == Engine::cpu) {
    each(static_cast<const std::byte*>(data.address()), std::int64_t{0}, data.bytes() / size);
    return ok();
  }
  std::vector<std::byte> piece(static_cast<std::size_t>(std::min(kPiece * 4, data.bytes())));
  for (std::int64_t from = 0; from < data.bytes(); from += kPiece * 4) {
    const std::int64_t bytes = std::min(kPiece * 4, data.bytes() - from);
    WARPLOOM_CHECK(device.download(data, piece.data(), bytes, from));
    each(static_cast<const std::byte*>(piece.data()), from / size, bytes / size);
  }
  return ok();
}

}  // namespace

// Candidate against vendor over whole outputs: cheap, and a wrong tile anywhere shows, not only in the sampled rows.
Status Judge::against_vendor(const std::vector<Guarded>& found, const std::vector<Guarded>& vendor, Inputs& inputs) {
  constexpr std::int64_t kRun = 4096;  // elements whose errors are added up before they are compared with their bound
  for (std::size_t output = 0; output < found.size(); ++output) {
    const graph::Tensor& tensor = setup_.graph.tensor(setup_.graph.outputs[output]);
    if (tensor.dtype != Dtype::f32 && tensor.dtype != Dtype::bf16 && tensor.dtype != Dtype::f16) continue;
    // Both are within their bounds of the truth; a run of few elements may be several times worse than the whole.
    const double bound = 16 * std::max({tolerances_[output].frobenius, inputs.vendor_error, 1e-6});
    if (!std::isfinite(bound)) continue;
    std::vector<std::byte> other(static_cast<std::size_t>(vendor[output].data.bytes()));
    WARPLOOM_CHECK(device_->download(vendor[output].data, other.data(), vendor[output].data.bytes()));
    double worst = 0, reference = 0;
    std::int64_t where = -1, total = 0;
    const auto load = [&](const void* data, std::int64_t i) {
      return tensor.dtype == Dtype::f32 ? static_cast<double>(static_cast<const float*>(data)[i])
                                        : load_as_double(tensor.dtype, data, static_cast<std::size_t>(i));
    };
    WARPLOOM_CHECK(in_pieces(*device_, found[output].data, tensor.dtype, [&](const std::byte* mine, std::int64_t first, std::int64_t n) {
      const std::byte* theirs = other.data() + first * bytes_of(tensor.dtype);
      for (std::int64_t from = 0; from < n; from += kRun) {
        double error = 0;
        for (std::int64_t i = from; i < std::min(n, from + kRun); ++i) {
          const double v = load(theirs, i), c = load(mine, i);
          if (!std::isfinite(v)) continue;
          error += (c - v) * (c - v);
          reference += v * v;
          ++total;
        }
        if (!(error <= worst)) worst = error, where = first + from;
      }
    }));
    // A run's error against the typical size of a run.
    const double typical = total > 0 ? reference / static_cast<double>(total) * kRun : 0;
    if (typical > 0 && !(worst <= bound * bound * typical * 16))
      return fail({ErrorCode::kCandidateWrong, "the output differs from the reference's", tensor.name,
                   fmt::format("elements {} and the {} behind it within {:.3g}", where, kRun, bound),
                   fmt::format("{:.3g}", std::sqrt(worst / typical)), ""});
  }
  return ok();
}

Result<Evidence> Judge::check_family(Candidate& candidate, Inputs& inputs, const Request& request, double check_ms) {
  const auto start = Clock::now();
  WARPLOOM_CHECK(run_candidate(candidate, inputs));
  WARPLOOM_CHECK(check_run(candidate, inputs, request.whole));
  const graph::Graph& graph = setup_.graph;
  const std::string place = fmt::format("{} inputs, seed {}", name_of(inputs.family), setup_.seed);
  Evidence evidence;
  evidence.family = inputs.family;
  evidence.seed = setup_.seed;
  evidence.rows = inputs.oracle->total_rows();
  evidence.reference_error = inputs.vendor_error;
  const std::vector<Block>& held = inputs.oracle->blocks();
  const std::vector<RowRange> missing = request.whole ? inputs.oracle->missing() : std::vector<RowRange>();
  evidence.rows_checked = inputs.oracle->held_rows();
  std::vector<Comparison> seen(graph.outputs.size());
  for (const auto& block : held) WARPLOOM_CHECK(compare_block(seen[static_cast<std::size_t>(block.rows.output)], candidate, block));
  for (const auto& rows : missing) {
    if (ms_since(start) > check_ms) break;
    WARPLOOM_TRY(const Block block, inputs.oracle->evaluate(inputs.bytes, rows));
    WARPLOOM_CHECK(compare_block(seen[static_cast<std::size_t>(rows.output)], candidate, block));
    evidence.rows_checked += rows.end - rows.begin;
  }
  const bool everything = evidence.rows_checked >= evidence.rows;
  for (std::size_t output = 0; output < seen.size(); ++output) {
    const Dtype dtype = graph.tensor(graph.outputs[output]).dtype;
    if (!everything && (request.whole || outputs_[output].data.bytes() <= kScanBytes))
      WARPLOOM_CHECK(in_pieces(*device_, outputs_[output].data, dtype,
                               [&](const std::byte* data, std::int64_t first, std::int64_t count) {
                                 scan(seen[output], dtype, data, first, count);
                               }));
    evidence.error = std::max(evidence.error, seen[output].frobenius());
    evidence.max_error = std::max(evidence.max_error, seen[output].max_error());
    evidence.worst_ratio = std::max(evidence.worst_ratio, seen[output].worst_ratio);
    evidence.bound = std::max({evidence.bound, tolerances_[output].frobenius, inputs.vendor_error});
    WARPLOOM_CHECK(accept(seen[output], tolerances_[output], inputs.vendor_error, place));
  }
  if (!everything && vendor_ && (request.whole || vendor_bound_to(inputs)) && inputs.vendor_judged && !shared_outputs_ && output_bytes_ <= kScanBytes) {
    WARPLOOM_CHECK(bind_vendor(inputs));
    WARPLOOM_CHECK(vendor_->launch());
    WARPLOOM_CHECK(device_->synchronize());
    WARPLOOM_CHECK(against_vendor(outputs_, vendor_outputs_, inputs));
  }
  return evidence;
}

Status Judge::time_candidate(Candidate& candidate, const Request& request, Verdict& verdict) {
  WARPLOOM_TRY(const std::shared_ptr<Inputs> inputs, inputs_of(kScreening[0], request.check_ms));
  std::vector<runtime::Runnable*> alternatives = {candidate.kernel.get()};
  if (vendor_ && request.beside_reference) {
    WARPLOOM_CHECK(bind_vendor(*inputs));
    alternatives.push_back(vendor_.get());
  }
  runtime::MeasureOptions options;
  options.warm_up = 1;
  options.min_samples = request.min_samples;
  options.max_samples = request.max_samples;
  options.budget_ms = request.timing_ms;
  options.seed = setup_.seed;
  // Poisoned, so that what the timed calls leave unwritten shows; a large output was poisoned before the first call only.
  WARPLOOM_CHECK(bind_candidate(candidate, *inputs, output_bytes_ <= kScanBytes));
  announce_(true, 10 * request.timing_ms);
  Result<std::vector<runtime::Samples>> samples = runtime::measure(*device_, alternatives, options);
  announce_(false, 0);
  if (!samples) return fail(samples.error());
  const runtime::Samples& ours = samples->front();
  verdict.median_us = ours.median_us;
  verdict.low_us = ours.low_us;
  verdict.high_us = ours.high_us;
  verdict.repeats = static_cast<int>(ours.us.size()) * ours.calls_per_sample;
  if (samples->size() > 1) {
    verdict.reference_us = (*samples)[1].median_us;
    verdict.reference_low_us = (*samples)[1].low_us;
    verdict.reference_high_us = (*samples)[1].high_us;
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
  std::vector<Comparison> seen(setup_.graph.outputs.size());
  for (const auto& block : inputs->oracle->blocks())
    WARPLOOM_CHECK(compare_block(seen[static_cast<std::size_t>(block.rows.output)], candidate, block));
  for (std::size_t output = 0; output < seen.size(); ++output)
    WARPLOOM_CHECK(accept(seen[output], tolerances_[output], inputs->vendor_error, "the output of timed calls"));
  return ok();
}

Status Judge::judge_into(const Request& request, Verdict& verdict) {
  if (request.list.engine != setup_.engine)
    return fail({ErrorCode::kScheduleIllegal, "a candidate is for another engine than the problem", "", "", "", ""});
  WARPLOOM_TRY(const std::unique_ptr<Candidate> candidate, load(request));
  const bool roomy = 2 * input_bytes_ <= kKeepBytes;
  std::vector<InputFamily> families(kScreening.begin(), kScreening.begin() + (roomy ? 2 : 1));
  if (request.whole) families = input_families();
  const auto start = Clock::now();
  for (std::size_t i = 0; i < families.size(); ++i) {
    const double left = request.check_ms - ms_since(start);
    const double share = std::max(50.0, left / static_cast<double>(families.size() - i));
    // A judgement must end: when the time is up, families that would have to be made anew are left out and do not appear in
    // the evidence, but never the first (three, or two of large ones).
    if (request.whole && i >= (roomy ? 3u : 2u) && left <= 0) break;
    WARPLOOM_TRY(const std::shared_ptr<Inputs> inputs, inputs_of(families[i], std::min(share, 1500.0)));
    WARPLOOM_TRY(Evidence evidence, check_family(*candidate, *inputs, request, share));
    verdict.error = std::max(verdict.error, evidence.error);
    verdict.max_error = std::max(verdict.max_error, evidence.max_error);
    verdict.reference_error = std::max(verdict.reference_error, evidence.reference_error);
    verdict.evidence.push_back(std::move(evidence));
  }
  if (request.timed) WARPLOOM_CHECK(time_candidate(*candidate, request, verdict));
  return ok();
}

Verdict Judge::judge(const Request& request) {
  Verdict verdict;
  const Status judged = judge_into(request, verdict);
  verdict.accepted = judged.has_value();
  if (!judged) {
    verdict.error_found = judged.error();
    tainted_ = is_fault(judged.error().code);
  }
  return verdict;
}

}  // namespace warploom::verify
