// Graphs by hand.
#pragma once
#include <fmt/format.h>
#include <map>
#include <optional>
#include <span>
#include "graph/graph.h"

namespace warploom::graph {
// A small builder: tensors and nodes by hand, then finish() = infer.
//   Builder b("mm"); auto x = b.input("x", Dtype::f32, {4, 8}); auto w = b.input("w", Dtype::f32,
//   {8, 2}); b.output(b.add(OpKind::MatMul, {x, w})); Result<Graph> graph = b.finish();
class Builder {
 public:
  explicit Builder(std::string name) { graph_.name = std::move(name); }

  TensorId input(std::string name, Dtype dtype, Shape shape);
  TensorId constant(std::string name, Dtype dtype, Shape shape, std::span<const double> values);
  TensorId integers(std::string name, std::span<const int64_t> values);  // 1-D, i64
  TensorId add(OpKind op, std::vector<TensorId> inputs,
               std::map<std::string, Attribute> attributes = {});

  void output(TensorId id) { graph_.outputs.push_back(id); }

  Result<Graph> finish();

 private:
  Graph graph_;
};

inline TensorId Builder::input(std::string name, Dtype dtype, Shape shape) {
  const TensorId id = graph_.add_tensor({{std::move(name), dtype, std::move(shape)}, std::nullopt});
  graph_.inputs.push_back(id);
  return id;
}

inline TensorId Builder::constant(std::string name, Dtype dtype, Shape shape,
                                  std::span<const double> values) {
  std::vector<std::byte> bytes(values.size() * static_cast<size_t>(bytes_of(dtype)));
  for (size_t i = 0; i < values.size(); ++i)
    store_from_double(dtype, bytes.data(), i, values[i]);
  return graph_.add_tensor({{std::move(name), dtype, std::move(shape)}, std::move(bytes)});
}

inline TensorId Builder::integers(std::string name, std::span<const int64_t> values) {
  const auto bytes = std::as_bytes(values);
  return graph_.add_tensor({{std::move(name), Dtype::i64, {static_cast<int64_t>(values.size())}},
                            std::vector<std::byte>(bytes.begin(), bytes.end())});
}

inline TensorId Builder::add(OpKind op, std::vector<TensorId> inputs,
                             std::map<std::string, Attribute> attributes) {
  const std::string name = fmt::format("{}_{}", name_of(op), graph_.nodes.size());
  const TensorId out = graph_.add_tensor({{name + "_out", Dtype::f32, {}}, std::nullopt});
  graph_.nodes.push_back({op, name, std::move(inputs), {out}, std::move(attributes)});
  return out;
}

inline Result<Graph> Builder::finish() {
  return infer(graph_);
}
}  // namespace warploom::graph
