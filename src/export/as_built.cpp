#include "export/as_built.h"
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/plan_file.h"
#include "runtime/text_places.h"

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
  return fail(error);
}

constexpr int kDeepest = 64;  // headers that include headers; ours go three deep

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r';
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

void skip_blanks(std::string_view& text) {
  while (!text.empty() && is_blank(text[0]))
    text.remove_prefix(1);
}

bool skip(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// The longest beginning of the text that is one word, which is taken off.
std::string_view take_word(std::string_view& text) {
  const size_t length = std::ranges::find_if_not(text, is_word) - text.begin();
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

// What a line tells the preprocessor: `#include <math.h>` is {"#", "include", "<math.h>"}.
struct Directive {
  std::string_view mark;  // "#", or another spelling of it; empty: the line is none
  std::string_view word;
  std::string_view rest;
};

Directive directive_of(std::string_view line) {
  skip_blanks(line);
  Directive found;
  for (const std::string_view mark : {"#", "%:", "?\?="})
    if (found.mark.empty() && skip(line, mark)) found.mark = mark;
  skip_blanks(line);
  found.word = take_word(line);
  skip_blanks(line);
  found.rest = line;
  return found;
}

bool fetches_text(const Directive& directive) {
  if (directive.mark.empty()) return false;
  const auto begins = [&](std::string_view word) { return directive.word.starts_with(word); };
  return begins("include") || begins("import") || begins("embed");
}

// Whether a preprocessor sees a directive there that looks like none, or like another: behind a
// comment, or spelled over two lines.
bool is_disguised(std::string_view line) {
  const Directive open = directive_of(line);
  const bool behind_comment = open.word.empty() && open.rest.starts_with("/*");
  const bool unfinished =
      behind_comment || open.rest.starts_with('\\') || open.rest.starts_with("?\?/");
  if (!open.mark.empty() && unfinished) return true;
  for (size_t end = line.find("*/"); end != line.npos; end = line.find("*/", end + 2))
    if (!directive_of(line.substr(end + 2)).mark.empty()) return true;
  return false;
}

// The file that `"name"` or `<name>` names; empty where it is neither.
std::string_view named_by(std::string_view rest) {
  if (rest.empty() || (rest[0] != '"' && rest[0] != '<')) return {};
  const size_t end = rest.find_first_of("\">", 1);
  return end == rest.npos ? std::string_view() : rest.substr(1, end - 1);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(std::move(line));
  return lines;
}

// Whether `extern "C" const void* NAME_kernel_3() {` begins there, with its two further lines: how
// a GPU's launcher finds a kernel.
bool is_finder(const std::vector<std::string>& lines, size_t at) {
  if (at + 2 >= lines.size()) return false;
  std::string_view head = lines[at];
  if (!skip(head, "extern \"C\" const void* ")) return false;
  const std::string_view name = take_word(head);
  if (name.find("_kernel_") == name.npos || head != "() {") return false;
  std::string_view body = lines[at + 1];
  if (!skip(body, "  return reinterpret_cast<const void*>(&")) return false;
  const auto is_symbol = [](char c) { return is_word(c) || c == ':'; };
  const size_t length = std::ranges::find_if_not(body, is_symbol) - body.begin();
  return body.substr(length) == ");" && lines[at + 2] == "}";
}

// Writes out what a text includes of the bundle's folder, each file once, as `#pragma once` says.
class Inliner {
 public:
  Inliner(const json& plan, const fs::path& folder, const std::string& engine)
      : plan_(plan), folder_(folder), places_{"device/" + engine, "device/common"} {}

  // The text of `name`, a path from the folder.
  Result<std::string> text_of(const std::string& name, int depth = 0) {
    if (depth > kDeepest) return unjudgeable(folder_ / name, "headers that include each other");
    WARPLOOM_TRY(const std::string whole, runtime::read_beside(plan_, folder_, name));
    const auto lines = lines_of(whole);
    std::string out;
    bool jumped = true;  // the next line is not of this file, or not the one behind the last
    for (size_t i = 0; i < lines.size(); ++i) {
      if (is_finder(lines, i)) {
        i += 2;
        jumped = true;
        continue;
      }
      WARPLOOM_TRY(const std::string text, text_of_line(name, lines[i], depth));
      const bool as_it_is = text == lines[i] + "\n";
      if (jumped && as_it_is) out += runtime::place_mark(as_int(i) + 1, name);
      jumped = !as_it_is;
      out += text;
    }
    return out;
  }

 private:
  Result<std::string> text_of_line(const std::string& by, const std::string& line, int depth) {
    constexpr size_t kShown = 200;
    if (is_disguised(line)) return unjudgeable(folder_ / by, line.substr(0, kShown));
    const Directive directive = directive_of(line);
    if (directive.word == "pragma" && directive.rest.starts_with("once")) return "";
    if (!fetches_text(directive)) return line + "\n";
    const std::string_view name = named_by(directive.rest);
    if (directive.mark != "#" || directive.word != "include" || name.empty())
      return unjudgeable(folder_ / by, line.substr(0, kShown));
    const bool quoted = directive.rest[0] == '"';
    return included_by(by, std::string(name), quoted, line, depth);
  }

  // What a compiler finds under the bundle's include folders; the line itself where it is a header
  // of the system.
  Result<std::string> included_by(const std::string& by, const std::string& name, bool quoted,
                                  const std::string& line, int depth) {
    std::vector<fs::path> places(places_.begin(), places_.end());
    if (quoted) places.insert(places.begin(), fs::path(by).parent_path());
    for (const fs::path& place : places) {
      const std::string path = (place / name).lexically_normal().generic_string();
      std::error_code ignored;
      if (!fs::exists(folder_ / path, ignored)) continue;
      return seen_.insert(path).second ? text_of(path, depth + 1) : "";
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

// The kernel file may call a kernel by the bundle's name as well, lest two bundles' kernels meet:
// `#define NAME BUNDLE_NAME`.
std::string symbol_in(const std::string& text, const std::string& name) {
  const std::string define = "#define " + name + " ";
  for (size_t at = text.find(define); at != text.npos; at = text.find(define, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    std::string_view rest = std::string_view(text).substr(at + define.size());
    const std::string_view word = take_word(rest);
    if (word.ends_with("_" + name) && rest.starts_with('\n')) return std::string(word);
  }
  return name;
}

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
    kernel.name = symbol_in(text, kernel.name);
    kernel.source = text;
  }
  return AsBuilt{std::move(list), file};
}
}  // namespace warploom::export_
