#include "vendor/libraries.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <cstdlib>
#include <string>
#include <vector>

namespace warploom::vendor {
namespace {
std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// The names themselves, then in the folders of NVIDIA's Python packages and of the toolkit. What a
// variable that is not set leaves of a path finds nothing or is right as well.
std::vector<std::string> with_folders(std::vector<std::string> names, const std::string& packages) {
  const std::string files = fmt::format("{}", fmt::join(names, ","));
  const std::string cuda = environment("CUDA_HOME");
  const std::string environment_folder = environment("VIRTUAL_ENV");
  const std::string conda = environment("CONDA_PREFIX");
  const std::string home = environment("HOME");
  const std::string pattern = fmt::format(
      "{{{}/lib64,/usr/local/cuda/lib64,{{{}/lib,{}/lib,/usr/lib,/usr/local/lib,/opt/*/.venv/lib,/"
      "opt/*/lib,{}/.local/lib}}/python3*/{{site,dist}}-packages/nvidia/{{{}}}/lib}}/{{{}}}",
      cuda, environment_folder, conda, home, packages, files);
  glob_t found{};
  if (::glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0)
    names.insert(names.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return names;
}
}  // namespace

std::vector<std::string> dnnl_names() {
  return {"libdnnl.so.2"};
}

std::vector<std::string> openblas_names() {
  return {"libopenblas.so.0", "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
          "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0"};
}

std::vector<std::string> cublaslt_names() {
  return with_folders({"libcublasLt.so.13", "libcublasLt.so.12"}, "cu13,cublas");
}

std::vector<std::string> cudnn_names() {
  return with_folders({"libcudnn.so.9", "libcudnn.so.8"}, "cudnn,cudnn");
}

std::vector<LibraryRow> library_rows() {
  return {{"oneDNN", "references on the CPU; without it plain kernels stand in", "install libdnnl2",
           dnnl_names},
          {"OpenBLAS", "a second reference for products on the CPU", "install libopenblas0",
           openblas_names},
          {"cuBLASLt", "references for products on a GPU; without it plain kernels stand in",
           "put the folder of libcublasLt on LD_LIBRARY_PATH", cublaslt_names},
          {"cuDNN", "references for all else on a GPU; without it plain kernels stand in",
           "install NVIDIA's cuDNN, or the Python package nvidia-cudnn-cu12", cudnn_names}};
}
}  // namespace warploom::vendor
