#include "runtime/bundle.h"
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "runtime/machine.h"
#include "runtime/plan_file.h"

namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

Status check_machine(const std::string& arch, const std::string& here, const fs::path& folder) {
  if (runs_on(arch, here)) return ok();
  return fail({ErrorCode::kWrongMachine, "the bundle's kernels are for another machine",
               folder.string(), arch, here, "optimize for this one"});
}

// What runs is the plan's text. It should be what lies beside it to be read and built.
Status check_kernel_file(const nlohmann::json& plan, const fs::path& folder) {
  const auto named = plan.find("kernel_file");
  if (named == plan.end() || !named->is_string()) return ok();
  const std::string name = named->get<std::string>();
  std::error_code ignored;
  if (!fs::exists(folder / name, ignored)) return ok();  // a plan.json alone
  WARPLOOM_CHECK(read_beside(plan, folder, name));
  return ok();
}

tl::unexpected<Error> untrusted(const fs::path& folder) {
  return fail({ErrorCode::kBundleUntrusted,
               "a bundle's kernels would run with all rights of this process", folder.string(),
               "a bundle that the caller says is trusted", "nobody who says so",
               "judge it with `warploom verify`, run it shut in with `warploom run`, or say that "
               "you trust whoever wrote it: `warploom run --trust`, WARPLOOM_TRUST"});
}

Result<std::unique_ptr<Executor>> executor_for(const LaunchList& list, const LoadOptions& options,
                                               const fs::path& folder) {
  if (options.trusted) return Executor::open(list.engine);
  if (!options.gate) return untrusted(folder);
  if (list.engine == Engine::cuda) return Executor::open(list.engine);
  return options.cpu ? options.cpu() : untrusted(folder);
}

// Each image once: kernels of one text share theirs.
Status pass_gate(const LaunchList& list, const Binary& binary, const LoadOptions& options) {
  if (options.trusted) return ok();
  for (size_t i = 0; i < list.kernels.size(); ++i) {
    const auto first = std::ranges::find(binary.images, binary.images[i]);
    if (first - binary.images.begin() != as_int64(i)) continue;
    WARPLOOM_TRY(const std::string image, read_file(binary.images[i]));
    WARPLOOM_CHECK(options.gate(image, list.kernels[i].name));
  }
  return ok();
}

// The list's kernels, compiled and let through the gate.
Result<Runnable> kernels_of(const LaunchList& list, const LoadOptions& options, Executor& device) {
  WARPLOOM_TRY(const Binary binary, compile(list, {.most_spills = kAnySpills}));
  WARPLOOM_CHECK(pass_gate(list, binary, options));
  return device.load(list, binary);
}

// Memory of the device that holds these bytes.
Result<Buffer> uploaded(std::string_view bytes, Executor& device) {
  WARPLOOM_TRY(Buffer buffer, device.allocate(bytes.size()));
  WARPLOOM_CHECK(device.upload(buffer, bytes.data(), bytes.size()));
  return buffer;
}
}  // namespace

Result<std::unique_ptr<Bundle>> Bundle::load(fs::path path, const LoadOptions& options) {
  return reading_plan(path, [&] { return loaded(path, options); });
}

Result<std::unique_ptr<Bundle>> Bundle::loaded(fs::path path, const LoadOptions& options) {
  WARPLOOM_TRY(const nlohmann::json plan, read_plan(path, {"launch_list", "constants"}));
  const fs::path folder = path.parent_path();
  auto bundle = std::make_unique<Bundle>();
  WARPLOOM_TRY(bundle->list, launch_list_from_json(plan["launch_list"]));
  WARPLOOM_CHECK(check_seal(plan, folder));
  const LaunchList& list = bundle->list;
  WARPLOOM_TRY(bundle->device, executor_for(list, options, folder));
  Executor& device = *bundle->device;
  WARPLOOM_CHECK(check_machine(list.arch, device.info().arch, folder));
  if (!plan["constants"].is_object()) return unfit_plan(path, "constants that are no object");
  WARPLOOM_CHECK(check_kernel_file(plan, folder));
  WARPLOOM_TRY(bundle->kernels_, kernels_of(list, options, device));
  for (const BufferSpec& input : list.inputs) {
    const auto file = plan["constants"].find(input.name);
    if (file == plan["constants"].end()) {
      bundle->tensors.push_back(&input);
      continue;
    }
    if (!file->is_string()) return unfit_plan(path, "a constant without its file");
    WARPLOOM_TRY(const std::string bytes,
                 read_beside(plan, folder, file->get<std::string>(), input.bytes()));
    WARPLOOM_TRY(bundle->kept_[input.name], uploaded(bytes, device));
  }
  WARPLOOM_CHECK(device.add_workspaces(list, bundle->kept_));
  for (const BufferSpec& output : list.outputs)
    bundle->tensors.push_back(&output);
  if (bundle->holds_constants()) WARPLOOM_CHECK(bundle->prepare(bundle->kept_));
  return bundle;
}

// Whether no caller gives any of them.
bool Bundle::holds_constants() const {
  return std::ranges::all_of(list.constants,
                             [&](const std::string& name) { return kept_.contains(name); });
}

Status Bundle::prepare(const Bindings& buffers) {
  if (!kernels_.prepare) return ok();
  WARPLOOM_TRY(const Call call, kernels_.prepare(buffers));
  WARPLOOM_TRY(prepare_us, device->time_us(call, 1));
  return device->synchronize();
}

Result<Call> Bundle::bind(std::span<void* const> addresses) {
  Bindings buffers = kept_;
  for (size_t i = 0; i < addresses.size(); ++i)
    buffers[tensors[i]->name] = Buffer(nullptr, addresses[i], tensors[i]->bytes());
  if (!holds_constants()) WARPLOOM_CHECK(prepare(buffers));
  return kernels_.bind(buffers);
}
}  // namespace warploom::runtime
