#include "search/action/action.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "plan/boundary_change.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
using kernels::ConfigType;
using kernels::FieldInfo;
using kernels::KernelConfig;

constexpr ActionField kActionFields[] = {
#define WARPLOOM_ACTION_FIELD(field, kind, code_region, raise_eases, raise_words, lower_eases, \
                              lower_words)                                                     \
  {#field,      ActionKind::kind,        code_region, Bottleneck::raise_eases,                 \
   raise_words, Bottleneck::lower_eases, lower_words},
#include "search/action/action_fields.def"
};

std::string with_values(std::string_view words, const FieldInfo& field, const Setting& setting) {
  std::string out(words);
  const auto put = [&](std::string_view name, const std::string& value) {
    const size_t at = out.find(name);
    if (at != std::string::npos) out.replace(at, name.size(), value);
  };
  put("{to}", field.text_of(setting.to));
  put("{from}", field.text_of(setting.from));
  return out;
}

// "(with block_k=64, warps=4)": what the change that is meant needs beside it.
std::string beside(const ConfigType& type, const std::vector<Setting>& settings) {
  if (settings.size() < 2) return "";
  std::vector<std::string> each;
  for (size_t i = 1; i < settings.size(); ++i) {
    const FieldInfo& field = type.fields[settings[i].field];
    each.push_back(fmt::format("{}={}", field.name, field.text_of(settings[i].to)));
  }
  return fmt::format(" (with {})", listed(each));
}

Action step_to_family(const KernelConfig& to) {
  Action out;
  out.kind = ActionKind::algorithm;
  out.type = to.type();
  out.code_region = "kernel";
  out.changes_family = true;
  for (size_t i = 0; i < to.size(); ++i)
    out.settings.push_back({i, 0, to.get(i)});
  out.sentence = fmt::format("compute it by {}: {}", to.text(),
                             kBottlenecks[as_size(Bottleneck::unknown)].gain);
  return out;
}
}  // namespace

const ActionField* action_field(std::string_view field) {
  const auto* const found = std::ranges::find(kActionFields, field, &ActionField::field);
  return found == std::end(kActionFields) ? nullptr : found;
}

Action action_of(const ConfigType& type, std::vector<Setting> settings) {
  Action out;
  const Setting& meant = settings.front();
  const FieldInfo& field = type.fields[meant.field];
  out.type = &type;
  std::string words = fmt::format("{}={}", field.name, field.text_of(meant.to));
  if (const ActionField* const row = action_field(field.name)) {
    const bool raises = meant.to > meant.from;
    out.kind = row->kind;
    out.code_region = row->code_region;
    out.eases = raises ? row->raise_eases : row->lower_eases;
    words = with_values(raises ? row->raise_words : row->lower_words, field, meant);
  }
  out.sentence =
      fmt::format("{}{}: {}", words, beside(type, settings), kBottlenecks[as_size(out.eases)].gain);
  out.settings = std::move(settings);
  return out;
}

std::optional<Action> action_between(const KernelConfig& from, const KernelConfig& to) {
  if (from == to || to.type() == nullptr) return std::nullopt;
  if (from.type() != to.type()) return step_to_family(to);
  std::vector<Setting> settings;
  for (size_t i = 0; i < to.size(); ++i)
    if (from.get(i) != to.get(i)) settings.push_back({i, from.get(i), to.get(i)});
  return action_of(*to.type(), std::move(settings));
}

Action idea_of(std::string sentence) {
  Action out;
  out.kind = ActionKind::idea;
  out.code_region = "kernel";
  out.sentence = std::move(sentence);
  return out;
}

Result<KernelConfig> carry_out(const SearchSpace& space, const Action& action,
                               const KernelConfig& config) {
  if (action.kind == ActionKind::idea)
    return fail({ErrorCode::kScheduleIllegal, "an idea in free words sets no field",
                 action.sentence, "an action that sets fields", "none",
                 "have a language model carry it out"});
  if (action.is_of_plan())
    return fail({ErrorCode::kScheduleIllegal, "an action of a whole plan sets no field of a config",
                 action.sentence, "an action that sets fields", listed(action.plan_steps),
                 "carry it out on the plan"});
  const auto family = std::ranges::find(space.families, action.family(), &kernels::Family::name);
  if (family == space.families.end())
    return fail({ErrorCode::kNoSchedule, "no family of this name covers the region",
                 action.sentence, "one of the region's families", action.family(), ""});
  const bool starts_elsewhere = config.family() != action.family();
  if (starts_elsewhere && !action.changes_family)
    return fail({ErrorCode::kScheduleIllegal, "the action is one of another family", config.text(),
                 config.family(), action.family(), ""});
  KernelConfig out = starts_elsewhere ? KernelConfig((*family)->type()) : config;
  for (const Setting& setting : action.settings)
    out.set(setting.field, setting.to);
  WARPLOOM_CHECK((*family)->legal(out));
  return out;
}

