#include "graph/rewrite_draft.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"

namespace warploom::graph {
namespace {
constexpr double kDivision = 8;  // multiplications that take as long, about

double elements_of(const Shape& shape) {
  return as_double(element_count(shape));
}

// Of a node that is not the same in every call. `terms`: that a product sums. `is_multiplied`:
// whether a product reads what it makes.
template <class InfoOf>
NodeWork work_with(const Node& node, const InfoOf& info, double terms, bool is_multiplied) {
  NodeWork work;
  const double made = elements_of(info(node.outputs[0]).shape);
  bool moves = true;
  switch (class_of(node.op)) {
    case OpClass::contraction:
    case OpClass::convolution: work.products = 2 * made * terms; break;
    case OpClass::reduction: work.operations = elements_of(info(node.inputs[0]).shape); break;
    case OpClass::movement: break;
    case OpClass::pointwise:
      work.operations = node.op == OpKind::Div ? kDivision * made : made;
      moves = is_multiplied;
      break;
    default: moves = false;
  }
  work.operations += work.products;
  if (!moves) return work;
  for (const TensorId id : node.inputs)
    if (id != kAbsent) work.bytes += as_double(byte_count(info(id)));
  work.bytes += as_double(byte_count(info(node.outputs[0])));
  return work;
}
}  // namespace

GraphIndex::GraphIndex(const Graph& graph, const std::set<std::string>& known_inputs)
    : graph_(&graph),
      maker_(graph.tensors.size(), -1),
      readers_(graph.tensors.size()),
      known_(graph.tensors.size()),
      outputs_(graph.outputs.begin(), graph.outputs.end()) {
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const Tensor& tensor = graph.tensors[t];
    known_[t] = tensor.constant.has_value() || known_inputs.contains(tensor.name);
    names_.insert(graph.tensors[t].name);
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    bool known = true;
    for (const TensorId id : node.inputs) {
      if (id == kAbsent) continue;
      auto& readers = readers_[as_size(id)];
      if (!contains(readers, as_int(n))) readers.push_back(as_int(n));
      known = known && known_[as_size(id)];
    }
    for (const TensorId id : node.outputs) {
      if (id == kAbsent) continue;
      maker_[as_size(id)] = as_int(n);
      known_[as_size(id)] = known;
    }
  }
}

bool GraphIndex::is_multiplied(TensorId id) const {
  return std::ranges::any_of(readers(id), [this](int reader) {
    return multiplies(class_of(graph_->nodes[as_size(reader)].op));
  });
}

NodeWork GraphIndex::work_of(const Node& node) const {
  const bool is_same =
      std::ranges::all_of(node.inputs, [this](TensorId id) { return is_known(id); });
  if (is_same) return {};
  const auto tensor = [this](TensorId id) -> const TensorInfo& { return graph_->tensor(id); };
  const bool sums = multiplies(class_of(node.op));
  const double terms = sums ? as_double(terms_of(*graph_, node)) : 1;
  return work_with(node, tensor, terms, is_multiplied(node.outputs[0]));
}

const TensorInfo& Draft::info(TensorId id) const {
  const auto given = graph().tensors.size();
  return as_size(id) < given ? graph().tensors[as_size(id)] : added_[as_size(id) - given];
}

bool Draft::is_known(TensorId id) const {
  const auto given = graph().tensors.size();
  if (id == kAbsent || as_size(id) < given) return index_.is_known(id);
  if (added_[as_size(id) - given].constant) return true;
  const auto maker =
      std::ranges::find_if(made_, [&](const Node& node) { return node.outputs[0] == id; });
  return maker != made_.end() &&
         std::ranges::all_of(maker->inputs, [&](TensorId read) { return is_known(read); });
}

bool Draft::is_float(TensorId id) const {
  return warploom::is_float(info(id).dtype) && bits_of(info(id).dtype) >= 16;
}

const Node* Draft::maker(TensorId id, OpKind op) const {
  const int node = id == kAbsent ? -1 : index_.maker(id);
  if (node < 0 || graph().nodes[as_size(node)].op != op) return nullptr;
  return &graph().nodes[as_size(node)];
}

void Draft::need(bool holds, std::string expected, std::string found) {
  if (!holds) why_.push_back({std::move(expected), std::move(found)});
}

