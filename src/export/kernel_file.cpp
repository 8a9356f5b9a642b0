#include <regex>
#include <sstream>
#include "export/parts.h"
namespace warploom::export_ {
namespace {
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The name in `#include "name"` or `#include <name>`, empty for any other line.
std::string included(const std::string& line) {
  static const std::regex form("\\s*#include\\s*[\"<]([^\">]+)[\">].*");
  std::smatch match;
  return std::regex_match(line, match, form) ? match[1].str() : "";
}

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
    body += fmt::format("\nnamespace part_{} {{\n", i);
    for (const auto& line : lines_of(texts[i])) {
      if (included(line).empty()) body += line + "\n";
      else if (seen.insert(line).second) head += line + "\n";
    }
    body += fmt::format("}}  // namespace part_{}\n", i);
  }
  return head + body;
}
}  // namespace
BundleFile kernel_file(const Frame& frame) {
  const auto texts = distinct_texts(frame.list);
  std::string text = comment(frame.summary) + "// " + frame.name + "_host.cpp" +
                     " launches what is here; `make check` compares it with stored results.\n\n";
  text += texts.size() == 1 ? texts[0] : joined(texts);
  if (!on_gpu(frame.list)) return {frame.name + "_kernels.cpp", text};
  text += "\n// What the launcher knows the kernels by.\n";
  for (std::size_t i = 0; i < frame.list.kernels.size(); ++i) {
    const auto& kernel = frame.list.kernels[i];
    const auto part = std::ranges::find(texts, kernel.source) - texts.begin();
    text += fmt::format("extern \"C\" const void* {}_kernel_{}() {{ return reinterpret_cast<const void*>(&{}{}); }}\n",
                        frame.name, i, texts.size() == 1 ? "" : fmt::format("part_{}::", part), kernel.name);
  }
  return {frame.name + ".cu", text};
}

std::vector<BundleFile> device_files(const LaunchList& list, const std::vector<BundleFile>& files) {
  const std::string folder = on_gpu(list) ? "ptx/" : "cpu/";
  std::vector<BundleFile> found;
  std::set<std::string> seen;
  const std::function<void(const std::string&)> look = [&](const std::string& text) {
    for (const auto& line : lines_of(text)) {
      const std::string name = included(line);
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
