#include "graph/stack_products.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"

namespace warploom::graph {
namespace {
using Ids = std::vector<TensorId>;
using Attributes = std::map<std::string, Attribute>;

// Who reads a graph's tensors, and which of them constants alone make.
class Readers {
 public:
  explicit Readers(const Graph& graph) : readers_(graph.tensors.size()) {
    outputs_.insert(graph.outputs.begin(), graph.outputs.end());
    for (size_t t = 0; t < graph.tensors.size(); ++t)
      if (graph.tensors[t].constant) known_.insert(static_cast<TensorId>(t));
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const Node& node = graph.nodes[n];
      for (const TensorId id : node.inputs)
        if (id != kAbsent && !contains(readers_[as_size(id)], as_int(n)))
          readers_[as_size(id)].push_back(as_int(n));
      if (std::ranges::all_of(node.inputs, [&](TensorId id) { return is_known(id); }))
        known_.insert(node.outputs.begin(), node.outputs.end());
    }
  }

  bool is_known(TensorId id) const { return id == kAbsent || known_.contains(id); }

  bool is_output(TensorId id) const { return outputs_.contains(id); }

  // Nodes.
  const std::vector<int>& of(TensorId id) const { return readers_[as_size(id)]; }

  // The only one.
  std::optional<int> reader_of(TensorId id) const {
    if (is_output(id) || of(id).size() != 1) return std::nullopt;
    return of(id)[0];
  }

  // Of a tensor that was added.
  void set(TensorId id, int reader) {
    if (readers_.size() <= as_size(id)) readers_.resize(as_size(id) + 1);
    readers_[as_size(id)] = {reader};
  }

 private:
  std::vector<std::vector<int>> readers_;  // by tensor
  std::set<TensorId> outputs_;
  std::set<TensorId> known_;
};

// Writes what is computed of all products, one behind another along a new first axis.
class StackWriter {
 public:
  explicit StackWriter(Graph& graph) : graph_(graph) {}

  std::vector<Node> made;
  std::string name;   // of what is stacked
  int64_t count = 0;  // of the products

  // Known tensors one behind another, under a shape of so many axes more than the first.
  TensorId stacked(const Ids& each, size_t rank) {
    Shape one = graph_.tensor(each[0]).shape;
    one.insert(one.begin(), rank + 1 - one.size(), 1);
    Ids parts;
    const Dtype dtype = graph_.tensor(each[0]).dtype;
    for (const TensorId id : each) {
      const TensorId to = list(one, "shape");
      parts.push_back(tensor(dtype, one, "weights"));
      made.push_back({OpKind::Reshape, graph_.tensor(parts.back()).name, {id, to}, {parts.back()}});
    }
    Shape all = one;
    all[0] = std::ssize(each);
    const TensorId joined = tensor(dtype, all, "stacked");
    made.push_back(
        {OpKind::Concat, graph_.tensor(joined).name, parts, {joined}, {{"axis", int64_t{0}}}});
    return joined;
  }

  // Operands of what is arithmetic: the same of all, or one behind another.
  TensorId operand(const Ids& each, size_t rank) {
    const auto is_first = [&](TensorId id) { return id == each[0]; };
    if (std::ranges::all_of(each, is_first)) return each[0];
    return stacked(each, rank);
  }

  // Of all of them, by those of one.
  Shape sizes(Shape shape) const {
    shape.insert(shape.begin(), count);
    return shape;
  }

  // A node for all of them, of which one alone makes `like`.
  TensorId add(OpKind op, Ids inputs, TensorId like, const Attributes& attributes) {
    const Shape shape = sizes(graph_.tensor(like).shape);
    const TensorId all = tensor(graph_.tensor(like).dtype, shape, name_of(op));
    made.push_back({op, graph_.tensor(all).name, std::move(inputs), {all}, attributes});
    return all;
  }

  TensorId tensor(Dtype dtype, Shape shape, std::string_view what) {
    std::string own = fmt::format("{}/stacked/{}{}", name, what, graph_.tensors.size());
    return graph_.add_tensor({{std::move(own), dtype, std::move(shape)}, std::nullopt});
  }

  TensorId constant(Dtype dtype, Shape shape, const std::vector<double>& values,
                    std::string_view what) {
    std::vector<std::byte> bytes(values.size() * as_size(bytes_of(dtype)));
    for (size_t i = 0; i < values.size(); ++i)
      store_from_double(dtype, bytes.data(), i, values[i]);
    const TensorId known = tensor(dtype, std::move(shape), what);
    graph_.tensor(known).constant = std::move(bytes);
    return known;
  }

  TensorId list(const Shape& values, std::string_view what) {
    const std::vector<double> numbers(values.begin(), values.end());
    return constant(Dtype::i64, {std::ssize(values)}, numbers, what);
  }

