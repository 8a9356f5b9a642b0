// compile_cuda: the cache, and the child process NVRTC runs in.
//
// A request is a folder: request.json {"arch", "flags"}, source.cu in; image.cubin and log, or error.json, out.
#include <fmt/format.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "runtime/child.h"
#include "runtime/disk_cache.h"
#include "runtime/header_set.h"
#include "runtime/nvrtc.h"

namespace warploom::runtime {
namespace {

namespace fs = std::filesystem;

std::mutex helper_mutex;
fs::path helper_program;

fs::path helper() {
  const std::lock_guard lock(helper_mutex);
  return helper_program;
}

Error error_of_child(const ProcessResult& done, const CompileOptions& options, const std::string& compiler) {
  if (done.timed_out)
    return {ErrorCode::kCompileTimeout,
            "the compiler did not finish in time",
            compiler,
            fmt::format("at most {} ms", options.time.count()),
            "still running",
            "allow more time or take a smaller schedule"};
  return {ErrorCode::kCompileFailed,
          "the compiler refused the source",
          compiler,
          "source that compiles",
          !done.err.empty() ? done.err
          : done.signal     ? fmt::format("it died of signal {}", done.signal)
                            : fmt::format("exit status {}", done.exit_status),
          "report the schedule: emitted source should always compile"};
}

Error error_from(const nlohmann::json& json) {
  Error error{ErrorCode::kCompileFailed, json.value("message", "")};
  if (json.value("code", "") == code_text(ErrorCode::kNoNvrtc)) error.code = ErrorCode::kNoNvrtc;
  error.place = json.value("place", "");
  error.expected = json.value("expected", "");
  error.found = json.value("found", "");
  error.remedy = json.value("remedy", "");
  return error;
}

Result<CudaImage> by_nvrtc(const std::string& source, const std::string& arch, const CompileOptions& options,
                           const CudaCompiler& compiler) {
  const ScratchFolder scratch("compile");
  const fs::path request = scratch.path() / "request.json";
  WARPLOOM_CHECK(write_file(scratch.path() / "source.cu", source));
  WARPLOOM_CHECK(write_file(request, nlohmann::json{{"arch", arch}, {"flags", options.flags}}.dump()));
  const fs::path program = helper();
  WARPLOOM_TRY(const ProcessResult done,
               program.empty()
                   ? run_in_fork([&] { return run_compile_request(request); }, options.time)
                   : run_process({program.string(), "__compile", request.string()}, {.time = options.time}));
  if (done.timed_out || done.signal) return fail(error_of_child(done, options, compiler.name));
  if (const auto text = read_file(scratch.path() / "error.json"); text) {
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    if (json.is_object()) return fail(error_from(json));
  }
  if (!done.succeeded()) return fail(error_of_child(done, options, compiler.name));
  CudaImage image;
  WARPLOOM_TRY(image.cubin, read_file(scratch.path() / "image.cubin"));
  WARPLOOM_TRY(image.log, read_file(scratch.path() / "log"));
  return image;
}

Result<CudaImage> by_nvcc(const std::string& source, const std::string& arch, const CompileOptions& options,
                          const CudaCompiler& compiler) {
  WARPLOOM_TRY(const fs::path headers, header_folder(cuda_headers()));
  const ScratchFolder scratch("compile");
  const fs::path text = scratch.path() / "kernel.cu", cubin = scratch.path() / "kernel.cubin";
  WARPLOOM_CHECK(write_file(text, source));
  std::vector<std::string> argv = {compiler.path, "-cubin", "-arch=" + arch, "-std=c++17", "-lineinfo",
                                   "-Xptxas",     "-v"};
  argv.insert(argv.end(), options.flags.begin(), options.flags.end());
  argv.insert(argv.end(), {"-I", headers.string(), "-o", cubin.string(), text.string()});
  WARPLOOM_TRY(const ProcessResult done, run_process(argv, {.time = options.time}, scratch.path()));
  if (!done.succeeded()) return fail(error_of_child(done, options, compiler.name));
  CudaImage image;
  WARPLOOM_TRY(image.cubin, read_file(cubin));
  image.log = done.out + done.err;
  return image;
}

}  // namespace

void set_helper_program(fs::path program) {
  const std::lock_guard lock(helper_mutex);
  helper_program = std::move(program);
}

int run_compile_request(const fs::path& request) {
  const fs::path folder = request.parent_path();
  const auto text = read_file(request);
  const auto source = read_file(folder / "source.cu");
  const auto json = nlohmann::json::parse(text ? *text : "", nullptr, false);
  if (!source || !json.is_object() || !json.contains("arch") || !json.contains("flags")) return 2;
  const auto image = compile_cuda_in_process(*source, json["arch"], json["flags"]);
  if (!image) {
    const std::string error = to_json(image.error()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return write_file(folder / "error.json", error) ? 1 : 2;
  }
  return write_file(folder / "image.cubin", image->cubin) && write_file(folder / "log", image->log) ? 0 : 2;
}

Result<CudaImage> compile_cuda(const std::string& source, const std::string& arch, const CompileOptions& options) {
  WARPLOOM_TRY(const CudaCompiler compiler, find_cuda_compiler());
  const std::string key = hash_hex(fmt::format("cuda\n{}\n{}\n{}\n{}\n{}", compiler.name, arch,
                                               fmt::join(options.flags, " "), cuda_headers().key, source));
  DiskCache cache("cubin", ".cubin");
  if (options.use_cache) {
    if (auto entry = cache.find(key)) {
      // Gone again, if another process is shrinking the cache: then compile.
      if (auto cubin = read_file(entry->path)) return CudaImage{std::move(*cubin), std::move(entry->log)};
    }
  }
  WARPLOOM_TRY(CudaImage image,
               compiler.nvrtc ? by_nvrtc(source, arch, options, compiler) : by_nvcc(source, arch, options, compiler));
  (void)cache.store(key, image.cubin, source, image.log);  // a full disk costs only time
  return image;
}

}  // namespace warploom::runtime
