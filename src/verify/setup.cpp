#include "verify/setup.h"
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include "base/casts.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/graph_json.h"
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

// Ranges and constants are left out where there are none, as they were before there were any: a
// problem's hash is of this text.
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
  for (const auto& [name, range] : setup.ranges) out["ranges"][name] = range;
  if (!setup.constants.empty()) out["constants"] = setup.constants;
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
  const json ranges = in.value("ranges", json::object());
  for (const auto& [name, range] : ranges.items())
    setup.ranges.insert_or_assign(name, range.get<graph::Range>());
  setup.constants = in.value("constants", setup.constants);
}

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

json to_json(const Setup& setup) {
  json out;
  to_json(out, setup);
  return out;
}

Result<Setup> setup_from_json(const json& text) {
  return record_from<Setup>(text, "an evaluator's setup");
}

double floor_us(const target::Capabilities& capabilities, Track track, double flops, double bytes) {
  return roofline_us(capabilities, track, flops,
                     std::max(0.0, bytes - as_double(capabilities.l2_bytes)));
}

Bound bound_of(const target::Capabilities& capabilities, Track track, double flops, double bytes) {
  const double memory = capabilities.dram_gbs > 0 ? bytes / (capabilities.dram_gbs * 1e3) : 0;
  const double rate = rate_of(capabilities, track);
  const double arithmetic = rate > 0 ? flops / (rate * 1e6) : 0;
  if (memory <= 0 && arithmetic <= 0) return {};
  return memory >= arithmetic ? Bound{memory, "DRAM"} : Bound{arithmetic, "arithmetic"};
}

double roofline_us(const target::Capabilities& capabilities, Track track, double flops,
                   double bytes) {
  return bound_of(capabilities, track, flops, bytes).us;
}
}  // namespace warploom::verify
