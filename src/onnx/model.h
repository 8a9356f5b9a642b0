// Parts of the importer. Private to the room.
#pragma once
#include <onnx/onnx.pb.h>
#include <filesystem>
#include "graph/graph.h"

namespace warploom::onnx_import {
struct Source {
  std::string place;             // of the file, for messages
  std::filesystem::path folder;  // where external data may lie; empty: nowhere
};

// A message to an inferred and simplified graph; or to one that is inferred alone, in which every
// tensor of the message has its name.
Result<graph::Graph> to_graph(const onnx::ModelProto& model, const Source& source,
                              bool simplified = true);
// An initializer or a Constant's value, its bytes checked against its shape.
Result<graph::Tensor> to_tensor(const onnx::TensorProto& proto, const Source& source);
}  // namespace warploom::onnx_import
