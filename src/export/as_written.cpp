#include "export/as_written.h"
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/quoted.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "export/bundle.h"
#include "export/delivery.h"
#include "export/kernel_text.h"
#include "export/record.h"
#include "graph/graph.h"
#include "runtime/plan_file.h"

namespace warploom::export_ {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {
tl::unexpected<Error> changed(const fs::path& file, std::string found, std::string remedy) {
  return fail({ErrorCode::kBundleChanged, "a file of the bundle is not what was written",
               file.string(), "what `warploom optimize` writes for the plan", std::move(found),
               std::move(remedy)});
}

tl::unexpected<Error> strange(const fs::path& folder, const std::string& name,
                              const std::string& found) {
  const std::string alone = shell_word((folder / "plan.json").string());
  return changed(folder / name, found,
                 fmt::format("make the bundle again with `warploom optimize`, or judge its kernels "
                             "alone: `warploom verify {}`",
                             alone));
}

// The record that the texts are rendered from, as far as the plan tells it.
json record_from(const json& plan, const LaunchList& list) {
  BundleInfo info;
  info.name = plan.at("name");
  info.summary = plan.at("summary");
  info.plan = plan;
  json record = record_of(info, list);
  std::vector<std::string> given;
  for (const json& input : record["inputs"])
    if (!plan.at("constants").contains(input["name"].get<std::string>()))
      given.push_back(input["variable"]);
  record["given"] = listed(given);
  // What stands in the rows of check.cpp is not compared.
  constexpr const char* kInRows[] = {"file",  "seed",    "scale", "positive", "low",    "step",
                                     "count", "element", "kept",  "indices",  "allowed"};
  for (const char* tensors : {"inputs", "outputs"})
    for (json& row : record[tensors])
      for (const char* key : kInRows)
        row[key] = "0";
  add_kernel_text(record, list);
  return record;
}

// One literal of a table in check.cpp, which is taken off the text: a number, true, nullptr, a
// string or a type of an element.
bool take_literal(std::string_view& text) {
  if (text.starts_with('"')) {
    size_t end = 1;
    while (end < text.size() && text[end] != '"' && text[end] != '\n')
      end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size() || text[end] != '"') return false;
    text.remove_prefix(end + 1);
    return true;
  }
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_.+-:").find(c) != std::string_view::npos;
  };
  const size_t length = std::ranges::find_if_not(text, is_part) - text.begin();
  text.remove_prefix(length);
  return length > 0;
}

// "float", "unsigned char", "std::int8_t".
bool take_name_of_type(std::string_view& text) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_: ").find(c) != std::string_view::npos;
  };
  const size_t length = std::ranges::find_if_not(text, is_part) - text.begin();
  text.remove_prefix(length);
  return length > 0;
}

// Whether rows of a table hold literals alone: no call but type<ELEMENT>(BITS).
bool holds_literals(std::string_view rows) {
  constexpr std::string_view kBetween = " \n,{}";
  while (true) {
    rows.remove_prefix(std::min(rows.find_first_not_of(kBetween), rows.size()));
    if (rows.empty()) return true;
    constexpr std::string_view kType = "type<";
    if (!rows.starts_with(kType)) {
      if (!take_literal(rows)) return false;
      continue;
    }
    rows.remove_prefix(kType.size());
    if (!take_name_of_type(rows) || !rows.starts_with(">(")) return false;
    rows.remove_prefix(2);
    if (!take_literal(rows) || !rows.starts_with(')')) return false;
    rows.remove_prefix(1);
  }
}

// check.cpp less the rows of its tables; nothing where a table is missing or holds more than
// literals.
std::optional<std::string> without_rows(std::string text) {
  for (const std::string_view head :
       {"const Input kInputs[] = {\n", "const Output kOutputs[] = {\n"}) {
    const size_t found = text.find(head);
    if (found == text.npos) return std::nullopt;
    const size_t begin = found + head.size();
    const size_t end = text.find("};\n", begin);
    if (end == text.npos) return std::nullopt;
    if (!holds_literals(std::string_view(text).substr(begin, end - begin))) return std::nullopt;
    text.erase(begin, end - begin);
  }
  return text;
}

bool is_data(const std::string& name) {
  if (name == "README.md" || name == "plan.json") return true;
  std::string_view rest = name;
  if (!rest.starts_with("check/")) return false;
  rest.remove_prefix(6);
  if (rest == "outline.onnx") return true;
  const size_t digits = rest.find_first_of("0123456789");
  const size_t end = rest.find_first_not_of("0123456789", digits);
  if (digits == rest.npos || end == rest.npos) return false;
  constexpr std::string_view kKinds[] = {"input_.bin", "output_.f64", "output_.i64"};
  const std::string kind = std::string(rest.substr(0, digits)) + std::string(rest.substr(end));
  return contains(kKinds, kind);
}

