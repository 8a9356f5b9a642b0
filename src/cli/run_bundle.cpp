#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "cli/command.h"
#include "codegen/launch_list.h"
#include "common/warm_up.h"
#include "export/names.h"
#include "runtime/bundle.h"
#include "runtime/executor.h"
#include "runtime/noise.h"
#include "runtime/timing.h"
#include "verify/image_check.h"
#include "verify/inputs.h"
#include "verify/memory_group.h"
#include "verify/runner.h"

namespace warploom::cli {
namespace {
using nlohmann::json;
using runtime::Executor;
using verify::Runner;

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint32_t kLongestHeader = 4096;

// NumPy's letter of what a type holds.
char kind_of(Dtype dtype) {
  if (dtype == Dtype::boolean) return 'b';
  if (is_float(dtype)) return 'f';
  return is_signed(dtype) ? 'i' : 'u';
}

// NumPy's name of a type, "<f4"; "" where it has none.
std::string descr_of(Dtype dtype) {
  constexpr Dtype kFloats[] = {Dtype::f64, Dtype::f32, Dtype::f16};
  const bool known_float = std::ranges::find(kFloats, dtype) != std::end(kFloats);
  if (is_float(dtype) && !known_float) return "";
  if (bits_of(dtype) < 8) return "";
  const int64_t bytes = bytes_of(dtype);
  const char order = bytes == 1 ? '|' : '<';
  return fmt::format("{}{}{}", order, kind_of(dtype), bytes);
}

// "(2, 3)" as Python writes it, "(7,)" and "()".
std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

// What a header says, in the words of write_tensor(), so that they compare: its keys stand in any
// order and spacing.
std::string canonical(std::string header) {
  // Python's text is JSON but for its quotes, truth, round brackets and commas behind the last.
  static const std::pair<const char*, const char*> kSpellings[] = {
      {"'", "\""},      {"\\(", "["},       {",?\\s*\\)", "]"},
      {"True", "true"}, {"False", "false"}, {",\\s*\\}", "}"}};
  for (const auto& [python, spelled] : kSpellings)
    header = std::regex_replace(header, std::regex(python), spelled);
  const auto said = json::parse(header, nullptr, false);
  try {
    if (said.at("fortran_order").get<bool>()) return "columns first (Fortran order)";
    return said.at("descr").get<std::string>() + " " + shape_text(said.at("shape"));
  } catch (const json::exception&) {
    return "no header of NumPy's";
  }
}

struct Flags {
  std::string bundle;
  std::string out = ".";
  std::vector<std::string> files;
  uint64_t seed = 0;
  bool trust = false;
};

constexpr std::chrono::minutes kLongest{15};  // a run of kernels that nobody answers for

// An input's bytes: of its file, or random ones.
Result<std::string> input_of(const Flags& flags, size_t index, const BufferSpec& tensor) {
  if (!flags.files.empty()) return read_tensor(flags.files[index], tensor);
  if (!is_float(tensor.dtype))
    return fail({ErrorCode::kUsage, "random inputs are floats alone: whole numbers may be indices",
                 tensor.name, "a file for every input", "none",
                 "write each input to a .npy file and name them in order"});
  std::string bytes(tensor.bytes(), '\0');
  verify::Stream stream;
  stream.seed = flags.seed;
  stream.tensor = as_int(index);
  stream.dtype = tensor.dtype;
  verify::fill(stream, bytes.data(), 0, tensor.elements());
  return bytes;
}

// Where each output goes: files of their own, none of which is an input's.
Result<std::vector<fs::path>> output_files(const Flags& flags, const LaunchList& list) {
  std::vector<std::string> names;
  for (const BufferSpec& output : list.outputs)
    names.push_back(output.name);
  const auto stems = export_::file_stems(names);
  std::vector<fs::path> paths;
  for (size_t i = 0; i < stems.size(); ++i) {
    const std::string ending = descr_of(list.outputs[i].dtype).empty() ? ".bin" : ".npy";
    paths.push_back(fs::path(flags.out) / (stems[i] + ending));
    const auto is_same = [&](const std::string& input) {
      std::error_code ignored;
      return fs::equivalent(input, paths.back(), ignored);
    };
    if (std::ranges::any_of(flags.files, is_same))
      return fail({ErrorCode::kFlagsContradict, "an output would overwrite an input's file",
                   "--out", "files of their own for the outputs", paths.back().string(),
                   "name another folder with --out"});
  }
  return paths;
}

// The calls that fill the outputs, timed as `bench` and `make check` time them: the first does not
// count. On a CPU the caches are warm, and a sample is as many calls as take a millisecond; a GPU
// is called untimed for a while (common/warm_up.h).
Result<nlohmann::json> timed(Executor& device, const runtime::Call& call) {
  const bool cpu = device.engine() == Engine::cpu;
  const runtime::MeasureOptions options{.min_samples = 5,
                                        .max_samples = 100,
                                        .budget_ms = 300,
                                        .least_us = cpu ? runtime::kCpuSampleUs : 0.0,
                                        .warm_up_ms = cpu ? 0.0 : wl::kGpuWarmUpMs};
  const runtime::NoiseWatch watch({}, cpu);
  WARPLOOM_TRY(const std::vector<runtime::Samples> samples,
               runtime::measure(device, {{call}}, options));
  const runtime::Samples& ours = samples[0];
  auto noise = watch.since_start();
  noise.spread = runtime::spread_of(ours.us);
  json record;
  record["device"] = device.info().name;
  record["us"] = ours.median_us;
  record["low_us"] = ours.low_us;
  record["high_us"] = ours.high_us;
  record["samples"] = ours.us.size();
  record["machine"] = runtime::to_json(noise);
  return record;
}

// What holds a bundle's kernels while they run, and the executor that lends it memory.
struct Hold {
  std::unique_ptr<Executor> here;
  std::string sandbox = "no host code";  // on a GPU

