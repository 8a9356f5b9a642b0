#include "export/kernel_text.h"
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/rendered.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "export/delivery.h"

namespace warploom::export_ {
namespace {
using nlohmann::json;

bool skip(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

// The name in a line `#include "name"` or `#include <name>`; empty of any other.
std::string_view included_by(std::string_view line) {
  skip_blanks(line);
  if (!skip(line, "#include")) return {};
  skip_blanks(line);
  if (!line.starts_with('"') && !line.starts_with('<')) return {};
  const size_t end = line.find_first_of("\">", 1);
  return end == line.npos ? std::string_view() : line.substr(1, end - 1);
}

// What stands above a kernel text's own code: includes, and what they are told.
bool is_preamble(std::string_view line) {
  if (!included_by(line).empty()) return true;
  skip_blanks(line);
  return line.starts_with("#define WL_VECTOR_BYTES ");
}

// With their ends; a text's last may have none.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

// Several texts in one file: preambles first, each line once; `between`; then each text in a
// namespace of its own, so that their constants and helpers cannot meet. Kernels keep C linkage.
std::string joined(const std::vector<std::string>& texts, const std::string& between) {
  std::string head;
  std::string body;
  std::set<std::string> seen;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string own;
    for (const std::string_view line : lines_of(texts[i])) {
      if (!is_preamble(line))
        own += line;
      else if (seen.insert(std::string(line)).second)
        head += line;
    }
    body += fmt::format("\nnamespace part_{0} {{\n{1}}}  // namespace part_{0}\n", i, own);
  }
  return head + between + body;
}

// One text stays as it is, but for `between` below its preamble.
std::string parted(const std::string& text, const std::string& between) {
  size_t at = 0;
  for (const std::string_view line : lines_of(text))
    if (is_preamble(line)) at = as_size(line.end() - std::string_view(text).begin());
  return text.substr(0, at) + between + text.substr(at);
}

// Whether the text has the name behind `::`, `.` or `->`.
bool names_something_else(std::string_view text, std::string_view name) {
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    const bool word_ends =
        end == text.size() ||
        (std::isalnum(static_cast<unsigned char>(text[end])) == 0 && text[end] != '_');
    const size_t before = at == 0 ? text.npos : text.find_last_not_of(" \t\r\n", at - 1);
    if (!word_ends || before == text.npos) continue;
    const std::string_view head = text.substr(0, before + 1);
    if (head.ends_with("::") || head.ends_with('.') || head.ends_with("->")) return true;
  }
  return false;
}

// Kernels of several bundles often have one name (`direct`), and their symbols would meet in a
// program that links them, or worse, in its libraries. So the kernel file calls each by the
// bundle's name as well, unless a text uses the name for something else, too.
std::map<std::string, std::string> symbols_of(const std::string& bundle, const LaunchList& list,
                                              const std::vector<std::string>& texts) {
  std::map<std::string, std::string> symbols;  // by the kernel's name
  for (const Kernel& kernel : list.kernels) {
    if (symbols.contains(kernel.name)) continue;
    const bool used = std::ranges::any_of(
        texts, [&](const std::string& text) { return names_something_else(text, kernel.name); });
    symbols[kernel.name] = used ? kernel.name : bundle + "_" + kernel.name;
  }
  return symbols;
}
}  // namespace

void add_kernel_text(json& record, const LaunchList& list) {
  std::vector<std::string> texts;  // each once
  for (const Kernel& kernel : list.kernels)
    if (!contains(texts, kernel.source)) texts.push_back(kernel.source);
  const auto symbols = symbols_of(record["bundle"], list, texts);
  std::string names;
  for (const auto& [name, symbol] : symbols)
    if (symbol != name) names += fmt::format("#define {} {}\n", name, symbol);
  const bool several = texts.size() > 1;
  record["kernel_text"] = several ? joined(texts, names) : parted(texts[0], names);
  for (size_t i = 0; i < list.kernels.size(); ++i) {
    const Kernel& kernel = list.kernels[i];
    const auto part = std::ranges::find(texts, kernel.source) - texts.begin();
    json& row = record["kernels"][i];
    row["part"] = several ? fmt::format("part_{}::", part) : "";
    row["symbol"] = symbols.at(kernel.name);
  }
}

std::vector<BundleFile> device_files(const LaunchList& list, const std::vector<BundleFile>& files) {
  const std::string folder = list.engine == Engine::cuda ? "ptx/" : "cpu/";
  std::vector<BundleFile> found;
  std::set<std::string> seen;
  const std::function<void(const std::string&)> look = [&](const std::string& text) {
    for (const std::string_view line : lines_of(text)) {
      const std::string name(included_by(line));
      if (name.empty()) continue;
      for (const EmbeddedFile& header : device_headers()) {
        const bool is_named = header.path == folder + name || header.path == "common/" + name;
        if (!is_named || !seen.insert(header.path).second) continue;
        found.push_back({"device/" + header.path, header.text});
        look(header.text);
      }
    }
  };
  for (const BundleFile& file : files)
    look(file.text);
  return found;
}
}  // namespace warploom::export_
