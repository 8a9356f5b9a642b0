#include "runtime/plan_file.h"
#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

namespace warploom::runtime {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {
constexpr const char* kPlan = "plan.json";
constexpr std::uintmax_t kMostPlanBytes = std::uintmax_t{1} << 27;
constexpr int kDeepest = 64;  // brackets within brackets; plans have about ten

// How deep brackets of a JSON text nest. Whoever parses or prints a deeper one calls itself as
// often.
int depth_of(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '{' || c == '['))
      deepest = std::max(deepest, ++depth);
    else if (!quoted && (c == '}' || c == ']'))
      --depth;
  }
  return deepest;
}

// What is read whole, besides what a search holds.
std::uintmax_t most_bytes() {
  const auto pages = static_cast<std::uintmax_t>(::sysconf(_SC_PHYS_PAGES));
  return pages * static_cast<std::uintmax_t>(::sysconf(_SC_PAGESIZE)) / 4;
}

std::string hash_of_plan(json plan) {
  plan["files"].erase(kPlan);
  return hash_hex(plan.dump(-1, ' ', false, json::error_handler_t::replace));
}

tl::unexpected<Error> changed(const fs::path& path) {
  return fail({ErrorCode::kBundleChanged, "a file of the bundle is not what was written",
               path.string(), "the file as `warploom optimize` wrote it", "another content",
               "bring it back, or make the bundle again with `warploom optimize`"});
}

tl::unexpected<Error> outside(const fs::path& folder, const std::string& name, std::string found) {
  return fail({ErrorCode::kPlanOutside, "a plan names a file that it may not",
               (folder / kPlan).string(), "a plain file within the bundle's folder",
               fmt::format("{}: {}", name, found), "make it again with `warploom optimize`"});
}

// Nothing where it is a plain file; else what it is.
std::string what_else(const fs::path& path) {
  std::error_code error;
  switch (fs::status(path, error).type()) {
    case fs::file_type::regular: return "";
    case fs::file_type::not_found: return "";  // reading says so
    case fs::file_type::directory: return "a folder";
    default: return "no plain file";
  }
}
}  // namespace

tl::unexpected<Error> unfit_plan(const fs::path& path, std::string found) {
  return fail({ErrorCode::kPlanInvalid, "the plan cannot be read", path.string(),
               "the plan.json of a bundle", std::move(found),
               "make it again with `warploom optimize`"});
}

namespace {
// Of an object with a key twice one reader takes the first value, another one the last.
struct KeysSeen {
  std::vector<std::set<std::string>> open;  // of each object that is being read, by its depth
  std::string twice;

  bool note(int depth, json::parse_event_t event, const json& key) {
    const auto level = static_cast<size_t>(std::max(depth, 0));
    if (open.size() <= level) open.resize(level + 1);
    if (event == json::parse_event_t::object_start) {
      if (open.size() <= level + 1) open.resize(level + 2);
      open[level + 1].clear();
    }
    if (event == json::parse_event_t::key) {
      const auto& text = key.get_ref<const std::string&>();
      if (!open[level].insert(text).second && twice.empty()) twice = text.substr(0, 100);
    }
    return true;
  }
};
}  // namespace

Result<json> read_plan(fs::path& path, std::initializer_list<const char*> keys) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) path /= kPlan;
  if (const std::string other = what_else(path); !other.empty()) return unfit_plan(path, other);
  if (fs::exists(path, ignored) && fs::file_size(path, ignored) > kMostPlanBytes)
    return unfit_plan(path, "a file of more than 128 MiB");
  WARPLOOM_TRY(const std::string text, read_file(path));
  if (depth_of(text) > kDeepest)
    return unfit_plan(path, fmt::format("brackets that nest deeper than {}", kDeepest));
  KeysSeen seen;
  json plan = json::parse(
      text,
      [&](int depth, json::parse_event_t event, json& key) { return seen.note(depth, event, key); },
      false);
  if (!plan.is_object()) return unfit_plan(path, "no JSON object");
  if (!seen.twice.empty())
    return unfit_plan(path, fmt::format("the key '{}' twice in one object", seen.twice));
  for (const char* key : keys)
    if (!plan.contains(key)) return unfit_plan(path, std::string("no key '") + key + "'");
  return plan;
}

void seal_plan(json& plan) {
  plan["files"][kPlan] = hash_of_plan(plan);
}

Status check_seal(const json& plan, const fs::path& folder) {
  const auto files = plan.find("files");
  if (files == plan.end() || !files->is_object() || !files->contains(kPlan)) return ok();
  return (*files)[kPlan] == hash_of_plan(plan) ? ok() : changed(folder / kPlan);
}

Result<std::string> read_beside(const json& plan, const fs::path& folder, const std::string& name,
                                int64_t bytes) {
  const fs::path relative = fs::path(name).lexically_normal();
  if (name.empty() || name.find('\0') != name.npos || relative.is_absolute() ||
      *relative.begin() == "..")
    return outside(folder, name, "outside the folder");
  std::error_code error;
  const fs::path root = fs::weakly_canonical(folder.empty() ? "." : folder, error);
  const fs::path path = fs::weakly_canonical(root / relative, error);
  if (error) return outside(folder, name, error.message());
  const fs::path seen = path.lexically_relative(root);
  if (seen.empty() || *seen.begin() == "..")
    return outside(folder, name, "a link that leaves the folder");
  if (const std::string other = what_else(path); !other.empty())
    return outside(folder, name, other);
  if (bytes >= 0 && fs::exists(path, error) &&
      fs::file_size(path, error) != static_cast<std::uintmax_t>(bytes))
    return unfit_plan(folder / kPlan, fmt::format("{} bytes of {}, which has {}",
                                                  fs::file_size(path, error), name, bytes));
  if (fs::exists(path, error) && fs::file_size(path, error) > most_bytes())
    return fail({ErrorCode::kPlanTooLarge, "a file of the bundle does not fit in memory",
                 path.string(), fmt::format("at most {} bytes", most_bytes()),
                 fmt::format("{} bytes", fs::file_size(path, error)),
                 "use a machine with more memory, or make the bundle again"});
  WARPLOOM_TRY(std::string text, read_file(path));
  const auto files = plan.find("files");
  if (files == plan.end() || !files->is_object()) return text;
  const auto known = files->find(relative.generic_string());
  if (known != files->end() && *known != hash_hex(text)) return changed(folder / relative);
  return text;
}
}  // namespace warploom::runtime
