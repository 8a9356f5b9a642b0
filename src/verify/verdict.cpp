// Verdicts as JSON: between processes, in the archive, and for programs that read --json.
#include "verify/channel.h"
#include "verify/evaluator.h"
#include "verify/rare_errors.h"

namespace warploom::verify {
using nlohmann::json;

void to_json(json& out, InputFamily family) {
  out = name_of(family);
}

void from_json(const json& in, InputFamily& family) {
  const auto named = std::ranges::find(input_families(), in.get<std::string>(),
                                       [](InputFamily one) { return name_of(one); });
  family = named == input_families().end() ? InputFamily::normal : *named;
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Evidence, family, seed, error, max_error, bound,
                                                worst_ratio, reference_error, sums_checked,
                                                rows_checked, rows, undetermined)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Verdict, accepted, error, max_error,
                                                reference_error, median_us, low_us, high_us,
                                                reference_us, reference_low_us, reference_high_us,
                                                reference_dropped, prepare_us, prepare_bytes,
                                                samples, repeats, floor_us, judge_ms, sandbox,
                                                evidence, not_promised, whole_calls)

namespace {
// Figures that are above 0 wherever they are known.
constexpr const char* kPositive[] = {"median_us",         "low_us",           "high_us",
                                     "reference_us",      "reference_low_us", "reference_high_us",
                                     "samples",           "repeats",          "floor_us",
                                     "reference_dropped", "prepare_us",       "prepare_bytes"};

void hide_unknown(json& record, const char* key, bool known) {
  if (!known) record[key] = nullptr;
}

// As it was before what is not known became null.
json without_nulls(json record) {
  for (auto at = record.begin(); at != record.end();)
    at = at->is_null() ? record.erase(at) : std::next(at);
  return record;
}
}  // namespace

json to_json(const Verdict& verdict) {
  json out = verdict;
  for (const char* key : kPositive)
    hide_unknown(out, key, out[key].is_string() ? out[key] != "" : out[key].get<double>() > 0);
  const bool judged = !verdict.evidence.empty();
  for (const char* key : {"error", "max_error"})
    hide_unknown(out, key, judged || out[key].get<double>() > 0);
  hide_unknown(out, "reference_error", verdict.reference_error >= 0);
  for (json& evidence : out["evidence"]) {
    hide_unknown(evidence, "reference_error", evidence["reference_error"].get<double>() >= 0);
    const bool checked = evidence["rows_checked"] != 0 || evidence["sums_checked"] != 0;
    for (const char* key : {"error", "max_error", "worst_ratio"})
      hide_unknown(evidence, key, checked);
  }
  const runtime::Ratio& ratio = verdict.speedup;
  const bool compared = ratio.median > 0;
  out["speedup"] = compared ? json(ratio.median) : json();
  out["speedup_interval"] = compared ? json{ratio.low, ratio.high} : json();
  out["standing"] = name_of(standing_of(ratio, verdict.noise));
  out["undecided_because"] = why_undecided(ratio, verdict.noise);
  out["machine"] = to_json(verdict.noise);
  out["special_values"] = warploom::name_of(verdict.special);
  const int64_t calls = verdict.whole_calls;
  out["excluded_rate"] = calls > 0 ? json(excluded_rate(calls)) : json();
  out["excluded_text"] = text_of_excluded(calls);
  if (!verdict.accepted) out["refused"] = warploom::to_json(verdict.error_found);
  return out;
}

Result<Verdict> verdict_from_json(const json& text) {
  json record = without_nulls(text);
  if (const auto evidence = record.find("evidence"); evidence != record.end())
    for (json& one : *evidence) one = without_nulls(std::move(one));
  WARPLOOM_TRY(Verdict out, record_from<Verdict>(record, "a verdict"));
  const auto interval = record.find("speedup_interval");
  if (interval != record.end() && interval->is_array() && interval->size() == 2)
    out.speedup = {record.value("speedup", 0.0), interval->at(0), interval->at(1), out.samples};
  const std::string special = record.value("special_values", "exact");
  out.special = special_values_named(special).value_or(SpecialValues::finite);
  out.noise = runtime::noise_from_json(record.value("machine", json()));
  if (record.contains("refused")) out.error_found = error_from_json(record["refused"]);
  return out;
}
}  // namespace warploom::verify