 private:
  Graph& graph_;
};

// Whether a node does to `end` what another does to its own, with constants of the same shapes.
bool is_like(const Graph& graph, const Readers& read, const Node& node, const Node& first,
             size_t place, TensorId end) {
  if (node.op != first.op || node.attributes != first.attributes) return false;
  if (node.inputs.size() != first.inputs.size() || node.outputs.size() != 1) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (i == place) {
      if (node.inputs[i] != end) return false;
      continue;
    }
    if (!read.is_known(node.inputs[i]) ||
        (node.inputs[i] == kAbsent) != (first.inputs[i] == kAbsent))
      return false;
    if (node.inputs[i] == kAbsent) continue;
    const Tensor& own = graph.tensor(node.inputs[i]);
    const Tensor& other = graph.tensor(first.inputs[i]);
    if (own.shape != other.shape || own.dtype != other.dtype) return false;
  }
  return graph.tensor(node.outputs[0]).shape == graph.tensor(first.outputs[0]).shape;
}

// The input of a scale that is the number.
size_t factor_of(const Graph& graph, const Node& node) {
  return node.op == OpKind::Mul && graph.tensor(node.inputs[0]).constant ? 0 : 1;
}

// Matmuls by what they read, and the shape of their weights.
using Key = std::tuple<TensorId, Shape, Dtype, Dtype>;

std::map<Key, std::vector<int>> groups_of(const Graph& graph, const Readers& read) {
  std::map<Key, std::vector<int>> groups;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (node.op != OpKind::MatMul || read.is_known(node.inputs[0]) ||
        !read.is_known(node.inputs[1]))
      continue;
    const Tensor& weights = graph.tensor(node.inputs[1]);
    if (weights.shape.size() != 2 || graph.tensor(node.inputs[0]).shape.size() < 2) continue;
    const Dtype made = graph.tensor(node.outputs[0]).dtype;
    groups[{node.inputs[0], weights.shape, weights.dtype, made}].push_back(as_int(n));
  }
  std::erase_if(groups, [](const auto& group) { return group.second.size() < 2; });
  return groups;
}

// Products that are one from here on, and what of each has been taken so far.
struct Stack {
  std::vector<int> nodes;
  Ids ends;      // the last tensor of each that is computed together
  TensorId all;  // the same of all, one behind another
  // Of scales that moved to before what shapes and turns: what they made, and what they read.
  std::map<TensorId, TensorId> bypassed = {};
  // Of transposes that most have and some turn further: what they read then, and how they turn
  // it.
  std::map<int, Node> turned = {};
};

// The rule of cost: whether all that reads a piece takes it from memory anyway.
bool may_end(const Graph& graph, const Readers& read, const Stack& stack, TensorId end) {
  if (read.is_output(end)) return false;
  return std::ranges::all_of(read.of(end), [&](int n) {
    const Node& node = graph.nodes[as_size(n)];
    switch (class_of(node.op)) {
      case OpClass::contraction:
      case OpClass::convolution:
      case OpClass::window: return true;
      case OpClass::view:
      case OpClass::movement: return may_end(graph, read, stack, node.outputs[0]);
      default: return contains(stack.nodes, n) && may_end(graph, read, stack, node.outputs[0]);
    }
  });
}

class Stacker {
 public:
  explicit Stacker(Graph graph) : graph_(std::move(graph)), read_(graph_), write_(graph_) {}

  Result<Graph> run() {
    for (const auto& [key, products] : groups_of(graph_, read_))
      stack(products);
    if (gone_.empty()) return std::move(graph_);
    std::set<std::string> made;
    for (const Node& node : write_.made)
      made.insert(graph_.tensor(node.outputs[0]).name);
    Graph out = graph_;
    out.nodes = std::move(write_.made);
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (!gone_.contains(as_int(n))) out.nodes.push_back(graph_.nodes[n]);
    for (Node& node : out.nodes)
      for (TensorId& id : node.inputs)
        if (const auto found = bypassed_.find(id); found != bypassed_.end()) id = found->second;
    WARPLOOM_TRY(out, infer(std::move(out)));
    // What infer() knows of these would be data that the model does not have: they are computed.
    for (Tensor& tensor : out.tensors)
      if (made.contains(tensor.name)) tensor.constant.reset();
    return out;
  }

