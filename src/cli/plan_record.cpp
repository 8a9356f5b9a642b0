#include "cli/plan_record.h"
#include <nlohmann/json.hpp>
#include <utility>
#include "graph/rewrite.h"
#include "search/action/action.h"
#include "search/action/plan_actions.h"

namespace warploom::cli {
namespace {
using nlohmann::json;

json row_of(const search::Action& action) {
  return {{"step", action.plan_steps.front()},
          {"kind", to_json(action)["kind"]},
          {"sentence", action.sentence}};
}
}  // namespace

json plan_actions_record(const search::PlanActions& actions) {
  json out = {{"legal", json::array()}, {"refused", json::array()}};
  for (const search::Action& one : actions.legal)
    out["legal"].push_back(row_of(one));
  for (const search::RefusedPlanAction& one : actions.refused) {
    json row = row_of(one.action);
    row["constraints"] = json::array();
    for (const graph::FailedNeed& need : one.why)
      row["constraints"].push_back({{"expected", need.expected}, {"found", need.found}});
    out["refused"].push_back(std::move(row));
  }
  return out;
}
}  // namespace warploom::cli
