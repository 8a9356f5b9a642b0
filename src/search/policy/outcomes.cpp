#include "search/policy/outcomes.h"
#include <fmt/format.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/reader.h"
#include "search/policy/graph_record.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using nlohmann::json;
using target::Capabilities;

constexpr const char* kFormat = "warploom-outcomes";
constexpr int kVersion = 2;  // 1: operators by numbers that a later list gave to others
constexpr size_t kMostBytes = size_t{256} << 20;  // of a file when it is unpacked

// What of the capabilities is not a card's, which card_to_json() knows.
template <class T> struct Figure {
  const char* key;
  T Capabilities::* value;
};

constexpr Figure<int> kCounts[] = {{"registers", &Capabilities::registers},
                                   {"threads_per_sm", &Capabilities::threads_per_sm},
                                   {"max_cluster", &Capabilities::max_cluster},
                                   {"vector_bytes", &Capabilities::vector_bytes}};
constexpr Figure<bool> kFlags[] = {{"gpu", &Capabilities::gpu},
                                   {"has_wgmma", &Capabilities::has_wgmma},
                                   {"has_tma", &Capabilities::has_tma},
                                   {"has_cp_async", &Capabilities::has_cp_async},
                                   {"has_pdl", &Capabilities::has_pdl}};

// [config, us or code or null, origin, parent]
json json_of(const RecordedPlan& plan) {
  json outcome;
  if (plan.is_right()) outcome = plan.us;
  if (!plan.code.empty()) outcome = plan.code;
  return {plan.config, outcome, kOrigins[as_size(plan.origin)], plan.parent};
}

json json_of(const RecordedProblem& problem) {
  json out;
  out["name"] = problem.name;
  out["use"] = kUses[as_size(problem.use)];
  out["track"] = name_of(problem.track);
  out["graph"] = graph_to_record(problem.graph);
  out["ranges"] = problem.ranges;
  out["plans"] = json::array();
  for (const RecordedPlan& plan : problem.plans)
    out["plans"].push_back(json_of(plan));
  return out;
}

Error broken(const std::string& place, std::string found) {
  return {ErrorCode::kOutcomesInvalid,
          "this is no file of recorded outcomes that can be used",
          place,
          fmt::format("\"{}\", version {}, with plans that were measured", kFormat, kVersion),
          std::move(found),
          "record one with warploom record, or take the one in bench/policy"};
}

Result<RecordedPlan> plan_from(const json& in, size_t number, const std::string& place) {
  RecordedPlan out;
  out.config = in.at(0).get<std::string>();
  const json& outcome = in.at(1);
  if (outcome.is_number()) out.us = outcome.get<double>();
  if (outcome.is_string()) out.code = outcome.get<std::string>();
  const auto origin = row_where<Origin>(kOrigins, in.at(2).get<std::string>());
  out.parent = in.at(3).get<int>();
  const bool has_time = !outcome.is_number() || (std::isfinite(out.us) && out.us > 0);
  const bool has_parent = out.parent >= -1 && out.parent < as_int(number);
  if (!origin || !has_time || !has_parent)
    return fail(broken(place, fmt::format("plan {}: {}", number, in.dump())));
  out.origin = *origin;
  if (const auto config = kernels::config_from_text(out.config); !config)
    return fail(broken(place, fmt::format("plan {}: {}", number, describe(config.error()))));
  return out;
}

Result<RecordedProblem> problem_from(const json& in, const std::string& file) {
  RecordedProblem out;
  out.name = in.at("name").get<std::string>();
  const std::string place = file + ": " + out.name;
  const auto use = row_where<Use>(kUses, in.at("use").get<std::string>());
  const auto track = track_named(in.at("track").get<std::string>());
  auto graph = graph_from_record(in.at("graph"));
  if (!use || !track) return fail(broken(place, "an unknown use or track"));
  if (!graph)
    return fail(
        broken(place, "a graph with an unknown operator or type, or no tensors of its nodes"));
  out.graph = *std::move(graph);
  out.use = *use;
  out.track = *track;
  out.ranges = in.at("ranges").get<decltype(out.ranges)>();
  std::set<std::string> seen;
  for (const json& one : in.at("plans")) {
    WARPLOOM_TRY(RecordedPlan plan, plan_from(one, out.plans.size(), place));
    if (!seen.insert(plan.config).second) return fail(broken(place, "twice: " + plan.config));
    out.plans.push_back(std::move(plan));
  }
  return out;
}