void Draft::need_alone(TensorId id) {
  const auto readers = index_.readers(id).size();
  const std::string name = info(id).name;
  need(!index_.is_output(id), fmt::format("{} is no output", name), "it is one");
  need(readers == 1, fmt::format("nothing else reads {}", name), fmt::format("{} do", readers));
}

void Draft::need_no_cancelling(TensorId a, TensorId b) {
  if (track_ == Track::tolerance || is_computed(a) || is_computed(b)) return;
  const std::string names = fmt::format("{} and {}", info(a).name, info(b).name);
  need(false, fmt::format("{} do not cancel, or the track allows for what they leave", names),
       fmt::format("both are given, track {}", name_of(track_)));
}

// What is multiplied by, where it is one known number.
std::optional<double> Draft::factor_of(OpKind op, TensorId scale) const {
  if (as_size(scale) >= graph().tensors.size()) return std::nullopt;
  const auto value = constant_scalar(graph(), scale);
  if (!value) return std::nullopt;
  return std::fabs(op == OpKind::Div ? 1 / *value : *value);
}

void Draft::need_room_unscaled(TensorId id, OpKind op, TensorId scale) {
  if (info(id).dtype != Dtype::f16) return;
  need(factor_of(op, scale).value_or(0) >= 1,
       fmt::format("{} does not grow beyond fp16", info(id).name),
       "it would be scaled down only behind it");
}

void Draft::need_room_scaled(TensorId id, OpKind op, TensorId scale) {
  if (info(id).dtype != Dtype::f16) return;
  need(factor_of(op, scale).value_or(2) <= 1,
       fmt::format("{} does not grow beyond fp16", info(id).name), "it would be scaled up before");
}

void Draft::names(const std::vector<TensorId>& tensors) {
  for (const TensorId id : tensors)
    named_.push_back(info(id).name);
}

TensorId Draft::product(TensorId a, TensorId b) {
  const Shape& left = shape(a);
  const Shape& right = shape(b);
  const auto batch =
      broadcast({left.begin(), left.end() - 2}, {right.begin(), right.end() - 2}, "");
  Shape made = batch.value_or(Shape{});
  made.push_back(left[left.size() - 2]);
  made.push_back(right.back());
  return make(OpKind::MatMul, {a, b}, std::move(made));
}

TensorId Draft::pointwise(OpKind op, TensorId a, TensorId b) {
  return make(op, {a, b}, broadcast(shape(a), shape(b), "").value_or(Shape{}));
}

TensorId Draft::inverse(TensorId a) {
  return make(OpKind::Reciprocal, {a}, shape(a));
}

TensorId Draft::sum(TensorId a, const std::vector<int64_t>& axes, bool keeps) {
  Shape made;
  for (size_t i = 0; i < rank(a); ++i) {
    const bool is_summed = contains(axes, as_int64(i));
    if (!is_summed) made.push_back(shape(a)[i]);
    if (is_summed && keeps) made.push_back(1);
  }
  return make(OpKind::ReduceSum, {a}, std::move(made),
              {{"axes", axes}, {"keepdims", int64_t{keeps ? 1 : 0}}});
}

TensorId Draft::transposed(TensorId a, const std::vector<int64_t>& order) {
  Shape made;
  for (const int64_t axis : order)
    made.push_back(shape(a)[as_size(axis)]);
  return make(OpKind::Transpose, {a}, std::move(made), {{"perm", order}});
}

TensorId Draft::turned(TensorId a) {
  std::vector<int64_t> order(rank(a));
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = as_int64(i);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return transposed(a, order);
}

TensorId Draft::reshaped(TensorId a, const Shape& to) {
  if (shape(a) == to) return a;
  std::vector<std::byte> bytes(to.size() * sizeof(int64_t));
  for (size_t i = 0; i < to.size(); ++i)
    store_from_double(Dtype::i64, bytes.data(), i, as_double(to[i]));
  added_.push_back({{fresh_name(), Dtype::i64, {std::ssize(to)}}, std::move(bytes)});
  const auto sizes = static_cast<TensorId>(graph().tensors.size() + added_.size() - 1);
  return make(OpKind::Reshape, {a, sizes}, to, {{"allowzero", int64_t{1}}});
}

TensorId Draft::copied(TensorId a) {
  return make(OpKind::Identity, {a}, shape(a));
}

