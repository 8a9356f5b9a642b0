// compile_cuda: the cache, and the child process NVRTC runs in. The host program's hidden subcommand stands in for a compiler:
//
//   PROGRAM __compile ARCH -I HEADERS -o IMAGE SOURCE      its own headers it knows; what NVRTC and ptxas say goes to stderr
#include <cstdio>
#include "base/file.h"
#include "base/hash.h"
#include "runtime/disk_cache.h"
#include "runtime/nvrtc.h"

namespace warploom::runtime {
namespace {

constexpr const char* kCompileCommand = "__compile";
constexpr int kArguments = 8;

std::string helper_program;

Result<Image> made(const std::string& source, const std::string& arch, const CompileOptions& options,
                   const CudaCompiler& compiler) {
  std::vector<std::string> argv = {helper_program, kCompileCommand, arch};
  if (compiler.nvrtc && helper_program.empty()) return compile_cuda_in_process(source, arch);
  if (!compiler.nvrtc) argv = {compiler.path, "-cubin", "-arch=" + arch, "-std=c++17", "-lineinfo", "-Xptxas", "-v"};
  return compile_text(compiler.name, std::move(argv), headers_of("ptx"), source, ".cu", options.time);
}

}  // namespace

void set_helper_program(const std::filesystem::path& program) { helper_program = program.string(); }

bool compiler_main(int argc, char** argv, int* status) {
  if (argc < 2 || std::string_view(argv[1]) != kCompileCommand) return false;
  *status = 2;
  const auto source = argc == kArguments ? read_file(argv[7]) : Result<std::string>();
  if (argc != kArguments || !source) return true;
  const auto image = compile_cuda_in_process(*source, argv[2]);
  std::fputs(image ? image->log.c_str() : image.error().found.c_str(), stderr);
  *status = !image ? 1 : write_file(argv[6], image->bytes) ? 0 : 2;
  return true;
}

Result<Image> compile_cuda(const std::string& source, const std::string& arch, const CompileOptions& options) {
  WARPLOOM_TRY(const CudaCompiler compiler, find_cuda_compiler());
  const std::string key =
      hash_hex(fmt::format("cuda\n{}\n{}\n{}\n{}", compiler.name, arch, headers_of("ptx").key, source));
  DiskCache cache("cubin", ".cubin");
  if (auto entry = cache.find(key)) {
    // Gone again, if another process is shrinking the cache: then compile.
    if (auto cubin = read_file(entry->path)) return Image{std::move(*cubin), std::move(entry->log)};
  }
  WARPLOOM_TRY(Image image, made(source, arch, options, compiler));
  (void)cache.store(key, image.bytes, source, image.log);  // a full disk costs only time
  return image;
}

}  // namespace warploom::runtime
