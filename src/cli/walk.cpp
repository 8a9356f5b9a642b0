// `warploom walk`: a kernel's way told as actions by name, each of them measured
// (docs/search.md, examples/crfm).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "cli/command.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "onnx/load.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "report/lineage.h"
#include "runtime/compile.h"
#include "runtime/noise.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/action/named.h"
#include "search/action/own_action.h"
#include "search/action/plan_actions.h"
#include "search/optimize.h"
#include "search/plan_choice.h"
#include "search/requests.h"
#include "search/search_space.h"
#include "search/strategy/ranked.h"
#include "search/task.h"
#include "target/capabilities.h"
#include "vendor/match.h"
#include "verify/evaluator.h"

namespace warploom::cli {
namespace {
using kernels::KernelConfig;
using nlohmann::json;

struct Flags {
  std::string file;
  std::string steps;
  std::string out;
  std::string target = "auto";
  std::string track;
  std::vector<std::string> actions;
  ModelOptions model;
  double seconds = 30;  // of a search that would ask alike
  uint64_t seed = 1;
  bool is_dry = false;
};

// A region on its way.
struct Place {
  search::Task task;
  std::string identity;
  std::unique_ptr<search::ActionSpace> actions;
  std::optional<verify::Evaluator> evaluator;
  KernelConfig config;
  json measured = {};  // of the config
};

// The regions of a partition, in its order. Those that another partition has too are shared.
using Places = std::vector<std::shared_ptr<Place>>;

// The model as it is cut into regions.
struct Network {
  graph::Graph given;
  graph::Graph graph;
  target::Capabilities capabilities;
  Track track = Track::fp32;
  std::shared_ptr<const search::OwnActions> own_actions = {};
  std::optional<plan::Boundaries> boundaries = {};
  plan::BoundaryChanges changes = {};  // of fusion's boundaries, so far
};

Error no_steps(const std::string& file, std::string found) {
  return {ErrorCode::kPlanInvalid,
          "this is no file of steps",
          file,
          R"({"start": ["FAMILY FIELD=VALUE …"], "rounds": [{"round", "idea", "actions"}]})",
          std::move(found),
          "see examples/crfm"};
}

// The file's steps, whose form is checked here alone.
Result<json> read_steps(const std::string& file) {
  WARPLOOM_TRY(const std::string text, read_file(file));
  json steps = json::parse(text, nullptr, false);
  const bool is_object = steps.is_object() && steps.contains("start") && steps.contains("rounds");
  if (!is_object || !steps["start"].is_array() || !steps["rounds"].is_array())
    return fail(no_steps(file, steps.is_discarded() ? "no JSON" : "another object"));
  const auto is_text = [](const json& one) { return one.is_string(); };
  if (!std::ranges::all_of(steps["start"], is_text)) return fail(no_steps(file, "a start"));
  for (const json& round : steps["rounds"]) {
    const bool has_words =
        round.is_object() && round.contains("round") && round.value("idea", json()).is_string();
    const json actions = has_words ? round.value("actions", json::array()) : json();
    const bool is_sound = actions.is_array() && std::ranges::all_of(actions, is_text) &&
                          (!actions.empty() || round.value("none", json()).is_string());
    const json region = is_sound ? round.value("region", json(1)) : json();
    if (!region.is_number_integer()) return fail(no_steps(file, round.dump()));
  }
  return steps;
}

Result<std::unique_ptr<Network>> network_of(const Flags& flags) {
  auto out = std::make_unique<Network>();
  WARPLOOM_TRY(out->given, load_onnx(flags.file, flags.model));
  WARPLOOM_TRY(out->track, track_for(out->given, flags.track));
  WARPLOOM_TRY(out->capabilities, search::resolve_target(flags.target));
  WARPLOOM_TRY(out->graph, plan::lower_for_target(out->given, out->capabilities));
  WARPLOOM_TRY(search::OwnActions own, search::read_own_actions(flags.actions));
  out->own_actions = std::make_shared<const search::OwnActions>(std::move(own));
  WARPLOOM_TRY(out->boundaries, plan::boundaries_of(out->graph, out->track, out->capabilities));
  return out;
}

// A region under what is the surest to be right.
Result<std::shared_ptr<Place>> place_of(const plan::Region& region, const Network& network,
                                        const Flags& flags) {
  const kernels::Region alone(region.graph, network.track);
  auto place = std::make_shared<Place>();
  search::Task& task = place->task;
  task = search::make_task(alone, network.capabilities, flags.seed, region.constants);
  task.setup.ranges = region.ranges;
  task.space = search::search_space_of(alone, network.capabilities, region.constants);
  task.space.own_actions = network.own_actions;
  const auto operators = vendor::operators_of(network.given, region.graph, region.tensors);
  task.setup.reference = vendor::match_region(region.graph, operators, network.track);
  place->identity = region.identity;
  place->actions = std::make_unique<search::ActionSpace>(task.space);
  const auto fallback = search::fallback_of(task.space);
  if (!fallback)
    return fail({ErrorCode::kNoSchedule, "no family covers a region", flags.file, "", "", ""});
  place->config = fallback->config;
  return place;
}

// Those of the network's partition; regions that `before` has stay as they are.
Result<Places> places_of(Network& network, const Flags& flags, Places before) {
  WARPLOOM_TRY(const plan::Partition partition, network.boundaries->under(network.changes));
  Places out;
  for (const plan::Region& region : partition.regions) {
    if (region.alias) continue;
    const auto is_same = [&](const std::shared_ptr<Place>& one) {
      return one && one->identity == region.identity;
    };
    const auto known = std::ranges::find_if(before, is_same);
    if (known != before.end()) {
      out.push_back(std::exchange(*known, nullptr));
      continue;
    }
    WARPLOOM_TRY(auto place, place_of(region, network, flags));
    out.push_back(std::move(place));
  }
  return out;
}

// Those that the walk starts from.
Result<Places> first_places(Network& network, const Flags& flags, const json& steps) {
  WARPLOOM_TRY(Places out, places_of(network, flags, {}));
  if (steps["start"].size() > out.size())
    return fail(no_steps(
        flags.steps, "more starts than the model's " + std::to_string(out.size()) + " regions"));
  for (size_t i = 0; i < steps["start"].size(); ++i)
    WARPLOOM_TRY(out[i]->config,
                 search::named_config(*out[i]->actions, steps["start"][i].get<std::string>()));
  return out;
}

// {"schedule", "us", …} of a region's config; what it was refused for where it was.
Result<json> measured(Place& place, const Flags& flags) {
  json out = {
      {"region", hash_hex(place.identity)}, {"schedule", place.config.text()}, {"us", nullptr}};
  if (flags.is_dry) return out;
  if (!place.evaluator)
    WARPLOOM_TRY(place.evaluator,
                 verify::Evaluator::start(place.task.setup, {.interrupted = &interrupted()}));
  auto list = place.task.space.build(place.config);
  auto binary = list ? runtime::compile(*list) : Result<runtime::Binary>(fail(list.error()));
  if (!binary) {
    out["refused"] = to_json(binary.error());
    return out;
  }
  verify::Request request = search::finalist_request(flags.seconds, 0);
  request.candidate_limit_ms = 60'000;
  request.list = *std::move(list);
  WARPLOOM_TRY(const verify::Verdict verdict, place.evaluator->judge(request));
  if (!verdict.accepted) {
    out["refused"] = to_json(verdict.error_found);
    return out;
  }
  out["us"] = verdict.median_us;
  out["low_us"] = verdict.low_us;
  out["high_us"] = verdict.high_us;
  out["error"] = verdict.error;
  out["max_error"] = verdict.max_error;
  out["reference_us"] = nullptr;
  if (verdict.reference_us > 0) out["reference_us"] = verdict.reference_us;
  out["machine"] = runtime::to_json(verdict.noise);
  return out;
}

// The walk, whose rows are written as they come.
class Walk {
 public:
  Walk(const Flags& flags, json head, Network& network, Places places)
      : flags_(flags), network_(network), places_(std::move(places)), record_(std::move(head)) {
    record_["rows"] = json::array();
  }

