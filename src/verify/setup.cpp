#include "verify/setup.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace warploom::verify {
namespace {

using nlohmann::json;

json attribute_to(const graph::Attribute& attribute) {
  // The alternative's number goes along: a real 1.0 must not come back as an integer.
  return std::visit([&](const auto& value) { return json{{"kind", attribute.index()}, {"value", value}}; }, attribute);
}
graph::Attribute attribute_from(const json& row) {
  const json& value = row.at("value");
  switch (row.at("kind").get<int>()) {
    case 0: return value.get<std::int64_t>();
    case 1: return value.get<double>();
    case 2: return value.get<std::string>();
    default: return value.get<std::vector<std::int64_t>>();
  }
}

json graph_to(const graph::Graph& graph) {
  json tensors = json::array(), nodes = json::array();
  for (const auto& tensor : graph.tensors) {
    json row = {{"name", tensor.name}, {"dtype", static_cast<int>(tensor.dtype)}, {"shape", tensor.shape}};
    if (tensor.constant) {
      std::vector<std::uint8_t> bytes(tensor.constant->size());
      std::memcpy(bytes.data(), tensor.constant->data(), bytes.size());
      row["constant"] = json::binary(std::move(bytes));
    }
    tensors.push_back(std::move(row));
  }
  for (const auto& node : graph.nodes) {
    json attributes = json::object();
    for (const auto& [key, value] : node.attributes) attributes[key] = attribute_to(value);
    nodes.push_back({{"op", graph::name_of(node.op)},
                     {"name", node.name},
                     {"inputs", node.inputs},
                     {"outputs", node.outputs},
                     {"attributes", std::move(attributes)}});
  }
  return {{"name", graph.name},
          {"tensors", tensors},
          {"nodes", nodes},
          {"inputs", graph.inputs},
          {"outputs", graph.outputs}};
}

graph::Graph graph_from(const json& text) {
  graph::Graph graph;
  graph.name = text.at("name");
  for (const auto& row : text.at("tensors")) {
    graph::Tensor tensor;
    tensor.name = row.at("name");
    tensor.dtype = static_cast<Dtype>(row.at("dtype").get<int>());
    tensor.shape = row.at("shape").get<graph::Shape>();
    if (row.contains("constant")) {
      const auto& bytes = row["constant"].get_binary();
      tensor.constant.emplace(bytes.size());
      std::memcpy(tensor.constant->data(), bytes.data(), bytes.size());
    }
    graph.tensors.push_back(std::move(tensor));
  }
  for (const auto& row : text.at("nodes")) {
    graph::Node node;
    node.op = graph::op_named(row.at("op").get<std::string>()).value_or(graph::OpKind::Identity);
    node.name = row.at("name");
    node.inputs = row.at("inputs").get<std::vector<int>>();
    node.outputs = row.at("outputs").get<std::vector<int>>();
    for (const auto& [key, value] : row.at("attributes").items()) node.attributes[key] = attribute_from(value);
    graph.nodes.push_back(std::move(node));
  }
  graph.inputs = text.at("inputs").get<std::vector<int>>();
  graph.outputs = text.at("outputs").get<std::vector<int>>();
  return graph;
}

json reference_to(const Reference& reference) {
  const runtime::VendorProblem& p = reference.problem;
  return {{"buffers", reference.buffers},
          {"kind", static_cast<int>(p.kind)},
          {"sizes", {p.batch, p.m, p.n, p.k, p.rows, p.cols}},
          {"flags", {p.transpose_a, p.transpose_b, p.batched_a, p.batched_b, p.tf32}},
          {"types", {static_cast<int>(p.in), static_cast<int>(p.out), static_cast<int>(p.bias_dtype)}},
          {"bias", static_cast<int>(p.bias)},
          {"activation", static_cast<int>(p.activation)}};
}

Reference reference_from(const json& row) {
  Reference out;
  out.buffers = row.at("buffers").get<std::map<std::string, std::string>>();
  runtime::VendorProblem& p = out.problem;
  p.kind = static_cast<runtime::VendorKind>(row.at("kind").get<int>());
  const auto sizes = row.at("sizes").get<std::vector<std::int64_t>>();
  p.batch = sizes.at(0), p.m = sizes.at(1), p.n = sizes.at(2), p.k = sizes.at(3), p.rows = sizes.at(4),
  p.cols = sizes.at(5);
  const auto flags = row.at("flags").get<std::vector<bool>>();
  p.transpose_a = flags.at(0), p.transpose_b = flags.at(1), p.batched_a = flags.at(2), p.batched_b = flags.at(3);
  p.tf32 = flags.at(4);
  const auto types = row.at("types").get<std::vector<int>>();
  p.in = static_cast<Dtype>(types.at(0)), p.out = static_cast<Dtype>(types.at(1));
  p.bias_dtype = static_cast<Dtype>(types.at(2));
  p.bias = static_cast<runtime::BiasKind>(row.at("bias").get<int>());
  p.activation = static_cast<runtime::Activation>(row.at("activation").get<int>());
  return out;
}

double rate_of(const target::Capabilities& capabilities, Track track) {
  switch (track) {
    case Track::fp32: return std::max(capabilities.fp32_tflops, capabilities.tf32_tflops / 3);  // three-term products
    case Track::tf32: return std::max(capabilities.fp32_tflops, capabilities.tf32_tflops);
    case Track::fp8: return std::max(capabilities.half_tflops, capabilities.fp8_tflops);
    default: return std::max({capabilities.fp32_tflops, capabilities.tf32_tflops, capabilities.half_tflops});
  }
}

double bound_us(const target::Capabilities& capabilities, Track track, double flops, double bytes) {
  const double memory = capabilities.dram_gbs > 0 ? bytes / (capabilities.dram_gbs * 1e3) : 0;
  const double rate = rate_of(capabilities, track);
  return std::max(memory, rate > 0 ? flops / (rate * 1e6) : 0);
}

}  // namespace

