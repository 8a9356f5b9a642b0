// Small models as text, for tests of what becomes of them.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/reference.h"
#include "onnx/load.h"

namespace warploom {
// "input { … }" of a tensor whose dimensions are numbers, names or "?".
inline std::string input_text(const std::string& name, const std::vector<std::string>& dims,
                              int type = 1) {
  std::string text = fmt::format(
      "input {{ name: \"{}\" type {{ tensor_type {{ elem_type: {} shape {{ ", name, type);
  for (const std::string& dim : dims) {
    if (dim == "?")
      text += "dim { } ";
    else if (std::isdigit(static_cast<unsigned char>(dim[0])))
      text += fmt::format("dim {{ dim_value: {} }} ", dim);
    else
      text += fmt::format("dim {{ dim_param: \"{}\" }} ", dim);
  }
  return text + "} } } } ";
}

inline std::string node_text(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs,
                             const std::string& more = "") {
  std::string text = fmt::format("node {{ op_type: \"{}\" ", op);
  for (const std::string& input : inputs)
    text += fmt::format("input: \"{}\" ", input);
  for (const std::string& output : outputs)
    text += fmt::format("output: \"{}\" ", output);
  return text + more + " } ";
}

inline std::string integer_text(const std::string& name, int64_t value) {
  return fmt::format("attribute {{ name: \"{}\" type: INT i: {} }} ", name, value);
}

inline std::string integers_text(const std::string& name, const std::vector<int64_t>& values) {
  std::string text = fmt::format("attribute {{ name: \"{}\" type: INTS ", name);
  for (const int64_t value : values)
    text += fmt::format("ints: {} ", value);
  return text + "} ";
}

inline std::string real_text(const std::string& name, double value) {
  return fmt::format("attribute {{ name: \"{}\" type: FLOAT f: {} }} ", name, value);
}

// A model of these nodes and inputs whose output is y; `more`: beside the graph.
inline std::string model_text(const std::string& body, int opset = 20,
                              const std::string& more = "") {
  return fmt::format(
      "ir_version: 10 opset_import {{ version: {} }} {} graph {{ name: \"g\" {} output {{ name: "
      "\"y\" }} }}",
      opset, more, body);
}

// What the model makes of these numbers, all inputs f32 and of as many elements as there are.
inline std::vector<double> made_of(const std::string& text,
                                   const std::vector<std::vector<float>>& inputs,
                                   const ModelOptions& options = {}) {
  const auto graph = parse_onnx(text, "model", options);
  if (!graph) {
    ADD_FAILURE() << describe(graph.error());
    return {};
  }
  std::vector<graph::Bytes> bytes;
  for (const auto& input : inputs)
    bytes.push_back(std::as_bytes(std::span(input)));
  const auto outputs = graph::evaluate(*graph, bytes);
  if (!outputs) {
    ADD_FAILURE() << describe(outputs.error());
    return {};
  }
  return (*outputs)[0];
}

inline Error refusal_of(const std::string& text, const ModelOptions& options = {}) {
  const auto graph = parse_onnx(text, "model", options);
  return graph ? Error{ErrorCode::kInternal, "the model was accepted"} : graph.error();
}
}  // namespace warploom
