#include "runtime/bundle.h"
#include "base/file.h"

namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

// Code for sm_80 runs on every sm_8x; x86-64-v3 on v4.
bool runs_on(const std::string& arch, const std::string& here) {
  return arch == here ||
         (!arch.ends_with('a') && arch < here && arch.substr(0, 4) == here.substr(0, 4));
}
}  // namespace

tl::unexpected<Error> unfit_plan(const fs::path& path, std::string found) {
  return fail({ErrorCode::kPlanInvalid, "the plan cannot be read", path.string(),
               "the plan.json of a bundle", std::move(found),
               "make it again with `warploom optimize`"});
}

Result<nlohmann::json> read_plan(fs::path& path, std::initializer_list<const char*> keys) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) path /= "plan.json";
  WARPLOOM_TRY(const std::string text, read_file(path));
  nlohmann::json plan = nlohmann::json::parse(text, nullptr, false);
  if (!plan.is_object()) return unfit_plan(path, "no JSON object");
  for (const char* key : keys)
    if (!plan.contains(key)) return unfit_plan(path, std::string("no key '") + key + "'");
  return plan;
}

Result<std::unique_ptr<Bundle>> Bundle::load(fs::path path) {
  WARPLOOM_TRY(const nlohmann::json plan, read_plan(path, {"launch_list", "constants"}));
  const fs::path folder = path.parent_path();
  auto bundle = std::make_unique<Bundle>();
  WARPLOOM_TRY(bundle->list, launch_list_from_json(plan["launch_list"]));
  const LaunchList& list = bundle->list;
  WARPLOOM_TRY(bundle->device, Executor::open(list.engine));
  Executor& device = *bundle->device;
  if (!runs_on(list.arch, device.info().arch))
    return fail({ErrorCode::kWrongMachine, "the bundle's kernels are for another machine",
                 folder.string(), list.arch, device.info().arch, "optimize for this one"});
  WARPLOOM_TRY(const Binary binary, compile(list, {.most_spills = kAnySpills}));
  WARPLOOM_TRY(bundle->kernels_, device.load(list, binary));
  for (const BufferSpec& input : list.inputs) {
    const auto file = plan["constants"].find(input.name);
    if (file == plan["constants"].end()) {
      bundle->tensors.push_back(&input);
      continue;
    }
    if (!file->is_string()) return unfit_plan(path, "a constant without its file");
    WARPLOOM_TRY(const std::string bytes, read_file(folder / file->get<std::string>()));
    if (std::ssize(bytes) != input.bytes())
      return unfit_plan(path, fmt::format("{} bytes of {}, which has {}", bytes.size(), input.name,
                                          input.bytes()));
    Buffer& buffer = bundle->kept_[input.name];
    WARPLOOM_TRY(buffer, device.allocate(input.bytes()));
    WARPLOOM_CHECK(device.upload(buffer, bytes.data(), input.bytes()));
  }
  for (const BufferSpec& workspace : list.workspaces)
    WARPLOOM_TRY(bundle->kept_[workspace.name], device.allocate(workspace.bytes()));
  for (const BufferSpec& output : list.outputs) bundle->tensors.push_back(&output);
  return bundle;
}

Result<Call> Bundle::bind(std::span<void* const> addresses) const {
  Bindings buffers = kept_;
  for (std::size_t i = 0; i < addresses.size(); ++i)
    buffers[tensors[i]->name] = Buffer(nullptr, addresses[i], tensors[i]->bytes());
  return kernels_.bind(buffers);
}
}  // namespace warploom::runtime
