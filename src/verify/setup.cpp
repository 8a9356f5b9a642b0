#include "verify/setup.h"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include "base/error.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/graph_json.h"  // IWYU pragma: keep (conversions of Graph)
#include "graph/ranges.h"
#include "graph/track.h"
#include "target/capabilities.h"
#include "vendor/problem.h"
#include "verify/channel.h"

namespace warploom::graph {
using nlohmann::json;

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
}  // namespace warploom::graph

namespace warploom::verify {
using nlohmann::json;

// Ranges, constants and a limit are left out where there are none, as they were before there were
// any: a problem's hash is of this text.
void to_json(json& out, const Setup& setup) {
  out = json::object();
  out["graph"] = setup.graph;
  out["track"] = setup.track;
  out["engine"] = setup.engine;
  out["reference"] = nullptr;
  out["floor_us"] = setup.floor_us;
  out["flops"] = setup.flops;
  out["seed"] = setup.seed;
  out["time_reference"] = setup.time_reference;
  if (setup.reference) out["reference"] = *setup.reference;
  for (const auto& [name, range] : setup.ranges)
    out["ranges"][name] = range;
  if (setup.ready_ms > 0) out["ready_ms"] = setup.ready_ms;
  if (!setup.constants.empty()) out["constants"] = setup.constants;
  for (const ValueOp op : setup.operations)
    out["operations"].push_back(name_of(op));
}

void from_json(const json& in, Setup& setup) {
  setup.graph = in.at("graph").get<graph::Graph>();
  setup.track = in.at("track");
  setup.engine = in.at("engine");
  if (const json& reference = in.at("reference"); !reference.is_null())
    setup.reference = reference.get<vendor::VendorProblem>();
  setup.floor_us = in.at("floor_us");
  setup.flops = in.at("flops");
  setup.seed = in.at("seed");
  setup.time_reference = in.at("time_reference");
  setup.ready_ms = in.value("ready_ms", setup.ready_ms);
  const json ranges = in.value("ranges", json::object());
  for (const auto& [name, range] : ranges.items())
    setup.ranges.insert_or_assign(name, range.get<graph::Range>());
  setup.constants = in.value("constants", setup.constants);
  for (const std::string& name : in.value("operations", std::set<std::string>()))
    if (const std::optional<ValueOp> op = value_op_named(name)) setup.operations.insert(*op);
}

namespace {
// Tera-operations a second: by the datasheet, and measured (0: it was not).
struct Rate {
  double stated = 0;
  double measured = 0;
};

// Which rate is asked for: what kernels reach that are known; or what nobody exceeds, whoever wrote
// the kernel.
enum class RateFor : uint8_t { bound, floor };

// What tensor cores, or a CPU's tiles, leave of their rate for products of fp32 that are made of
// such of 16 bits: three of fp16, whose sums may be in fp16 as well; six of bf16, which nobody is
// known to do on a CPU.
double split_rate(const target::Capabilities& capabilities, RateFor what) {
  if (capabilities.gpu) return capabilities.half_tflops / 3;
  return what == RateFor::floor ? capabilities.half_tflops / 6 : 0;
}

// Of the fastest unit that a track may use.
Rate rate_of(const target::Capabilities& capabilities, Track track, RateFor what) {
  const target::Measured& measured = capabilities.measured;
  // What was measured on halves holds for other types of operands in the same proportion.
  const double half = capabilities.half_tflops;
  const double share = half > 0 ? measured.half_tflops / half : 0;
  const double times = what == RateFor::floor ? capabilities.narrow_sums : 1;
  double tensor = 0;
  switch (track) {
    case Track::fp32: tensor = split_rate(capabilities, what); break;
    case Track::tf32: tensor = capabilities.tf32_tflops; break;
    case Track::fp8:
      tensor = std::max({half, capabilities.fp8_tflops, capabilities.int8_tops});
      break;
    default: tensor = std::max(capabilities.tf32_tflops, half);
  }
  tensor *= times;
  const bool plain = capabilities.fp32_tflops >= tensor;
  return plain ? Rate{capabilities.fp32_tflops, measured.fp32_tflops}
               : Rate{tensor, tensor * share};
}

// In microseconds; 0 where the rate is unknown.
double time_of(double amount, double rate) {
  return rate > 0 ? amount / rate : 0;
}
}  // namespace

json to_json(const Setup& setup) {
  json out;
  to_json(out, setup);
  return out;
}

Result<Setup> setup_from_json(const json& text) {
  return record_from<Setup>(text, "an evaluator's setup");
}

double floor_us(const target::Capabilities& capabilities, Track track, double flops, double bytes) {
  const auto cached = static_cast<double>(capabilities.l2_bytes);
  const double moved = std::max(0.0, bytes - cached);
  const double rate = rate_of(capabilities, track, RateFor::floor).stated;
  return std::max(time_of(moved, capabilities.dram_gbs * 1e3), time_of(flops, rate * 1e6));
}

Bound bound_of(const target::Capabilities& capabilities, Track track, double flops, double bytes) {
  const Rate rate = rate_of(capabilities, track, RateFor::bound);
  const double memory = time_of(bytes, capabilities.dram_gbs * 1e3);
  const double arithmetic = time_of(flops, rate.stated * 1e6);
  if (memory <= 0 && arithmetic <= 0) return {};
  if (memory >= arithmetic)
    return {memory, "DRAM", time_of(bytes, capabilities.measured.copy_gbs * 1e3)};
  return {arithmetic, "arithmetic", time_of(flops, rate.measured * 1e6)};
}

double roofline_us(const target::Capabilities& capabilities, Track track, double flops,
                   double bytes) {
  return bound_of(capabilities, track, flops, bytes).us;
}
}  // namespace warploom::verify
