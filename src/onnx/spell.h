// Models spelled as one expression: for those who have no ONNX file yet.
//
//   softmax(x[4096,65536])
//   relu(conv(x[100,3,224,224], w[96,3,11,11], b[96], strides=[4,4], pads=[2,2,2,2]))
//   layernormalization(add(x[16,512,768], r[16,512,768]), g[768], b[768], axis=-1)
//   clip(matmul(x[64,512]:f16, w[512,256]:f16), 0, 6)
//
// A name with a shape is an input, of the type after its colon or else of the default one; where it comes again it needs no shape. An
// operator's name is ONNX's, in capitals or not; its attributes are given by name. A number among its operands is a constant of one
// element of the default type, a list a constant of i64 (axes, shapes), `_` an operand left out. The result is named y.
#pragma once
#include "graph/graph.h"
namespace warploom {
struct SpelledModel {
  std::string binary, text;  // a ModelProto in protobuf's two forms
  graph::Graph graph;        // as load_onnx() would give it
};
// usage with the column where the expression cannot be read; the importer's errors where it makes no valid model.
Result<SpelledModel> spell_onnx(std::string_view expression, std::string_view name, Dtype dtype);
}  // namespace warploom
