// Versions: how an archive that an older program wrote becomes one of today.
//
// Every version has one function that makes its records of those of the version before, so a file
// of any version goes through them in turn, all in one transaction: it is of one version or of the
// next, whenever the power goes. To change the format: raise kVersion, write the tables into
// resources/archive/schema.sql, add a row to steps() and a test with a file of the old version.
//
//   2 → 3   what is not known is null (it was 0 or -1); times of a reference that were not taken
//           beside the candidate go; intervals, the paired speedup and the state of the machine
//           are columns
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace warploom::archive {
struct Step {
  int from;
  nlohmann::json (*upgraded)(const std::string& table, nlohmann::json record);
};

// One a version, ascending and without gaps, up to the version before kVersion.
std::span<const Step> steps();

// A record of version 2 as version 3 has it; `table` is problems, candidates or runs.
nlohmann::json version_3_of(const std::string& table, nlohmann::json record);
}  // namespace warploom::archive
