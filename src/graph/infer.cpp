// infer(): order, arity, attributes, types, shapes, and constants as they become known.
// simplify(): what constants decide is gone, and so is what does nothing.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/fresh_names.h"
#include "base/integers.h"
#include "base/nearest.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/reference.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr int64_t kMaxFoldedElements = 16384;
// Of what nothing is read for: sums over no elements, paddings of nothing.
constexpr int64_t kMostMadeOfNothing = int64_t{1} << 24;
constexpr std::string_view kKindNames[] = {"an integer",       "a float",
                                           "a string",         "a list of integers",
                                           "a list of floats", "a list of strings"};

Status check_attribute(const AttributeRow& row, const Attribute& value, const std::string& place) {
  const auto kind = as_size(row.kind);
  if (value.index() != kind) {
    Error error{ErrorCode::kOnnxAttribute};
    error.message = fmt::format("attribute {} is of the wrong type", row.name);
    error.place = place;
    error.expected = kKindNames[kind];
    error.found = kKindNames[value.index()];
    return fail(error);
  }
  if (row.among.empty() || contains(row.among, value)) return ok();
  Error error{ErrorCode::kOnnxAttribute};
  error.message = fmt::format("this value of attribute {} is not supported", row.name);
  error.place = place;
  error.expected = listed(row.among, [](const Attribute& one) { return to_text(one); });
  error.found = to_text(value);
  return fail(error);
}

Status complete_attributes(Node& node) {
  std::vector<std::string_view> known;
  for (const AttributeRow* row : attributes_of(node.op)) {
    known.push_back(row->name);
    const auto given = node.attributes.find(std::string(row->name));
    if (given != node.attributes.end()) {
      WARPLOOM_CHECK(check_attribute(*row, given->second, place_of(node)));
    } else if (row->otherwise) {
      node.attributes.emplace(row->name, *row->otherwise);
    }
  }
  for (const auto& [key, value] : node.attributes) {
    if (contains(known, key)) continue;
    const std::string message = fmt::format("attribute {} is unknown", key);
    Error error{ErrorCode::kOnnxAttribute, message, place_of(node)};
    error.expected = known.empty() ? "no attributes" : listed(known);
    error.found = key;
    error.remedy = did_you_mean(key, {known.begin(), known.end()});
    return fail(error);
  }
  return ok();
}

Status check_arity(const Node& node) {
  const Operator& row = operator_of(node.op);
  const auto count = as_int(node.inputs.size());
  // Every input of a variadic operator must be there.
  const bool is_variadic = row.max_inputs == kVariadic;
  const int required = is_variadic ? count : row.min_inputs;
  for (int i = 0; i < count; ++i) {
    if (node.inputs[i] != kAbsent || i >= required) continue;
    const std::string found = fmt::format("nothing for input {}", i);
    return fail(
        {ErrorCode::kOnnxName, "a required input is left out", place_of(node), "a tensor", found});
  }
  if (count < row.min_inputs || count > row.max_inputs) {
    std::string expected = fmt::format("{} to {}", row.min_inputs, row.max_inputs);
    if (is_variadic) expected = fmt::format("{} or more", row.min_inputs);
    return fail({ErrorCode::kOnnxName, "wrong number of inputs", place_of(node), expected,
                 std::to_string(count)});
  }
  if (node.outputs.empty() || node.outputs[0] == kAbsent)
    return fail({ErrorCode::kOnnxName, "a node makes nothing", place_of(node), "a first output"});
  return ok();
}

// What makes a tensor where no node does.
constexpr int kNothing = -1;
constexpr int kGiven = -2;

// The node that makes each tensor, kGiven or kNothing.
Result<std::vector<int>> makers_of(const Graph& graph) {
  std::vector<int> maker(graph.tensors.size(), kNothing);
  for (TensorId id : graph.inputs)
    maker[id] = kGiven;
  for (size_t i = 0; i < graph.tensors.size(); ++i)
    if (graph.tensors[i].constant) maker[i] = kGiven;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (TensorId id : graph.nodes[n].outputs) {
      if (id == kAbsent) continue;
      if (maker[id] != kNothing) {
        const std::string place = place_of(graph.nodes[n]);
        return fail({ErrorCode::kOnnxName, "a tensor is defined twice", place, "one definition",
                     graph.tensor(id).name});
      }
      maker[id] = as_int(n);
    }
  return maker;
}

Status check_outputs(const Graph& graph, const std::vector<int>& maker) {
  for (TensorId id : graph.outputs) {
    const std::string place = fmt::format("output '{}'", graph.tensor(id).name);
    if (maker[id] == kNothing)
      return fail({ErrorCode::kOnnxName, "an output that nothing defines", place});
    if (!contains(graph.inputs, id)) continue;
    Error error{ErrorCode::kOnnxName, "an output is an input", place};
    error.expected = "what a node makes, or a constant";
    error.remedy = "leave it out, or put an Identity between";
    return fail(error);
  }
  return ok();
}

