#include "export/check_data.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
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
#include "verify/gpu_products.h"
#include "verify/inputs.h"
#include "verify/row_truth.h"
#include "verify/tolerance.h"

namespace warploom::export_ {
namespace {
using graph::Graph;
using graph::InputRole;
using nlohmann::json;
using verify::Lattice;

constexpr int64_t kMostBytes = 64 << 20;  // of stored data; more is sampled
constexpr int64_t kSampledRows = 16;
// Of sampled rows: what making them may take, in operations and elements. One is made in any case.
constexpr double kMostOfRows = 2e8;
// More than so many at once are made on the GPU that the bundle is for, where that is here.
constexpr double kManyOperations = 4e8;
constexpr graph::ElementRange kAllElements{0, std::numeric_limits<int64_t>::max() / 16};
constexpr int64_t kSamplesPerRow = 4096;
constexpr double kMostAllowed = 1e-4;  // however ill-conditioned

uint64_t input_seed(uint64_t seed, size_t input) {
  Random random(seed);
  while (input-- > 0)
    random.next();
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

// An input's bytes. Those that nobody asks for are never made: a large problem has sampled rows,
// and its inputs need not fit in memory.
class InputBytes {
 public:
  InputBytes(Dtype dtype, uint64_t seed, int64_t elements, const Drawn& from)
      : dtype_(dtype),
        seed_(seed),
        elements_(elements),
        from_(from),
        kept_(kept_bits(dtype)),
        unit_(std::ldexp(from.scale, 1 - kept_)) {
    const auto size = static_cast<size_t>(std::max<int64_t>(1, elements * bytes_of(dtype)));
    zeros_.reset(static_cast<std::byte*>(std::calloc(size, 1)));
    if (!zeros_) throw std::bad_alloc();
  }

  // That the model itself holds.
  explicit InputBytes(std::vector<std::byte> held) : held_(std::move(held)) {}

  graph::Bytes bytes() const {
    if (held_) return *held_;
    return {zeros_.get(), static_cast<size_t>(elements_ * bytes_of(dtype_))};
  }

  void make(const graph::ElementRange& range) {
    if (held_) return;
    const int64_t begin = std::max<int64_t>(range.begin, 0);
    const int64_t end = std::min(range.end, elements_);
    const bool apart = end < made_.begin || made_.end < begin;
    if (apart) made_ = {begin, begin};
    // Each row of a product reads all of the other operand, and columns lie in one another: what
    // rows before this one read is there.
    make_parts(begin, made_.begin);
    make_parts(made_.end, end);
    made_ = {std::min(begin, made_.begin), std::max(end, made_.end)};
  }

  void make_all() { make({0, elements_}); }

 private:
  void make_parts(int64_t begin, int64_t end) {
    constexpr int64_t kPart = 1 << 18;
    const int64_t parts = begin < end ? ceil_div(end - begin, kPart) : 0;
    graph::parallel_for(parts, 0, [&](int64_t part) {
      const int64_t from = begin + part * kPart;
      make_part(from, std::min(end, from + kPart));
    });
  }

  void make_part(int64_t begin, int64_t end) {
    Random random(seed_);
    random.skip(static_cast<uint64_t>(begin));
    for (int64_t i = begin; i < end; ++i) {
      const double value = value_of(random.next());
      store_from_double(dtype_, zeros_.get(), i, from_.positive ? std::fabs(value) : value);
    }
  }

  double value_of(uint64_t bits) const {
    const verify::Lattice& lattice = from_.lattice;
    const auto count = static_cast<uint64_t>(lattice.count);
    if (count > 0) return lattice.low + lattice.step * static_cast<double>((bits >> 11) % count);
    return static_cast<double>(static_cast<int64_t>(bits) >> (64 - kept_)) * unit_;
  }

  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  Dtype dtype_ = Dtype::f32;
  uint64_t seed_ = 0;
  int64_t elements_ = 0;
  Drawn from_;
  int kept_ = 0;  // bits of a value
  double unit_ = 1;
  std::unique_ptr<std::byte, Free> zeros_;  // until they are made
  graph::ElementRange made_{0, 0};          // with those before it that it met
  std::optional<std::vector<std::byte>> held_;
};

std::string packed(const auto& values) {
  const auto* const bytes = reinterpret_cast<const char*>(values.data());
  return {bytes, values.size() * sizeof values[0]};
}

// `most` of the numbers below `count` at random, or all of them; ascending, each once.
std::vector<int64_t> chosen(int64_t most, int64_t count, Random& random) {
  std::vector<int64_t> out(std::min(most, count));
  std::iota(out.begin(), out.end(), 0);
  if (count > most)
    for (int64_t& number : out)
      number = as_int64(random.below(as_uint64(count)));
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

// Adds elements of one row that is not whole.
void add_samples(Samples& samples, const graph::ValueAndMagnitude& made, int64_t first,
                 Random& random) {
  const int64_t elements = std::ssize(made.value);
  for (const int64_t column : chosen(kSamplesPerRow, elements, random)) {
    samples.indices.push_back(first + column);
    samples.values.push_back(made.value[static_cast<size_t>(column)]);
  }
}

void see(Samples& samples, const graph::ValueAndMagnitude& made) {
  const double* const value = made.value.data();
  verify::compare(samples.seen, {}, Dtype::f64, value, value, made.magnitude.data(), 0,
                  std::ssize(made.value));
}

// Operations that evaluating a graph takes: the elements of what every operator makes, those of
// products once a term.
double operations_in(const Graph& graph) {
  const auto decomposed = graph::decompose(graph);
  const Graph& primitive = decomposed ? *decomposed : graph;
  const auto elements = [&](graph::TensorId id) {
    return as_double(graph::element_count(primitive.tensor(id).shape));
  };
  double all = 0;
  for (const graph::Node& node : primitive.nodes) {
    double terms = 1;
    if (graph::class_of(node.op) == graph::OpClass::contraction)
      terms = as_double(primitive.tensor(node.inputs[0]).shape.back());
    if (graph::class_of(node.op) == graph::OpClass::convolution)
      terms = elements(node.inputs[1]) / as_double(primitive.tensor(node.inputs[1]).shape[0]);
    for (const graph::TensorId output : node.outputs)
      all += output == graph::kAbsent ? 0 : terms * elements(output);
  }
  return all;
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
    for (const auto& input : list.inputs)
      bytes += input.bytes();
    for (const auto& output : list.outputs)
      bytes += output.elements() * as_int64(sizeof(double));
    whole_ = bytes <= kMostBytes;
    operations_ = operations_in(graph);
    if (list.engine == Engine::cuda) options_.products = verify::gpu_products();
  }

  Result<std::vector<BundleFile>> files(double tolerance) {
    for (size_t i = 0; i < list_.inputs.size(); ++i)
      add_input(i);
    record_["given"] = listed(given_);
    for (size_t i = 0; i < list_.outputs.size(); ++i)
      WARPLOOM_CHECK(add_output(i, tolerance));
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
    InputBytes values =
        held ? InputBytes(*held) : InputBytes(input.dtype, seed, input.elements(), from);
    if (whole_) values.make_all();
    const std::string name = fmt::format("input_{}.bin", number);
    json& row = record_["inputs"][number];
    json said;
    said["held"] = held.has_value();
    said["stored"] = name;
    said["scale"] = fmt::format("{:a}", from.scale);
    said["positive"] = from.positive ? "true" : "false";
    said["low"] = fmt::format("{:a}", from.lattice.low);
    said["step"] = fmt::format("{:a}", from.lattice.step);
    said["count"] = static_cast<uint64_t>(from.lattice.count);
    said["file"] = whole_ || held ? stored(name, packed(values.bytes())) : "nullptr";
    said["seed"] = seed;
    describe(row, input.dtype, said);
    if (!held) given_.push_back(row["variable"]);
    made_.emplace(input.name, std::move(values));
  }

  // In the graph's order.
  std::vector<graph::Bytes> inputs() const {
    std::vector<graph::Bytes> all;
    for (const auto id : graph_.inputs)
      all.push_back(made_.at(graph_.tensor(id).name).bytes());
    return all;
  }

  Result<graph::ValueAndMagnitude> rows_of(int output, int64_t begin, int64_t end) {
    WARPLOOM_TRY(const auto read, graph::inputs_of_rows(graph_, output, begin, end));
    for (size_t i = 0; i < read.size() && !whole_; ++i)
      made_.at(graph_.tensor(graph_.inputs[i]).name).make(read[i]);
    if (is_long_on_cores(output, end - begin)) {
      auto made = rows_on_gpu(read, output, begin, end);
      if (made) return made;
    }
    return graph::evaluate_magnitude_rows(graph_, inputs(), output, begin, end, options_);
  }

  bool is_long_on_cores(int output, int64_t rows) const {
    if (list_.engine != Engine::cuda) return false;
    const double count = std::max(1.0, as_double(graph::rows_of(graph_, output).count));
    return operations_ / count * as_double(rows) > kManyOperations;
  }

  Result<graph::ValueAndMagnitude> rows_on_gpu(const std::vector<graph::ElementRange>& read,
                                               int output, int64_t begin, int64_t end) {
    if (!gpu_) WARPLOOM_TRY(gpu_, verify::RowTruth::open(Engine::cuda, graph_));
    const std::vector<graph::Bytes> given = inputs();
    for (size_t i = 0; i < given.size(); ++i)
      WARPLOOM_CHECK(gpu_->put(i, whole_ ? kAllElements : read[i], given[i]));
    return gpu_->rows(output, begin, end);
  }

  // Rows may be images or groups of channels, of which a few say enough.
  int64_t sampled_rows(const graph::OutputRows& rows) const {
    const double each = operations_ / std::max(1.0, as_double(rows.count));
    return std::clamp(static_cast<int64_t>(kMostOfRows / std::max(1.0, each)), int64_t{1},
                      kSampledRows);
  }

  Result<Samples> samples_of(int output) {
    const graph::OutputRows rows = graph::rows_of(graph_, output);
    Samples samples;
    if (whole_) {
      WARPLOOM_TRY(graph::ValueAndMagnitude made, rows_of(output, 0, rows.count));
      see(samples, made);
      samples.values = std::move(made.value);
      return samples;
    }
    Random random(seed_, "bundle samples");
    for (const int64_t row : chosen(sampled_rows(rows), rows.count, random)) {
      WARPLOOM_TRY(const graph::ValueAndMagnitude made, rows_of(output, row, row + 1));
      see(samples, made);
      add_samples(samples, made, row * rows.elements, random);
    }
    return samples;
  }

  Status add_output(size_t number, double tolerance) {
    const Dtype dtype = list_.outputs[number].dtype;
    WARPLOOM_TRY(const Samples samples, samples_of(static_cast<int>(number)));
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
  double operations_ = 0;  // of all rows
  graph::EvalOptions options_;
  std::unique_ptr<verify::RowTruth> gpu_;  // once it was needed
  std::vector<BundleFile> files_;
  std::map<std::string, InputBytes> made_;  // by the inputs' names
  std::vector<std::string> given_;          // inputs that the model does not hold
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