nlohmann::json to_json(const Action& action) {
  nlohmann::json settings = nlohmann::json::array();
  for (const Setting& one : action.settings) {
    const FieldInfo& field = action.type->fields[one.field];
    settings.push_back({{"field", std::string(field.name)},
                        {"from", field.json_of(one.from)},
                        {"to", field.json_of(one.to)}});
  }
  nlohmann::json out = {{"kind", std::string(kActionKinds[as_size(action.kind)].name)},
                        {"family", action.family()},
                        {"code_region", action.code_region},
                        {"changes_family", action.changes_family},
                        {"settings", settings},
                        {"eases", std::string(kBottlenecks[as_size(action.eases)].name)},
                        {"sentence", action.sentence}};
  if (action.is_of_plan()) out["plan_steps"] = action.plan_steps;
  return out;
}

namespace {
Error no_action(std::string found) {
  return {ErrorCode::kPlanInvalid,
          "this is no action",
          "",
          "what to_json(Action) writes",
          std::move(found),
          "search again: the archive's record is of another program"};
}

Result<int64_t> value_from(const nlohmann::json& json, const FieldInfo& field) {
  const std::string text = json.is_string() ? json.get<std::string>() : json.dump();
  const std::optional<int64_t> value = field.value_of(text);
  if (!value) return fail(no_action(fmt::format("{}={}", field.name, text)));
  return *value;
}

Result<Setting> setting_from(const nlohmann::json& json, const ConfigType& type) {
  const auto name = json.at("field").get<std::string>();
  const std::optional<size_t> number = type.find(name);
  if (!number) return fail(no_action(name));
  const FieldInfo& field = type.fields[*number];
  Setting out{*number, 0, 0};
  WARPLOOM_TRY(out.from, value_from(json.at("from"), field));
  WARPLOOM_TRY(out.to, value_from(json.at("to"), field));
  return out;
}

// Programs before this one wrote "graph_steps" of rewrites, and "changes" of boundaries.
Result<std::vector<std::string>> plan_steps_from(const nlohmann::json& json) {
  std::vector<std::string> out;
  if (json.contains("changes")) {
    WARPLOOM_TRY(const auto changes, plan::boundaries_from_json(json.at("changes")));
    for (const plan::BoundaryChange& one : changes)
      out.push_back(to_text(one));
  }
  for (const char* key : {"plan_steps", "graph_steps"})
    if (json.contains(key)) out = json.at(key).get<std::vector<std::string>>();
  return out;
}
}  // namespace

Result<Action> action_from_json(const nlohmann::json& json, const SearchSpace& space) {
  try {
    const auto kind = row_where<ActionKind>(kActionKinds, json.at("kind").get<std::string>(),
                                            &ActionKindRow::name);
    const auto eases = row_where<Bottleneck>(kBottlenecks, json.at("eases").get<std::string>(),
                                             &BottleneckRow::name);
    if (!kind || !eases) return fail(no_action(json.dump()));
    Action out;
    out.kind = *kind;
    out.eases = *eases;
    out.code_region = json.at("code_region").get<std::string>();
    out.changes_family = json.at("changes_family").get<bool>();
    out.sentence = json.at("sentence").get<std::string>();
    WARPLOOM_TRY(out.plan_steps, plan_steps_from(json));
    if (out.kind == ActionKind::idea || out.is_of_plan()) return out;
    const auto name = json.at("family").get<std::string>();
    const auto family = std::ranges::find(space.families, name, &kernels::Family::name);
    if (family == space.families.end()) return fail(no_action(name));
    out.type = &(*family)->type();
    for (const nlohmann::json& one : json.at("settings")) {
      WARPLOOM_TRY(const Setting setting, setting_from(one, *out.type));
      out.settings.push_back(setting);
    }
    return out;
  } catch (const nlohmann::json::exception& error) {
    return fail(no_action(error.what()));
  }
}
}  // namespace warploom::search
