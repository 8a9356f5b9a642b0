#include "export/kernel_text.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>
#include "base/rendered.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "export/delivery.h"

namespace warploom::export_ {
namespace {
using nlohmann::json;

// Lines as `#include "name"` or `#include <name>`, and the name.
const std::regex kInclude("^[ \\t]*#include\\s*[\"<]([^\">]+)[\">].*\\n",
                          std::regex::ECMAScript | std::regex::multiline);

std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
  const std::sregex_iterator first(text.begin(), text.end(), pattern);
  return {first, std::sregex_iterator()};
}

// What stands above a kernel text's own code: includes, and what they are told.
const std::regex kPreamble("^[ \\t]*#(?:include\\s*[\"<][^\">]+[\">]|define WL_VECTOR_BYTES ).*\\n",
                           std::regex::ECMAScript | std::regex::multiline);

// Several texts in one file: preambles first, each line once; `between`; then each text in a
// namespace of its own, so that their constants and helpers cannot meet. Kernels keep C linkage.
std::string joined(const std::vector<std::string>& texts, const std::string& between) {
  std::string head;
  std::string body;
  std::set<std::string> seen;
  for (size_t i = 0; i < texts.size(); ++i) {
    for (const std::smatch& line : matches(texts[i], kPreamble))
      if (seen.insert(line.str()).second) head += line.str();
    body += fmt::format("\nnamespace part_{0} {{\n{1}}}  // namespace part_{0}\n", i,
                        std::regex_replace(texts[i], kPreamble, ""));
  }
  return head + between + body;
}

// One text stays as it is, but for `between` below its preamble.
std::string parted(const std::string& text, const std::string& between) {
  size_t at = 0;
  for (const std::smatch& line : matches(text, kPreamble))
    at = static_cast<size_t>(line.position() + line.length());
  return text.substr(0, at) + between + text.substr(at);
}

// Kernels of several bundles often have one name (`direct`), and their symbols would meet in a
// program that links them, or worse, in its libraries. So the kernel file calls each by the
// bundle's name as well, unless a text uses the name for something else, too.
std::map<std::string, std::string> symbols_of(const std::string& bundle, const LaunchList& list,
                                              const std::vector<std::string>& texts) {
  std::map<std::string, std::string> symbols;  // by the kernel's name
  for (const Kernel& kernel : list.kernels) {
    if (symbols.contains(kernel.name)) continue;
    const std::regex otherwise(fmt::format("(::|\\.|->)\\s*{}\\b", kernel.name));
    const bool used = std::ranges::any_of(
        texts, [&](const std::string& text) { return std::regex_search(text, otherwise); });
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
    for (const std::smatch& line : matches(text, kInclude))
      for (const EmbeddedFile& header : device_headers()) {
        const std::string name = line[1];
        const bool is_named = header.path == folder + name || header.path == "common/" + name;
        if (!is_named || !seen.insert(header.path).second) continue;
        found.push_back({"device/" + header.path, header.text});
        look(header.text);
      }
  };
  for (const BundleFile& file : files) look(file.text);
  return found;
}
}  // namespace warploom::export_