// Nodes in an order in which they can run, the given one where it can.
Status sort_nodes(Graph& graph) {
  WARPLOOM_TRY(const std::vector<int> maker, makers_of(graph));
  std::vector<int> waiting(graph.nodes.size(), 0);
  std::vector<std::vector<int>> users(graph.nodes.size());
  std::set<int> ready;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (TensorId id : graph.nodes[n].inputs) {
      if (id == kAbsent || maker[id] == kGiven) continue;
      if (maker[id] == kNothing) {
        const std::string place = place_of(graph.nodes[n]);
        return fail({ErrorCode::kOnnxName, "a tensor is used that nothing defines", place,
                     "an input, an initializer or a node's output", graph.tensor(id).name});
      }
      users[maker[id]].push_back(as_int(n));
      ++waiting[n];
    }
    if (waiting[n] == 0) ready.insert(as_int(n));
  }
  std::vector<Node> sorted;
  while (!ready.empty()) {
    const int n = ready.extract(ready.begin()).value();
    for (int user : users[n])
      if (--waiting[user] == 0) ready.insert(user);
    sorted.push_back(graph.nodes[n]);
  }
  const auto stuck = std::ranges::find_if(waiting, [](int count) { return count > 0; });
  if (stuck != waiting.end()) {
    const Node& node = graph.nodes[stuck - waiting.begin()];
    return fail({ErrorCode::kOnnxCyclic, "nodes depend on each other in a circle", place_of(node),
                 "an order in which every tensor is made before it is used"});
  }
  graph.nodes = std::move(sorted);
  return check_outputs(graph, maker);
}

// The outputs' types and shapes of a node whose attributes are complete: by its rule, or by those
// of its primitives.
Result<std::vector<TensorInfo>> outputs_of(Graph& graph, const Node& node) {
  if (class_of(node.op) != OpClass::composite) {
    const NodeContext context = {graph, node, place_of(node)};
    WARPLOOM_TRY(InferredOutput output, operator_of(node.op).rule(context));
    return std::vector{TensorInfo{"", output.dtype, std::move(output.shape)}};
  }
  const size_t given = graph.tensors.size();
  FreshNames names;
  const auto outputs = PrimitiveWriter(graph, node, names, true).run();
  std::vector<TensorInfo> made;
  if (outputs)
    for (const Id id : *outputs)
      made.push_back(graph.tensor(id));
  graph.tensors.resize(given);
  if (!outputs) return fail(outputs.error());
  return made;
}

// A node as a graph of its own. Large constants are its inputs, read in place.
struct NodeAlone {
  Graph graph;
  std::vector<Bytes> inputs;
  int64_t elements = 0;  // of the constants

  TensorId add_input(const Tensor& given) {
    if (element_count(given.shape) == 0) return graph.add_tensor({given, std::vector<std::byte>()});
    constexpr size_t kLarge = as_size(kMaxFoldedElements) * 8;  // bytes
    const bool large = given.constant && given.constant->size() > kLarge;
    if (given.constant) elements += element_count(given.shape);
    if (!large) return graph.add_tensor(given);
    const TensorId id = graph.add_tensor({given, std::nullopt});
    graph.inputs.push_back(id);
    inputs.push_back(*given.constant);
    return id;
  }
};

NodeAlone alone(const Graph& graph, const Node& node) {
  NodeAlone one;
  Node copy = node;
  for (TensorId& id : copy.inputs)
    if (id != kAbsent) id = one.add_input(graph.tensor(id));
  for (TensorId& id : copy.outputs) {
    if (id == kAbsent) continue;
    id = one.graph.add_tensor(graph.tensor(id));
    one.graph.outputs.push_back(id);
  }
  one.graph.nodes.push_back(std::move(copy));
  return one;
}

void store(const ValueAndMagnitude& values, Tensor& to) {
  auto& bytes = to.constant.emplace(byte_count(to));
  for (size_t i = 0; i < values.value.size(); ++i) {
    if (is_integer(to.dtype))
      store_integer(to.dtype, bytes.data(), int64_t(i), values.integers[i]);
    else
      store_from_double(to.dtype, bytes.data(), i, values.value[i]);
  }
}

