#include "base/hash.h"
#include "verify/judge.h"
namespace warploom::verify {
Result<Judge::Tensors> Judge::make_outputs() {
  Tensors out;
  for (const auto id : setup_.graph.outputs) {
    WARPLOOM_TRY(out.emplace_back(), allocate_guarded(*device_, graph::byte_count(setup_.graph.tensor(id))));
  }
  return out;
}

// One input's or constant's values in `buffer`, allocated where it is none, and on the host: on the CPU in the buffer itself,
// else in `host`.
Result<graph::Bytes> Judge::make_input(std::size_t input, InputFamily family, std::uint64_t seed, Guarded& buffer,
                                       std::vector<std::byte>& host) {
  const graph::Tensor& tensor = setup_.graph.tensor(given_[input]);
  if (!buffer.whole) { WARPLOOM_TRY(buffer, allocate_guarded(*device_, graph::byte_count(tensor))); }
  const auto bytes = static_cast<std::size_t>(buffer.data.bytes());
  const bool here = setup_.engine == Engine::cpu;
  if (!here) host.resize(bytes);
  auto* const to = here ? static_cast<std::byte*>(buffer.data.address()) : host.data();
  if (tensor.constant) std::ranges::copy(*tensor.constant, to);
  else fill(stream_of(setup_.graph, static_cast<int>(input), family, seed), to, 0, graph::element_count(tensor.shape));
  if (!here) WARPLOOM_CHECK(device_->upload(buffer.data, to, buffer.data.bytes()));
  return graph::Bytes(to, bytes);
}

// One family's inputs, from memory or made now. When memory is scarce the new ones take the place, and the very buffers, of the
// last.
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
  made->host.resize(given_.size());
  for (std::size_t i = 0; i < given_.size(); ++i) {
    WARPLOOM_TRY(const graph::Bytes bytes, make_input(i, family, setup_.seed, made->tensors[i], made->host[i]));
    if (i < graph.inputs.size()) made->bytes.push_back(bytes);
    auto& hashes = made->hashes.emplace_back();
    for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
      const auto piece = bytes.subspan(at, std::min<std::size_t>(kPiece, bytes.size() - at));
      hashes.push_back(hash64({reinterpret_cast<const char*>(piece.data()), piece.size()}));
    }
  }
  WARPLOOM_TRY(made->truth, sample_truth(graph, made->bytes, setup_.seed, setup_.flops, check_ms));
  if (vendor_.kernel.bind) {  // its own error on these inputs, which the fp32 track allows candidates as well
    WARPLOOM_CHECK(run(vendor_, made->tensors, vendor_.outputs));
    WARPLOOM_TRY(const std::vector<Comparison> seen, compared(*made, vendor_.outputs));
    // A vendor kernel, of one output, that leaves elements unwritten or not finite sets no standard.
    if (seen[0].unwritten == 0 && seen[0].nonfinite == 0) made->vendor_error = seen[0].frobenius();
  }
  kept_.push_back(made);
  return made;
}

Result<runtime::Call> Judge::bind(const Contender& who, const Tensors& inputs, const Tensors& outputs) {
  const graph::Graph& graph = setup_.graph;
  runtime::Bindings tensors, own;
  for (std::size_t i = 0; i < given_.size(); ++i) tensors[graph.tensor(given_[i]).name] = inputs[i].data;
  for (std::size_t i = 0; i < outputs.size(); ++i) tensors[graph.tensor(graph.outputs[i]).name] = outputs[i].data;
  for (const auto& [name, workspace] : who.workspaces) tensors[name] = workspace.data;
  for (const auto& [buffer, tensor] : who.names) own[buffer] = tensors[tensor];
  return who.kernel.bind(who.names.empty() ? tensors : own);
}

// Fills what is written, so that what is left unwritten shows.
Status Judge::poison(const Contender& who, const Tensors& outputs) {
  for (const Guarded& output : outputs) WARPLOOM_CHECK(device_->fill(output.data, kPoison));
  for (const auto& [name, workspace] : who.workspaces) WARPLOOM_CHECK(device_->fill(workspace.data, kPoison));
  return ok();
}

Status Judge::run(const Contender& who, const Tensors& inputs, const Tensors& outputs) {
  WARPLOOM_CHECK(poison(who, outputs));
  WARPLOOM_TRY(const runtime::Call call, bind(who, inputs, outputs));
  WARPLOOM_CHECK(device_->synchronize());
  const bool foreign = &who != &vendor_;
  if (foreign) announce_(true, 0);
  Status done = call();
  if (done) done = device_->synchronize();
  if (foreign) announce_(false, 0);
  return done;
}
}  // namespace warploom::verify