std::vector<std::uint8_t> pack(const Setup& setup) {
  json out = {{"graph", graph_to(setup.graph)},
              {"track", static_cast<int>(setup.track)},
              {"engine", static_cast<int>(setup.engine)},
              {"ordinal", setup.ordinal},
              {"floor_us", setup.floor_us},
              {"flops", setup.flops},
              {"seed", setup.seed},
              {"time_reference", setup.time_reference},
              {"memory_bytes", setup.memory_bytes}};
  if (setup.reference) out["reference"] = reference_to(*setup.reference);
  return json::to_cbor(out);
}

Result<Setup> unpack(const std::vector<std::uint8_t>& bytes) {
  try {
    const json text = json::from_cbor(bytes);
    Setup out;
    out.graph = graph_from(text.at("graph"));
    out.track = static_cast<Track>(text.at("track").get<int>());
    out.engine = static_cast<Engine>(text.at("engine").get<int>());
    out.ordinal = text.at("ordinal");
    out.floor_us = text.at("floor_us");
    out.flops = text.at("flops");
    out.seed = text.at("seed");
    out.time_reference = text.at("time_reference");
    out.memory_bytes = text.at("memory_bytes");
    if (text.contains("reference")) out.reference = reference_from(text["reference"]);
    return out;
  } catch (const json::exception& error) {
    return fail({ErrorCode::kInternal, "an evaluator's setup cannot be read", "", "the form that pack writes",
                 error.what(), ""});
  }
}

double floor_us(const target::Capabilities& capabilities, Track track, double flops, double bytes) {
  return bound_us(capabilities, track, flops, std::max(0.0, bytes - static_cast<double>(capabilities.l2_bytes)));
}
double roofline_us(const target::Capabilities& capabilities, Track track, double flops, double bytes) {
  return bound_us(capabilities, track, flops, bytes);
}

}  // namespace warploom::verify
