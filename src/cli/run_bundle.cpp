#include "base/file.h"
#include "cli/command.h"
#include "cli/tensor_file.h"
#include "cli/text.h"
#include "runtime/bundle.h"
#include "verify/inputs.h"
namespace warploom::cli {
namespace {
namespace fs = std::filesystem;

struct Flags {
  std::string bundle, out = ".";
  std::vector<std::string> files;
  std::uint64_t seed = 0;
};

// An input's bytes: of its file, or random ones.
Result<std::string> input_of(const Flags& flags, std::size_t index, const BufferSpec& tensor) {
  if (!flags.files.empty()) return read_tensor(flags.files[index], tensor);
  if (!is_float(tensor.dtype))
    return fail({ErrorCode::kUsage, "whole numbers are not made up: they may be indices", tensor.name, "a file for every input",
                 "none", "write each input to a .npy file and name them in order"});
  std::string bytes(static_cast<std::size_t>(tensor.bytes()), '\0');
  verify::fill({.seed = flags.seed, .tensor = static_cast<int>(index), .dtype = tensor.dtype}, bytes.data(), 0,
               tensor.elements());
  return bytes;
}

Result<Answer> run_bundle(const Flags& flags) {
  WARPLOOM_TRY(const auto bundle, runtime::Bundle::load(flags.bundle));
  runtime::Executor& device = *bundle->device;
  const std::size_t inputs = bundle->tensors.size() - bundle->list.outputs.size();
  if (!flags.files.empty() && flags.files.size() != inputs)
    return fail({ErrorCode::kUsage, "every input needs a file", "INPUTS", fmt::format("{} files", inputs),
                 std::to_string(flags.files.size()), "name them in the order of the model's inputs"});
  std::vector<runtime::Buffer> buffers;
  std::vector<void*> addresses;
  for (std::size_t i = 0; i < bundle->tensors.size(); ++i) {
    const BufferSpec& tensor = *bundle->tensors[i];
    WARPLOOM_TRY(buffers.emplace_back(), device.allocate(tensor.bytes()));
    addresses.push_back(buffers[i].address());
    if (i >= inputs) continue;
    WARPLOOM_TRY(const std::string bytes, input_of(flags, i, tensor));
    WARPLOOM_CHECK(device.upload(buffers[i], bytes.data(), tensor.bytes()));
  }
  WARPLOOM_TRY(const runtime::Call call, bundle->bind(addresses));
  WARPLOOM_TRY(const double us, device.time_us(call, 1));
  WARPLOOM_CHECK(make_folders(flags.out));
  nlohmann::json json = {{"bundle", flags.bundle}, {"device", device.info().name}, {"us", us}};
  for (std::size_t i = inputs; i < bundle->tensors.size(); ++i) {
    const BufferSpec& tensor = *bundle->tensors[i];
    std::string bytes(static_cast<std::size_t>(tensor.bytes()), '\0');
    WARPLOOM_CHECK(device.download(buffers[i], bytes.data(), tensor.bytes()));
    WARPLOOM_TRY(const fs::path path, write_tensor(flags.out, tensor, bytes));
    json["outputs"][tensor.name] = path.string();
    json["files"].push_back({{"tensor", tensor.name}, {"path", path.string()}});
  }
  return Answer{json, text_of("run", json)};
}
}  // namespace
Command run_command() {
  const auto flags = std::make_shared<Flags>();
  return {"run",
          "a bundle on inputs of your own: its outputs as files",
          {{"BUNDLE", &flags->bundle, "its folder or its plan.json"},
           {"INPUTS", &flags->files, "a file for each input, in the model's order: .npy, or packed bytes; none: random inputs"},
           {"--out", &flags->out, "the folder for OUTPUT.npy (.bin where NumPy has no such type); default: here"},
           {"--seed", &flags->seed, "of random inputs"}},
          [flags](const Session&) { return run_bundle(*flags); }};
}
}  // namespace warploom::cli
