#include "verify/verdict.h"

namespace warploom::verify {
namespace {

using nlohmann::json;

json to_json(const Evidence& e) {
  return {{"family", name_of(e.family)},
          {"seed", e.seed},
          {"error", e.error},
          {"max_error", e.max_error},
          {"bound", e.bound},
          {"worst_ratio", e.worst_ratio},
          {"reference_error", e.reference_error},
          {"rows_checked", e.rows_checked},
          {"rows", e.rows}};
}

// JSON has no infinity: such figures are written as null and read back as infinite.
double number(const json& row, const char* key) {
  const auto found = row.find(key);
  return found == row.end() || found->is_null() ? HUGE_VAL : found->get<double>();
}

Evidence evidence_from(const json& row) {
  Evidence out;
  out.family = input_family_named(row.at("family").get<std::string>()).value_or(InputFamily::normal);
  out.seed = row.at("seed");
  out.error = number(row, "error");
  out.max_error = number(row, "max_error");
  out.bound = number(row, "bound");
  out.worst_ratio = number(row, "worst_ratio");
  out.reference_error = number(row, "reference_error");
  out.rows_checked = row.at("rows_checked");
  out.rows = row.at("rows");
  return out;
}

}  // namespace

json to_json(const Verdict& v) {
  json evidence = json::array();
  for (const auto& row : v.evidence) evidence.push_back(to_json(row));
  json out = {{"accepted", v.accepted},
              {"error", v.error},
              {"max_error", v.max_error},
              {"reference_error", v.reference_error},
              {"median_us", v.median_us},
              {"low_us", v.low_us},
              {"high_us", v.high_us},
              {"reference_us", v.reference_us},
              {"reference_low_us", v.reference_low_us},
              {"reference_high_us", v.reference_high_us},
              {"repeats", v.repeats},
              {"floor_us", v.floor_us},
              {"evidence", evidence}};
  if (!v.accepted) out["refused"] = warploom::to_json(v.error_found);
  return out;
}

Result<Verdict> verdict_from_json(const json& text) {
  try {
    Verdict out;
    out.accepted = text.at("accepted");
    out.error = number(text, "error");
    out.max_error = number(text, "max_error");
    out.reference_error = number(text, "reference_error");
    out.median_us = text.at("median_us");
    out.low_us = text.at("low_us");
    out.high_us = text.at("high_us");
    out.reference_us = text.at("reference_us");
    out.reference_low_us = text.at("reference_low_us");
    out.reference_high_us = text.at("reference_high_us");
    out.repeats = text.at("repeats");
    out.floor_us = text.at("floor_us");
    for (const auto& row : text.at("evidence")) out.evidence.push_back(evidence_from(row));
    if (text.contains("refused")) out.error_found = error_from_json(text["refused"]);
    return out;
  } catch (const json::exception& error) {
    return fail(
        {ErrorCode::kInternal, "a verdict cannot be read", "", "the form that to_json writes", error.what(), ""});
  }
}

}  // namespace warploom::verify
