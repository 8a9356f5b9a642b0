#include <regex>
#include "base/embedded.h"
#include "export/parts.h"
namespace warploom::export_ {
namespace {
// Lines as `#include "name"` or `#include <name>`, and the name.
const std::regex kInclude("^[ \\t]*#include\\s*[\"<]([^\">]+)[\">].*\\n", std::regex::ECMAScript | std::regex::multiline);
using Includes = std::sregex_iterator;

std::vector<std::string> distinct_texts(const LaunchList& list) {
  std::vector<std::string> texts;
  for (const auto& kernel : list.kernels)
    if (std::ranges::find(texts, kernel.source) == texts.end()) texts.push_back(kernel.source);
  return texts;
}

// Several texts in one file: includes first, once; then each text in a namespace of its own, so that their constants and
// helpers cannot meet. Kernels keep C linkage and so their names.
std::string joined(const std::vector<std::string>& texts) {
  std::string head, body;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (Includes line(texts[i].begin(), texts[i].end(), kInclude), end; line != end; ++line)
      if (seen.insert(line->str()).second) head += line->str();
    body += fmt::format("\nnamespace part_{0} {{\n{1}}}  // namespace part_{0}\n", i, std::regex_replace(texts[i], kInclude, ""));
  }
  return head + body;
}
}  // namespace
void add_kernel_text(nlohmann::json& record, const LaunchList& list) {
  const auto texts = distinct_texts(list);
  const bool several = texts.size() > 1;
  record["kernel_text"] = several ? joined(texts) : texts[0];
  for (std::size_t i = 0; i < list.kernels.size(); ++i) {
    const auto part = std::ranges::find(texts, list.kernels[i].source) - texts.begin();
    record["kernels"][i]["part"] = several ? fmt::format("part_{}::", part) : "";
  }
}

std::vector<BundleFile> device_files(const LaunchList& list, const std::vector<BundleFile>& files) {
  const std::string folder = list.engine == Engine::cuda ? "ptx/" : "cpu/";
  std::vector<BundleFile> found;
  std::set<std::string> seen;
  const std::function<void(const std::string&)> look = [&](const std::string& text) {
    for (Includes line(text.begin(), text.end(), kInclude), end; line != end; ++line) {
      const std::string name = (*line)[1];
      for (const auto& header : device_headers()) {
        if ((header.path != folder + name && header.path != "common/" + name) || !seen.insert(header.path).second) continue;
        found.push_back({"device/" + header.path, header.text});
        look(header.text);
      }
    }
  };
  for (const BundleFile& file : files) look(file.text);
  return found;
}
}  // namespace warploom::export_
