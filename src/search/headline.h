// headline: the first line of an outcome, as a person would say it. The closing table, a bundle's
// README and the report all begin with it.
//
//   1.31× faster than oneDNN 2.6.3 (1.19 ms → 0.91 ms, ±4 %), proven right; 58 % of this machine's
//   DRAM bound; make -C out/x check
//
//   0.77× the speed of oneDNN 2.6.3 (0.91 ms → 1.18 ms, ±3 %), proven right; …
//   undecided against oneDNN 2.6.3: 0.91× to 1.40× its speed (1.19 ms → 0.91 ms), because the
//   machine is busy; proven right; …
//   0.91 ms, nothing is known to compare with; proven right; …
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace warploom::search {
// Of an outcome as to_json() gives it, or of a bundle's plan.json, which holds the same keys, of
// this version or an older one; what is missing counts as not known. The command to check the
// bundle is added where the outcome says where it is (`bundle`).
std::string headline(const nlohmann::json& outcome);

// The outcome's record with what people read added as `words`, for resources/text/outcome.txt:
//   headline, faster (decided, and so in green), time, reference, speedup, machine, bound, error,
//   prepare, check, network, regions [{number, name, time, reference, speedup}], sum
nlohmann::json with_words(nlohmann::json outcome);
}  // namespace warploom::search
