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

// Bytes to a protobuf message: binary or text, with the reason if it is neither.
Result<onnx::ModelProto> parse_model(std::string_view content, const Source& source);
// Each is NAME=lower or NAME=upper, of an input; both: a diagonal. usage with the one that cannot be read or is of no input.
Status assume(onnx::ModelProto& model, const std::vector<std::string>& assumptions);
// A message to an inferred and simplified graph.
Result<graph::Graph> to_graph(const onnx::ModelProto& model, const Source& source);
// An initializer or a Constant's value, its bytes checked against its shape.
Result<graph::Tensor> to_tensor(const onnx::TensorProto& proto, const Source& source);
}  // namespace warploom::onnx_import