  // Rows that a walk before this one has of the same steps on the same machine.
  void take_up(const json& before) {
    json head = before.is_object() ? before : json::object();
    json rows = head.value("rows", json::array());
    head.erase("rows");
    json own = record_;
    own.erase("rows");
    if (head == own && rows.is_array()) known_ = std::move(rows);
  }

  Status run(const json& steps) {
    json start = {{"round", 0}, {"idea", steps.value("idea", "the start")}};
    start["actions"] = json::array();
    WARPLOOM_CHECK(measure_all(start));
    WARPLOOM_CHECK(add(std::move(start)));
    for (const json& round : steps["rounds"]) {
      if (interrupted())
        return fail({ErrorCode::kInterrupted, "interrupted", "", "", "", "run again to go on"});
      WARPLOOM_CHECK(take_round(round));
    }
    return ok();
  }

  const json& record() const { return record_; }

 private:
  // Where the walk stands.
  struct Standing {
    plan::BoundaryChanges changes;
    Places places;
    std::vector<KernelConfig> configs;
    std::vector<json> measured;
  };

  Standing standing() const {
    Standing out{network_.changes, places_, {}, {}};
    for (const auto& place : places_) {
      out.configs.push_back(place->config);
      out.measured.push_back(place->measured);
    }
    return out;
  }

