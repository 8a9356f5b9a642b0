// What `make check` compares with: inputs, and outputs by the FP64 reference, whole or sampled.
//
// Inputs are made again anywhere from a seed: element i is SplitMix64's i-th number, of which as many leading bits are kept as the
// type's significand holds, as a fraction in [-1, 1) (integers: [0, 4); booleans: fair). So every value is exact in its type, and
// a bundle's check.cpp makes the same bits without any rounding.

#include <new>
#include "base/random.h"
#include "export/parts.h"
#include "graph/reference.h"
namespace warploom::export_ {
namespace {
constexpr std::int64_t kMostBytes = 64 << 20;  // of stored data; more is sampled
constexpr std::int64_t kSampledRows = 16;
constexpr std::int64_t kSamplesPerRow = 4096;

std::uint64_t input_seed(std::uint64_t seed, std::size_t input) {
  Random random(seed);
  while (input-- > 0) random.next();
  return random.next();
}

// The leading bits that a generated value keeps, the sign among them; below 0 for integers, whose values have -kept bits.
int kept_bits(Dtype dtype) {
  if (dtype == Dtype::boolean) return -1;
  return is_float(dtype) ? std::min(24, -std::ilogb(unit_roundoff(dtype))) : -2;
}

std::vector<std::byte> generate(Dtype dtype, std::uint64_t seed, std::int64_t elements) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements * bytes_of(dtype)));
  const int kept = kept_bits(dtype);
  Random random(seed);
  for (std::int64_t i = 0; i < elements; ++i) {
    const std::uint64_t bits = random.next();
    const double value = kept > 0 ? std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits) >> (64 - kept)), 1 - kept)
                                  : static_cast<double>(bits >> (64 + kept));
    store_from_double(dtype, bytes.data(), static_cast<std::size_t>(i), value);
  }
  return bytes;
}

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
      return fail({ErrorCode::kPlanInvalid, "the launch list lacks an input of the graph", frame.name, graph.tensor(id).name,
                   "nothing", "make the plan again with `warploom optimize`"});
    data.of_graph.emplace_back(data.inputs[static_cast<std::size_t>(at - frame.list.inputs.begin())]);
  }
  return data;
}

// `most` of the numbers below `count` at random, or all of them; ascending, each once.
std::vector<std::int64_t> chosen(std::int64_t most, std::int64_t count, Random& random) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(std::min(most, count)));
  std::iota(out.begin(), out.end(), 0);
  if (count > most)
    for (std::int64_t& number : out) number = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Some elements of some rows: their flat indices, ascending, and values.
struct Samples {
  std::vector<std::int64_t> indices;
  std::vector<double> values;
};
Result<Samples> sample(const graph::Graph& graph, std::span<const graph::Bytes> inputs, int output, std::uint64_t seed) {
  const graph::Rows rows = graph::rows_of(graph, output);
  Random random(seed, "bundle samples");
  Samples samples;
  for (const std::int64_t row : chosen(kSampledRows, rows.count, random)) {
    WARPLOOM_TRY(const std::vector<double> values, graph::evaluate_rows(graph, inputs, output, row, row + 1));
    for (const std::int64_t column : chosen(kSamplesPerRow, rows.elements, random)) {
      samples.indices.push_back(row * rows.elements + column);
      samples.values.push_back(values[static_cast<std::size_t>(column)]);
    }
  }
  return samples;
}

// A row of the tables in check.cpp; `second` is an input's seed or an output's file of indices.
std::string row(const Parameter& parameter, const std::string& file, const std::string& second) {
  const Dtype dtype = parameter.buffer.dtype;
  return fmt::format("\n    {{\"{}\", {}, {}, {}, type<{}>({})}},", parameter.variable, file, second, parameter.buffer.elements(),
                     dtype == Dtype::boolean ? "unsigned char" : cpu_type(dtype), kept_bits(dtype));
}

// check.cpp: feeds the launcher, compares with FP64 and says how long a call takes; `inputs` and `outputs` are rows of its tables.
std::string check_source(const Frame& frame, double tolerance, const std::string& inputs, const std::string& outputs) {
  std::string arguments;
  for (std::size_t i = 0; i < frame.parameters.size(); ++i)
    arguments +=
        fmt::format("static_cast<{}{}*>(tensors[{}]), ", frame.parameters[i].input ? "const " : "", frame.parameters[i].type, i);
  return fill_in(
      resource("bundle/check.cpp"),
      {{"NAME", frame.name},
       {"TOLERANCE", fmt::format("{:.3e}", tolerance)},
       {"INPUTS", inputs},
       {"OUTPUTS", outputs},
       {"ENGINE", fill_in(engine_resource(frame.list, "engine.cpp"), {{"NAME", frame.name}, {"ARGUMENTS", arguments}})}});
}

Result<std::vector<BundleFile>> all_files(const Frame& frame, const graph::Graph& graph, std::uint64_t seed, double tolerance) {
  std::int64_t bytes = 0;
  for (const auto& input : frame.list.inputs) bytes += input.bytes();
  for (const auto& output : frame.list.outputs) bytes += output.elements() * static_cast<std::int64_t>(sizeof(double));
  const bool whole = bytes <= kMostBytes;
  WARPLOOM_TRY(const Data data, make_inputs(frame, graph, seed));

  std::vector<BundleFile> files;
  const auto stored = [&](const std::string& name, std::string text) {  // how check.cpp spells the file's name
    files.push_back({"check/" + name, std::move(text)});
    return "\"" + name + "\"";
  };
  std::string inputs, outputs;
  const std::size_t count = frame.list.inputs.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool keep = whole || held(graph, frame.list.inputs[i]);
    inputs += row(frame.parameters[i], keep ? stored(input_file(i), packed(data.inputs[i])) : "nullptr",
                  fmt::format("{}ull", input_seed(seed, i)));
  }
  std::vector<std::vector<double>> results;
  if (whole) { WARPLOOM_TRY(results, graph::evaluate(graph, data.of_graph)); }
  for (std::size_t i = 0; i < frame.list.outputs.size(); ++i) {
    Samples samples;
    if (whole) samples.values = std::move(results[i]);
    else { WARPLOOM_TRY(samples, sample(graph, data.of_graph, static_cast<int>(i), seed)); }
    const std::string values = stored(fmt::format("output_{}.f64", i), packed(samples.values));
    outputs += row(frame.parameters[count + i], values,
                   whole ? "nullptr" : stored(fmt::format("output_{}.i64", i), packed(samples.indices)));
  }
  files.push_back({"check/check.cpp", check_source(frame, tolerance, inputs, outputs)});
  return files;
}
}  // namespace
bool held(const graph::Graph& graph, const BufferSpec& input) {
  return graph.tensor(*graph.tensor_named(input.name)).constant.has_value();
}
std::string input_file(std::size_t input) { return fmt::format("input_{}.bin", input); }

Result<std::vector<BundleFile>> check_files(const Frame& frame, const graph::Graph& graph, std::uint64_t seed, double tolerance) {
  try {
    return all_files(frame, graph, seed, tolerance);
  } catch (const std::bad_alloc&) {
    return fail({ErrorCode::kOutOfMemory, "the bundle's check data do not fit in memory", frame.name, "memory for all inputs",
                 "not enough", "write the bundle on a machine with more memory"});
  }
}
}  // namespace warploom::export_
