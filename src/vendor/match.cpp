#include "vendor/match.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "vendor/matcher.h"
#include "vendor/places.h"
#include "vendor/problem.h"

namespace warploom::vendor {
using graph::kAbsent;
using graph::Tensor;

Matcher::Matcher(Graph graph, Track track, Functions functions)
    : track_(track), functions_(functions) {
  problem_.graph = std::move(graph);
  consumers_.resize(this->graph().tensors.size());
  for (size_t n = 0; n < this->graph().nodes.size(); ++n)
    for (const TensorId id : this->graph().nodes[n].inputs)
      if (id != kAbsent && !contains(consumers_[id], as_int(n)))
        consumers_[id].push_back(as_int(n));
  done_.resize(this->graph().nodes.size());
  for (size_t i = 0; i < this->graph().tensors.size(); ++i) {
    const auto id = static_cast<TensorId>(i);
    if (tensor(id).constant || contains(this->graph().inputs, id)) places_[id] = own_place(id);
  }
}

std::span<const Matcher::Row> Matcher::rules() {
  static constexpr std::array kRules = {
      Row{OpKind::Identity, &Matcher::alias},
      Row{OpKind::Dropout, &Matcher::alias},
      Row{OpKind::Reshape, &Matcher::alias},
      Row{OpKind::Flatten, &Matcher::alias},
      Row{OpKind::Squeeze, &Matcher::alias},
      Row{OpKind::Unsqueeze, &Matcher::alias},
      Row{OpKind::Transpose, &Matcher::movement},
      Row{OpKind::Slice, &Matcher::movement},
      Row{OpKind::Split, &Matcher::split},
      Row{OpKind::Concat, &Matcher::concat},
      Row{OpKind::Cast, &Matcher::cast},
      Row{OpKind::CastLike, &Matcher::cast},
      Row{OpKind::Conv, &Matcher::convolution},
      Row{OpKind::ConvTranspose, &Matcher::deconvolution},
      Row{OpKind::MaxPool, &Matcher::pool},
      Row{OpKind::AveragePool, &Matcher::pool},
      Row{OpKind::SumPool, &Matcher::pool},
      Row{OpKind::GlobalAveragePool, &Matcher::global_pool},
      Row{OpKind::GlobalMaxPool, &Matcher::global_pool},
      Row{OpKind::MatMul, &Matcher::matmul},
      Row{OpKind::Gemm, &Matcher::gemm},
      Row{OpKind::Softmax, &Matcher::softmax},
      Row{OpKind::LogSoftmax, &Matcher::softmax},
      Row{OpKind::BatchNormalization, &Matcher::batch_norm},
      Row{OpKind::LayerNormalization, &Matcher::layer_norm},
      Row{OpKind::InstanceNormalization, &Matcher::group_norm},
      Row{OpKind::GroupNormalization, &Matcher::group_norm},
      Row{OpKind::ReduceSum, &Matcher::reduction},
      Row{OpKind::ReduceMean, &Matcher::reduction},
      Row{OpKind::ReduceMax, &Matcher::reduction},
      Row{OpKind::ReduceMin, &Matcher::reduction},
      Row{OpKind::ReduceProd, &Matcher::reduction},
      Row{OpKind::ReduceL1, &Matcher::reduction},
      Row{OpKind::ReduceL2, &Matcher::reduction},
      Row{OpKind::ReduceSumSquare, &Matcher::reduction},
      Row{OpKind::ReduceLogSum, &Matcher::reduction},
      Row{OpKind::LRN, &Matcher::lrn},
  };
  return kRules;
}

bool Matcher::floats(const Node& node) const {
  const auto fits = [&](TensorId id) { return id == kAbsent || is_float(tensor(id).dtype); };
  const auto fits_or_known = [&](TensorId id) { return fits(id) || tensor(id).constant; };
  if (!fits(node.inputs[0]) || !std::ranges::all_of(node.outputs, fits)) return false;
  return std::ranges::all_of(node.inputs, fits_or_known);
}

Place Matcher::own_place(TensorId id) const {
  return packed_place(tensor(id).name, tensor(id).dtype, tensor(id).shape);
}

bool Matcher::is_in_own_place(TensorId id) const {
  const Place& at = place(id);
  return at.buffer == tensor(id).name && at.offset == 0 && is_packed(at);
}

void Matcher::copy_to_own_place(TensorId id) {
  if (!is_in_own_place(id)) push_alone(Copy{place(id), own_place(id)}, id);
}

Place Matcher::packed(TensorId id) {
  if (!is_packed(place(id))) copy_to_own_place(id);
  return place(id);
}

Place Matcher::along_channels(TensorId id, size_t rank) {
  Shape shape(rank, 1);
  shape[1] = graph::element_count(tensor(id).shape);
  return *reshaped(packed(id), shape);
}

void Matcher::push(Step step, TensorId to) {
  writer_[tensor(to).name] = as_int(problem_.steps.size());
  problem_.steps.push_back(std::move(step));
  places_[to] = own_place(to);
}

Step* Matcher::host(TensorId id, const std::vector<int>& readers,
                    const std::optional<Place>& other) {
  const auto found = writer_.find(tensor(id).name);
  if (found == writer_.end() || !is_in_own_place(id)) return nullptr;
  if (parts_.contains(tensor(id).name)) return nullptr;
  if (contains(graph().outputs, id) || contains(graph().inputs, id)) return nullptr;
  for (const int reader : consumers_[id])
    if (!contains(readers, reader)) return nullptr;
  Step& step = problem_.steps[found->second];
  const Place* to = destination(step.operation);
  if (!to || std::holds_alternative<Copy>(step.operation)) return nullptr;
  // What is written must have the tensor's own shape, but for leading axes of size 1.
  if (of_rank(own_place(id), to->shape.size()).shape != to->shape) return nullptr;
  if (!other) return &step;
  const auto wrote = writer_.find(other->buffer);
  const bool before = wrote == writer_.end() || wrote->second < found->second;
  return before ? &step : nullptr;
}

void Matcher::unmatched(const Node& node) {
  Unmatched call;
  for (const TensorId id : node.inputs)
    if (id != kAbsent) call.reads.push_back(place(id).buffer);
  for (const TensorId id : node.outputs)
    if (id != kAbsent) call.writes.push_back(tensor(id).name);
  const auto step = as_int(problem_.steps.size());
  problem_.steps.push_back({std::move(call), {}});
  for (const TensorId id : node.outputs) {
    if (id == kAbsent) continue;
    places_[id] = own_place(id);
    writer_[tensor(id).name] = step;
  }
}

// Outputs that lie in another buffer are written there themselves, or copied.
void Matcher::finish() {
  for (const TensorId id : graph().outputs) {
    if (is_in_own_place(id)) continue;
    const Place from = place(id);
    const auto wrote = writer_.find(from.buffer);
    if (wrote == writer_.end() || !can_rename(from)) {
      copy_to_own_place(id);
      continue;
    }
    const std::string to = tensor(id).name;
    rename_buffer(from.buffer, to);
    writer_[to] = wrote->second;
  }
}

// Whether a buffer may have another name: it holds a tensor that is no output, whole, and no
// unmatched part knows it by its name.
bool Matcher::can_rename(const Place& from) const {
  if (from.offset != 0 || !is_packed(from)) return false;
  const auto named = graph().tensor_named(from.buffer);
  if (!named || contains(graph().outputs, *named)) return false;
  const Tensor& held = tensor(*named);
  if (graph::element_count(held.shape) != elements_of(from)) return false;
  if (held.dtype != from.dtype) return false;
  const auto knows = [&](const Step& step) {
    const auto* const plain = std::get_if<Unmatched>(&step.operation);
    if (!plain) return false;
    return contains(plain->reads, from.buffer) || contains(plain->writes, from.buffer);
  };
  return std::ranges::none_of(problem_.steps, knows);
}

void Matcher::rename_buffer(const std::string& from, const std::string& to) {
  for (Step& step : problem_.steps) {
    for (const Place* one : sources(step))
      if (one->buffer == from) const_cast<Place*>(one)->buffer = to;
    Place* const written = destination(step.operation);
    if (written && written->buffer == from) written->buffer = to;
  }
  for (auto& [tensor, at] : places_)
    if (at.buffer == from) at.buffer = to;
}

VendorProblem Matcher::run() {
  for (size_t n = 0; n < graph().nodes.size(); ++n) {
    const Node& node = graph().nodes[n];
    if (done_[n]) continue;
    const auto row = std::ranges::find(rules(), node.op, &Row::op);
    bool taken = row != rules().end() && (this->*row->rule)(node);
    if (!taken && class_of(node.op) == OpClass::pointwise && floats(node))
      taken = recognized(node) || unary(node) || binary(node);
    if (!taken) unmatched(node);
  }
  finish();
  return std::move(problem_);
}

VendorProblem match(graph::Graph graph, Track track, Functions functions) {
  return Matcher(std::move(graph), track, functions).run();
}

namespace {
// The part of a graph that computes a region, in the making.
class Extraction {
 public:
  Extraction(const Graph& given, const Graph& region, const std::vector<std::string>& names)
      : given_(given), region_(region), names_(names) {
    out_.name = region.name;
  }

