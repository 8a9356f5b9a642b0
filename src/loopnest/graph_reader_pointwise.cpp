// Pointwise operators, in floats or on integers.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/pointwise.h"
#include "loopnest/affine.h"
#include "loopnest/graph_reader.h"

namespace warploom::loopnest {
using graph::kAbsent;
using graph::Node, graph::OpKind, graph::TensorId;

namespace {
bool only_converts(const Node& node) {
  return node.op == OpKind::Cast || node.op == OpKind::Identity;
}
}  // namespace

// By input; absent ones as the first that is there, since no expression reads them. Inputs with the
// fewest reductions are read first: the others then find their axes already there.
std::optional<GraphReader::Operands> GraphReader::read_operands(const Node& node,
                                                                const Coordinates& at) {
  std::vector<size_t> order;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] != kAbsent) order.push_back(i);
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return reductions_[as_size(node.inputs[i])]; });
  std::vector<MaybeValue> read_values(node.inputs.size());
  for (const size_t i : order) {
    const auto place = source_of(node, i, at);
    if (place) read_values[i] = read(node.inputs[i], *place);
    if (!read_values[i]) return std::nullopt;
  }
  Operands operands;
  for (const MaybeValue& value : read_values)
    operands.push_back(value ? *value : *read_values[order[0]]);
  return operands;
}

GraphReader::MaybeValue GraphReader::read_pointwise(const Node& node, TensorId id,
                                                    const Coordinates& at) {
  const Dtype to = tensor(id).dtype;
  const Dtype from = input(node, 0).dtype;
  const auto expression = graph::expression_of(graph_, node);
  if (!expression) return std::nullopt;
  auto operands = read_operands(node, at);
  if (!operands) return std::nullopt;
  if (needs_integers(node, *expression, *operands, to)) {
    for (size_t i = 0; i < operands->size(); ++i) {
      if (node.inputs[i] == kAbsent) continue;
      int& operand = (*operands)[i];
      operand = exprs_.to_integer(operand, input(node, i).dtype);
    }
    return exprs_.wrap(exprs_.evaluate(*expression, *operands, true), to);
  }
  for (int& operand : *operands)
    operand = exprs_.to_float(operand);
  const int value = exprs_.evaluate(*expression, *operands, false);
  const bool narrows = is_float(to) && bits_of(to) < bits_of(from) && only_converts(node);
  if (!narrows) return value;
  const bool saturates = node.integer("saturate", 1) != 0 || bits_of(to) != 8;
  if (!saturates) return std::nullopt;
  return exprs_.round(to, value);
}

// Whether floats would lose something of a node on integers that integers keep.
bool GraphReader::needs_integers(const Node& node, const graph::Expression& expression,
                                 const Operands& operands, Dtype to) {
  if (!graph::in_integers(graph_, node, expression)) return false;
  const auto on_integers = [&](int v) { return exprs_.computes_integers(v); };
  if (std::ranges::any_of(operands, on_integers)) return true;
  const auto is_large = [&](int v) { return !exprs_.is_exact_in_fp32(v); };
  // Large integers are compared with small ones: rounding keeps them on their side.
  if (to == Dtype::boolean) return !only_converts(node) && std::ranges::all_of(operands, is_large);
  if (std::ranges::any_of(operands, is_large)) return true;
  return !exprs_.holds_exactly(to, exprs_.evaluate(expression, operands, false));
}
}  // namespace warploom::loopnest
