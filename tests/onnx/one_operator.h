// Models of one operator, their inputs given as numbers of any type, for tests of what it makes.
//
//   Case softmax{"Softmax", {f32({2, 3}, {1, 2, 3, 4, 5, 6})}, {whole("axis", 1)}};
//   made(softmax)[0]          the elements of its first output
//   refusal(softmax).code     where it is refused
#pragma once
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "onnx/load.h"

namespace warploom {
using Numbers = std::vector<double>;
using Dims = std::vector<int64_t>;

struct Given {
  Dtype dtype = Dtype::f32;
  Dims dims;
  Numbers values;
  bool constant = false;  // an initializer
  bool absent = false;    // an optional input left out
};

inline Given f32(Dims dims, Numbers values) {
  return {Dtype::f32, std::move(dims), std::move(values)};
}

inline Given of(Dtype dtype, Dims dims, Numbers values) {
  return {dtype, std::move(dims), std::move(values)};
}

inline Given known(Given given) {
  given.constant = true;
  return given;
}

inline Given left_out() {
  return {Dtype::f32, {}, {}, false, true};
}

inline int64_t count_of(const Dims& dims) {
  return graph::element_count(dims);
}

// Numbers in (-1, 1), exact in f32.
inline Given drawn(Dims dims, uint64_t seed = 1) {
  Random random(seed, "drawn");
  Numbers values(static_cast<size_t>(count_of(dims)));
  for (double& value : values)
    value = std::floor((2 * random.uniform() - 1) * 4096) / 4096;
  return f32(std::move(dims), std::move(values));
}

inline std::string whole(std::string_view name, int64_t value) {
  return fmt::format("attribute {{ name: \"{}\" type: INT i: {} }} ", name, value);
}

inline std::string real(std::string_view name, double value) {
  return fmt::format("attribute {{ name: \"{}\" type: FLOAT f: {} }} ", name, value);
}

inline std::string text(std::string_view name, std::string_view value) {
  return fmt::format("attribute {{ name: \"{}\" type: STRING s: \"{}\" }} ", name, value);
}

inline std::string wholes(std::string_view name, const Dims& values) {
  std::string made = fmt::format("attribute {{ name: \"{}\" type: INTS ", name);
  for (const int64_t value : values)
    made += fmt::format("ints: {} ", value);
  return made + "} ";
}

struct Case {
  std::string op;
  std::vector<Given> inputs;
  std::vector<std::string> attributes = {};
  int outputs = 1;
  int opset = 28;
  std::string domain = {};
};

inline std::vector<std::byte> packed(const Given& given) {
  std::vector<std::byte> bytes(given.values.size() * static_cast<size_t>(bytes_of(given.dtype)));
  for (size_t i = 0; i < given.values.size(); ++i)
    store_from_double(given.dtype, bytes.data(), i, given.values[i]);
  return bytes;
}

inline std::string text_of(const Case& of) {
  std::string body =
      fmt::format("node {{ op_type: \"{}\" domain: \"{}\" name: \"n\" ", of.op, of.domain);
  std::string declared;
  for (size_t i = 0; i < of.inputs.size(); ++i) {
    const Given& given = of.inputs[i];
    body += given.absent ? "input: \"\" " : fmt::format("input: \"x{}\" ", i);
    if (given.absent) continue;
    const int type = onnx_type_of(given.dtype);
    if (given.constant) {
      declared += fmt::format("initializer {{ name: \"x{}\" data_type: {} ", i, type);
      for (const int64_t dim : given.dims)
        declared += fmt::format("dims: {} ", dim);
      std::string raw;
      for (const std::byte byte : packed(given))
        raw += fmt::format("\\{:03o}", static_cast<unsigned>(byte));
      declared += fmt::format("raw_data: \"{}\" }} ", raw);
      continue;
    }
    declared += fmt::format("input {{ name: \"x{}\" type {{ tensor_type {{ elem_type: {} shape {{ ",
                            i, type);
    for (const int64_t dim : given.dims)
      declared += fmt::format("dim {{ dim_value: {} }} ", dim);
    declared += "} } } } ";
  }
  for (int i = 0; i < of.outputs; ++i) {
    body += fmt::format("output: \"y{}\" ", i);
    declared += fmt::format("output {{ name: \"y{}\" }} ", i);
  }
  for (const std::string& attribute : of.attributes)
    body += attribute;
  return fmt::format(
      "ir_version: 10 opset_import {{ version: {} }} graph {{ name: \"g\" {} }} {} }}", of.opset,
      body, declared);
}

struct Made {
  std::vector<Numbers> values;
  std::vector<Dims> dims;
  std::vector<Dtype> dtypes;

  const Numbers& operator[](size_t i) const { return values[i]; }
};

// What the reference makes of it; nothing, and a failure, where it is refused.
inline Made made(const Case& of) {
  const auto graph = parse_onnx(text_of(of));
  if (!graph) {
    ADD_FAILURE() << of.op << ": " << describe(graph.error());
    return {std::vector<Numbers>(static_cast<size_t>(of.outputs)), {}, {}};
  }
  std::vector<std::vector<std::byte>> bytes;
  for (const graph::TensorId id : graph->inputs) {
    const auto number = std::stoul(graph->tensor(id).name.substr(1));
    bytes.push_back(packed(of.inputs[number]));
  }
  const auto outputs =
      graph::evaluate(*graph, std::vector<graph::Bytes>(bytes.begin(), bytes.end()));
  if (!outputs) {
    ADD_FAILURE() << of.op << ": " << describe(outputs.error());
    return {std::vector<Numbers>(static_cast<size_t>(of.outputs)), {}, {}};
  }
  Made result{*outputs, {}, {}};
  for (const graph::TensorId id : graph->outputs) {
    result.dims.push_back(graph->tensor(id).shape);
    result.dtypes.push_back(graph->tensor(id).dtype);
  }
  return result;
}

inline Error refusal(const Case& of) {
  const auto graph = parse_onnx(text_of(of));
  return graph ? Error{ErrorCode::kInternal, "the model was accepted"} : graph.error();
}

inline void expect_close(const Numbers& found, const Numbers& wanted, double relative = 1e-9) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], relative * std::max(1.0, std::fabs(wanted[i]))) << "at " << i;
}
}  // namespace warploom
