// What can be done to a whole plan, as records: `show` and `why`.
#pragma once
#include <nlohmann/json.hpp>
#include "search/action/plan_actions.h"

namespace warploom::cli {
// {"legal": [{"step", "kind", "sentence"}], "refused": [{"step", "kind", "sentence",
// "constraints"}]}. An action that is made in several places alike is named by the first of them.
nlohmann::json plan_actions_record(const search::PlanActions& actions);
}  // namespace warploom::cli
