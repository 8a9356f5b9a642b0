#include "export/as_built.h"
#include <fmt/format.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/plan_file.h"

namespace warploom::export_ {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {
tl::unexpected<Error> unjudgeable(const fs::path& file, std::string found) {
  Error error{ErrorCode::kBundleChanged, "a bundle's kernels cannot be judged as they are built"};
  error.place = file.string();
  error.expected = "kernels and headers as `warploom optimize` writes them";
  error.found = std::move(found);
  error.remedy = "judge a kernel of your own with `warploom verify FILE --problem MODEL`";
  return fail(std::move(error));
}

// Writes out what a text includes of the bundle's folder, each file once, as `#pragma once` says.
class Inliner {
 public:
  Inliner(const json& plan, const fs::path& folder, const std::string& engine)
      : plan_(plan), folder_(folder), places_{"device/" + engine, "device/common"} {}

  // The text of `name`, a path from the folder.
  Result<std::string> text_of(const std::string& name) {
    WARPLOOM_TRY(const std::string whole, runtime::read_beside(plan_, folder_, name));
    static const std::regex kInclude("[ \\t]*#[ \\t]*include[ \\t]*([\"<])([^\">]+)[\">].*");
    static const std::regex kOnce("[ \\t]*#[ \\t]*pragma[ \\t]+once[ \\t]*");
    static const std::regex kOther("[ \\t]*(#|%:|\\?\\?=)[ \\t]*(include|import|embed).*");
    static const std::regex kLauncher(
        "^extern \"C\" const void\\* \\w+_kernel_\\d+\\(\\) \\{\\s+return "
        "reinterpret_cast<const void\\*>\\(&[\\w:]+\\);\\s+\\}$",
        std::regex::ECMAScript | std::regex::multiline);
    const std::string text = std::regex_replace(whole, kLauncher, "");
    std::string out;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (std::regex_match(line, kOnce)) continue;
      if (std::regex_match(line, match, kInclude)) {
        WARPLOOM_TRY(const std::string included,
                     included_by(name, match[2].str(), match[1].str() == "\"", line));
        out += included;
        continue;
      }
      if (std::regex_match(line, kOther)) return unjudgeable(folder_ / name, line);
      out += line + "\n";
    }
    return out;
  }

 private:
  // What a compiler finds under the bundle's include folders; the line itself where it is a header
  // of the system.
  Result<std::string> included_by(const std::string& by, const std::string& name, bool quoted,
                                  const std::string& line) {
    std::vector<fs::path> places(places_.begin(), places_.end());
    if (quoted) places.insert(places.begin(), fs::path(by).parent_path());
    for (const fs::path& place : places) {
      const std::string path = (place / name).lexically_normal().generic_string();
      std::error_code ignored;
      if (!fs::exists(folder_ / path, ignored)) continue;
      return seen_.insert(path).second ? text_of(path) : "";
    }
    if (quoted) return unjudgeable(folder_ / by, line + ": not in the bundle");
    if (name.find("..") != name.npos || name.starts_with('/'))
      return unjudgeable(folder_ / by, line);
    return line + "\n";
  }

  const json& plan_;
  fs::path folder_;
  std::vector<std::string> places_;
  std::set<std::string> seen_;
};

// Where plans of before do not say it.
std::string kernel_file_of(const json& plan, Engine engine) {
  const auto text_at = [&](const char* key) {
    const auto found = plan.find(key);
    if (found == plan.end() || !found->is_string()) return std::string();
    return found->get<std::string>();
  };
  if (const std::string said = text_at("kernel_file"); !said.empty()) return said;
  const std::string name = text_at("name");
  if (name.empty()) return "";
  return name + (engine == Engine::cuda ? ".cu" : "_kernels.cpp");
}

// Everything that the plan has a hash of.
Status check_files(const json& plan, const fs::path& folder) {
  const auto files = plan.find("files");
  if (files == plan.end() || !files->is_object()) return ok();
  for (const auto& [name, hash] : files->items())
    if (name != "plan.json") WARPLOOM_CHECK(runtime::read_beside(plan, folder, name));
  return ok();
}
}  // namespace

AsBuilt as_planned(LaunchList list) {
  return {std::move(list), ""};
}

Result<AsBuilt> as_built(const fs::path& folder, const json& plan, LaunchList list) {
  const std::string file = kernel_file_of(plan, list.engine);
  std::error_code ignored;
  if (file.empty() || !fs::exists(folder / file, ignored)) return as_planned(std::move(list));
  WARPLOOM_CHECK(check_files(plan, folder));
  const std::string engine = list.engine == Engine::cuda ? "ptx" : "cpu";
  WARPLOOM_TRY(const std::string text, Inliner(plan, folder, engine).text_of(file));
  for (Kernel& kernel : list.kernels) {
    // The file may call it by the bundle's name as well, lest two bundles' kernels meet.
    const std::regex renamed(fmt::format("(?:^|\n)#define {0} (\\w+_{0})\n", kernel.name));
    if (std::smatch match; std::regex_search(text, match, renamed)) kernel.name = match[1];
    kernel.source = text;
  }
  return AsBuilt{std::move(list), file};
}
}  // namespace warploom::export_