// Evaluates a node of constants.
void fold_by_reference(Graph& graph, const Node& node) {
  const NodeAlone one = alone(graph, node);
  const OpClass kind = class_of(node.op);
  const bool repeats = kind == OpClass::reduction || kind == OpClass::composite;
  if (repeats && one.elements > 4 * kMaxFoldedElements) return;
  const auto made = evaluate_exactly(one.graph, one.inputs, 1);
  if (!made) return;
  auto values = made->begin();
  for (TensorId id : node.outputs)
    if (id != kAbsent) store(*values++, graph.tensor(id));
}

// Computes a node whose inputs are all constant into its outputs' constants, if that is worth it:
// small, and no contraction, convolution or window.
void fold(Graph& graph, const Node& node) {
  const OpClass kind = class_of(node.op);
  Tensor& out = graph.tensor(node.outputs[0]);
  const auto is_empty = [&](TensorId id) {
    return id != kAbsent && element_count(graph.tensor(id).shape) == 0;
  };
  const auto is_made_empty = [&](TensorId id) { return id == kAbsent || is_empty(id); };
  if (std::ranges::all_of(node.outputs, is_made_empty)) {  // known, whatever it is made of
    for (const TensorId id : node.outputs)
      if (id != kAbsent) graph.tensor(id).constant.emplace();
    return;
  }
  const bool of_nothing = std::ranges::any_of(node.inputs, is_empty);
  const bool is_work = multiplies(kind) || kind == OpClass::window || is_scaling(node.op);
  if (is_work && !of_nothing) return;
  const int64_t most = of_nothing ? kMostMadeOfNothing : kMaxFoldedElements;
  if (element_count(out.shape) > most) return;
  // Of Shape's input and CastLike's second the elements do not matter.
  const auto is_unread = [&](TensorId id) {
    if (node.op == OpKind::Shape) return true;
    return node.op == OpKind::CastLike && id == node.inputs[1];
  };
  const auto is_known = [&](TensorId id) {
    return id == kAbsent || graph.tensor(id).constant || is_unread(id) || is_empty(id);
  };
  if (!std::ranges::all_of(node.inputs, is_known)) return;
  const bool same_type = graph.tensor(node.inputs[0]).dtype == out.dtype;
  const bool copies = node.op == OpKind::Identity ||
                      (node.op == OpKind::Cast && same_type && node.integer("rounds") == 0);
  if (kind != OpClass::view && !copies) return fold_by_reference(graph, node);
  out.constant = graph.tensor(node.inputs[0]).constant;
}
}  // namespace

Status infer_node(Graph& graph, Node& node, bool folds) {
  WARPLOOM_CHECK(check_arity(node));
  WARPLOOM_CHECK(complete_attributes(node));
  const std::string place = place_of(node);
  WARPLOOM_TRY(const std::vector<TensorInfo> made, outputs_of(graph, node));
  if (node.outputs.size() > made.size()) {
    const std::string expected = fmt::format("1 to {}", made.size());
    const std::string found = std::to_string(node.outputs.size());
    return fail({ErrorCode::kOnnxName, "wrong number of outputs", place, expected, found});
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    WARPLOOM_CHECK(checked_element_count(made[i].shape, place));
    if (node.outputs[i] == kAbsent) continue;
    Tensor& out = graph.tensor(node.outputs[i]);
    out.dtype = made[i].dtype;
    out.shape = made[i].shape;
  }
  if (folds) fold(graph, node);
  return ok();
}

Result<Graph> infer(Graph graph) {
  for (Node& node : graph.nodes)
    WARPLOOM_CHECK(check_arity(node));
  WARPLOOM_CHECK(sort_nodes(graph));
  for (Node& node : graph.nodes)
    WARPLOOM_CHECK(infer_node(graph, node));
  return graph;
}

namespace {
bool does_nothing(const Graph& graph, const Node& node) {
  if (node.op == OpKind::Identity) return true;
  if (node.op == OpKind::Dropout && node.outputs.size() == 1) return true;
  const Tensor& in = graph.tensor(node.inputs[0]);
  const Tensor& out = graph.tensor(node.outputs[0]);
  if (node.op == OpKind::Cast) return in.dtype == out.dtype && node.integer("rounds") == 0;
  const bool keeps_order = class_of(node.op) == OpClass::view || node.op == OpKind::Expand;
  return keeps_order && in.shape == out.shape;
}

// Constant indices of a Gather count from the front: kernels know no others.
void count_from_front(Graph& graph, Node& node) {
  const std::vector<int64_t> none;
  const auto indices = constant_integers(graph, node.inputs[1]).value_or(none);
  if (std::ranges::none_of(indices, [](int64_t index) { return index < 0; })) return;
  const Shape& from = graph.tensor(node.inputs[0]).shape;
  Tensor counted = graph.tensor(node.inputs[1]);
  counted.name = graph.tensor(node.outputs[0]).name + "/indices";
  const int64_t size = from[NodeContext{graph, node}.axis(from.size())];
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0) continue;
    const int64_t from_front = indices[i] + size;
    store_integer(counted.dtype, counted.constant->data(), int64_t(i), from_front);
  }
  node.inputs[1] = graph.add_tensor(std::move(counted));
}