  Result<std::unique_ptr<Executor>> open() {
    verify::limit_data_without_group(verify::memory_for_candidates());
    WARPLOOM_TRY(here, Executor::open(Engine::cpu));
    WARPLOOM_TRY(std::unique_ptr<Runner> runner, Runner::open(*here));
    runner_ = runner.get();
    return runner;
  }

  // Once something has run.
  std::string text() const {
    return runner_ ? fmt::format("{}; {}", runner_->sandbox(), verify::memory_confinement())
                   : sandbox;
  }

 private:
  const Runner* runner_ = nullptr;
};

runtime::LoadOptions load_options(const Flags& flags, Hold& hold) {
  if (flags.trust) hold.sandbox = "nothing: --trust";
  return {
      .trusted = flags.trust, .gate = verify::check_image, .cpu = [&hold] { return hold.open(); }};
}

size_t inputs_of(const runtime::Bundle& bundle) {
  return bundle.tensors.size() - bundle.list.outputs.size();
}

// A buffer for each tensor, with what the inputs' files hold.
Result<std::vector<runtime::Buffer>> filled_buffers(const Flags& flags, runtime::Bundle& bundle) {
  Executor& device = *bundle.device;
  std::vector<runtime::Buffer> buffers;
  for (size_t i = 0; i < bundle.tensors.size(); ++i) {
    const BufferSpec& tensor = *bundle.tensors[i];
    WARPLOOM_TRY(buffers.emplace_back(), device.allocate(tensor.bytes()));
    if (i >= inputs_of(bundle)) {  // what no kernel writes is no number, nor what lay there before
      WARPLOOM_CHECK(device.fill(buffers[i], 0xffffffff));
      continue;
    }
    WARPLOOM_TRY(const std::string bytes, input_of(flags, i, tensor));
    WARPLOOM_CHECK(device.upload(buffers[i], bytes.data(), tensor.bytes()));
  }
  return buffers;
}

// The outputs into their files, which the record names.
Status write_outputs(runtime::Bundle& bundle, const std::vector<runtime::Buffer>& buffers,
                     const std::vector<fs::path>& paths, json& record) {
  const size_t inputs = inputs_of(bundle);
  for (size_t i = inputs; i < bundle.tensors.size(); ++i) {
    const BufferSpec& tensor = *bundle.tensors[i];
    std::string bytes(tensor.bytes(), '\0');
    WARPLOOM_CHECK(bundle.device->download(buffers[i], bytes.data(), tensor.bytes()));
    const fs::path& path = paths[i - inputs];
    WARPLOOM_CHECK(write_tensor(path, tensor, bytes));
    record["outputs"][tensor.name] = path.string();
    record["files"].push_back({{"tensor", tensor.name}, {"path", path.string()}});
  }
  return ok();
}

Result<Answer> run_bundle(const Flags& flags) {
  Hold hold;
  WARPLOOM_TRY(const auto bundle, runtime::Bundle::load(flags.bundle, load_options(flags, hold)));
  const size_t inputs = inputs_of(*bundle);
  if (!flags.files.empty() && flags.files.size() != inputs)
    return fail({ErrorCode::kUsage, "every input needs a file", "INPUTS",
                 fmt::format("{} files", inputs), std::to_string(flags.files.size()),
                 "name them in the order of the model's inputs"});
  WARPLOOM_TRY(const std::vector<fs::path> paths, output_files(flags, bundle->list));
  WARPLOOM_TRY(const std::vector<runtime::Buffer> buffers, filled_buffers(flags, *bundle));
  std::vector<void*> addresses;
  for (const runtime::Buffer& buffer : buffers)
    addresses.push_back(buffer.address());
  WARPLOOM_TRY(const runtime::Call call, bundle->bind(addresses));
  WARPLOOM_TRY(json record, timed(*bundle->device, call));
  WARPLOOM_CHECK(make_folders(flags.out));
  record["bundle"] = flags.bundle;
  record["sandbox"] = hold.text();
  if (bundle->prepare_us > 0) record["prepare_us"] = bundle->prepare_us;
  WARPLOOM_CHECK(write_outputs(*bundle, buffers, paths, record));
  return Answer{record, text_of("run", record)};
}

// The words of this program that run a bundle as `flags` say, in the process that they start.
std::vector<std::string> words_of(const Flags& flags) {
  const auto path = [](const std::string& name) {  // which is no flag, whatever it begins with
    return name.starts_with('-') ? "./" + name : name;
  };
  std::vector<std::string> words = {"/proc/self/exe", kShutIn, "run", path(flags.bundle)};
  std::ranges::transform(flags.files, std::back_inserter(words), path);
  for (std::string word : {"--out=" + flags.out, fmt::format("--seed={}", flags.seed)})
    words.push_back(std::move(word));
  words.emplace_back("--json");
  return words;
}

// Why a process that ran kernels ended before it answered.
tl::unexpected<Error> fault_of(const Flags& flags, const ProcessResult& ended,
                               const verify::MemoryGroup* group) {
  const auto fault = [&](ErrorCode code, const char* what, const char* expected,
                         std::string found) {
    return fail({code, what, flags.bundle, expected, std::move(found),
                 "`warploom verify` says what is wrong with its kernels"});
  };
  if (ended.timed_out)
    return fault(ErrorCode::kCandidateHung, "a bundle's kernels did not finish in time",
                 "an end within 15 minutes", "none");
  if (ended.signal == SIGSYS)
    return fault(ErrorCode::kCandidateForbidden, "a bundle's kernels made a system call",
                 "computation alone", "they were killed");
  if (group && group->ran_out())
    return fault(ErrorCode::kCandidateMemory, "a bundle used more memory than it may",
                 "less memory", "as much as its processes' cgroup may have");
  if (ended.signal == SIGKILL)
    return fault(ErrorCode::kCandidateMemory, "a bundle's kernels were killed", "less memory",
                 "killed");
  return fault(ErrorCode::kCandidateCrashed, "a bundle's kernels crashed", "an orderly end",
               fmt::format("signal {}, status {}", ended.signal, ended.exit_status));
}

// In a process of its own, which ends as its kernels' does: nothing of theirs is in this one.
Result<Answer> run_apart(const Flags& flags) {
  constexpr size_t kMostAnswer = size_t{64} << 20;
  const auto group = verify::MemoryGroup::make(verify::memory_for_candidates());
  WARPLOOM_TRY(const ProcessResult ended,
               run_process(words_of(flags), {.time = kLongest,
                                             .output_bytes = kMostAnswer,
                                             .prepare = verify::entering(group.get())}));
  const auto record = json::parse(ended.out, nullptr, false);
  if (ended.signal != 0 || ended.timed_out || !record.is_object())
    return fault_of(flags, ended, group.get());
  if (record.contains("error")) return fail(error_from_json(record["error"]));
  return Answer{record, text_of("run", record)};
}
}  // namespace

Result<std::string> read_tensor(const std::filesystem::path& path, const BufferSpec& tensor) {
  WARPLOOM_TRY(std::string bytes, read_file(path));
  const auto unfit = [&](const std::string& expected, const std::string& found) {
    return fail({ErrorCode::kPlanInvalid, "a tensor's file does not fit", path.string(),
                 fmt::format("{}: {}", tensor.name, expected), found,
                 "write the file as the model's input is"});
  };
  if (path.extension() == ".npy") {
    const std::string expected = descr_of(tensor.dtype) + " " + shape_text(tensor.shape);
    if (!bytes.starts_with(kMagic) || bytes.size() < 12) return unfit(expected, "no .npy file");
    uint32_t length = 0;
    const size_t width = bytes[6] > 1 ? 4 : 2;  // of the header's length, by the version
    std::memcpy(&length, bytes.data() + 8, width);
    const size_t begin = 8 + width;
    if (length > bytes.size() - begin) return unfit(expected, "a header that ends behind the file");
    if (length > kLongestHeader) return unfit(expected, "a header that is longer than any array's");
    if (const std::string found = canonical(bytes.substr(begin, length)); found != expected)
      return unfit(expected, found);
    bytes.erase(0, begin + length);
  }
  if (std::ssize(bytes) != tensor.bytes())
    return unfit(fmt::format("{} bytes", tensor.bytes()), fmt::format("{} bytes", bytes.size()));
  return bytes;
}

Status write_tensor(const std::filesystem::path& path, const BufferSpec& tensor,
                    std::string_view bytes) {
  const std::string descr = descr_of(tensor.dtype);
  std::string text;
  if (!descr.empty()) {
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                     descr, shape_text(tensor.shape));
    header.append(63 - (header.size() + 10) % 64, ' ');
    header += '\n';  // the data begins at a multiple of 64
    const uint16_t length = static_cast<uint16_t>(header.size());
    text = kMagic;
    text.append("\x01\0", 2);  // the version
    text.append(reinterpret_cast<const char*>(&length), sizeof length);
    text += header;
  }
  return write_file(path, text.append(bytes));
}

Command run_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "run";
  command.help = "a bundle on inputs of your own: its outputs as files";
  command.example = "warploom run out/matmul_small a.npy b.npy --out results";
  command.flags = {
      {"BUNDLE", &flags->bundle, "its folder or its plan.json"},
      {"INPUTS", &flags->files,
       "a file for each input, in the model's order: .npy, or packed bytes; none: random inputs"},
      {"--out", &flags->out,
       "the folder for OUTPUT.npy (.bin where NumPy has no such type); default: here"},
      {"--seed", &flags->seed, "of random inputs"},
      {"--trust", &flags->trust,
       "run a CPU's kernels with your own rights, not shut in: you answer for who wrote them"}};
  command.action = [flags](const Session& session) {
    const bool here = flags->trust || session.shut_in;
    return here ? run_bundle(*flags) : run_apart(*flags);
  };
  return command;
}
}  // namespace warploom::cli
