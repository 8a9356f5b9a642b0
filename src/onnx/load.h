// ONNX models in, graphs out.
//
// load_onnx() reads a model in protobuf's binary form or in its text form; the content decides which, never the file's
// name. The graph it gives has been checked, has every shape and type, and has been simplified (graph.h). Opsets 13 to 23
// of the default domain are read; any IR version is. Nothing of ONNX's own checker or shape inference is used.
//
//   WARPLOOM_TRY(graph::Graph graph, load_onnx("model.onnx"));
//
// Limits, so that a hostile file costs little: 2 GiB a file, 2^40 elements a tensor, 16 axes, nesting as protobuf limits
// it. A tensor's bytes must really be there: a file that claims more is refused before anything is allocated. External
// data is read only from regular files inside the model's own folder, links resolved.
//
// Errors (place names the file, then the node or tensor): file-missing, file-unreadable, and every onnx-... code of
// base/error_codes.def. An operator that is not supported is named together with those that are.
#pragma once
#include <filesystem>
#include "graph/graph.h"
namespace warploom {
// A model file with its external data.
Result<graph::Graph> load_onnx(const std::filesystem::path& path);

// The same from memory: binary or text. `folder` is where external data may lie; empty: nowhere.
Result<graph::Graph> parse_onnx(std::string_view content, std::string_view place = "model",
                                const std::filesystem::path& folder = {});

// The model of a file in text form, with its external data: parse_onnx() of it gives the same graph as load_onnx() of the file.
Result<std::string> onnx_text(const std::filesystem::path& path);
}  // namespace warploom