  std::optional<Graph> run() {
    if (!take_inputs() || !find_outputs() || !collect_nodes()) return std::nullopt;
    for (const int n : needed_)
      add_node(given_.nodes[n]);
    for (const TensorId id : region_.outputs) {
      const auto in_given = given_.tensor_named(names_[id]);
      out_.outputs.push_back(known_.at(*in_given));
    }
    return out_;
  }

 private:
  TensorId keep(TensorId id, const std::string& name, bool constant) {
    const Tensor& from = given_.tensor(id);
    Tensor copy{{name, from.dtype, from.shape}, std::nullopt};
    if (constant) copy.constant = from.constant;
    known_[id] = out_.add_tensor(std::move(copy));
    return known_[id];
  }

  bool same(TensorId in_given, TensorId in_region) const {
    const Tensor& one = given_.tensor(in_given);
    const Tensor& other = region_.tensor(in_region);
    return one.dtype == other.dtype && one.shape == other.shape;
  }

  // A tensor of the region that was not taken yet, in the given graph.
  std::optional<TensorId> counterpart(TensorId in_region) const {
    const auto found = given_.tensor_named(names_[in_region]);
    if (!found || known_.contains(*found) || !same(*found, in_region)) return std::nullopt;
    return *found;
  }

  bool take_inputs() {
    for (const TensorId id : region_.inputs) {
      const auto found = counterpart(id);
      if (!found) return false;
      out_.inputs.push_back(keep(*found, region_.tensor(id).name, false));
    }
    return true;
  }