// Everything in the folder, by its path from there; of a link what it is, not where it leads.
Result<std::vector<fs::path>> entries_of(const fs::path& folder) {
  constexpr size_t kMost = 100'000;
  std::vector<fs::path> entries;
  std::error_code error;
  const fs::recursive_directory_iterator end;
  for (fs::recursive_directory_iterator at(folder, error); !error && at != end;
       at.increment(error)) {
    const bool is_folder = at->is_directory(error) && !at->is_symlink(error);
    if (!is_folder) entries.push_back(at->path().lexically_relative(folder));
    if (entries.size() > kMost) return strange(folder, "", "more than 100,000 files");
  }
  if (error) return strange(folder, "", error.message());
  std::ranges::sort(entries);
  return entries;
}

bool is_built(const fs::path& path) {
  return *path.begin() == "build" || path.extension() == ".pyc";
}

class Written {
 public:
  Written(const fs::path& folder, const json& plan, const LaunchList& list)
      : folder_(folder), plan_(plan), record_(record_from(plan, list)) {
    auto files = texts_of(record_, list.engine);
    std::ranges::move(device_files(list, files), std::back_inserter(files));
    for (BundleFile& file : files)
      texts_[file.path] = std::move(file.text);
  }

  Status check() const {
    WARPLOOM_TRY(const std::vector<fs::path> entries, entries_of(folder_));
    std::vector<std::string> there;
    for (const fs::path& entry : entries) {
      WARPLOOM_CHECK(check_entry(entry.generic_string()));
      there.push_back(entry.generic_string());
    }
    const auto is_missing = [&](const std::string& name) {
      return !std::ranges::binary_search(there, name);
    };
    for (const auto& [name, text] : texts_)
      if (is_missing(name)) return strange(folder_, name, "no such file");
    for (const auto& [name, hash] : plan_.at("files").items())
      if (is_missing(name)) return strange(folder_, name, "no such file");
    return ok();
  }

 private:
  Status check_entry(const std::string& name) const {
    if (fs::is_symlink(folder_ / name)) return strange(folder_, name, "a link");
    const auto written = texts_.find(name);
    if (written == texts_.end() && !is_data(name)) return stray(name);
    if (name == "plan.json") return ok();  // it is sealed
    if (!plan_.at("files").contains(name))
      return strange(folder_, name, "a file that the plan does not list");
    WARPLOOM_TRY(const std::string text, runtime::read_beside(plan_, folder_, name));
    const bool judged = json(name) == record_["kernel_file"];
    if (written == texts_.end() || judged || name == "README.md") return ok();
    const bool same =
        name == "check/check.cpp"
            ? without_rows(text) && without_rows(text) == without_rows(written->second)
            : text == written->second;
    return same ? ok() : strange(folder_, name, "another text");
  }

  Status stray(const std::string& name) const {
    const fs::path path(name);
    const bool listed = plan_.at("files").contains(name);
    if (is_built(path) && !listed) return ok();
    return strange(folder_, name, "a file that no bundle has");
  }

  const fs::path& folder_;
  const json& plan_;
  json record_;
  std::map<std::string, std::string> texts_;
};
}  // namespace

std::vector<std::string> built_in(const fs::path& folder) {
  std::vector<std::string> names;
  const auto entries = entries_of(folder);
  if (!entries) return names;
  for (const fs::path& entry : *entries)
    if (is_built(entry)) names.push_back(entry.generic_string());
  return names;
}

Status check_written(const fs::path& folder, const json& plan, const LaunchList& list) {
  const auto files = plan.find("files");
  if (files == plan.end() || !files->is_object() || !files->contains("plan.json"))
    return strange(folder, "plan.json", "a plan that does not list its files");
  WARPLOOM_CHECK(runtime::check_seal(plan, folder));
  const auto is_text = [&](const char* key) { return plan.contains(key) && plan[key].is_string(); };
  const bool has_constants = plan.contains("constants") && plan["constants"].is_object();
  if (!is_text("name") || !is_text("summary") || !has_constants)
    return runtime::unfit_plan(folder / "plan.json", "no name, summary or constants");
  return Written(folder, plan, list).check();
}

Status check_constants(const fs::path& folder, const json& plan, const LaunchList& list,
                       const graph::Graph& graph) {
  for (const BufferSpec& input : list.inputs) {
    const auto file = plan.at("constants").find(input.name);
    const auto id = graph.tensor_named(input.name);
    const bool held = id && graph.tensor(*id).constant;
    if (file == plan.at("constants").end()) {
      if (held) return strange(folder, "plan.json", "no file of the model's own " + input.name);
      continue;
    }
    const auto name = file->get<std::string>();
    WARPLOOM_TRY(const std::string bytes, runtime::read_beside(plan, folder, name, input.bytes()));
    const auto same = [](char a, std::byte b) { return static_cast<std::byte>(a) == b; };
    if (!held || !std::ranges::equal(bytes, *graph.tensor(*id).constant, same))
      return strange(folder, name, "another " + input.name + " than the model's");
  }
  return ok();
}
}  // namespace warploom::export_
