// plan.json as it lies in a bundle's folder, and the other files of that folder.
//
// A bundle may come from anywhere, so nothing in it is believed: the plan is read whole only when
// it is a plain file whose brackets nest as a plan's do, the files that it names must lie in its
// folder, and what it says of their contents is compared.
//
// "files" of a plan holds the hash of every file that was written with it, its own under
// "plan.json", so that a change is seen. (A hash keeps nobody from changing both: it tells mistakes
// and edits, not forgery. What strangers made is for `warploom verify`.) Bundles of before have no
// "files"; of them nothing is compared.
//
// Errors: file-missing, file-unreadable, plan-invalid, plan-outside, bundle-changed.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include "base/error.h"

namespace warploom::runtime {
// A bundle's plan, by its folder or its plan.json, which `path` then names; plan-invalid where it
// lacks one of the keys.
Result<nlohmann::json> read_plan(std::filesystem::path& path,
                                 std::initializer_list<const char*> keys);
tl::unexpected<Error> unfit_plan(const std::filesystem::path& path, std::string found);

// What `work` makes of the plan there; plan-invalid where a value is of another type than it takes.
auto reading_plan(const std::filesystem::path& path, const auto& work) -> decltype(work()) {
  try {
    return work();
  } catch (const nlohmann::json::exception& error) {
    return unfit_plan(path, error.what());
  }
}

// Adds the plan's own hash to its files: the last that is done to it before it is written.
void seal_plan(nlohmann::json& plan);
// bundle-changed where the plan is not what was sealed; fine where it never was.
Status check_seal(const nlohmann::json& plan, const std::filesystem::path& folder);

// A file that a plan names by its path from the folder: inside it, no link out of it, plain, of so
// many bytes where that is known, and with the hash that the plan has of it.
Result<std::string> read_beside(const nlohmann::json& plan, const std::filesystem::path& folder,
                                const std::string& name, int64_t bytes = -1);
}  // namespace warploom::runtime
