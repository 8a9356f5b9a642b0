// Compilers: one text to one image, in a confined child process (compiler_sandbox.h) under a clock
// and through the cache.
//
// CUDA  NVRTC: $WARPLOOM_NVRTC, else libnvrtc.so.13 and .12 on the loader's path, in
// $CUDA_HOME/lib64 and
//       /usr/local/cuda/lib64, and in the nvidia packages of Python environments. Where there is
//       none, nvcc.
// C++   $CXX, which may have arguments ("ccache g++", "g++ -O1"): no other is taken where it does
//       not run. Where it is unset, the first of g++-14, g++-13, g++-12, g++, clang++, c++ on the
//       PATH. For CPU kernels and emulated ones.
//
// Texts include the device headers by bare name ("wl.h").
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include "base/rendered.h"
#include "runtime/compile.h"

namespace warploom::runtime {
struct Compiler {
  std::string name;  // "NVRTC 13.0", "nvcc 13.0", "g++ 12.2.0", "ccache g++ 12.2.0"
  std::string path;  // of the library or the program
  bool nvrtc = false;
  std::vector<std::string> arguments = {};  // that stand before all others: {"g++"} of ccache
};

Result<Compiler> find_cuda_compiler();  // once a process; fails with no-nvrtc
Result<Compiler> find_cpu_compiler();   // fails with no-compiler

// The embedded headers of a kind of `device`, "ptx", "cpu" or "emulated", and of device/common, by
// their bare names.
std::vector<EmbeddedFile> headers_of(const std::string& device);

struct Image {
  std::filesystem::path path;  // ~/.cache/warploom/images/5f…e1.image
  std::string log;  // the compiler's own words; of CUDA images also ptxas's, with figures
};

// The PTX that a CUDA image was assembled from, of the same run of the compiler.
std::filesystem::path ptx_beside(std::filesystem::path image);

// Compiled images by the content that made them. An entry is KEY.image, with its source KEY.txt
// beside it, the compiler's log KEY.log and, of a CUDA image, its PTX KEY.ptx. Entries are written
// under another name and renamed, so a reader finds whole files or none, from any number of
// processes. When the folder outgrows the cap (2 GiB, or $WARPLOOM_CACHE_BYTES), the entries not
// used for longest go.
struct DiskCache {
  std::filesystem::path folder;  // made when first written to
  int64_t cap_bytes = 0;
  std::optional<Image> find(const std::string& key) const;  // marks it as used
  Result<Image> store(const std::string& key, std::string_view image, std::string_view source,
                      std::string_view log, std::string_view ptx = {}) const;
};

DiskCache image_cache();  // cache_folder()/images, with the environment's cap

// `source` as a cubin and as a shared object, from the cache or made now.
Result<Image> compile_cuda(const std::string& source, const std::string& arch,
                           const CompileOptions& options = {});
Result<Image> compile_shared_object(const std::string& source,
                                    const std::vector<std::string>& flags,
                                    const std::string& device, std::chrono::milliseconds time,
                                    bool foreign = false);
// The flags every CPU kernel is compiled with: for all that this processor can do (-march=native)
// where its instruction set is the one that is named, or none is, else for that set as it is.
std::vector<std::string> cpu_compile_flags(std::string_view arch = {});
// The compiler with these flags, and those of an image with nothing around its kernels: no code of
// a linker's own that runs when it is loaded, no memory that stays writable afterwards.
std::vector<std::string> cpu_command(const Compiler& compiler, std::string_view arch = {});

// What a compiler made, not in the cache yet.
struct Output {
  std::string image;
  std::string log;
  std::string ptx = {};  // of a CUDA image
};

// In this process, through NVRTC, which is here: may crash or hang with it.
Result<Output> compile_cuda_in_process(const std::string& source, const std::string& arch);

// What `ptxas -v` said of each kernel, and the warnings that mean the kernel is not what was meant
// (C75xx).
struct KernelFigures {
  std::string name;
  int registers = 0;    // a thread
  int spill_bytes = 0;  // stores and loads added
  int64_t static_shared = 0;
};

struct PtxasReport {
  std::vector<KernelFigures> kernels;
  std::vector<std::string> warnings;
};

PtxasReport parse_ptxas(std::string_view log);
}  // namespace warploom::runtime
