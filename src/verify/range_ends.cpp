#include "verify/range_ends.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"

namespace warploom::verify {
namespace {
using graph::Graph;
using graph::kAbsent;
using graph::Node;
using graph::OpClass;
using graph::OpKind;
using graph::TensorId;

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
                              1e-40,
                              1e-42,
                              1e4,
                              1e10,
                              1e19,
                              3e19,
                              1e30,
                              0x1.fffffep127,
                              std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()};

// NaN of other bits than those that computing gives: with all of them, with the lowest alone, so
// that it signals, and with what a cut to 16 bits keeps.
constexpr uint32_t kOtherNans[] = {0x7fffffff, 0xffffffff, 0x7f800001, 0xff800001, 0x7fa00000};

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
constexpr OpKind kExact[] = {OpKind::Identity,  OpKind::Neg,       OpKind::Abs,    OpKind::Relu,
                             OpKind::Max,       OpKind::Min,       OpKind::Clip,   OpKind::Where,
                             OpKind::ReduceMax, OpKind::ReduceMin, OpKind::MaxPool};

// Of infinities and NaN each machine makes integers of its own.
bool is_cast_to_integer(const Graph& graph, const Node& node) {
  if (node.op != OpKind::Cast) return false;
  const Dtype from = graph.tensor(node.inputs[0]).dtype;
  const Dtype to = graph.tensor(node.outputs[0]).dtype;
  return is_float(from) && is_integer(to) && to != Dtype::boolean;
}

bool has_wide_floats(const Graph& graph) {
  return std::ranges::any_of(graph.inputs, [&](TensorId id) {
    const Dtype dtype = graph.tensor(id).dtype;
    return is_float(dtype) && bits_of(dtype) >= 16;
  });
}
}  // namespace

bool is_step(const Graph& graph, const Node& node) {
  if (std::ranges::find(kSteps, node.op) != std::end(kSteps)) return true;
  const bool counts = !is_float(graph.tensor(node.outputs[0]).dtype);
  return node.op == OpKind::Cast && counts;
}

bool keeps_exact(const Node& node) {
  return only_moves(class_of(node.op)) || std::ranges::find(kExact, node.op) != std::end(kExact);
}

bool is_judged_at_ends(const Graph& given) {
  const auto primitive = graph::decompose(given);
  if (!primitive || primitive->nodes.empty()) return false;
  const Graph& graph = *primitive;
  std::vector<bool> exact(graph.tensors.size(), true);
  const auto is_exact = [&](TensorId id) { return id == kAbsent || exact[as_size(id)]; };
  for (const Node& node : graph.nodes) {
    const OpClass kind = class_of(node.op);
    if (kind != OpClass::pointwise && !only_moves(kind)) return false;
    if (is_cast_to_integer(graph, node)) return false;
    const bool all = std::ranges::all_of(node.inputs, is_exact);
    const bool step = is_step(graph, node);
    if (step && !all) return false;
    const bool keeps = step || keeps_exact(node);
    for (const TensorId id : node.outputs)
      if (id != kAbsent) exact[as_size(id)] = keeps && all;
  }
  return has_wide_floats(graph);
}

std::vector<float> ends_for(const Graph& graph, Dtype dtype) {
  std::vector<double> points(std::begin(kAlways), std::end(kAlways));
  for (const Row& row : rows()) {
    const auto is_of_row = [&](const Node& node) { return node.op == row.op; };
    if (std::ranges::any_of(graph.nodes, is_of_row))
      points.insert(points.end(), row.points.begin(), row.points.end());
  }
  std::vector<float> out;
  for (const double point : points) {
    const bool beyond = std::isfinite(point) && !std::isfinite(rounded(dtype, point));
    if (beyond) continue;
    out.push_back(as_float(point));
    out.push_back(as_float(-point));
  }
  // Others are rounded to a type by each machine in its own way.
  if (dtype == Dtype::f32 || dtype == Dtype::bf16)
    for (const uint32_t bits : kOtherNans)
      out.push_back(std::bit_cast<float>(bits));
  return out;
}
}  // namespace warploom::verify
