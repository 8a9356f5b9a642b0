#include "export/check_data.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "export/delivery.h"
#include "graph/graph.h"
#include "graph/parallel.h"
#include "graph/ranges.h"
#include "graph/reference.h"
#include "verify/inputs.h"
#include "verify/tolerance.h"

namespace warploom::export_ {
namespace {
using graph::Graph;
using graph::InputRole;
using nlohmann::json;
using verify::Lattice;

constexpr int64_t kMostBytes = 64 << 20;  // of stored data; more is sampled
constexpr int64_t kSampledRows = 16;
constexpr int64_t kSamplesPerRow = 4096;
constexpr double kMostAllowed = 1e-4;  // however ill-conditioned

uint64_t input_seed(uint64_t seed, size_t input) {
  Random random(seed);
  while (input-- > 0) random.next();
  return random.next();
}

// The leading bits that a generated value keeps, the sign among them; of floats.
int kept_bits(Dtype dtype) {
  return is_float(dtype) ? std::min(24, -std::ilogb(unit_roundoff(dtype))) : 0;
}

// What an input's elements are drawn from.
struct Drawn {
  double scale = 1;
  bool positive = false;
  Lattice lattice = {};
};

std::vector<std::byte> generate(Dtype dtype, uint64_t seed, int64_t elements, const Drawn& from) {
  std::vector<std::byte> bytes(elements * bytes_of(dtype));
  const int kept = kept_bits(dtype);
  const double unit = std::ldexp(from.scale, 1 - kept);
  const Lattice& lattice = from.lattice;
  const auto count = as_uint64(lattice.count);
  const auto value_of = [&](uint64_t bits) {
    if (count > 0) return lattice.low + lattice.step * as_double((bits >> 11) % count);
    return as_double(as_int64(bits) >> (64 - kept)) * unit;
  };
  constexpr int64_t kPart = 1 << 18;
  graph::parallel_for(ceil_div(elements, kPart), 0, [&](int64_t part) {
    Random random(seed);
    random.skip(as_uint64(part * kPart));
    for (int64_t i = part * kPart; i < std::min(elements, (part + 1) * kPart); ++i) {
      const double value = value_of(random.next());
      store_from_double(dtype, bytes.data(), i, from.positive ? std::fabs(value) : value);
    }
  });
  return bytes;
}

std::string packed(const auto& values) {
  const auto* const bytes = reinterpret_cast<const char*>(values.data());
  return {bytes, values.size() * sizeof values[0]};
}

// `most` of the numbers below `count` at random, or all of them; ascending, each once.
std::vector<int64_t> chosen(int64_t most, int64_t count, Random& random) {
  std::vector<int64_t> out(std::min(most, count));
  std::iota(out.begin(), out.end(), 0);
  if (count > most)
    for (int64_t& number : out) number = as_int64(random.below(as_uint64(count)));
  std::ranges::sort(out);
  const auto end = std::unique(out.begin(), out.end());
  out.erase(end, out.end());
  return out;
}

// Some elements of some rows, or all of them (no indices): their flat indices, ascending, and
// values.
struct Samples {
  std::vector<int64_t> indices;
  std::vector<double> values;
  verify::Comparison seen;  // how the values' rounding may add up
};

Result<Samples> samples_of(const Graph& graph, std::span<const graph::Bytes> inputs, int output,
                           uint64_t seed, bool whole) {
  const auto rows = graph::rows_of(graph, output);
  Random random(seed, "bundle samples");
  Samples samples;
  std::vector<int64_t> first = {0};
  if (!whole) first = chosen(kSampledRows, rows.count, random);
  for (const int64_t row : first) {
    const int64_t end = whole ? rows.count : row + 1;
    WARPLOOM_TRY(auto made, graph::evaluate_magnitude_rows(graph, inputs, output, row, end));
    const double* const value = made.value.data();
    const double* const magnitude = made.magnitude.data();
    verify::compare(samples.seen, {}, Dtype::f64, value, value, magnitude, 0,
                    std::ssize(made.value));
    if (whole) {
      samples.values = std::move(made.value);
      continue;
    }
    for (const int64_t column : chosen(kSamplesPerRow, rows.elements, random)) {
      samples.indices.push_back(row * rows.elements + column);
      samples.values.push_back(made.value[column]);
    }
  }
  return samples;
}

class CheckData {
 public:
  CheckData(json& record, const LaunchList& list, const Graph& graph, uint64_t seed)
      : record_(record),
        list_(list),
        graph_(graph),
        seed_(seed),
        roles_(graph::input_roles(graph)),
        ranges_(graph::ranges_of(graph)) {
    int64_t bytes = 0;
    for (const auto& input : list.inputs) bytes += input.bytes();
    for (const auto& output : list.outputs) bytes += output.elements() * as_int64(sizeof(double));
    whole_ = bytes <= kMostBytes;
  }

