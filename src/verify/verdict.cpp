// Verdicts as JSON: between processes, in the archive, and for programs that read --json.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include "base/casts.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/noise.h"
#include "runtime/standing.h"
#include "runtime/timing.h"
#include "verify/channel.h"
#include "verify/evaluator.h"
#include "verify/inputs.h"
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
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(
    Verdict, accepted, error, max_error, reference_error, median_us, low_us, high_us, reference_us,
    reference_low_us, reference_high_us, reference_dropped, prepare_us, prepare_bytes, path,
    time_is_bound, strict_us, strict_low_us, strict_high_us, overhead_us, overhead_spread_us,
    samples, repeats, floor_us, judge_ms, truth, sandbox, evidence, not_promised, whole_calls,
    whole_inputs)

namespace {
// Figures that are above 0 wherever they are known.
constexpr const char* kPositive[] = {"median_us",         "low_us",
                                     "high_us",           "reference_us",
                                     "reference_low_us",  "reference_high_us",
                                     "samples",           "repeats",
                                     "floor_us",          "reference_dropped",
                                     "prepare_us",        "prepare_bytes",
                                     "strict_us",         "strict_low_us",
                                     "strict_high_us",    "overhead_us",
                                     "overhead_spread_us"};

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
  const auto& ratio = verdict.speedup;
  const bool compared = ratio.median > 0;
  out["speedup"] = compared ? json(ratio.median) : json();
  out["speedup_interval"] = compared ? json{ratio.low, ratio.high} : json();
  out["standing"] = name_of(standing_of(ratio, verdict.noise));
  out["undecided_because"] = why_undecided(ratio, verdict.noise);
  out["machine"] = to_json(verdict.noise);
  out["special_values"] = warploom::name_of(verdict.special);
  const int64_t calls = verdict.whole_calls;
  out["excluded_rate"] = calls > 0 ? json(excluded_rate(calls)) : json();
  const int64_t inputs = verdict.whole_inputs;
  out["excluded_rate_of_inputs"] = inputs > 0 ? json(excluded_rate(inputs)) : json();
  out["excluded_text"] = text_of_excluded(calls, inputs);
  if (!verdict.accepted) out["refused"] = warploom::to_json(verdict.error_found);
  return out;
}

namespace {
// Numbers that fit what they are read into: whole ones where they count, no NaN, none that
// surprises an int. What is said in words has an end.
bool is_sound(const json& value, int depth = 0) {
  constexpr size_t kMostText = 1 << 20;
  constexpr size_t kMostValues = 10'000;
  constexpr int kDeepest = 8;
  if (value.is_number_float()) return !std::isnan(value.get<double>());
  if (value.is_string()) return value.get_ref<const std::string&>().size() <= kMostText;
  if (!value.is_structured()) return !value.is_binary();
  const auto inside = [depth](const json& one) { return is_sound(one, depth + 1); };
  return depth < kDeepest && value.size() <= kMostValues && std::ranges::all_of(value, inside);
}

// Whether what counts is whole, and fits an int where it is kept in one.
bool counts_are_whole(const json& record, std::initializer_list<const char*> keys, int64_t most) {
  return std::ranges::all_of(keys, [&](const char* key) {
    const auto at = record.find(key);
    if (at == record.end()) return true;
    if (at->is_number_unsigned()) return at->get<uint64_t>() <= as_uint64(most);
    return at->is_number_integer() && at->get<int64_t>() >= 0 && at->get<int64_t>() <= most;
  });
}

bool is_evidence(const json& one) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  return one.is_object() && counts_are_whole(one, {"rows", "rows_checked", "sums_checked"}, kMost);
}

Status add_speedup(Verdict& verdict, const json& record) {
  const auto interval = record.find("speedup_interval");
  const auto speedup = record.find("speedup");
  if (interval == record.end() || speedup == record.end()) return ok();
  const auto is_number = [](const json& one) { return one.is_number(); };
  const bool pair = interval->is_array() && interval->size() == 2;
  if (!pair || !speedup->is_number() || !std::ranges::all_of(*interval, is_number))
    return unreadable("a verdict", "a speedup without its interval");
  verdict.speedup = {speedup->get<double>(), (*interval)[0].get<double>(),
                     (*interval)[1].get<double>(), verdict.samples};
  return ok();
}
}  // namespace

Result<Verdict> verdict_from_json(const json& text) {
  if (!text.is_object() || !is_sound(text)) return unreadable("a verdict", "another form");
  json record = without_nulls(text);
  constexpr int64_t kMostInt = std::numeric_limits<int>::max();
  if (!counts_are_whole(record, {"samples", "repeats"}, kMostInt) ||
      !counts_are_whole(record, {"prepare_bytes", "whole_calls", "whole_inputs"},
                        std::numeric_limits<int64_t>::max()))
    return unreadable("a verdict", "a count that is none");
  if (const auto evidence = record.find("evidence"); evidence != record.end())
    for (json& one : *evidence) {
      one = without_nulls(std::move(one));
      if (!is_evidence(one)) return unreadable("a verdict", "evidence that is none");
    }
  WARPLOOM_TRY(Verdict out, record_from<Verdict>(record, "a verdict"));
  WARPLOOM_CHECK(add_speedup(out, record));
  const json special = record.value("special_values", json("exact"));
  if (!special.is_string()) return unreadable("a verdict", "special values that are no word");
  out.special = special_values_named(special.get<std::string>()).value_or(SpecialValues::finite);
  out.noise = runtime::noise_from_json(record.value("machine", json()));
  const auto refused = record.find("refused");
  if (refused == record.end()) return out;
  const std::optional<Error> said = error_said(*refused);
  if (!said) return unreadable("a verdict", "a refusal without a known code");
  out.error_found = *said;
  return out;
}
}  // namespace warploom::verify