// Tensors that are not needed leave; ids are dense again.
void keep_tensors(Graph& graph, const std::vector<bool>& needed) {
  std::vector<TensorId> renamed(graph.tensors.size(), kAbsent);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < graph.tensors.size(); ++i)
    if (needed[i]) {
      renamed[i] = static_cast<TensorId>(tensors.size());
      tensors.push_back(std::move(graph.tensors[i]));
    }
  graph.tensors = std::move(tensors);
  std::vector<std::vector<TensorId>*> lists = {&graph.inputs, &graph.outputs};
  for (Node& node : graph.nodes)
    lists.insert(lists.end(), {&node.inputs, &node.outputs});
  for (auto* list : lists)
    for (TensorId& id : *list)
      if (id != kAbsent) id = renamed[id];
}

// Tensors nobody reads and nodes nobody needs leave; ids are dense again.
void drop_unused(Graph& graph) {
  std::vector<bool> needed(graph.tensors.size(), false);
  for (const auto* ids : {&graph.inputs, &graph.outputs})
    for (TensorId id : *ids)
      needed[id] = true;
  std::vector<Node> kept;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const auto is_needed = [&](TensorId id) { return id != kAbsent && needed[id]; };
    if (std::ranges::none_of(node->outputs, is_needed)) continue;
    for (TensorId id : node->inputs)
      if (id != kAbsent) needed[id] = true;
    for (TensorId& id : node->outputs)  // the first one stays: who reads nodes relies on it
      if (id == node->outputs[0])
        needed[id] = true;
      else if (!is_needed(id) || graph.tensor(id).constant)
        id = kAbsent;
    while (node->op != OpKind::Split && node->outputs.back() == kAbsent)
      node->outputs.pop_back();  // a Split counts its own
    kept.push_back(std::move(*node));
  }
  std::ranges::reverse(kept);
  graph.nodes = std::move(kept);
  keep_tensors(graph, needed);
}
}  // namespace

namespace {
// Renames a tensor in all nodes.
void rename(std::vector<Node>& nodes, TensorId from, TensorId to) {
  for (Node& node : nodes) {
    std::ranges::replace(node.inputs, from, to);
    std::ranges::replace(node.outputs, from, to);
  }
}

// Outputs that are known are copies of constants: an output is written, also where it is known.
void write_known(Graph& graph, const std::set<TensorId>& outputs) {
  for (const TensorId id : outputs) {
    Tensor known = graph.tensor(id);
    if (!known.constant) continue;
    graph.tensor(id).constant.reset();
    known.name += "/known";
    const TensorId from = graph.add_tensor(std::move(known));
    for (Node& node : graph.nodes)
      std::ranges::replace(node.inputs, id, from);
    const std::string& name = graph.tensor(id).name;
    graph.nodes.push_back({OpKind::Identity, name, {from}, {id}, {}});
  }
}
}  // namespace

Result<Graph> simplify(Graph graph) {
  const std::set<TensorId> promised(graph.outputs.begin(), graph.outputs.end());
  std::vector<TensorId> alias(graph.tensors.size());
  std::iota(alias.begin(), alias.end(), 0);
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    for (TensorId& id : node.inputs)
      if (id != kAbsent) id = alias[id];
    const TensorId out = node.outputs[0];
    const auto is_folded = [&](TensorId id) { return id == kAbsent || graph.tensor(id).constant; };
    if (std::ranges::all_of(node.outputs, is_folded)) continue;
    if (node.op == OpKind::Gather) count_from_front(graph, node);
    if (does_nothing(graph, node)) {
      const TensorId in = node.inputs[0];
      const auto makes = [&](const Node& maker) { return contains(maker.outputs, in); };
      // An output keeps its name: x → node → t → Identity → y becomes x → node → y, unless t is an
      // output, too.
      const bool may_be_renamed = promised.contains(out) && !promised.contains(in);
      const bool renamed = may_be_renamed && std::ranges::any_of(kept, makes);
      if (renamed) {
        rename(kept, in, out);
        std::ranges::replace(alias, in, out);
      } else {
        alias[out] = in;
      }
      if (renamed || !promised.contains(out)) continue;
      node = Node{OpKind::Identity, node.name, {in}, {out}, {}};
    }
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  write_known(graph, promised);
  drop_unused(graph);
  return graph;
}
}  // namespace warploom::graph
