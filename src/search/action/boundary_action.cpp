#include "search/action/boundary_action.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "base/units.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "search/action/action.h"

namespace warploom::search {
namespace {
using nlohmann::json;
using plan::BoundaryChange;
using plan::BoundaryKind;

struct BoundaryActionRow {
  BoundaryKind kind;
  std::string_view code_region;
  Bottleneck eases;
  std::string_view words;
};

constexpr BoundaryActionRow kRows[] = {
#define WARPLOOM_BOUNDARY_ACTION(kind, code_region, eases, words) \
  {BoundaryKind::kind, code_region, Bottleneck::eases, words},
#include "search/action/boundary_actions.def"
};

void put(std::string& words, std::string_view name, const std::string& value) {
  const size_t at = words.find(name);
  if (at != std::string::npos) words.replace(at, name.size(), value);
}

json setting_of(const BoundaryChange& change) {
  const bool is_cut = change.kind == BoundaryKind::cut_region;
  const std::string between = is_cut ? change.tensor : change.tensor + " + " + change.other;
  return {{"field", between},
          {"from", is_cut ? "one region" : "two regions"},
          {"to", is_cut ? "two regions" : "one region"}};
}
}  // namespace

BoundaryAction boundary_action_of(const plan::BoundaryOption& option) {
  const BoundaryChange& change = option.changes.front();
  const auto& row = *std::ranges::find(kRows, change.kind, &BoundaryActionRow::kind);
  const std::string second = option.second.empty() ? "what is computed of it" : option.second;
  std::string words(row.words);
  put(words, "{first}", option.first);
  put(words, "{second}", second);
  put(words, "{bytes}", bytes_text(as_double(option.bytes)));
  put(words, "{tensor}", change.tensor);
  if (option.changes.size() > 1)
    words += fmt::format(", alike in {} places", option.changes.size());
  BoundaryAction out;
  out.kind = change.kind;
  out.changes = option.changes;
  out.code_region = row.code_region;
  out.eases = row.eases;
  out.sentence = fmt::format("{}: {}", words, kBottlenecks[as_size(row.eases)].gain);
  return out;
}

bool names_boundary(const std::string& name) {
  const std::string first = name.substr(0, name.find(' '));
  return std::ranges::any_of(
      kRows, [&](const BoundaryActionRow& row) { return plan::name_of(row.kind) == first; });
}

Result<BoundaryAction> named_boundary_action(plan::Boundaries& boundaries,
                                             const plan::BoundaryChanges& from,
                                             const std::string& name) {
  WARPLOOM_TRY(const plan::BoundaryChanges meant, plan::boundaries_from_text(name));
  if (meant.size() != 1)
    return fail({ErrorCode::kPlanInvalid, "one boundary is changed at a time", name, "one change",
                 std::to_string(meant.size()), ""});
  const BoundaryChange& change = meant.front();
  for (const plan::BoundaryOption& option : boundaries.options(from)) {
    if (!contains(option.changes, change)) continue;
    if (option.refusal) return fail(plan::error_of(change, *option.refusal));
    return boundary_action_of(option);
  }
  // What meets nothing like it, or what a rule forbids; the rule is told.
  plan::BoundaryChanges all = from;
  all.push_back(change);
  WARPLOOM_CHECK(boundaries.under(all));
  plan::BoundaryOption alone;
  alone.changes = meant;
  alone.first = change.tensor;
  alone.second = change.other;
  return boundary_action_of(alone);
}

json to_json(const BoundaryAction& action) {
  json settings = json::array();
  for (const BoundaryChange& change : action.changes)
    settings.push_back(setting_of(change));
  return {{"kind", kActionKinds[as_size(ActionKind::fusion)].name},
          {"name", plan::name_of(action.kind)},
          {"family", ""},
          {"code_region", action.code_region},
          {"changes_family", false},
          {"settings", settings},
          {"eases", kBottlenecks[as_size(action.eases)].name},
          {"sentence", action.sentence},
          {"changes", plan::to_json(action.changes)}};
}
}  // namespace warploom::search
