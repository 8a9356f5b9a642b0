#include "verify/range_ends.h"
#include <cmath>
#include <limits>

namespace warploom::verify {
namespace {
using graph::OpClass;
using graph::OpKind;

struct Row {
  OpKind op;
  std::vector<double> points;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#define WARPLOOM_RANGE_ENDS(op, ...) Row{OpKind::op, {__VA_ARGS__}},
#include "verify/range_ends.def"
  };
  return all;
}

// For every operator: zero, one and halves, whole numbers, the smallest and the largest of fp32,
// and of numbers whose squares are.
constexpr double kAlways[] = {0,
                              0.5,
                              1,
                              1.5,
                              2,
                              2.5,
                              3,
                              1e-3,
                              1e-10,
                              1e-19,
                              1e-30,
                              0x1p-126,
                              1e-42,
                              1e4,
                              1e10,
                              1e19,
                              3e19,
                              1e30,
                              0x1.fffffep127,
                              std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()};

// What a step does to a number that was rounded, no bound of rounding tells.
constexpr OpKind kSteps[] = {OpKind::Floor,
                             OpKind::Ceil,
                             OpKind::Round,
                             OpKind::Sign,
                             OpKind::Mod,
                             OpKind::Equal,
                             OpKind::Less,
                             OpKind::Greater,
                             OpKind::LessOrEqual,
                             OpKind::GreaterOrEqual,
                             OpKind::IsInf,
                             OpKind::IsNaN,
                             OpKind::Not,
                             OpKind::And,
                             OpKind::Or,
                             OpKind::Xor,
                             OpKind::ThresholdedRelu};

// What is exact in every type: of exact numbers these make exact ones.
constexpr OpKind kExact[] = {OpKind::Identity, OpKind::Neg, OpKind::Abs,  OpKind::Relu,
                             OpKind::Max,      OpKind::Min, OpKind::Clip, OpKind::Where};

bool is_step(const graph::Graph& graph, const graph::Node& node) {
  const bool counts = !is_float(graph.tensor(node.outputs[0]).dtype);
  return std::ranges::find(kSteps, node.op) != std::end(kSteps) ||
         (node.op == OpKind::Cast && counts);
}
}  // namespace

bool is_judged_at_ends(const graph::Graph& given) {
  const auto primitive = graph::decompose(given);
  if (!primitive || primitive->nodes.empty()) return false;
  const graph::Graph& graph = *primitive;
  std::vector<bool> exact(graph.tensors.size(), true);
  bool floats = false;
  for (const graph::TensorId id : graph.inputs)
    floats = floats || (is_float(graph.tensor(id).dtype) && bits_of(graph.tensor(id).dtype) >= 16);
  for (const graph::Node& node : graph.nodes) {
    const OpClass kind = class_of(node.op);
    const bool moves = only_moves(kind);
    if (kind != OpClass::pointwise && !moves) return false;
    // Of infinities and NaN each machine makes integers of its own.
    const bool to_integer = node.op == OpKind::Cast &&
                            is_float(graph.tensor(node.inputs[0]).dtype) &&
                            is_integer(graph.tensor(node.outputs[0]).dtype) &&
                            graph.tensor(node.outputs[0]).dtype != Dtype::boolean;
    if (to_integer) return false;
    const bool all = std::ranges::all_of(node.inputs, [&](graph::TensorId id) {
      return id == graph::kAbsent || exact[static_cast<size_t>(id)];
    });
    const bool step = is_step(graph, node);
    if (step && !all) return false;
    const bool keeps = moves || step || std::ranges::find(kExact, node.op) != std::end(kExact);
    for (const graph::TensorId id : node.outputs)
      if (id != graph::kAbsent) exact[static_cast<size_t>(id)] = keeps && all;
  }
  return floats;
}

std::vector<float> ends_for(const graph::Graph& graph, Dtype dtype) {
  std::vector<double> points(std::begin(kAlways), std::end(kAlways));
  for (const Row& row : rows())
    if (std::ranges::any_of(graph.nodes,
                            [&](const graph::Node& node) { return node.op == row.op; }))
      points.insert(points.end(), row.points.begin(), row.points.end());
  std::vector<float> out;
  for (const double point : points) {
    const bool beyond = std::isfinite(point) && !std::isfinite(rounded(dtype, point));
    if (beyond) continue;
    out.push_back(static_cast<float>(point));
    out.push_back(static_cast<float>(-point));
  }
  return out;
}
}  // namespace warploom::verify
