// NVRTC, found at run time: CUDA C++ text to a cubin.
//
// Looked for as $WARPLOOM_NVRTC, then libnvrtc.so.13 and .12 on the loader's path, in $CUDA_HOME/lib64 and
// /usr/local/cuda/lib64, and in the nvidia packages of Python environments. Sources include the headers under device/ptx and
// device/common by bare name ("wl.h").
#pragma once
#include "runtime/compile.h"
#include "runtime/compile_text.h"
namespace warploom::runtime {
struct CudaCompiler {
  std::string name;  // "NVRTC 13.0", "nvcc 13.0"
  std::string path;  // of the library or the program
  bool nvrtc = true;
};
// Found once a process. Fails with no-nvrtc.
Result<CudaCompiler> find_cuda_compiler();

// In this process, through NVRTC: may crash or hang with it.
Result<Image> compile_cuda_in_process(const std::string& source, const std::string& arch);
// In a child process under options.time, or by nvcc where there is no NVRTC; through the cache.
Result<Image> compile_cuda(const std::string& source, const std::string& arch, const CompileOptions& options = {});

// What `ptxas -v` said of each kernel, and the warnings that mean the kernel is not what was meant (C75xx).
struct PtxasReport {
  std::vector<KernelFigures> kernels;
  std::vector<std::string> warnings;
};
PtxasReport parse_ptxas(std::string_view log);
}  // namespace warploom::runtime