  Result<std::vector<BundleFile>> files(double tolerance) {
    for (size_t i = 0; i < list_.inputs.size(); ++i) add_input(i);
    record_["given"] = listed(given_);
    std::vector<graph::Bytes> inputs;  // in the graph's order
    for (const auto id : graph_.inputs) inputs.emplace_back(made_.at(graph_.tensor(id).name));
    for (size_t i = 0; i < list_.outputs.size(); ++i)
      WARPLOOM_CHECK(add_output(i, inputs, tolerance));
    return std::move(files_);
  }

 private:
  // Adds a file; how check.cpp spells its name.
  std::string stored(const std::string& name, std::string text) {
    files_.push_back({"check/" + name, std::move(text)});
    return "\"" + name + "\"";
  }

  static void describe(json& row, Dtype dtype, const json& more) {
    row.update({{"element", cpu_type(dtype)}, {"kept", kept_bits(dtype)}});
    row.update(more);
  }

  Drawn drawn_for(const BufferSpec& input, const InputRole& role, bool held) const {
    Drawn from{.scale = verify::weight_scale(role.terms, 0, 0.577, input.dtype)};
    if (held) return from;
    const auto range = graph::range_in(ranges_, input.name);
    from.positive = role.variance || (range.low == 0 && !std::isfinite(range.high));
    from.lattice = verify::lattice_of(input.dtype, range);
    // Of divisors those above 0 alone.
    if (range.nonzero) from.lattice = {from.lattice.step, from.lattice.step, 7};
    return from;
  }

  // Inputs are made from the seed; a tensor whose bytes the model holds keeps them.
  void add_input(size_t number) {
    const BufferSpec& input = list_.inputs[number];
    const graph::TensorId id = *graph_.tensor_named(input.name);
    const auto& held = graph_.tensor(id).constant;
    const auto place = std::ranges::find(graph_.inputs, id) - graph_.inputs.begin();
    const InputRole role = held ? InputRole{} : roles_[place];
    const Drawn from = drawn_for(input, role, held.has_value());
    const uint64_t seed = input_seed(seed_, number);
    std::vector<std::byte>& values = made_[input.name];
    values = held ? *held : generate(input.dtype, seed, input.elements(), from);
    const std::string name = fmt::format("input_{}.bin", number);
    json& row = record_["inputs"][number];
    json said;
    said["held"] = held.has_value();
    said["stored"] = name;
    said["scale"] = fmt::format("{:a}", from.scale);
    said["positive"] = from.positive ? "true" : "false";
    said["low"] = fmt::format("{:a}", from.lattice.low);
    said["step"] = fmt::format("{:a}", from.lattice.step);
    said["count"] = as_uint64(from.lattice.count);
    said["file"] = whole_ || held ? stored(name, packed(values)) : "nullptr";
    said["seed"] = seed;
    describe(row, input.dtype, said);
    if (!held) given_.push_back(row["variable"]);
  }

  Status add_output(size_t number, std::span<const graph::Bytes> inputs, double tolerance) {
    const Dtype dtype = list_.outputs[number].dtype;
    WARPLOOM_TRY(const Samples samples, samples_of(graph_, inputs, as_int(number), seed_, whole_));
    // A network's layers each hold the track's bound; what their errors come to together is for
    // these inputs to say.
    const double plain = std::min(verify::plain_error(samples.seen), kMostAllowed);
    const double allowed = is_float(dtype) ? std::max(tolerance, plain) : 0;
    json said;
    said["allowed"] = fmt::format("{:.3e}", allowed);
    said["file"] = stored(fmt::format("output_{}.f64", number), packed(samples.values));
    said["indices"] = "nullptr";
    if (!whole_)
      said["indices"] = stored(fmt::format("output_{}.i64", number), packed(samples.indices));
    describe(record_["outputs"][number], dtype, said);
    return ok();
  }

  json& record_;
  const LaunchList& list_;
  const Graph& graph_;
  uint64_t seed_;
  std::vector<InputRole> roles_;
  graph::Ranges ranges_;
  bool whole_ = true;
  std::vector<BundleFile> files_;
  std::map<std::string, std::vector<std::byte>> made_;  // inputs' bytes
  std::vector<std::string> given_;                      // inputs that the model does not hold
};
}  // namespace

Result<std::vector<BundleFile>> check_data(json& record, const LaunchList& list, const Graph& graph,
                                           double tolerance, uint64_t seed) try {
  return CheckData(record, list, graph, seed).files(tolerance);
} catch (const std::bad_alloc&) {
  Error error{ErrorCode::kOutOfMemory, "the bundle's check data do not fit in memory"};
  error.place = record["bundle"].get<std::string>();
  error.expected = "memory for all inputs";
  error.found = "not enough";
  error.remedy = "write the bundle on a machine with more memory";
  return fail(error);
}
}  // namespace warploom::export_