  void go_back(const Standing& to) {
    network_.changes = to.changes;
    places_ = to.places;
    for (size_t i = 0; i < places_.size(); ++i) {
      places_[i]->config = to.configs[i];
      places_[i]->measured = to.measured[i];
    }
  }

  static bool is_as_it_was(const Place& place, const Standing& before) {
    for (size_t i = 0; i < before.places.size(); ++i)
      if (before.places[i].get() == &place) return before.configs[i] == place.config;
    return false;
  }

  // All of a round's actions are one step; where one of them is refused, or what comes of them is,
  // the walk stays where it was.
  Status take_round(const json& round) {
    json row = round;
    row["actions"] = json::array();
    const auto number = round.value("region", int64_t{1});
    const Standing before = standing();
    for (const json& name : round.value("actions", json::array())) {
      const auto words = name.get<std::string>();
      const bool is_there = number >= 1 && as_size(number) <= places_.size();
      const bool is_of_network = search::is_boundary_step(words);
      if (!is_there && !is_of_network) {
        row["none"] = "the plan has no region " + std::to_string(number) + " here";
        go_back(before);
        return add_unchanged(std::move(row));
      }
      auto done = is_of_network ? change_boundary(words)
                                : change_config(*places_[as_size(number - 1)], words);
      if (!done) {
        row["refused"] = to_json(done.error());
        go_back(before);
        return add_unchanged(std::move(row));
      }
      (*done)["name"] = name;
      (*done)["difference"] = report::difference_of(*done);
      row["actions"].push_back(*std::move(done));
    }
    WARPLOOM_CHECK(measure_all(row));
    for (const auto& place : places_) {
      if (!place->measured.contains("refused") || is_as_it_was(*place, before)) continue;
      row["refused"] = place->measured["refused"];
      row["refused_schedule"] = place->config.text();
      go_back(before);
      return add_unchanged(std::move(row));
    }
    return add(std::move(row));
  }

  // The action as the row has it.
  static Result<json> change_config(Place& place, const std::string& name) {
    WARPLOOM_TRY(const search::Action action,
                 search::named_action(*place.actions, place.config, name));
    WARPLOOM_TRY(place.config, search::carry_out(place.task.space, action, place.config));
    return to_json(action);
  }

  Result<json> change_boundary(const std::string& name) {
    WARPLOOM_TRY(const search::Action action,
                 search::named_boundary_action(*network_.boundaries, network_.changes, name));
    WARPLOOM_TRY(const search::PlanChoice choice,
                 search::carry_out(action, {.boundaries = network_.changes}));
    network_.changes = choice.boundaries;
    WARPLOOM_TRY(places_, places_of(network_, flags_, places_));
    return to_json(action);
  }

  Status add_unchanged(json row) {
    WARPLOOM_CHECK(measure_all(row));
    return add(std::move(row));
  }

