// What `make check` compares with: inputs, and outputs by the FP64 reference, whole or sampled.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/random.h"
#include "export/check_source.h"
#include "export/generator.h"
#include "graph/reference.h"

namespace warploom::export_ {
namespace {

constexpr std::int64_t kMostBytes = 64 << 20;  // of stored data; more is sampled
constexpr std::int64_t kSampledRows = 16;
constexpr std::int64_t kSamplesPerRow = 4096;

struct Data {
  std::vector<std::vector<std::byte>> inputs;  // in the launch list's order
  std::vector<graph::Bytes> of_graph;          // in the graph's order of inputs
};

template <class T>
std::string packed(const std::vector<T>& values) {
  std::string text(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(text.data(), values.data(), text.size());
  return text;
}

// Inputs are made from the seed; a tensor whose bytes the model holds keeps them.
Result<Data> make_inputs(const Frame& frame, const graph::Graph& graph, std::uint64_t seed) {
  Data data;
  for (std::size_t i = 0; i < frame.list.inputs.size(); ++i) {
    const BufferSpec& buffer = frame.list.inputs[i];
    const auto id = graph.tensor_named(buffer.name);
    if (!id || graph::byte_count(graph.tensor(*id)) != buffer.bytes())
      return fail({ErrorCode::kPlanInvalid, "a launch list's input is no tensor of the graph", frame.name,
                   "a tensor of the same size", buffer.name, "make the plan again with `warploom optimize`"});
    const auto& constant = graph.tensor(*id).constant;
    data.inputs.push_back(constant ? *constant : generate(buffer.dtype, input_seed(seed, i), buffer.elements()));
  }
  for (const auto id : graph.inputs) {
    const auto at = std::ranges::find(frame.list.inputs, graph.tensor(id).name, &BufferSpec::name);
    if (at == frame.list.inputs.end())
      return fail({ErrorCode::kPlanInvalid, "the launch list lacks an input of the graph", frame.name,
                   graph.tensor(id).name, "nothing", "make the plan again with `warploom optimize`"});
    data.of_graph.emplace_back(data.inputs[static_cast<std::size_t>(at - frame.list.inputs.begin())]);
  }
  return data;
}

// Some elements of some rows: their flat indices, ascending, and values.
struct Samples {
  std::vector<std::int64_t> indices;
  std::vector<double> values;
};
Result<Samples> sample(const graph::Graph& graph, std::span<const graph::Bytes> inputs, int output,
                       std::uint64_t seed) {
  const graph::Rows rows = graph::rows_of(graph, output);
  Random random(seed, "bundle samples");
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < std::min(kSampledRows, rows.count); ++i)
    chosen.push_back(rows.count <= kSampledRows
                         ? i
                         : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows.count))));
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  Samples samples;
  for (const std::int64_t row : chosen) {
    WARPLOOM_TRY(const std::vector<double> values, graph::evaluate_rows(graph, inputs, output, row, row + 1));
    std::vector<std::int64_t> columns;
    for (std::int64_t i = 0; i < std::min(kSamplesPerRow, rows.elements); ++i)
      columns.push_back(rows.elements <= kSamplesPerRow
                            ? i
                            : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows.elements))));
    std::ranges::sort(columns);
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    for (const std::int64_t column : columns) {
      samples.indices.push_back(row * rows.elements + column);
      samples.values.push_back(values[static_cast<std::size_t>(column)]);
    }
  }
  return samples;
}

Result<std::vector<BundleFile>> all_files(const Frame& frame, const graph::Graph& graph, std::uint64_t seed,
                                          double tolerance) {
  std::int64_t bytes = 0;
  for (const auto& input : frame.list.inputs) bytes += input.bytes();
  for (const auto& output : frame.list.outputs) bytes += output.elements() * static_cast<std::int64_t>(sizeof(double));
  const bool whole = bytes <= kMostBytes;
  WARPLOOM_TRY(const Data data, make_inputs(frame, graph, seed));

  CheckSource source{frame, tolerance, {}, {}};
  std::vector<BundleFile> files;
  for (std::size_t i = 0; i < frame.list.inputs.size(); ++i) {
    const auto id = graph.tensor_named(frame.list.inputs[i].name);
    const bool stored = whole || graph.tensor(*id).constant.has_value();
    const std::string file = stored ? fmt::format("input_{}.bin", i) : "";
    if (stored) files.push_back({"check/" + file, packed(data.inputs[i])});
    source.inputs.push_back({file, input_seed(seed, i)});
  }
  std::vector<std::vector<double>> outputs;
  if (whole) { WARPLOOM_TRY(outputs, graph::evaluate(graph, data.of_graph)); }
  for (std::size_t i = 0; i < frame.list.outputs.size(); ++i) {
    const std::string values = fmt::format("output_{}.f64", i);
    if (whole) {
      files.push_back({"check/" + values, packed(outputs[i])});
      source.outputs.push_back({values, ""});
      continue;
    }
    WARPLOOM_TRY(const Samples samples, sample(graph, data.of_graph, static_cast<int>(i), seed));
    const std::string indices = fmt::format("output_{}.i64", i);
    files.push_back({"check/" + values, packed(samples.values)});
    files.push_back({"check/" + indices, packed(samples.indices)});
    source.outputs.push_back({values, indices});
  }
  files.push_back({"check/check.cpp", check_source(source)});
  return files;
}

}  // namespace

Result<std::vector<BundleFile>> check_files(const Frame& frame, const graph::Graph& graph, std::uint64_t seed,
                                            double tolerance) {
  try {
    return all_files(frame, graph, seed, tolerance);
  } catch (const std::bad_alloc&) {
    return fail({ErrorCode::kOutOfMemory, "the bundle's check data do not fit in memory", frame.name,
                 "memory for all inputs", "not enough", "write the bundle on a machine with more memory"});
  }
}

}  // namespace warploom::export_
