#include "graph_maker.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "fuzz/generator.h"
#include "graph/graph.h"

namespace warploom::fuzz {
namespace {
constexpr int64_t kMostElements = 6000;  // of a tensor
constexpr int64_t kMostProducts = 1
                                  << 20;  // of a contraction or convolution: interpreters are slow

struct Step {
  int weight;
  void (Maker::*make)(TensorId x);
};

constexpr Step kSteps[] = {
    {14, &Maker::convolution},  {8, &Maker::pool},         {7, &Maker::channel_norm},
    {12, &Maker::matmul},       {6, &Maker::gemm},         {16, &Maker::unary},
    {4, &Maker::guarded},       {14, &Maker::binary},      {2, &Maker::jump},
    {3, &Maker::choose},        {3, &Maker::through_type}, {10, &Maker::reduction},
    {1, &Maker::extreme_place}, {6, &Maker::softmax},      {8, &Maker::row_norm},
    {6, &Maker::transpose},     {6, &Maker::reshape},      {2, &Maker::view},
    {5, &Maker::slice},         {5, &Maker::concat},       {4, &Maker::pad},
    {4, &Maker::gather},        {4, &Maker::repeat},       {3, &Maker::split},
    {2, &Maker::blocks},        {4, &Maker::prefixes},     {8, &Maker::siblings},
};
}  // namespace

TensorId Maker::input(Dtype type, Shape shape, Fill fill) {
  const TensorId id = graph.add_tensor(
      {{fmt::format("in{}", graph.tensors.size()), type, std::move(shape)}, std::nullopt});
  graph.inputs.push_back(id);
  fills[id] = fill;
  return id;
}

TensorId Maker::constant(Dtype type, Shape shape, const std::vector<double>& list) {
  std::vector<std::byte> bytes(list.size() * static_cast<size_t>(warploom::bytes_of(type)));
  for (size_t i = 0; i < list.size(); ++i)
    store_from_double(type, bytes.data(), i, list[i]);
  return graph.add_tensor(
      {{fmt::format("c{}", graph.tensors.size()), type, std::move(shape)}, std::move(bytes)});
}

TensorId Maker::integers(const Integers& list) {
  return constant(Dtype::i64, {std::ssize(list)}, {list.begin(), list.end()});
}

TensorId Maker::operand(Shape shape, Fill fill) {
  if (!chance(35)) return input(dtype, std::move(shape), fill);
  std::vector<double> list(static_cast<size_t>(graph::element_count(shape)));
  for (double& value : list)
    value =
        fill.scale * (fill.kind == Fill::positive ? 0.5 + 1.5 * random.uniform() : random.normal());
  return constant(dtype, std::move(shape), list);
}

TensorId Maker::beside(TensorId x, Fill fill) {
  if (chance(35))
    return values[random.below(
        values.size())];  // where it does not stretch, the operator is refused
  Shape s = shape(x);
  if (chance(50)) {
    s.erase(s.begin(), s.begin() + below(std::ssize(s) + 1));
    for (int64_t& d : s)
      if (chance(25)) d = 1;
  }
  return operand(s, fill);
}

std::vector<TensorId> Maker::add_many(OpKind op, std::vector<TensorId> inputs,
                                      Attributes attributes, size_t outputs) {
  std::vector<TensorId> made(outputs, graph::kAbsent);
  if (failed_) return made;
  const std::string name = fmt::format("{}_{}", graph::name_of(op), graph.nodes.size());
  graph::Graph next = graph;
  for (size_t i = 0; i < outputs; ++i)
    made[i] = next.add_tensor({{fmt::format("{}_{}", name, i), dtype, {}}, std::nullopt});
  next.nodes.push_back({op, name, std::move(inputs), made, std::move(attributes)});
  auto inferred = graph::infer(std::move(next));
  const auto fits = [&](TensorId id) {
    const int64_t count = graph::element_count(inferred->tensor(id).shape);
    return count > 0 && count <= kMostElements && inferred->tensor(id).shape.size() <= 6;
  };
  failed_ = !inferred || !std::ranges::all_of(made, fits);
  if (failed_) return made;
  const graph::Node& node = inferred->nodes.back();
  const auto primitive = graph::class_of(op) == graph::OpClass::convolution ||
                         graph::class_of(op) == graph::OpClass::contraction;
  failed_ = primitive && graph::element_count(inferred->tensor(made[0]).shape) *
                                 graph::terms_of(*inferred, node) >
                             kMostProducts;
  graph = std::move(*inferred);
  return made;
}

TensorId Maker::add(OpKind op, std::vector<TensorId> inputs, Attributes attributes) {
  return add_many(op, std::move(inputs), std::move(attributes), 1)[0];
}

TensorId Maker::cast(TensorId x, Dtype to) {
  return add(OpKind::Cast, {x}, {{"to", int64_t{onnx_type_of(to)}}});
}

bool Maker::step(size_t most_nodes) {
  const auto before = std::tuple(graph, fills, values);
  const TensorId x = chance(70) ? values.back() : values[random.below(values.size())];
  int total = 0;
  for (const Step& s : kSteps)
    total += s.weight;
  auto drawn = static_cast<int>(below(total));
  const Step* chosen = kSteps;
  while (drawn >= chosen->weight)
    drawn -= (chosen++)->weight;
  failed_ = false;
  (this->*chosen->make)(x);
  if (!failed_ && graph.nodes.size() <= most_nodes) return true;
  std::tie(graph, fills, values) = before;
  return false;
}
}  // namespace warploom::fuzz