 private:
  // Tries it; leaves everything as it is where the rule of cost refuses it.
  void stack(const std::vector<int>& products) {
    const auto tensors = std::ssize(graph_.tensors);
    const size_t nodes = write_.made.size();
    write_.count = std::ssize(products);
    Stack stack{products, {}, kAbsent};
    Ids weights;
    for (const int n : products) {
      weights.push_back(graph_.nodes[as_size(n)].inputs[1]);
      stack.ends.push_back(graph_.nodes[as_size(n)].outputs[0]);
    }
    const Node first = graph_.nodes[as_size(products[0])];
    write_.name = first.name.empty() ? graph_.tensor(first.outputs[0]).name : first.name;
    const auto rank = graph_.tensor(stack.ends[0]).shape.size();
    const TensorId all = write_.stacked(weights, rank);
    stack.all = write_.add(OpKind::MatMul, {first.inputs[0], all}, stack.ends[0], {});
    while (take_scale(stack) || take_alike(stack)) {}
    if (std::ranges::all_of(stack.ends,
                            [&](TensorId end) { return may_end(graph_, read_, stack, end); })) {
      bypassed_.insert(stack.bypassed.begin(), stack.bypassed.end());
      for (auto& [n, node] : stack.turned)
        graph_.nodes[as_size(n)] = std::move(node);
      gone_.insert(stack.nodes.begin(), stack.nodes.end());
      take_apart(stack);
      return;
    }
    graph_.tensors.erase(graph_.tensors.begin() + tensors, graph_.tensors.end());
    write_.made.resize(nodes);
  }

  // Takes the next node of each, where they are alike.
  bool take_alike(Stack& stack) {
    std::vector<int> next;
    for (const TensorId end : stack.ends) {
      const auto reader = read_.reader_of(end);
      if (!reader) return false;
      next.push_back(*reader);
    }
    if (take_turns(stack, next)) return true;
    const Node first = graph_.nodes[as_size(next[0])];
    const auto place = std::ranges::find(first.inputs, stack.ends[0]) - first.inputs.begin();
    for (size_t i = 0; i < next.size(); ++i)
      if (!is_like(graph_, read_, graph_.nodes[as_size(next[i])], first, as_size(place),
                   stack.ends[i]))
        return false;
    const auto made = lifted(stack, first, as_size(place), next);
    if (!made) return false;
    stack.all = *made;
    for (size_t i = 0; i < next.size(); ++i) {
      stack.nodes.push_back(next[i]);
      stack.ends[i] = graph_.nodes[as_size(next[i])].outputs[0];
    }
    return true;
  }

  // Transposes of different orders: all are turned as the first is, and who is turned otherwise is
  // turned again behind it.
  bool take_turns(Stack& stack, const std::vector<int>& next) {
    const auto turns = [&](int n) {
      return graph_.nodes[as_size(n)].op == OpKind::Transpose && !stack.turned.contains(n);
    };
    if (!std::ranges::all_of(next, turns)) return false;
    const auto order_of = [&](int n) { return graph_.nodes[as_size(n)].integers("perm"); };
    const auto order = order_of(next[0]);
    const auto is_first = [&](int n) { return order_of(n) == order; };
    const TensorId like = graph_.nodes[as_size(next[0])].outputs[0];
    const Shape turned = graph_.tensor(like).shape;
    const auto same = [&](TensorId end) {
      return graph_.tensor(end).shape == graph_.tensor(stack.ends[0]).shape;
    };
    if (std::ranges::all_of(next, is_first) || !std::ranges::all_of(stack.ends, same)) return false;
    stack.all = *lifted_transpose(stack, graph_.nodes[as_size(next[0])]);
    for (size_t i = 0; i < next.size(); ++i) {
      const Node& node = graph_.nodes[as_size(next[i])];
      if (is_first(next[i])) {
        stack.nodes.push_back(next[i]);
        stack.ends[i] = node.outputs[0];
        continue;
      }
      std::vector<int64_t> rest;
      for (const int64_t axis : order_of(next[i]))
        rest.push_back(std::ranges::find(order, axis) - order.begin());
      Node again = node;
      again.attributes["perm"] = rest;
      stack.ends[i] = write_.tensor(graph_.tensor(like).dtype, turned, "turned");
      again.inputs[0] = stack.ends[i];
      read_.set(stack.ends[i], next[i]);
      stack.turned.emplace(next[i], std::move(again));
    }
    return true;
  }