TensorId Draft::number(Dtype dtype, double value) {
  std::vector<std::byte> bytes(as_size(bytes_of(dtype)));
  store_from_double(dtype, bytes.data(), 0, value);
  added_.push_back({{fresh_name(), dtype, {}}, std::move(bytes)});
  return static_cast<TensorId>(graph().tensors.size() + added_.size() - 1);
}

// The same for the same graph: plans name tensors.
std::string Draft::fresh_name() const {
  const std::string& name = info(out()).name;
  const auto is_taken = [&](const std::string& one) {
    return index_.has_name(one) || contains(added_, one, [](const Tensor& t) { return t.name; });
  };
  std::string made;
  for (int number = 1; made.empty() || is_taken(made); ++number)
    made = fmt::format("{}/rewritten{}", name, number);
  return made;
}

TensorId Draft::make(OpKind op, std::vector<TensorId> inputs, Shape shape,
                     std::map<std::string, Attribute> attributes) {
  const std::string name = fresh_name();
  added_.push_back({{name, info(inputs[0]).dtype, std::move(shape)}, std::nullopt});
  const auto id = static_cast<TensorId>(graph().tensors.size() + added_.size() - 1);
  made_.push_back({op, name, std::move(inputs), {id}, std::move(attributes)});
  return id;
}

// The root, and what nobody reads once it is gone.
std::set<int> Draft::gone() const {
  std::set<int> gone = {index_.maker(out())};
  std::vector<int> asked(gone.begin(), gone.end());
  const auto is_read = [&](TensorId id) {
    if (index_.is_output(id)) return true;
    const bool by_made =
        std::ranges::any_of(made_, [&](const Node& node) { return contains(node.inputs, id); });
    return by_made || !std::ranges::all_of(index_.readers(id),
                                           [&](int reader) { return gone.contains(reader); });
  };
  while (!asked.empty()) {
    const Node& node = graph().nodes[as_size(asked.back())];
    asked.pop_back();
    for (const TensorId id : node.inputs) {
      const int maker = id == kAbsent ? -1 : index_.maker(id);
      if (maker < 0 || gone.contains(maker)) continue;
      const auto& made = graph().nodes[as_size(maker)].outputs;
      if (std::ranges::any_of(made, is_read)) continue;
      gone.insert(maker);
      asked.push_back(maker);
    }
  }
  return gone;
}

NodeWork Draft::work_of_made(const Node& node) const {
  if (std::ranges::all_of(node.inputs, [&](TensorId id) { return is_known(id); })) return {};
  const TensorId made = node.outputs[0];
  const bool is_multiplied = std::ranges::any_of(made_, [&](const Node& reader) {
    return reader.op == OpKind::MatMul && contains(reader.inputs, made);
  });
  const bool is_last = &node == &made_.back();
  const auto tensor = [this](TensorId id) -> const TensorInfo& { return info(id); };
  const double terms = as_double(shape(node.inputs[0]).empty() ? 1 : shape(node.inputs[0]).back());
  return work_with(node, tensor, terms, is_multiplied || (is_last && index_.is_multiplied(out())));
}

NodeWork Draft::before() const {
  NodeWork sum;
  for (const int n : gone())
    sum += index_.work_of(graph().nodes[as_size(n)]);
  return sum;
}

NodeWork Draft::after() const {
  NodeWork sum;
  for (const Node& node : made_)
    sum += work_of_made(node);
  return sum;
}

Edit Draft::edit() const {
  Edit out;
  out.stays.assign(graph().nodes.size(), true);
  for (const int n : gone())
    out.stays[as_size(n)] = false;
  out.root = as_size(index_.maker(this->out()));
  out.made = made_;
  out.made.back().outputs = {this->out()};
  // The last one's own tensor has no maker any more.
  out.added.assign(added_.begin(), added_.end() - 1);
  return out;
}

Result<Graph> edited(Graph graph, Edit edit) {
  std::set<std::string> computed;
  for (size_t n = 0; n + 1 < edit.made.size(); ++n)
    computed.insert(edit.made[n].name);
  std::vector<Node> nodes;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (n == edit.root) std::ranges::move(edit.made, std::back_inserter(nodes));
    if (edit.stays[n]) nodes.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(nodes);
  std::ranges::move(edit.added, std::back_inserter(graph.tensors));
  WARPLOOM_TRY(graph, infer(std::move(graph)));
  for (Tensor& tensor : graph.tensors)
    if (computed.contains(tensor.name)) tensor.constant.reset();
  return graph;
}
}  // namespace warploom::graph
