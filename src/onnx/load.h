// ONNX models in, graphs out.
//
// load_onnx() reads a model in protobuf's binary form or in its text form; the content decides
// which, never the file's name. The graph it gives has been checked, has every shape and type, and
// has been simplified (graph.h). Opsets 1 to 28 of the default domain are read; any IR version is.
// Functions of the model are inlined, an If whose condition the model itself decides is the branch
// that it takes, and a loop its body once for each step. Nothing of ONNX's own checker or shape
// inference is used.
//
//   WARPLOOM_TRY(graph::Graph graph, load_onnx("model.onnx"));
//   WARPLOOM_TRY(graph::Graph graph, load_onnx("model.onnx", {.dims = {"batch=4", "x.2=224"}}));
//
// Limits, so that a hostile file costs little: 2 GiB a file, 2^40 elements a tensor, 16 axes,
// nesting as protobuf limits it. A tensor's bytes must really be there: a file that claims more is
// refused before anything is allocated. External data is read only from regular files inside the
// folder in which the model is named or, where that name is a link, that of the file it leads to;
// links resolved.
//
// Errors (place names the file, then the node or tensor): file-missing, file-unreadable, and every
// onnx-... code of base/error_codes.def. An operator that is not supported is named together with
// those that are.
#pragma once
#include <filesystem>
#include <map>
#include <set>
#include "graph/graph.h"

namespace warploom {
// What a user says of a model that its file does not.
struct ModelOptions {
  // What its inputs are besides, NAME=lower or NAME=upper: a triangle of each matrix beyond which
  // elements count as 0.
  std::vector<std::string> assume;
  // Sizes of the dimensions that it leaves open: NAME=SIZE, by the name that the model gives them,
  // or INPUT.AXIS=SIZE.
  std::vector<std::string> dims;
};

// A model file with its external data. usage where an option cannot be read, or is of no input or
// dimension that there is; flags-contradict where one dimension gets two sizes.
Result<graph::Graph> load_onnx(const std::filesystem::path& path, const ModelOptions& options = {});

// The same from memory: binary or text, without external data.
Result<graph::Graph> parse_onnx(std::string_view content, const std::string& place = "model",
                                const ModelOptions& options = {});

// The model of a file in text form, with its external data and with what the options say of it:
// parse_onnx() of it gives the same graph as load_onnx() of the file.
Result<std::string> onnx_text(const std::filesystem::path& path, const ModelOptions& options = {});

// A model whose weights are inputs: every floating-point constant of its file, as far as no
// operator wants to know it. The graph is of primitives, and every tensor has the name that it has
// where the weights are constants, so that graph::making_of() can say how a constant that kernels
// read is made of weights.
struct OpenModel {
  graph::Graph graph;
  std::map<std::string, graph::Tensor> weights;  // with their bytes, by name
};

Result<OpenModel> open_onnx(const std::filesystem::path& path, const ModelOptions& options = {});

// The model of a file in protobuf's binary form without the bytes of the weights `carried`. A
// bundle keeps it: an export of another module that differs from it in those bytes alone computes
// the same with other weights.
Result<std::string> onnx_outline(const std::filesystem::path& path,
                                 const std::set<std::string>& carried);
}  // namespace warploom
