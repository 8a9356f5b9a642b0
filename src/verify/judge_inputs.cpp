#include "base/hash.h"
#include "verify/judge.h"
namespace warploom::verify {
Result<std::vector<Guarded>> Judge::make_outputs() {
  std::vector<Guarded> out;
  for (const auto id : setup_.graph.outputs) {
    WARPLOOM_TRY(Guarded buffer, allocate_guarded(*device_, graph::byte_count(setup_.graph.tensor(id))));
    out.push_back(std::move(buffer));
  }
  return out;
}

runtime::Bindings Judge::by_name(const std::vector<Guarded>& inputs, const std::vector<Guarded>& outputs) const {
  const graph::Graph& graph = setup_.graph;
  runtime::Bindings all;
  for (std::size_t i = 0; i < given_.size(); ++i) all[graph.tensor(given_[i]).name] = inputs[i].data;
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) all[graph.tensor(graph.outputs[i]).name] = outputs[i].data;
  return all;
}

Result<runtime::Bindings> Judge::vendor_bindings(const std::vector<Guarded>& inputs, const std::vector<Guarded>& outputs) const {
  const runtime::Bindings all = by_name(inputs, outputs);
  runtime::Bindings bindings;
  for (const auto& [buffer, tensor] : setup_.reference->buffers) {
    if (!all.contains(tensor))
      return fail({ErrorCode::kInternal, "the reference needs a tensor that is neither given nor an output", tensor, "", "", ""});
    bindings[buffer] = all.at(tensor);
  }
  return bindings;
}

// One input's or constant's values in `buffer`, or in one made for it. On a GPU they are made in `host` first.
Result<Guarded> Judge::make_input(std::size_t input, InputFamily family, std::uint64_t seed, std::vector<std::byte>* host,
                                  Guarded buffer) {
  const graph::Tensor& tensor = setup_.graph.tensor(given_[input]);
  if (!buffer.whole) { WARPLOOM_TRY(buffer, allocate_guarded(*device_, graph::byte_count(tensor))); }
  if (host) host->resize(static_cast<std::size_t>(buffer.data.bytes()));
  void* const to = host ? host->data() : buffer.data.address();
  if (tensor.constant) std::ranges::copy(*tensor.constant, static_cast<std::byte*>(to));
  else fill(stream_of(setup_.graph, static_cast<int>(input), family, seed), to, 0, graph::element_count(tensor.shape));
  if (host) WARPLOOM_CHECK(device_->upload(buffer.data, host->data(), buffer.data.bytes()));
  return buffer;
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
  made->tensors.resize(given_.size());
  made->host.resize(setup_.engine == Engine::cpu ? 0 : given_.size());
  for (std::size_t i = 0; i < given_.size(); ++i) {
    std::vector<std::byte>* host = made->host.empty() ? nullptr : &made->host[i];
    WARPLOOM_TRY(made->tensors[i], make_input(i, family, setup_.seed, host, made->tensors[i]));
    const runtime::Buffer& data = made->tensors[i].data;
    const graph::Bytes bytes(host ? host->data() : static_cast<const std::byte*>(data.address()),
                             static_cast<std::size_t>(data.bytes()));
    if (i < graph.inputs.size()) made->bytes.push_back(bytes);
    auto& hashes = made->hashes.emplace_back();
    for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
      const auto piece = bytes.subspan(at, std::min<std::size_t>(kPiece, bytes.size() - at));
      hashes.push_back(hash64({reinterpret_cast<const char*>(piece.data()), piece.size()}));
    }
  }
  made->oracle.emplace(graph, setup_.seed);
  WARPLOOM_CHECK(made->oracle->sample(made->bytes, setup_.flops, check_ms));
  if (vendor_) WARPLOOM_CHECK(judge_vendor(*made));
  kept_.push_back(made);
  return made;
}

// Binding may make a library choose its algorithm anew, so it is done only where the buffers differ.
Status Judge::bind_vendor(const Inputs& inputs) {
  if (vendor_bound_to(inputs)) return ok();
  WARPLOOM_TRY(const runtime::Bindings bindings, vendor_bindings(inputs.tensors, vendor_outputs_));
  WARPLOOM_CHECK(vendor_->bind(bindings));
  vendor_bound_ = inputs.tensors[0].data.address();
  return ok();
}

Status Judge::run_vendor(int set) {
  WARPLOOM_CHECK(vendor_->launch(set));
  return device_->synchronize();
}

// The vendor's own error on these inputs, which the fp32 track allows candidates as well.
Status Judge::judge_vendor(Inputs& inputs) {
  WARPLOOM_CHECK(bind_vendor(inputs));
  for (const auto& output : vendor_outputs_) WARPLOOM_CHECK(poison(*device_, output));
  WARPLOOM_CHECK(run_vendor());
  WARPLOOM_TRY(const std::vector<Comparison> seen, compared(inputs, vendor_outputs_));
  // A vendor kernel, of one output, that leaves elements unwritten or not finite sets no standard.
  if (seen[0].unwritten == 0 && seen[0].nonfinite == 0) inputs.vendor_error = seen[0].frobenius();
  return ok();
}
}  // namespace warploom::verify
