// How the constants that kernels read are made of a model's weights.
//
// Loading folds what depends on constants alone: kernels read the folded tensors and never see the
// weights themselves. Whoever wants the same kernels with other weights has to fold again:
//
//   model      y = BatchNormalization(x, scale, bias, mean, variance)
//   kernels    y = x·a + b, with the constants norm/a_channels and norm/b_channels
//   making     deviation = Sqrt(Add(variance, epsilon)), inverse = Reciprocal(deviation),
//              a = Mul(scale, inverse), a_channels = Reshape(a), …
//
// It is found in the model with its weights as inputs (onnx/load.h, open_onnx), in which nothing
// of this is folded: the steps are what stands there between weights and folded tensor. They are
// evaluated with the weights of the model and must give the folded tensor; otherwise it counts as
// not made.
//
// A weight may also reach the outputs past those constants: a single number that is compiled into
// a kernel, a zero that a rule looked at. Such weights are not carried: with another value the
// kernels are wrong.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include "graph/graph.h"

namespace warploom::graph {
struct Making {
  std::set<std::string> carried;  // weights that reach the outputs through `made` alone
  std::set<std::string> made;     // those of the held constants that are weights or follow of them
  Graph steps;  // primitives: inputs are weights, outputs those of `made` that are no weights
};

// `open`: the primitives of a model whose weights are inputs. `weights`: those inputs, with their
// bytes. `held`: the constants that kernels read, as they were folded.
Making making_of(const Graph& open, const std::map<std::string, Tensor>& weights,
                 std::span<const Tensor> held);

// {"carried": [{"name", "dtype", "shape"}], "steps": [{"op", "inputs", "output", "dtype", "shape",
// "attributes"}], "values": {NAME: {"dtype", "shape", "elements"}}}: the last are the constants
// that steps read. An input that is left out is null; infinities are texts.
nlohmann::json to_json(const Making& making, const std::map<std::string, Tensor>& weights);

// decompose() with nothing simplified: every tensor of the graph is still there, by its name.
Result<Graph> written_out(Graph graph);
}  // namespace warploom::graph