  // The node for all of them; nothing where it is none that can be.
  std::optional<TensorId> lifted(const Stack& stack, const Node& first, size_t place,
                                 const std::vector<int>& next) {
    const TensorId like = first.outputs[0];
    const Shape& shape = graph_.tensor(like).shape;
    switch (class_of(first.op)) {
      case OpClass::view:
        return write_.add(OpKind::Reshape, {stack.all, write_.list(write_.sizes(shape), "shape")},
                          like, {});
      case OpClass::movement: return lifted_transpose(stack, first);
      case OpClass::pointwise: break;
      default: return std::nullopt;
    }
    // An operand that stretches the result would have to be one behind another itself.
    if (graph_.tensor(stack.ends[0]).shape != shape) return std::nullopt;
    Ids inputs = first.inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i == place || inputs[i] == kAbsent) continue;
      Ids each;
      for (const int n : next)
        each.push_back(graph_.nodes[as_size(n)].inputs[i]);
      inputs[i] = write_.operand(each, shape.size());
    }
    inputs[place] = stack.all;
    return write_.add(first.op, inputs, like, first.attributes);
  }

  std::optional<TensorId> lifted_transpose(const Stack& stack, const Node& first) {
    if (first.op != OpKind::Transpose) return std::nullopt;
    std::vector<int64_t> order = {0};
    for (const int64_t axis : first.integers("perm"))
      order.push_back(axis + 1);
    return write_.add(OpKind::Transpose, {stack.all}, first.outputs[0], {{"perm", order}});
  }

  // A multiplication or division by a number that some of them have, the others by 1: it may stand
  // behind views and transposes, which it changes nothing of.
  bool take_scale(Stack& stack) {
    std::vector<std::optional<int>> scales;
    std::optional<OpKind> op;
    for (const TensorId end : stack.ends) {
      scales.push_back(scale_behind(stack, end));
      if (!scales.back()) continue;
      const Node& node = graph_.nodes[as_size(*scales.back())];
      if (op.value_or(node.op) != node.op) return false;
      op = node.op;
    }
    if (!op) return false;
    const Tensor last = graph_.tensor(stack.ends[0]);
    // Numbers that kernels hold in their text: of those that are data the model would have to know.
    const TensorId one = write_.constant(last.dtype, {}, {1}, "one");
    Ids factors;
    for (const auto& scale : scales) {
      factors.push_back(one);
      if (!scale) continue;
      const Node& node = graph_.nodes[as_size(*scale)];
      factors.back() = node.inputs[factor_of(graph_, node)];
    }
    const TensorId table = write_.stacked(factors, last.shape.size());
    stack.all = write_.add(*op, {stack.all, table}, stack.ends[0], {});
    for (size_t i = 0; i < scales.size(); ++i) {
      if (!scales[i]) continue;
      const Node& node = graph_.nodes[as_size(*scales[i])];
      const TensorId scaled = node.inputs[1 - factor_of(graph_, node)];
      stack.nodes.push_back(*scales[i]);
      if (scaled == stack.ends[i])
        stack.ends[i] = node.outputs[0];
      else
        stack.bypassed[node.outputs[0]] = scaled;
    }
    return true;
  }

  std::optional<int> scale_behind(const Stack& stack, TensorId id) const {
    const auto reader = read_.reader_of(id);
    if (!reader || contains(stack.nodes, *reader)) return std::nullopt;
    const Node& node = graph_.nodes[as_size(*reader)];
    if (class_of(node.op) == OpClass::view || node.op == OpKind::Transpose)
      return scale_behind(stack, node.outputs[0]);
    const bool scales = node.op == OpKind::Mul || node.op == OpKind::Div;
    if (!scales || read_.is_output(node.outputs[0])) return std::nullopt;
    const size_t place = factor_of(graph_, node);
    const Tensor& factor = graph_.tensor(node.inputs[place]);
    const bool is_number = factor.constant && element_count(factor.shape) == 1;
    const bool keeps = graph_.tensor(node.outputs[0]).shape == graph_.tensor(id).shape;
    const bool fits = node.inputs[1 - place] == id && is_number && keeps;
    return fits && is_float(factor.dtype) ? reader : std::nullopt;
  }

  // Each of them as the part of all that it is.
  void take_apart(const Stack& stack) {
    for (size_t i = 0; i < stack.ends.size(); ++i) {
      const TensorId end = stack.ends[i];
      Shape shape = graph_.tensor(end).shape;
      Shape part = shape;
      part.insert(part.begin(), 1);
      const auto at = as_int64(i);
      const Ids bounds = {write_.list({at}, "begin"), write_.list({at + 1}, "end"),
                          write_.list({0}, "axis")};
      const TensorId slice = write_.tensor(graph_.tensor(end).dtype, part, "part");
      write_.made.push_back({OpKind::Slice,
                             graph_.tensor(slice).name,
                             {stack.all, bounds[0], bounds[1], bounds[2]},
                             {slice}});
      const TensorId to = write_.list(shape, "shape");
      write_.made.push_back(
          {OpKind::Reshape, graph_.tensor(end).name + "/apart", {slice, to}, {end}});
    }
  }

  Graph graph_;
  Readers read_;
  StackWriter write_;
  std::set<int> gone_;                     // nodes
  std::map<TensorId, TensorId> bypassed_;  // what is read in the place of what is gone
};
}  // namespace

Result<Graph> stack_products(Graph graph) {
  return Stacker(std::move(graph)).run();
}
}  // namespace warploom::graph
