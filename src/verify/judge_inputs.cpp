#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "runtime/executor.h"
#include "verify/inputs.h"
#include "verify/judge.h"
#include "verify/judge_parts.h"
#include "verify/oracle.h"
#include "verify/tolerance.h"

namespace warploom::verify {
Result<Judge::Tensors> Judge::make_outputs(runtime::Executor& device) {
  Tensors out;
  for (const auto id : setup_.graph.outputs) {
    const int64_t bytes = graph::byte_count(setup_.graph.tensor(id));
    WARPLOOM_TRY(out.emplace_back(), allocate_guarded(device, bytes));
  }
  return out;
}

// The graph's inputs and constants, where they are not made yet with buffers, and the hashes of
// what they hold: on the CPU in the buffers themselves, else on the host as well.
Status Judge::fill_inputs(Inputs& made, uint64_t seed) {
  made.tensors.resize(given_.size());
  made.host.resize(given_.size());
  made.bytes.clear();
  made.hashes.clear();
  for (size_t i = 0; i < given_.size(); ++i) {
    const int64_t bytes = graph::byte_count(setup_.graph.tensor(given_[i]));
    if (!made.tensors[i].data) WARPLOOM_TRY(made.tensors[i], allocate_guarded(*device_, bytes));
  }
  if (truth_) return draw(made, seed);
  const std::vector<Stream> streams = streams_of(setup_.graph, made.family, seed, setup_.ranges);
  for (size_t i = 0; i < given_.size(); ++i) {
    const graph::Tensor& tensor = setup_.graph.tensor(given_[i]);
    const runtime::Buffer& data = made.tensors[i].data;
    if (setup_.engine == Engine::cuda) made.host[i].resize(data.bytes());
    std::byte* to = made.host[i].data();
    if (setup_.engine == Engine::cpu) to = static_cast<std::byte*>(data.address());
    if (tensor.constant)
      std::ranges::copy(*tensor.constant, to);
    else
      fill(streams[i], to, 0, graph::element_count(tensor.shape));
    if (setup_.engine == Engine::cuda) WARPLOOM_CHECK(device_->upload(data, to, data.bytes()));
    const graph::Bytes bytes(to, data.bytes());
    if (i < setup_.graph.inputs.size()) made.bytes.push_back(bytes);
    auto& hashes = made.hashes.emplace_back();
    for (int64_t at = 0; at < data.bytes(); at += kPiece) {
      const int64_t piece = std::min(kPiece, data.bytes() - at);
      hashes.push_back(hash_of_bytes(to + at, piece));
    }
  }
  return ok();
}

// Whether its truth was made in less time than there is now, and is not whole.
bool Judge::has_more_to_make(const Inputs& inputs, double check_ms) const {
  constexpr double kMuchMore = 2;
  const bool is_part = is_on_gpu(inputs) && inputs.rows_known < rows_;
  return is_part && check_ms > kMuchMore * inputs.truth_ms;
}

// One family's inputs, from memory or made now: when memory is scarce in the place, and the very
// buffers, of the last.
Result<Judge::Set> Judge::set_of(InputFamily family, double check_ms) {
  for (const auto& inputs : kept_) {
    if (inputs->family != family) continue;
    if (has_more_to_make(*inputs, check_ms))
      WARPLOOM_CHECK(make_truth(*inputs, setup_.seed, check_ms));
    return Set{inputs, outputs_, vendor_outputs_};
  }
  auto made = std::make_shared<Inputs>();
  made->family = family;
  const int64_t families = std::ssize(kept_) + 1;
  if (!kept_.empty() && families * input_bytes_ > kKeepBytes) {
    made->tensors = std::move(kept_.back()->tensors);
    made->host = std::move(kept_.back()->host);
    made->set = std::exchange(kept_.back()->set, -1);
    kept_.pop_back();
  }
  Status done = fill_inputs(*made, setup_.seed);
  if (done) done = make_truth(*made, setup_.seed, check_ms);
  if (!done && truth_) {  // what the GPU cannot do, or has no room for, cores do
    give_up_truth(done.error());
    made->set = -1;
    WARPLOOM_CHECK(fill_inputs(*made, setup_.seed));
    done = make_truth(*made, setup_.seed, check_ms);
  }
  WARPLOOM_CHECK(done);
  if (!made->truth.missing.empty()) WARPLOOM_TRY(made->truth.sums, sums_of(*made));
  const bool is_quick = !truth_ || vendor_known_.here_us <= 1e3 * check_ms;
  if (vendor_.kernel.bind && by_libraries_ && is_quick && !is_wide(family)) {
    // Its own error on these inputs, which the fp32 track allows candidates as well.
    WARPLOOM_TRY(const std::optional<double> error,
                 error_of_reference({made, outputs_, vendor_outputs_}));
    made->vendor_error = error.value_or(-1);
  }
  kept_.push_back(made);
  return Set{made, outputs_, vendor_outputs_};
}

Result<runtime::Call> Judge::bind(const Contender& who, const Set& set) {
  return bind_with(who, set, who.kernel.bind);
}

Result<runtime::Call> Judge::bind_with(const Contender& who, const Set& set,
                                       const runtime::Runnable::Bind& bind) {
  const Tensors& inputs = set.inputs->tensors;
  const Tensors& outputs = outputs_of(who, set);
  runtime::Bindings tensors;
  for (size_t i = 0; i < given_.size(); ++i)
    tensors[setup_.graph.tensor(given_[i]).name] = inputs[i].data;
  for (size_t i = 0; i < outputs.size(); ++i)
    tensors[output(i).name] = outputs[i].data;
  for (const auto& [name, workspace] : who.placed)
    tensors[name] = workspace;
  return bind(tensors);
}

// Poisons outputs and workspaces: what is left unwritten shows. `prepared`: what is kept between
// calls as well.
Status Judge::poison(const Contender& who, const Set& set, bool prepared) {
  if (runner_ && is_candidate(who)) return ok();  // before every call it does so itself
  for (const Guarded& output : outputs_of(who, set))
    WARPLOOM_CHECK(device_->fill(output.data, kPoison));
  for (const auto& [name, workspace] : who.workspaces)
    if (prepared || !who.prepared.contains(name))
      WARPLOOM_CHECK(device_->fill(workspace.data, kPoison));
  WARPLOOM_CHECK(forget(who, {&set, 1}));
  return device_->synchronize();
}

// Runs `call`, known to who watches this process where it is a candidate's.
Status Judge::run_call(const Contender& who, const runtime::Call& call) {
  const bool foreign = is_candidate(who);
  if (foreign) announce_(true, 0);
  const auto start = std::chrono::steady_clock::now();
  Status done = call();
  if (done) done = device_->synchronize();
  calls_ms_ += ms_since(start);
  if (foreign) announce_(false, 0);
  return done;
}

// A candidate that prepares is called twice on one preparation: what is looked at is the second
// call's, which must find what the first one did.
Status Judge::run(const Contender& who, const Set& set) {
  WARPLOOM_CHECK(poison(who, set, true));
  WARPLOOM_TRY(const runtime::Call call, bind(who, set));
  if (who.kernel.prepare) {
    WARPLOOM_TRY(const runtime::Call prepare, bind_with(who, set, who.kernel.prepare));
    WARPLOOM_CHECK(run_call(who, prepare));
    WARPLOOM_CHECK(run_call(who, call));
    WARPLOOM_CHECK(poison(who, set, false));
  }
  return run_call(who, call);
}

Status Judge::prepare(Contender& who, const Set& set) {
  if (!who.kernel.prepare || who.prepared_of == set.inputs.get()) return ok();
  who.prepared_of = set.inputs.get();
  WARPLOOM_TRY(const runtime::Call call, bind_with(who, set, who.kernel.prepare));
  WARPLOOM_CHECK(call());
  return device_->synchronize();
}
}  // namespace warploom::verify