Result<Outcomes> read_json(const json& in, const std::string& place) {
  if (!in.is_object() || in.value("format", "") != kFormat)
    return fail(broken(place, "another kind of file"));
  if (in.at("version") != kVersion)
    return fail(broken(place, "version " + in.at("version").dump()));
  Outcomes out;
  out.machine = in.at("machine").get<std::string>();
  out.capabilities = capabilities_from_json(in.at("capabilities"));
  for (const json& one : in.at("problems")) {
    WARPLOOM_TRY(RecordedProblem problem, problem_from(one, place));
    out.problems.push_back(std::move(problem));
  }
  return out;
}
}  // namespace

json capabilities_to_json(const Capabilities& capabilities) {
  json out = {{"arch", capabilities.arch}, {"shared_bytes", capabilities.shared_bytes}};
  for (const auto& figure : kCounts)
    out[figure.key] = capabilities.*figure.value;
  for (const auto& figure : kFlags)
    out[figure.key] = capabilities.*figure.value;
  out["clock_ghz"] = capabilities.rates.clock_ghz;
  out["card"] = target::card_to_json(capabilities);
  return out;
}

// Rates of an architecture that this program knows are its own; of another they keep their
// defaults.
Capabilities capabilities_from_json(const json& in) {
  const auto arch = in.at("arch").get<std::string>();
  Capabilities out;
  if (const auto known = target::capabilities_of(arch)) out = *known;
  out.arch = arch;
  out.shared_bytes = in.at("shared_bytes").get<int64_t>();
  for (const auto& figure : kCounts)
    out.*figure.value = in.at(figure.key).get<int>();
  for (const auto& figure : kFlags)
    out.*figure.value = in.at(figure.key).get<bool>();
  out.rates.clock_ghz = in.at("clock_ghz").get<double>();
  return target::with_card(std::move(out), in.at("card"));
}

std::optional<double> RecordedProblem::best_us() const {
  std::optional<double> best;
  for (const RecordedPlan& plan : plans)
    if (plan.is_right() && (!best || plan.us < *best)) best = plan.us;
  return best;
}

json to_json(const Outcomes& outcomes) {
  json out;
  out["format"] = kFormat;
  out["version"] = kVersion;
  out["machine"] = outcomes.machine;
  out["capabilities"] = capabilities_to_json(outcomes.capabilities);
  out["problems"] = json::array();
  for (const RecordedProblem& problem : outcomes.problems)
    out["problems"].push_back(json_of(problem));
  return out;
}

Result<Outcomes> outcomes_from_json(const json& in, const std::string& place) {
  try {
    return read_json(in, place);
  } catch (const json::exception& error) {
    return fail(broken(place, error.what()));
  }
}

Result<Outcomes> read_outcomes(const std::filesystem::path& path) {
  WARPLOOM_TRY(const std::string bytes, read_file(path));
  const auto text = gunzipped(bytes, kMostBytes);
  if (!text)
    return fail(broken(path.string(), fmt::format("{} bytes that are no whole gzip file of at "
                                                  "most {} MiB",
                                                  bytes.size(), kMostBytes >> 20)));
  constexpr bool kThrows = false;
  const json read = json::from_cbor(*text, true, kThrows);
  if (read.is_discarded()) return fail(broken(path.string(), "bytes that are no CBOR"));
  return outcomes_from_json(read, path.string());
}

Status write_outcomes(const std::filesystem::path& path, const Outcomes& outcomes) {
  const auto bytes = json::to_cbor(to_json(outcomes));
  return write_file(path, gzipped(std::string(bytes.begin(), bytes.end())));
}
}  // namespace warploom::search
