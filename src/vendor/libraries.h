// Where the libraries that references come from are looked for: their names, and on a machine with
// Python the folders of NVIDIA's packages.
#pragma once
#include <string>
#include <vector>

namespace warploom::vendor {
std::vector<std::string> dnnl_names();
std::vector<std::string> openblas_names();
std::vector<std::string> cublaslt_names();
std::vector<std::string> cudnn_names();

// The libraries as `doctor` lists them.
struct LibraryRow {
  std::string name;        // "oneDNN"
  std::string needed_for;  // in words
  std::string remedy;      // where it is missing
  std::vector<std::string> (*names)();
};

std::vector<LibraryRow> library_rows();
}  // namespace warploom::vendor
