// Parts of the importer, in the order in which a model goes through them. Private to the room.
//
//   load.cpp        bytes or text to a message, with what the user says of it
//   dims.cpp        sizes for the dimensions that the model leaves open
//   flatten…cpp     functions, branches, loops and sequences become plain nodes
//   conversion…cpp  nodes of older operator sets in the form of the present ones
//   model.cpp       nodes and tensors to a graph
//   tensors.cpp     elements of tensors, also those in files of their own
//   unsupported.cpp what to say of an operator that is not supported
#pragma once
#include <onnx/onnx.pb.h>
#include <filesystem>
#include "graph/graph.h"

namespace warploom::onnx_import {
struct Source {
  std::string place;  // of the file, for messages
  // Where external data may lie: the folder in which the model was named and, where that name is a
  // link, the folder of the file that it leads to. Empty: nowhere.
  std::vector<std::filesystem::path> folders = {};
};

// "model.onnx: node 'mm'"
std::string place_of(const Source& source, std::string_view kind, std::string_view name);

// onnx-opset where the version of the default domain's operator set is none that is read.
Status checked_opset(int64_t version, const std::string& place);

// Sizes for the dimensions that a model's inputs leave open, "NAME=SIZE" or "INPUT.AXIS=SIZE".
// Errors: usage, flags-contradict. (dims.cpp)
Status bind_dims(onnx::ModelProto& model, const std::vector<std::string>& sizes);
// onnx-dynamic-shape where some are open still, with what to say of each. (dims.cpp)
Status all_dims_known(const onnx::ModelProto& model, const Source& source);

// A message to an inferred and simplified graph; or to one that is inferred alone, in which every
// tensor of the message has its name.
Result<graph::Graph> to_graph(const onnx::ModelProto& model, const Source& source,
                              bool simplified = true);

// Numbers of 4 bits, which are read as bytes: to_tensor() gives i8 or u8.
bool is_of_four_bits(const onnx::TensorProto& proto);

// An initializer or a Constant's value, its bytes checked against its shape.
Result<graph::Tensor> to_tensor(const onnx::TensorProto& proto, const Source& source);

// The value of a Constant; the short forms are written out as a tensor. (tensors.cpp)
Result<onnx::TensorProto> constant_value(const onnx::AttributeProto& attribute,
                                         const std::string& place);

// Calls use(graph) for each graph that a node's attributes hold, those within these not included.
template <class Node, class Use> void for_subgraphs(Node& node, const Use& use) {
  for (int i = 0; i < node.attribute_size(); ++i) {
    if constexpr (std::is_const_v<Node>) {
      if (node.attribute(i).has_g()) use(node.attribute(i).g());
      for (const auto& graph : node.attribute(i).graphs())
        use(graph);
    } else {
      if (node.attribute(i).has_g()) use(*node.mutable_attribute(i)->mutable_g());
      for (auto& graph : *node.mutable_attribute(i)->mutable_graphs())
        use(graph);
    }
  }
}

inline bool is_default_domain(std::string_view domain) {
  return domain.empty() || domain == "ai.onnx";
}
}  // namespace warploom::onnx_import
