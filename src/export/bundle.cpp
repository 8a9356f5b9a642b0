#include "export/bundle.h"
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/hash.h"
#include "base/quoted.h"
#include "base/rendered.h"
#include "codegen/launch_list.h"
#include "export/check_data.h"
#include "export/delivery.h"
#include "export/kernel_text.h"
#include "export/record.h"
#include "graph/graph.h"
#include "runtime/plan_file.h"

namespace warploom::export_ {
using graph::Graph;

namespace fs = std::filesystem;
using nlohmann::json;

std::string comment(std::string_view text) {
  constexpr size_t kWidth = 97;  // as many words as fit, or a longer one
  const std::string words = printable(text);
  std::string out;
  for (size_t at = words.find_first_not_of(' '); at < words.size();
       at = words.find_first_not_of(' ', at)) {
    size_t end = std::min(words.find(' ', at), words.size());
    for (size_t next = end; next < words.size() && next - at <= kWidth; ++next) {
      const bool ends_word = words[next] == ' ' && words[next - 1] != ' ';
      if (ends_word) end = next;
    }
    if (words.size() - at <= kWidth) end = words.size();
    out += "// " + c_comment(words.substr(at, end - at)) + "\n";
    at = end;
  }
  return out;
}

std::vector<BundleFile> texts_of(const json& record, Engine on) {
  const std::string engine = on == Engine::cuda ? "cuda/" : "cpu/";
  const std::pair<const char*, std::string> kTexts[] = {
      {"{{kernel_file}}", "kernels.cpp"},
      {"{{bundle}}.h", engine + "host.h"},
      {"{{bundle}}_host.cpp", engine + "host.cpp"},
      {"check/check.cpp", "check.cpp"},
      {"Makefile", engine + "Makefile"},
      {"{{bundle}}.py", "module.py"},
      {"README.md", "README.md"}};
  std::vector<BundleFile> files;
  for (const auto& [path, text] : kTexts) {
    std::string content = rendered(resource("bundle/" + text), record);
    files.push_back({rendered(path, record), std::move(content)});
  }
  const std::string module_folder = rendered("{{bundle}}_torch/", record);
  for (const EmbeddedFile& part : resources()) {  // of the PyTorch module, as they are
    if (!part.path.starts_with("bundle/python/")) continue;
    const std::string name = fs::path(part.path).filename().string();
    files.push_back({module_folder + name, part.text});
  }
  return files;
}

Result<std::vector<BundleFile>> bundle_files(const BundleInfo& info, const LaunchList& list,
                                             const Graph& graph) {
  json record = record_of(info, list);
  WARPLOOM_TRY(std::vector<BundleFile> files,
               check_data(record, list, graph, info.tolerance, info.seed));
  add_kernel_text(record, list);
  std::ranges::move(texts_of(record, list.engine), std::back_inserter(files));
  std::ranges::move(device_files(list, files), std::back_inserter(files));
  if (!info.outline.empty()) files.push_back({"check/outline.onnx", info.outline});
  json plan = info.plan.is_object() ? info.plan : json::object();
  plan["name"] = record["bundle"];
  plan["summary"] = info.summary;
  plan["tolerance"] = info.tolerance;
  plan["check_seed"] = info.seed;
  plan["kernel_file"] = record["kernel_file"];
  plan["launch_list"] = to_json(list);
  plan["weights"] = info.weights;
  json constants = json::object();  // the files of those inputs that the model itself holds
  for (const auto& input : record["inputs"]) {
    if (!input["held"]) continue;
    const std::string name = input["name"];
    constants[name] = "check/" + input["stored"].get<std::string>();
  }
  plan["constants"] = std::move(constants);
  for (const BundleFile& file : files)
    plan["files"][file.path] = hash_hex(file.text);
  runtime::seal_plan(plan);
  // Last: its presence says that the bundle is whole.
  const std::string plan_text = plan.dump(2, ' ', false, json::error_handler_t::replace);
  files.push_back({"plan.json", plan_text + "\n"});
  return files;
}

Result<Delivered> write_bundle(const fs::path& folder, const BundleInfo& info,
                               const LaunchList& list, const graph::Graph& graph,
                               const Until& until) {
  WARPLOOM_TRY(const std::vector<BundleFile> files, bundle_files(info, list, graph));
  return deliver(folder, files, list.engine, until, list.foreign);
}
}  // namespace warploom::export_
