// The graph of a spelled model as it grows, and the ModelProto of it. Private to the room.
#pragma once
#include <onnx/onnx.pb.h>
#include <map>
#include <set>
#include "graph/operators.h"

namespace warploom::spell {
using Attributes = std::map<std::string, graph::Attribute>;

// Nodes, inputs and constants, each inferred when it is added; what is there already is not added
// again.
class ModelWriter {
 public:
  // Names that the text uses, which no tensor may be given but by the text.
  explicit ModelWriter(std::set<std::string> reserved) : reserved_(std::move(reserved)) {}

  const graph::Tensor& tensor(graph::TensorId id) const { return graph_.tensor(id); }

  graph::TensorId input(const std::string& name, Dtype dtype, const graph::Shape& shape);
  // Of one element, or a list.
  graph::TensorId constant(Dtype dtype, const std::vector<double>& values, bool scalar);
  // The outputs of a node, so many. The codes of infer() where it does not fit.
  Result<std::vector<graph::TensorId>> node(graph::OpKind op, std::vector<graph::TensorId> inputs,
                                            const Attributes& attributes, size_t outputs = 1);

  // Gives what a node made a name of the text's, where it has none yet.
  void name(graph::TensorId id, const std::string& name);
  // What the model gives, in order; each under this name.
  Status output(graph::TensorId id, const std::string& name);
  // A name of the model's own: "t3".
  std::string fresh(std::string_view prefix, size_t number) const;

  bool empty() const { return nodes_.empty(); }

  onnx::ModelProto model(std::string_view name) const;

 private:
  struct Made {
    graph::OpKind op;
    std::vector<graph::TensorId> inputs;
    std::vector<graph::TensorId> outputs;
    Attributes attributes;  // those that were given
  };

  graph::Graph graph_;  // tensors alone
  std::vector<Made> nodes_;
  std::vector<graph::TensorId> inputs_;
  std::vector<graph::TensorId> constants_;
  std::vector<graph::TensorId> outputs_;
  std::set<std::string> reserved_;
  std::set<graph::TensorId> named_;  // by the text
  std::map<std::string, std::vector<graph::TensorId>>
      known_;  // nodes and constants by what they are
};
}  // namespace warploom::spell
