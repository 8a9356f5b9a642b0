#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/random.h"
#include "fuzz/generator.h"
#include "fuzz/graph_case.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "graph_maker.h"

namespace warploom::fuzz {
namespace {
// What a network is given first: an image, a sequence, rows, a vector.
Shape first_shape(Maker& m) {
  switch (m.below(8)) {
    case 0: return {m.size(), m.size()};
    case 1: return {m.size(), m.size()};
    case 2: return {1 + m.below(3), m.any<int64_t>({5, 8, 12, 16, 20}), m.size()};
    case 3: return {1 + m.below(3), m.any<int64_t>({1, 2, 3, 4, 6, 8}), 4 + m.below(40)};
    case 4:
      return {1 + m.below(2), m.any<int64_t>({1, 2, 3, 4, 6}), 3 + m.below(5), 3 + m.below(5),
              3 + m.below(5)};
    case 5:
      return m.chance(50) ? Shape{m.size() * m.any<int64_t>({1, 3, 20})}
                          : Shape{2, 2, m.size(), m.size()};
    default:
      return {1 + m.below(3), m.any<int64_t>({1, 2, 3, 4, 6, 8, 12, 16}), 4 + m.below(12),
              4 + m.below(12)};
  }
}

double number_of(const Fill& how, Random& random) {
  switch (how.kind) {
    case Fill::whole: return static_cast<double>(random.below(static_cast<uint64_t>(how.scale)));
    case Fill::positive: return how.scale * (0.5 + 1.5 * random.uniform());
    case Fill::normal: return how.scale * random.normal();
  }
  return 0;
}

void fill(GraphCase& c, const Maker& m, uint64_t attempt) {
  for (const TensorId id : m.graph.inputs) {
    const graph::Tensor& tensor = m.graph.tensor(id);
    const Fill how = m.fills.at(id);
    Random random(c.seed + (attempt << 40), tensor.name);
    auto& bytes = c.inputs.emplace_back(static_cast<size_t>(graph::byte_count(tensor)));
    for (size_t i = 0; i < static_cast<size_t>(graph::element_count(tensor.shape)); ++i) {
      store_from_double(tensor.dtype, bytes.data(), i, number_of(how, random));
    }
  }
}

// What nobody reads goes out, and now and then what somebody does.
void choose_outputs(Maker& m) {
  std::set<TensorId> read;
  for (const graph::Node& node : m.graph.nodes)
    read.insert(node.inputs.begin(), node.inputs.end());
  for (const graph::Node& node : m.graph.nodes)
    for (const TensorId id : node.outputs)
      if (!read.contains(id) || m.chance(8)) m.graph.outputs.push_back(id);
}

bool has_contraction(const graph::Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const graph::Node& node) {
    return graph::class_of(node.op) == graph::OpClass::contraction ||
           graph::class_of(node.op) == graph::OpClass::convolution;
  });
}

std::optional<GraphCase> attempt_at(uint64_t seed, uint64_t attempt) {
  Random random(seed + (attempt << 40), "graph");
  static constexpr Dtype kTypes[] = {Dtype::f32, Dtype::f32, Dtype::f32, Dtype::f32, Dtype::f32,
                                     Dtype::f32, Dtype::f32, Dtype::f32, Dtype::f16, Dtype::bf16};
  Maker maker(random, kTypes[random.below(std::size(kTypes))]);
  const size_t nodes = 1 + random.below(6);
  maker.values.push_back(maker.input(maker.dtype, first_shape(maker),
                                     {maker.chance(15) ? Fill::positive : Fill::normal, 1}));
  for (int i = 0; i < 200 && maker.graph.nodes.size() < nodes; ++i)
    maker.step(nodes);
  if (maker.graph.nodes.size() < nodes) return std::nullopt;
  choose_outputs(maker);
  GraphCase c{.seed = seed};
  maker.graph.name = "random";
  auto simple = graph::simplify(maker.graph);
  if (!simple || simple->nodes.empty() || simple->inputs.size() != maker.graph.inputs.size())
    return std::nullopt;
  for (const TensorId id : simple->outputs)  // folded, or another name of an input
    if (simple->producer(id) < 0) return std::nullopt;
  c.graph = std::move(*simple);
  c.track = Track::fp32;
  if (maker.dtype == Dtype::f16) c.track = Track::fp16;
  if (maker.dtype == Dtype::bf16) c.track = Track::bf16;
  if (c.track == Track::fp32 && has_contraction(c.graph) && maker.chance(15)) c.track = Track::tf32;
  fill(c, maker, attempt);
  c.targets = {"cpu", std::array{"sm_80", "sm_89", "sm_90a"}[seed % 3]};
  return is_sound(c) ? std::optional(std::move(c)) : std::nullopt;
}

