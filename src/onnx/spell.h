// Models spelled as text: for those who have no ONNX file yet.
//
//   softmax(x[4096,65536])
//   relu(conv(x[100,3,224,224], w[96,3,11,11], b[96], strides=4, pads=2))
//   h = conv(x[1,3,32,32], w[8,3,3,3]); mul(h, sigmoid(h))
//   s = q[8,128,64]:bf16 @ k[8,64,128]:bf16 * 0.125; p = softmax(s) -> s, p
//
// Statements stand on lines of their own or between semicolons; # begins a comment. `h = …` names a
// value, which may be used again; `a, b = split(…)` names several. What the model gives is the last
// statement's value, under its own name or else y; `-> s, p` behind the last statement says which
// named values it gives instead.
//
//   x[64,512]:bf16   an input, where it is first named: its shape, its type, else the default one
//   x                the same again, or a named value
//   relu(x)          a function or an ONNX operator, in capitals or not, with or without _
//   conv(x, w, pads=1)  operands in order, attributes and a function's arguments by name
//   a + b, a - b, a * b, a / b, a @ b (matmul), a ** b, -a, a < b, a <= b, a > b, a >= b, a == b
//   2.5              a number: among operands a constant, of the type of the tensor beside it
//   [0, -1]          a list: of axes or sizes; among operands a constant of i64
//   _                an operand left out
//   bf16(x), i64(3)  a cast to a type; of numbers a constant of it
//   extent(x, -1)    the size of an axis, as a number; rank(x) how many axes there are
//
// Equal parts are written once, however often they are spelled. The functions are those of
// resources/new/functions.json, written in this language; catalogue() lists them.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include "graph/graph.h"

namespace warploom {
struct SpelledModel {
  // a ModelProto in protobuf's two forms
  std::string binary;
  std::string text;
  graph::Graph graph;  // as load_onnx() would give it
};

// usage where the text cannot be read, and the codes of infer() (graph/graph.h) where operators and
// tensors do not fit; the place is the column, shown in its line.
Result<SpelledModel> spell_onnx(std::string_view text, std::string_view name, Dtype dtype);

// One function or operator that texts may use.
struct Spelling {
  std::string group;      // "Attention", "ONNX operators"
  std::string name;       // "conv2d"
  std::string arguments;  // "x, w, b=_, strides=1, pads=0, dilations=1, groups=1"
  std::string meaning;    // "" of an operator: it is ONNX's
  std::string example;    // a text that is a model: "conv2d(x[1,3,32,32], w[8,3,3,3], pads=1)"
};

// All of them, functions first; several rows of one name differ in their arguments.
std::vector<Spelling> catalogue();
}  // namespace warploom
