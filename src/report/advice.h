// What to try next, in words: rules over what the archive and the plan say. Each rule is a row of
// the list in advice.cpp and stays silent where its figures are not known.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace warploom::report {
// `plan`: the bundle's, or null; `histories`: as history_of() gives them; `regions`: the rows of
// the page's table of regions. {"title", "texts"} each, the texts HTML, the most telling first.
nlohmann::json advice_of(const nlohmann::json& plan, const nlohmann::json& histories,
                         const nlohmann::json& regions);
}  // namespace warploom::report
