// The C interface (include/warploom/warploom.h) on the runtime room: bundles are loaded here,
// commands run as processes.
#include <dlfcn.h>
#include <string.h>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/process.h"
#include "codegen/launch_list.h"
#include "runtime/bundle.h"
#include "runtime/compile.h"
#include "runtime/executor.h"
#include "verify/image_check.h"
#include "warploom/warploom.h"

using namespace warploom;
namespace fs = std::filesystem;

struct warploom_bundle {
  std::unique_ptr<runtime::Bundle> loaded;
  std::vector<void*> bound;  // what `call` computes on
  runtime::Call call;
};

namespace {
thread_local std::string last_code;
thread_local std::string last_text;

int noted(const Error& error) {
  last_code = code_text(error.code);
  last_text = describe(error);
  return exit_status(error.code);
}

// What `work` returns, as a status; nothing is thrown across the interface.
int status_of(const auto& work) {
  const Status done = guarded(work);
  return done ? 0 : noted(done.error());
}

std::string program() {
  if (const char* named = std::getenv("WARPLOOM_PROGRAM"); named && *named) return named;
  Dl_info here{};
  std::error_code ignored;
  if (::dladdr(reinterpret_cast<const void*>(&noted), &here) != 0) {
    const fs::path library(here.dli_fname);
    const fs::path beside = library.parent_path().parent_path() / "bin" / "warploom";
    if (fs::exists(beside, ignored)) return beside.string();
  }
  return find_program("warploom").string();
}

Status command(const char* const* arguments, std::string& printed) {
  std::vector<std::string> argv = {program()};
  if (argv[0].empty())
    return fail({ErrorCode::kFileMissing, "the program warploom is not found", "PATH",
                 "the installed program", "",
                 "install it beside the library, or set WARPLOOM_PROGRAM to its path"});
  while (*arguments)
    argv.emplace_back(*arguments++);
  argv.emplace_back("--json");
  WARPLOOM_TRY(ProcessResult result, run_process(argv, {.time = std::chrono::hours(24),
                                                        .output_bytes = size_t{1} << 30}));
  printed = std::move(result.out);
  if (result.succeeded()) return ok();
  const auto json = nlohmann::json::parse(printed, nullptr, false);
  if (json.is_object() && json.contains("error")) return fail(error_from_json(json["error"]));
  if (result.exit_status == exit_status(ErrorCode::kInterrupted) && json.is_object())
    return ok();  // the best so far
  Error error{ErrorCode::kInternal, "the program failed without saying why", argv[1]};
  error.expected = "an object on standard output";
  error.found = result.err.substr(0, 500);
  error.remedy = "run the command by hand";
  return fail(error);
}

Status run(warploom_bundle& bundle, void* const* addresses, void* stream) {
  const std::vector<void*> given(addresses, addresses + bundle.loaded->tensors.size());
  bundle.loaded->device->use_stream(stream);
  if (bundle.bound != given) {
    bundle.bound.clear();
    WARPLOOM_TRY(bundle.call, bundle.loaded->bind(given));
    bundle.bound = given;
  }
  return bundle.call();
}
}  // namespace

int warploom_command(const char* const* arguments, char** json) {
  std::string printed;
  const int status = status_of([&] { return command(arguments, printed); });
  if (json) *json = ::strdup(printed.c_str());
  return status;
}

void warploom_free(char* text) {
  std::free(text);
}

int warploom_open(const char* bundle, unsigned flags, warploom_bundle** opened) {
  return status_of([&]() -> Status {
    if ((flags & ~unsigned{WARPLOOM_TRUST}) != 0)
      return fail({ErrorCode::kUsage, "a flag of warploom_open() is unknown", "flags",
                   "0 or WARPLOOM_TRUST", std::to_string(flags), "see warploom.h"});
    if (const std::string helper = program(); !helper.empty()) runtime::set_helper_program(helper);
    const runtime::LoadOptions options{.trusted = (flags & WARPLOOM_TRUST) != 0,
                                       .gate = verify::check_image};
    WARPLOOM_TRY(auto made, runtime::Bundle::load(bundle, options));
    *opened = new warploom_bundle{std::move(made), {}, {}};
    return ok();
  });
}

int warploom_load(const char* bundle, warploom_bundle** loaded) {
  return warploom_open(bundle, 0, loaded);
}

size_t warploom_tensor_count(const warploom_bundle* bundle) {
  return bundle->loaded->tensors.size();
}

warploom_tensor warploom_tensor_at(const warploom_bundle* bundle, size_t index) {
  const runtime::Bundle& loaded = *bundle->loaded;
  const BufferSpec& spec = *loaded.tensors[index];
  const size_t first_output = loaded.tensors.size() - loaded.list.outputs.size();
  warploom_tensor out{};
  out.name = spec.name.c_str();
  out.dtype = name_of(spec.dtype).data();
  out.shape = spec.shape.data();
  out.rank = spec.shape.size();
  out.bytes = as_size(spec.bytes());
  out.is_output = index >= first_output;
  return out;
}

int warploom_run(warploom_bundle* bundle, void* const* tensors, void* stream) {
  return status_of([&] { return run(*bundle, tensors, stream); });
}

void warploom_unload(warploom_bundle* bundle) {
  delete bundle;
}

const char* warploom_error_code() {
  return last_code.c_str();
}

const char* warploom_error_text() {
  return last_text.c_str();
}

const char* warploom_version() {
  return WARPLOOM_VERSION;
}