bool jumps(const graph::Graph& graph, const graph::Node& node) {
  static const std::set<OpKind> kJump = {OpKind::Floor, OpKind::Ceil, OpKind::Round, OpKind::Sign,
                                         OpKind::ThresholdedRelu};
  return kJump.contains(node.op) || !is_float(graph.tensor(node.outputs[0]).dtype) ||
         (node.op == OpKind::Cast &&
          unit_roundoff(graph.tensor(node.outputs[0]).dtype) > unit_roundoff(Dtype::f32));
}

// A graph with all that its nodes make as outputs.
struct Opened {
  explicit Opened(const graph::Graph& of) : graph(of) {
    graph.outputs.clear();
    for (const graph::Node& node : graph.nodes)
      for (const TensorId id : node.outputs) {
        if (id == graph::kAbsent) continue;
        graph.outputs.push_back(id);
        discrete.push_back(jumps(graph, node));
      }
  }

  graph::Graph graph;
  std::vector<bool> discrete;  // by output: whether it jumps
};

using Numbers = std::vector<std::vector<double>>;  // by output

bool are_within(const Numbers& numbers, double most) {
  for (const auto& list : numbers)
    for (const double value : list)
      if (!(std::fabs(value) <= most)) return false;
  return true;
}

// The same with inputs that are a little other ones.
GraphCase nearby(const GraphCase& c) {
  GraphCase near = c;
  Random random(c.seed, "near");
  for (size_t i = 0; i < near.inputs.size(); ++i) {
    if (c.graph.tensor(c.graph.inputs[i]).dtype != Dtype::f32) continue;
    std::byte* const bytes = near.inputs[i].data();
    for (size_t at = 0; at < near.inputs[i].size() / 4; ++at) {
      const double value = load_as_double(Dtype::f32, bytes, at);
      const double factor = 1 + 4e-5 * (random.uniform() - 0.5);
      store_from_double(Dtype::f32, bytes, at, value * factor);
    }
  }
  return near;
}

bool are_close(const std::vector<double>& values, const std::vector<double>& others) {
  for (size_t i = 0; i < values.size(); ++i)
    if (std::fabs(values[i] - others[i]) > 1e-3 * (std::fabs(values[i]) + 0.1)) return false;
  return true;
}

// Whether what jumps does not where the inputs change a little.
bool holds_nearby(const GraphCase& c, const Opened& open, const Numbers& values) {
  if (std::ranges::find(open.discrete, true) == open.discrete.end()) return true;
  const GraphCase near = nearby(c);
  const auto others = graph::evaluate(open.graph, bytes_of(near), 1);
  if (!others) return false;
  for (size_t o = 0; o < open.discrete.size(); ++o)
    if (open.discrete[o] && !are_close(values[o], (*others)[o])) return false;
  return true;
}

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value * value;
  return sum;
}

// Whether an output's terms do not cancel: their squares are at most so many times its own.
bool keeps_its_terms(const GraphCase& c, size_t number, double most) {
  const auto output = static_cast<int>(number);
  const int64_t rows = graph::rows_of(c.graph, output).count;
  const auto known = graph::evaluate_magnitude_rows(c.graph, bytes_of(c), output, 0, rows, 1);
  return known && sum_of_squares(known->magnitude) <= most * sum_of_squares(known->value);
}
}  // namespace

GraphCase make_graph_case(uint64_t seed) {
  for (uint64_t attempt = 0;; ++attempt)
    if (auto c = attempt_at(seed, attempt)) return std::move(*c);
}

std::vector<graph::Bytes> bytes_of(const GraphCase& c) {
  return {c.inputs.begin(), c.inputs.end()};
}

bool is_sound(const GraphCase& c) {
  const bool narrow = c.track == Track::fp16 || c.track == Track::bf16;
  const Opened open(c.graph);
  const auto values = graph::evaluate(open.graph, bytes_of(c), 1);
  if (!values || !are_within(*values, narrow ? 500 : 1e4)) return false;
  if (!narrow && !holds_nearby(c, open, *values)) return false;
  for (size_t o = 0; o < c.graph.outputs.size(); ++o)
    if (!keeps_its_terms(c, o, narrow ? 1e4 : 1e6)) return false;
  return true;
}
}  // namespace warploom::fuzz
