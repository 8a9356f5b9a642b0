#include "archive/versions.h"
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>

namespace warploom::archive {
using nlohmann::json;

namespace {
// What 0 or less stood for in version 2: not measured.
constexpr const char* kTimes[] = {"median_us",    "low_us",           "high_us",
                                  "reference_us", "reference_low_us", "reference_high_us",
                                  "screened_us"};

bool above_nought(const json& record, const char* key) {
  const auto at = record.find(key);
  return at != record.end() && at->is_number() && at->get<double>() > 0;
}

void null_unless_above_nought(json& record, const char* key) {
  if (record.contains(key) && !above_nought(record, key)) record[key] = nullptr;
}

void null_if_negative(json& record, const char* key) {
  const auto at = record.find(key);
  if (at != record.end() && at->is_number() && at->get<double>() < 0) *at = nullptr;
}

void upgrade_verdict(json& verdict) {
  if (!verdict.is_object()) return;
  for (const char* key : kTimes)
    null_unless_above_nought(verdict, key);
  null_if_negative(verdict, "reference_error");
  const auto evidence = verdict.find("evidence");
  if (evidence == verdict.end() || !evidence->is_array()) return;
  for (json& family : *evidence)
    if (family.is_object()) null_if_negative(family, "reference_error");
}

json upgraded_candidate(json record) {
  json& verdict = record["verdict"];
  upgrade_verdict(verdict);
  const bool beside = verdict.is_object() && above_nought(verdict, "reference_us");
  if (!beside) record["reference_us"] = nullptr;
  for (const char* key : {"reference_low_us", "reference_high_us"})
    record[key] = beside && verdict.contains(key) ? verdict[key] : json();
  for (const char* key : {"speedup", "speedup_low", "speedup_high", "machine"})
    record[key] = nullptr;
  for (const char* key : kTimes)
    null_unless_above_nought(record, key);
  bool judged = false;
  if (verdict.is_object()) judged = !verdict.value("evidence", json::array()).empty();
  if (!judged)
    for (const char* key : {"error", "max_error"})
      null_unless_above_nought(record, key);
  return record;
}

constexpr Step kSteps[] = {{2, version_3_of}};
}  // namespace

std::span<const Step> steps() {
  return kSteps;
}

json version_3_of(const std::string& table, json record) {
  if (table == "candidates") return upgraded_candidate(std::move(record));
  if (table == "runs") null_unless_above_nought(record, "reference_us");
  return record;
}
}  // namespace warploom::archive