  bool find_outputs() {
    for (const TensorId id : region_.outputs) {
      const auto found = counterpart(id);
      if (!found) return false;
      wanted_[*found] = region_.tensor(id).name;
      asked_.push_back(*found);
    }
    return true;
  }

  // The nodes behind the outputs, up to the inputs and constants.
  bool collect_nodes() {
    while (!asked_.empty()) {
      const TensorId id = asked_.back();
      asked_.pop_back();
      const int maker = id == kAbsent ? -1 : given_.producer(id);
      if (known_.contains(id) || needed_.contains(maker)) continue;
      if (given_.tensor(id).constant) {
        keep(id, fmt::format("c:{}", given_.tensor(id).name), true);
        continue;
      }
      if (maker < 0) return false;  // an input that the region does not read
      needed_.insert(maker);
      for (const TensorId input : given_.nodes[maker].inputs)
        asked_.push_back(input);
    }
    return true;
  }

  void add_node(Node node) {
    for (TensorId& id : node.inputs)
      id = known_.at(id);
    for (TensorId& id : node.outputs) {
      if (id == kAbsent) continue;
      const auto named = wanted_.find(id);
      const bool is_wanted = named != wanted_.end();
      const std::string name = is_wanted ? named->second : "t:" + given_.tensor(id).name;
      id = keep(id, name, false);
    }
    out_.nodes.push_back(std::move(node));
  }

  const Graph& given_;
  const Graph& region_;
  const std::vector<std::string>& names_;  // of the region's tensors in the given graph
  Graph out_;
  std::map<TensorId, TensorId> known_ = {{kAbsent, kAbsent}};  // of given → of out
  std::map<TensorId, std::string> wanted_;  // outputs, by their names in the region
  std::set<int> needed_;
  std::vector<TensorId> asked_;
};
}  // namespace

std::optional<graph::Graph> operators_of(const graph::Graph& given, const graph::Graph& region,
                                         const std::vector<std::string>& names) {
  return Extraction(given, region, names).run();
}

int unmatched_of(const VendorProblem& problem) {
  const auto is_unmatched = [](const Step& step) {
    return std::holds_alternative<Unmatched>(step.operation);
  };
  return as_int(std::ranges::count_if(problem.steps, is_unmatched));
}

VendorProblem match_region(const graph::Graph& region, const std::optional<graph::Graph>& operators,
                           Track track) {
  VendorProblem primitive = match(region, track);
  if (!operators) return primitive;
  VendorProblem composite = match(*operators, track);
  const auto cost = [](const VendorProblem& problem) {
    return std::pair(unmatched_of(problem), problem.steps.size());
  };
  return cost(composite) <= cost(primitive) ? composite : primitive;
}
}  // namespace warploom::vendor
