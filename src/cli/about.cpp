// What this program and this machine have: the commands doctor, errors, version and completion.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/process.h"
#include "base/rendered.h"
#include "cli/command.h"
#include "codegen/launch_list.h"
#include "llm/post.h"
#include "runtime/compilers.h"
#include "runtime/driver.h"
#include "runtime/executor.h"
#include "runtime/library.h"
#include "runtime/rates.h"
#include "target/capabilities.h"
#include "target/instruction_set.h"
#include "vendor/libraries.h"

namespace warploom::cli {
namespace {
using nlohmann::json;
using runtime::Driver;
using runtime::Executor;

// One thing the machine may have: what was found of it, or the reason and the remedy in the error.
struct Finding {
  std::string name;
  std::string needed_for;
  Result<std::string> detail;
};

Result<std::string> found(std::string what, std::string remedy) {
  if (!what.empty()) return what;
  return fail({ErrorCode::kInternal, "not found", "", "", "", std::move(remedy)});
}

// The folder that is really used, and those that would have come before it.
Result<std::string> cache_found() {
  const CacheFolder found = find_cache_folder();
  std::string passed_over = fmt::format("{}", fmt::join(found.passed_over, "; "));
  if (!found.kept)
    return fail({ErrorCode::kInternal, "none that can be kept: " + passed_over, "", "", "",
                 "set XDG_CACHE_HOME to a folder that can be written"});
  if (passed_over.empty()) return found.path.string();
  return fmt::format("{}, instead of {}", found.path.string(), passed_over);
}

Result<std::string> temporary_found() {
  const std::filesystem::path folder = temporary_folder();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return folder.string();
  Error error{ErrorCode::kInternal, folder.string() + ": " + std::strerror(errno)};
  error.remedy = "set TMPDIR to a folder that can be written";
  return fail(error);
}

std::string cpu_text(const target::Capabilities& cpu) {
  const target::InstructionSet* const set = target::instruction_set(cpu.arch);
  return fmt::format("{} ({}), {} cores, {}-byte vectors", cpu.arch, set ? set->vectors : "?",
                     cpu.num_sms, cpu.vector_bytes);
}

std::string gpu_text(const std::unique_ptr<Executor>& gpu) {
  const auto& info = gpu->info();
  const double gib = as_double(info.memory_bytes) / 0x1p30;
  return fmt::format("{} ({}), {} multiprocessors, {:.0f} GiB", info.name, info.arch, info.num_sms,
                     gib);
}

// "3350 GB/s", or that it is not known.
std::string rate_text(double rate, const char* unit) {
  return rate > 0 ? fmt::format("{:.{}f} {}", rate, rate < 100 ? 1 : 0, unit) : "unknown";
}

// A card's facts: what is planned with, then what the driver says of its memory and clocks.
std::string card_text(const target::Capabilities& card, const runtime::DeviceInfo& device) {
  const double gbs = runtime::facts_of(device).gbs();
  const std::string said = gbs > 0 ? fmt::format("{:.0f} MHz of {} bits make {:.0f} GB/s",
                                                 1e3 * device.memory_ghz, device.bus_bits, gbs)
                                   : "nothing of its memory";
  return fmt::format(
      "{}{}: {}; {} in fp32, {} in tf32, {} in fp16; L2 of {} MiB; the driver says up to {:.0f} "
      "MHz, {}",
      card.card, card.estimated ? " (not listed: peaks are estimated)" : "",
      rate_text(card.dram_gbs, "GB/s"), rate_text(card.fp32_tflops, "TFLOP/s"),
      rate_text(card.tf32_tflops, "TFLOP/s"), rate_text(card.half_tflops, "TFLOP/s"),
      card.l2_bytes >> 20, 1e3 * device.ghz, said);
}

Result<std::string> card_found() {
  WARPLOOM_TRY(const target::Capabilities card, runtime::capabilities_here(Engine::cuda));
  WARPLOOM_TRY(const runtime::DeviceInfo device, runtime::Executor::describe(Engine::cuda));
  return card_text(card, device);
}

std::string rates_text(const target::Measured& measured, bool gpu) {
  std::string text = fmt::format("a copy {}, fp32 {}", rate_text(measured.copy_gbs, "GB/s"),
                                 rate_text(measured.fp32_tflops, "TFLOP/s"));
  const char* const units = gpu ? ", halves on tensor cores " : ", bf16 ";
  if (gpu || measured.half_tflops > 0) text += units + rate_text(measured.half_tflops, "TFLOP/s");
  return text;
}

// Rates of what is here, measured now if they are asked for.
Result<std::string> rates_found(Engine engine, bool measure) {
  WARPLOOM_TRY(const runtime::DeviceInfo info, runtime::Executor::describe(engine));
  target::Measured measured = runtime::stored_rates(info);
  if (measure) {
    WARPLOOM_TRY(const auto device, runtime::Executor::open(engine));
    WARPLOOM_TRY(measured, runtime::measure_rates(*device));
    WARPLOOM_CHECK(runtime::store_rates(info, measured));
  }
  if (measured.copy_gbs > 0) return rates_text(measured, engine == Engine::cuda);
  Error error{ErrorCode::kInternal, "not measured yet"};
  error.remedy = "run `warploom doctor --measure`";
  return fail(std::move(error));
}

std::string compiler_text(const runtime::Compiler& compiler) {
  return compiler.name + " at " + compiler.path;
}

std::string driver_text(const Driver* driver) {
  return driver->version();
}

Result<std::string> program_found(const std::string& name, const std::string& remedy) {
  return found(find_program(name).string(), remedy);
}

std::vector<Finding> examine(bool measure) {
  std::vector<Finding> out;
  const auto look = [&out](const char* name, const char* needed_for, Result<std::string> detail) {
    out.push_back({name, needed_for, std::move(detail)});
  };
  look("CPU", "the target cpu", target::capabilities_of("cpu").map(cpu_text));
  look("C++ compiler", "CPU kernels, emulation, `make check` of CPU bundles",
       runtime::find_cpu_compiler().map(compiler_text));
  look("make", "`make check` of bundles", program_found("make", "install make"));
  look("CUDA driver", "GPU targets", Driver::get().map(driver_text));
  look("GPU", "measuring on GPU targets", Executor::open(Engine::cuda).map(gpu_text));
  look("CUDA compiler", "GPU targets", runtime::find_cuda_compiler().map(compiler_text));
  look("nvcc", "`make check` of GPU bundles", program_found("nvcc", "install the CUDA toolkit"));
  look("card", "predictions, floors, reports", card_found());
  look("GPU rates", "predictions and reports", rates_found(Engine::cuda, measure));
  look("CPU rates", "reports", rates_found(Engine::cpu, measure));
  look("cache folder", "compiled kernels and the archive, from run to run", cache_found());
  look("temporary folder", "compilers", temporary_found());
  for (const vendor::LibraryRow& row : vendor::library_rows()) {
    const std::string file = runtime::Library{row.names()}.name();
    out.push_back({row.name, row.needed_for, found(file, row.remedy)});
  }
  const std::string curl = llm::check_curl() ? "libcurl.so.4" : "";
  out.push_back({"libcurl", "asking a language model", found(curl, "install libcurl4")});
  return out;
}

// What programs read of the card and the rates; null: there is none.
nlohmann::json capabilities_json(Engine engine) {
  const auto here = runtime::capabilities_here(engine);
  return here ? target::card_to_json(*here) : nlohmann::json();
}

Result<Answer> doctor(bool measure) {
  const auto findings = examine(measure);
  nlohmann::json rows = nlohmann::json::array();
  bool cpu = true;
  bool gpu = true;
  for (const auto& f : findings) {
    const bool found = f.detail.has_value();
    const std::string detail = found ? *f.detail : f.detail.error().message;
    const std::string remedy = found ? "" : f.detail.error().remedy;
    json row;
    row["name"] = f.name;
    row["found"] = found;
    row["detail"] = detail;
    row["needed_for"] = f.needed_for;
    row["remedy"] = remedy;
    rows.push_back(std::move(row));
    if (f.name == "CPU" || f.name == "C++ compiler") cpu &= found;
    if (f.name == "GPU" || f.name == "CUDA compiler") gpu &= found;
  }
  json record = {{"findings", rows}, {"cpu_target", cpu}, {"gpu_target", gpu}};
  record["card"] = capabilities_json(Engine::cuda);
  record["cpu"] = capabilities_json(Engine::cpu);
  return Answer{record, text_of("doctor", record), cpu || gpu ? 0 : 3};
}

constexpr ErrorCode kCodes[] = {
#define WARPLOOM_ERROR(name, text, exit_status, meaning) ErrorCode::name,
#include "base/error_codes.def"
};

Result<Answer> list_errors(const std::optional<std::string>& wanted) {
  json record;
  std::vector<std::string> names;
  for (const ErrorCode code : kCodes) {
    names.emplace_back(code_text(code));
    if (wanted && *wanted != code_text(code)) continue;
    json row;
    row["code"] = code_text(code);
    row["exit_status"] = exit_status(code);
    row["meaning"] = code_meaning(code);
    record["errors"].push_back(std::move(row));
  }
  if (record.empty()) {
    Error error{ErrorCode::kUsage, "there is no error code of this name", "CODE"};
    error.expected = "a code that `warploom errors` lists";
    error.found = *wanted;
    error.remedy = did_you_mean(*wanted, names, "see them with `warploom errors`");
    return fail(error);
  }
  return Answer{record, text_of("errors", record)};
}

// One function for bash and zsh: names of commands, then of the command's flags, then the values
// that the flag before takes.
std::string completion(const std::vector<Command>& commands) {
  json rows;
  for (const Command& command : commands) {
    json flags = json::array();
    for (const Flag& flag : command.flags) {
      json row;
      row["flag"] = flag.name;
      row["dashes"] = flag.name[0] == '-';
      row["chosen"] = !flag.among.empty();
      row["among"] = flag.among;
      flags.push_back(std::move(row));
    }
    rows.push_back({{"name", command.name}, {"flags", flags}});
  }
  return rendered(resource("completion.sh"), {{"commands", rows}});
}
}  // namespace

Command doctor_command() {
  const auto measure = std::make_shared<bool>(false);
  Command command;
  command.name = "doctor";
  command.help = "what this machine has and lacks, and what each thing is needed for";
  command.example = "warploom doctor --json";
  command.flags = {{"--measure", measure.get(),
                    "measure what the GPU and the CPU reach, for some seconds, and keep it"}};
  command.action = [measure](const Session&) { return doctor(*measure); };
  return command;
}

Command errors_command() {
  const auto wanted = std::make_shared<std::optional<std::string>>();
  Command command;
  command.name = "errors";
  command.help = "every error code, its exit status and its meaning, or one's";
  command.example = "warploom errors no-compiler";
  command.flags = {{"CODE", wanted.get(), "a code; none: all"}};
  command.action = [wanted](const Session&) { return list_errors(*wanted); };
  return command;
}

Command version_command() {
  const auto version = [](const Session&) -> Result<Answer> {
    const auto targets = target::known_targets();
    const json record = {{"version", kVersion}, {"targets", targets}};
    return Answer{record,
                  fmt::format("warploom {}\ntargets: {}\n", kVersion, fmt::join(targets, ", "))};
  };
  return {"version", "the version and the targets it knows", "warploom version", {}, version};
}

Command completion_command(const std::vector<Command>& commands) {
  return {"completion",
          "what bash and zsh read to complete command lines: source <(warploom completion)",
          "source <(warploom completion)",
          {},
          [script = completion(commands)](const Session&) {
            return Answer{{{"script", script}}, script};
          }};
}
}  // namespace warploom::cli
