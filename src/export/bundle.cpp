#include "export/bundle.h"
#include <regex>
#include "base/file.h"
#include "base/rendered.h"
#include "export/parts.h"
namespace warploom::export_ {
namespace fs = std::filesystem;
namespace {
// Takes away what an earlier bundle left; a folder with files and no plan.json is somebody else's and stays as it is.
void remove_earlier(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "plan.json", ignored)) return;
  for (const char* part : {"plan.json", "device", "check", "build", "Makefile", "README.md"})
    fs::remove_all(folder / part, ignored);
}

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

// Kernels of one text stay one text; several texts each get a namespace, their includes in front. Adds kernel_text, and to every kernel
// `part`, the namespace it is in.
void add_kernel_text(nlohmann::json& record, const LaunchList& list) {
  const auto texts = distinct_texts(list);
  const bool several = texts.size() > 1;
  record["kernel_text"] = several ? joined(texts) : texts[0];
  for (std::size_t i = 0; i < list.kernels.size(); ++i) {
    const auto part = std::ranges::find(texts, list.kernels[i].source) - texts.begin();
    record["kernels"][i]["part"] = several ? fmt::format("part_{}::", part) : "";
  }
}

// The device headers that the bundle's files include, directly or through others.
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
}  // namespace
Status write_bundle(const fs::path& folder, const BundleInfo& info, const LaunchList& list, const graph::Graph& graph) {
  nlohmann::json record = record_of(info, list);
  WARPLOOM_TRY(std::vector<BundleFile> files, check_data(record, list, graph, info.tolerance, info.seed));
  add_kernel_text(record, list);
  const std::string engine = list.engine == Engine::cuda ? "cuda/" : "cpu/";
  const std::pair<const char*, std::string> kTexts[] = {
      {"{{kernel_file}}", "kernels.cpp"}, {"{{bundle}}.h", engine + "host.h"}, {"{{bundle}}_host.cpp", engine + "host.cpp"},
      {"check/check.cpp", "check.cpp"},   {"Makefile", engine + "Makefile"},   {"{{bundle}}.py", "module.py"},
      {"README.md", "README.md"}};
  for (const auto& [path, text] : kTexts) files.push_back({rendered(path, record), rendered(resource("bundle/" + text), record)});
  std::ranges::move(device_files(list, files), std::back_inserter(files));
  nlohmann::json plan = info.plan.is_object() ? info.plan : nlohmann::json::object();
  plan.update({{"name", record["bundle"]},
               {"summary", info.summary},
               {"tolerance", info.tolerance},
               {"check_seed", info.seed},
               {"launch_list", to_json(list)},
               {"constants", nlohmann::json::object()}});  // the files of those inputs that the model itself holds
  for (const auto& input : record["inputs"])
    if (input["held"]) plan["constants"][input["name"].get<std::string>()] = "check/" + input["stored"].get<std::string>();
  files.push_back({"plan.json", plan.dump(2) + "\n"});  // last: its presence says that the bundle is whole

  WARPLOOM_CHECK(make_folders(folder));
  remove_earlier(folder);
  for (const auto& file : files) {
    const fs::path path = folder / file.path;
    WARPLOOM_CHECK(make_folders(path.parent_path()));
    WARPLOOM_CHECK(write_file(path, file.text));
  }
  return ok();
}
}  // namespace warploom::export_