  // What no region has measured is; the row gets their sum.
  Status measure_all(json& row) {
    row["regions"] = json::array();
    double sum = 0;
    double reference = 0;
    bool is_timed = true;
    bool has_reference = true;
    for (size_t i = 0; i < places_.size(); ++i) {
      Place& place = *places_[i];
      const bool is_known =
          place.measured.is_object() && place.measured["schedule"] == place.config.text();
      if (!is_known) place.measured = known_of(hash_hex(place.identity), place.config.text());
      if (place.measured.is_null()) WARPLOOM_TRY(place.measured, measured(place, flags_));
      const json& us = place.measured["us"];
      is_timed = is_timed && us.is_number();
      if (us.is_number()) sum += us.get<double>();
      const json against = place.measured.value("reference_us", json());
      has_reference = has_reference && against.is_number();
      if (against.is_number()) reference += against.get<double>();
      row["regions"].push_back(place.measured);
    }
    row["us"] = nullptr;
    if (is_timed) row["us"] = sum;
    row["reference_us"] = nullptr;
    if (is_timed && has_reference) row["reference_us"] = reference;
    return ok();
  }

  // Of an earlier walk; null: it has none.
  json known_of(const std::string& region, const std::string& schedule) const {
    for (const json& row : known_)
      for (const json& one : row.value("regions", json::array())) {
        const bool is_it =
            one.value("region", "") == region && one.value("schedule", "") == schedule;
        if (is_it && one["us"].is_number()) return one;
      }
    return {};
  }

  Status add(json row) {
    record_["rows"].push_back(std::move(row));
    if (flags_.out.empty()) return ok();
    return write_file(flags_.out, record_.dump(1) + "\n");
  }

  const Flags& flags_;
  Network& network_;
  Places places_;
  json record_;
  json known_ = json::array();
};

Result<Answer> walk(const Flags& flags, const Session& session) {
  WARPLOOM_TRY(const json steps, read_steps(flags.steps));
  WARPLOOM_TRY(const auto network, network_of(flags));
  const target::Capabilities& capabilities = network->capabilities;
  WARPLOOM_TRY(Places places, first_places(*network, flags, steps));
  json head;
  head["model"] = graph::to_text(network->given);
  head["track"] = name_of(network->track);
  head["target"] = capabilities.arch;
  head["card"] = capabilities.card;
  head["steps"] = steps;
  head["warploom"] = kVersion;
  head["measured"] = !flags.is_dry;
  catch_interrupts();
  Walk walk(flags, std::move(head), *network, std::move(places));
  std::error_code ignored;
  if (!flags.out.empty() && std::filesystem::exists(flags.out, ignored)) {
    WARPLOOM_TRY(const std::string text, read_file(flags.out));
    walk.take_up(json::parse(text, nullptr, false));
  }
  if (!session.quiet) std::cerr << "walking " << steps["rounds"].size() << " rounds\n";
  WARPLOOM_CHECK(walk.run(steps));
  return Answer{walk.record(), text_of("walk", walk.record())};
}
}  // namespace

Command walk_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "walk";
  command.help =
      "carries out actions that a file names, one after another, and measures what each comes to";
  command.example =
      "warploom walk examples/crfm/conv2d.textproto --steps examples/crfm/conv2d_cpu.json";
  command.flags = {{"FILE", &flags->file, "an ONNX model, binary or .textproto"},
                   {"--steps", &flags->steps, "the file of steps (docs/search.md)"},
                   {"--actions", &flags->actions,
                    "a file with an action of your own, which steps may name; several times for "
                    "several"},
                   {"--out", &flags->out,
                    "where the rows go, as JSON, as they come; run again, the walk goes on"},
                   {"--target", &flags->target, kTargetHelp},
                   {"--track", &flags->track, kTrackHelp},
                   {"--dim", &flags->model.dims, kDimHelp},
                   {"--assume", &flags->model.assume, kAssumeHelp},
                   {"--dry", &flags->is_dry, "only what the actions make; nothing is measured"},
                   {"--seed", &flags->seed, "of the inputs; default 1"}};
  command.action = [flags](const Session& session) { return walk(*flags, session); };
  return command;
}
}  // namespace warploom::cli
