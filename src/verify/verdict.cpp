#include "verify/verdict.h"
#include "verify/channel.h"

namespace warploom::verify {

using nlohmann::json;

void to_json(json& out, InputFamily family) { out = name_of(family); }
void from_json(const json& in, InputFamily& family) {
  family = input_family_named(in.get<std::string>()).value_or(InputFamily::normal);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Evidence, family, seed, error, max_error, bound, worst_ratio, reference_error,
                                   rows_checked, rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Verdict, accepted, error, max_error, reference_error, median_us, low_us, high_us,
                                   reference_us, reference_low_us, reference_high_us, repeats, floor_us, evidence)

json to_json(const Verdict& verdict) {
  json out = verdict;
  if (!verdict.accepted) out["refused"] = warploom::to_json(verdict.error_found);
  return out;
}

Result<Verdict> verdict_from_json(const json& text) {
  WARPLOOM_TRY(Verdict out, record_from<Verdict>(text, "a verdict"));
  if (text.contains("refused")) out.error_found = error_from_json(text["refused"]);
  return out;
}

}  // namespace warploom::verify
