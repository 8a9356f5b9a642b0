#include "verify/setup.h"
#include "verify/channel.h"

// An attribute's alternative goes along by its number: a real 1.0 must not come back as an integer.
template <class... T> struct nlohmann::adl_serializer<std::variant<T...>> {
  static void to_json(json& out, const std::variant<T...>& value) {
    out = {value.index(), std::visit([](const auto& one) { return json(one); }, value)};
  }

  static void from_json(const json& in, std::variant<T...>& value) {
    std::size_t index = in.at(0);
    ((index-- == 0 ? void(value = in.at(1).get<T>()) : void()), ...);
  }
};

// Kept as numbers and text under their own names; only tensors need more than a list of their
// fields.
namespace warploom::runtime {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VendorProblem, kind, batch, m, n, k, transpose_a, transpose_b,
                                   batched_a, batched_b, in, out, tf32, bias, bias_dtype,
                                   activation)
}  // namespace warploom::runtime

namespace warploom::graph {
using nlohmann::json;

void to_json(json& out, const Tensor& tensor) {
  out = {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", tensor.shape}};
  if (!tensor.constant) return;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tensor.constant->data());
  out["constant"] = json::binary(std::vector<std::uint8_t>(bytes, bytes + tensor.constant->size()));
}

void from_json(const json& in, Tensor& tensor) {
  static_cast<TensorInfo&>(tensor) = {in.at("name"), in.at("dtype"), in.at("shape")};
  if (!in.contains("constant")) return;
  const auto* bytes = reinterpret_cast<const std::byte*>(in["constant"].get_binary().data());
  tensor.constant.emplace(bytes, bytes + in["constant"].get_binary().size());
}

// An end that is not there is null: JSON has no infinity.
void to_json(json& out, const Range& range) {
  const auto end = [](double value) { return std::isfinite(value) ? json(value) : json(); };
  out = {end(range.low), end(range.high), range.whole, range.nonzero};
}

void from_json(const json& in, Range& range) {
  const auto end = [](const json& value, double otherwise) {
    return value.is_null() ? otherwise : value.get<double>();
  };
  range = {end(in.at(0), -HUGE_VAL), end(in.at(1), HUGE_VAL), in.at(2), in.at(3)};
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Node, op, name, inputs, outputs, attributes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Graph, name, tensors, nodes, inputs, outputs)
}  // namespace warploom::graph

namespace warploom::verify {
using nlohmann::json;

void to_json(json& out, const std::optional<Reference>& reference) {
  if (reference) out = {{"problem", reference->problem}, {"buffers", reference->buffers}};
}

void from_json(const json& in, std::optional<Reference>& reference) {
  if (!in.is_null()) reference = {in.at("problem"), in.at("buffers")};
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Setup, graph, track, engine, reference, floor_us, flops, seed,
                                   time_reference)

namespace {
double rate_of(const target::Capabilities& capabilities, Track track) {
  switch (track) {
    case Track::fp32:
      return std::max(capabilities.fp32_tflops,
                      capabilities.half_tflops / 3);  // three products of halves
    case Track::tf32: return std::max(capabilities.fp32_tflops, capabilities.tf32_tflops);
    case Track::fp8: return std::max(capabilities.half_tflops, capabilities.fp8_tflops);
    default:
      return std::max(
          {capabilities.fp32_tflops, capabilities.tf32_tflops, capabilities.half_tflops});
  }
}
}  // namespace

// Ranges are left out where there are none, as they were before there were any: a problem's hash is
// of this text.
json to_json(const Setup& setup) {
  json out = setup;
  for (const auto& [name, range] : setup.ranges) out["ranges"][name] = range;
  return out;
}

Result<Setup> setup_from_json(const json& text) {
  WARPLOOM_TRY(Setup setup, record_from<Setup>(text, "an evaluator's setup"));
  using Ranges = std::map<std::string, graph::Range>;
  if (!text.contains("ranges")) return setup;
  WARPLOOM_TRY(const Ranges ranges, record_from<Ranges>(text["ranges"], "ranges of inputs"));
  setup.ranges.insert(ranges.begin(), ranges.end());
  return setup;
}

double floor_us(const target::Capabilities& capabilities, Track track, double flops, double bytes) {
  return roofline_us(capabilities, track, flops,
                     std::max(0.0, bytes - static_cast<double>(capabilities.l2_bytes)));
}

double roofline_us(const target::Capabilities& capabilities, Track track, double flops,
                   double bytes) {
  const double memory = capabilities.dram_gbs > 0 ? bytes / (capabilities.dram_gbs * 1e3) : 0;
  const double rate = rate_of(capabilities, track);
  return std::max(memory, rate > 0 ? flops / (rate * 1e6) : 0);
}
}  // namespace warploom::verify
