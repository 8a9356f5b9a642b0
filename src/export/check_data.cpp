// What `make check` compares with: inputs, and outputs by the FP64 reference, whole or sampled.
//
// Inputs are made again anywhere from a seed: element i is SplitMix64's i-th number, of which as many leading bits are kept as the
// type's significand holds, as a fraction in [-1, 1) (integers: [0, 4); booleans: fair), times a power of two where it is the weights of
// a network, without its sign where it is a variance. So every value is exact in its type, and a bundle's check.cpp makes the same bits without any rounding.

#include "base/random.h"
#include "export/bundle.h"
#include "graph/parallel.h"
#include "graph/reference.h"
#include "verify/inputs.h"
#include "verify/tolerance.h"
namespace warploom::export_ {
namespace {
constexpr std::int64_t kMostBytes = 64 << 20;  // of stored data; more is sampled
constexpr std::int64_t kSampledRows = 16;
constexpr std::int64_t kSamplesPerRow = 4096;
constexpr double kMostAllowed = 1e-4;  // however ill-conditioned

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

std::vector<std::byte> generate(Dtype dtype, std::uint64_t seed, std::int64_t elements, double scale, bool positive) {
  std::vector<std::byte> bytes(elements * bytes_of(dtype));
  const int kept = kept_bits(dtype);
  const double unit = std::ldexp(scale, 1 - kept);
  constexpr std::int64_t kPart = 1 << 18;
  graph::parallel_for(ceil_div(elements, kPart), 0, [&](std::int64_t part) {
    Random random(seed);
    random.skip(static_cast<std::uint64_t>(part * kPart));
    for (std::int64_t i = part * kPart; i < std::min(elements, (part + 1) * kPart); ++i) {
      const std::uint64_t bits = random.next();
      const double value = kept > 0 ? static_cast<double>(static_cast<std::int64_t>(bits) >> (64 - kept)) * unit
                                    : static_cast<double>(bits >> (64 + kept));
      store_from_double(dtype, bytes.data(), i, positive ? std::fabs(value) : value);
    }
  });
  return bytes;
}

std::string packed(const auto& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]};
}

// `most` of the numbers below `count` at random, or all of them; ascending, each once.
std::vector<std::int64_t> chosen(std::int64_t most, std::int64_t count, Random& random) {
  std::vector<std::int64_t> out(std::min(most, count));
  std::iota(out.begin(), out.end(), 0);
  if (count > most)
    for (std::int64_t& number : out) number = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// Some elements of some rows, or all of them (no indices): their flat indices, ascending, and values.
struct Samples {
  std::vector<std::int64_t> indices;
  std::vector<double> values;
  verify::Comparison seen;  // how the values' rounding may add up
};
Result<Samples> samples_of(const graph::Graph& graph, std::span<const graph::Bytes> inputs, int output, std::uint64_t seed,
                           bool whole) {
  const graph::Rows rows = graph::rows_of(graph, output);
  Random random(seed, "bundle samples");
  Samples samples;
  for (const std::int64_t row : whole ? std::vector<std::int64_t>{0} : chosen(kSampledRows, rows.count, random)) {
    WARPLOOM_TRY(auto made, graph::evaluate_magnitude_rows(graph, inputs, output, row, whole ? rows.count : row + 1));
    verify::compare(samples.seen, {}, Dtype::f64, made.value.data(), made.value.data(), made.magnitude.data(), 0,
                    std::ssize(made.value));
    if (whole) samples.values = std::move(made.value);
    else
      for (const std::int64_t column : chosen(kSamplesPerRow, rows.elements, random)) {
        samples.indices.push_back(row * rows.elements + column);
        samples.values.push_back(made.value[column]);
      }
  }
  return samples;
}
}  // namespace
Result<std::vector<BundleFile>> check_data(nlohmann::json& record, const LaunchList& list, const graph::Graph& graph,
                                           double tolerance, std::uint64_t seed) try {
  std::int64_t bytes = 0;
  for (const auto& input : list.inputs) bytes += input.bytes();
  for (const auto& output : list.outputs) bytes += output.elements() * static_cast<std::int64_t>(sizeof(double));
  const bool whole = bytes <= kMostBytes;

  std::vector<BundleFile> files;
  const auto stored = [&](const std::string& name, std::string text) {  // how check.cpp spells the file's name
    files.push_back({"check/" + name, std::move(text)});
    return "\"" + name + "\"";
  };
  const auto add = [](nlohmann::json& row, Dtype dtype, const nlohmann::json& more) {
    row.update({{"element", cpu_type(dtype)}, {"kept", kept_bits(dtype)}});
    row.update(more);
  };
  // Inputs are made from the seed; a tensor whose bytes the model holds keeps them.
  std::map<std::string, std::vector<std::byte>> made;
  std::vector<std::string> given;  // those that the model does not hold
  const std::vector<graph::InputRole> roles = graph::input_roles(graph);
  for (std::size_t i = 0; i < list.inputs.size(); ++i) {
    const BufferSpec& input = list.inputs[i];
    const auto& held = graph.tensor(*graph.tensor_named(input.name)).constant;
    const auto at = std::ranges::find(graph.inputs, *graph.tensor_named(input.name)) - graph.inputs.begin();
    const graph::InputRole role = held ? graph::InputRole{} : roles[at];
    const double scale = verify::weight_scale(role.terms, 0, 0.577, input.dtype);
    const auto& values = made[input.name] =
        held ? *held : generate(input.dtype, input_seed(seed, i), input.elements(), scale, role.variance);
    const std::string name = fmt::format("input_{}.bin", i);
    add(record["inputs"][i], input.dtype,
        {{"held", held.has_value()},
         {"stored", name},
         {"scale", fmt::format("{:a}", scale)},
         {"positive", role.variance ? "true" : "false"},
         {"file", whole || held ? stored(name, packed(values)) : "nullptr"},
         {"seed", input_seed(seed, i)}});
    if (!held) given.push_back(record["inputs"][i]["variable"]);
  }
  record["given"] = fmt::format("{}", fmt::join(given, ", "));
  std::vector<graph::Bytes> of_graph;  // in the graph's order of inputs
  for (const auto id : graph.inputs) of_graph.emplace_back(made.at(graph.tensor(id).name));
  for (std::size_t i = 0; i < list.outputs.size(); ++i) {
    WARPLOOM_TRY(const Samples samples, samples_of(graph, of_graph, static_cast<int>(i), seed, whole));
    // A network's layers each hold the track's bound; what their errors come to together is for these inputs to say.
    const double plain = std::min(verify::plain_error(samples.seen), kMostAllowed),
                 allowed = is_float(list.outputs[i].dtype) ? std::max(tolerance, plain) : 0;
    add(record["outputs"][i], list.outputs[i].dtype,
        {{"allowed", fmt::format("{:.3e}", allowed)},
         {"file", stored(fmt::format("output_{}.f64", i), packed(samples.values))},
         {"indices", whole ? "nullptr" : stored(fmt::format("output_{}.i64", i), packed(samples.indices))}});
  }
  return files;
} catch (const std::bad_alloc&) {
  return fail({ErrorCode::kOutOfMemory, "the bundle's check data do not fit in memory", record["bundle"].get<std::string>(),
               "memory for all inputs", "not enough", "write the bundle on a machine with more memory"});
}
}  // namespace warploom::export_
