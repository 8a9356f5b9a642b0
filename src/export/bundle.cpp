#include "export/bundle.h"
#include "base/embedded.h"
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
