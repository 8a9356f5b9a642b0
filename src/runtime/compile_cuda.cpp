// compile_cuda: the cache, and the child process NVRTC runs in.
//
// A request is a folder: request.json {"arch"}, source.cu in; image.cubin and log, or error.json, out.

#include <mutex>
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "runtime/disk_cache.h"
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

Result<Image> by_nvrtc(const std::string& source, const std::string& arch, const CompileOptions& options,
                       const CudaCompiler& compiler) {
  const fs::path program = helper();
  if (program.empty()) return compile_cuda_in_process(source, arch);
  const ScratchFolder scratch("compile");
  const fs::path request = scratch.path() / "request.json";
  WARPLOOM_CHECK(write_file(scratch.path() / "source.cu", source));
  WARPLOOM_CHECK(write_file(request, nlohmann::json{{"arch", arch}}.dump()));
  WARPLOOM_TRY(const ProcessResult done,
               run_process({program.string(), "__compile", request.string()}, {.time = options.time}));
  if (done.timed_out || done.signal) return compiler_failed(compiler.name, done, options.time);
  if (const auto text = read_file(scratch.path() / "error.json"); text) {
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    if (json.is_object()) return fail(error_from_json(json));
  }
  if (!done.succeeded()) return compiler_failed(compiler.name, done, options.time);
  Image image;
  WARPLOOM_TRY(image.bytes, read_file(scratch.path() / "image.cubin"));
  WARPLOOM_TRY(image.log, read_file(scratch.path() / "log"));
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
  if (!source || !json.is_object() || !json.contains("arch")) return 2;
  const auto image = compile_cuda_in_process(*source, json["arch"]);
  if (!image) {
    const std::string error = to_json(image.error()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return write_file(folder / "error.json", error) ? 1 : 2;
  }
  return write_file(folder / "image.cubin", image->bytes) && write_file(folder / "log", image->log) ? 0 : 2;
}

Result<Image> compile_cuda(const std::string& source, const std::string& arch, const CompileOptions& options) {
  WARPLOOM_TRY(const CudaCompiler compiler, find_cuda_compiler());
  const std::string key =
      hash_hex(fmt::format("cuda\n{}\n{}\n{}\n{}", compiler.name, arch, cuda_headers().key, source));
  DiskCache cache("cubin", ".cubin");
  if (auto entry = cache.find(key)) {
    // Gone again, if another process is shrinking the cache: then compile.
    if (auto cubin = read_file(entry->path)) return Image{std::move(*cubin), std::move(entry->log)};
  }
  WARPLOOM_TRY(Image image, compiler.nvrtc ? by_nvrtc(source, arch, options, compiler)
                                           : compile_text(compiler.name,
                                                          {compiler.path, "-cubin", "-arch=" + arch, "-std=c++17",
                                                           "-lineinfo", "-Xptxas", "-v"},
                                                          cuda_headers(), source, ".cu", options.time));
  (void)cache.store(key, image.bytes, source, image.log);  // a full disk costs only time
  return image;
}

}  // namespace warploom::runtime
