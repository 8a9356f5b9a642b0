#include "export/bundle.h"
#include "base/file.h"
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
  std::vector<std::string> taken;
  const Frame frame = make_frame(identifier(info.name, taken), info.summary, list);
  WARPLOOM_TRY(std::vector<BundleFile> files, on_gpu(list) ? cuda_launcher(frame) : cpu_launcher(frame));
  WARPLOOM_TRY(std::vector<BundleFile> check, check_files(frame, graph, info.seed, info.tolerance));
  files.push_back(kernel_file(frame));
  const auto append = [&](std::vector<BundleFile> more) { std::ranges::move(more, std::back_inserter(files)); };
  append(std::move(check));
  append(device_files(list, files));
  files.push_back(makefile(frame));
  files.push_back(python_module(frame, graph));
  files.push_back(readme(frame, info.tolerance));
  nlohmann::json plan = info.plan.is_object() ? info.plan : nlohmann::json::object();
  plan["name"] = frame.name;
  plan["summary"] = info.summary;
  plan["tolerance"] = info.tolerance;
  plan["check_seed"] = info.seed;
  plan["launch_list"] = to_json(list);
  plan["constants"] = nlohmann::json::object();  // the files of those inputs that the model itself holds
  for (std::size_t i = 0; i < list.inputs.size(); ++i)
    if (held(graph, list.inputs[i])) plan["constants"][list.inputs[i].name] = "check/" + input_file(i);
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
