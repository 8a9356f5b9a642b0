// Bundles: what the user takes away. A folder that needs nothing of Warploom:
//
//   out/NAME/
//     NAME.cu or NAME_kernels.cpp   the kernels, as judged
//     device/                       the device headers they include (only those)
//     NAME.h, NAME_host.cpp         C++ host launcher: one function, plain pointers and a stream
//                                   (GPU) or pointers alone (CPU)
//     NAME.py                       for PyTorch: run() on tensors, adopt() in place of a
//                                   torch.nn.Module's forward()
//     plan.json                     problem, schedule, launch list, verdict, environment, and the
//                                   hash of every file
//     check/                        stored inputs and FP64-checked outputs, check.cpp
//     Makefile                      `make check` compiles with nvcc or the C++ compiler and
//                                   compares; `make clean`
//     README.md
//
// Names from the model become identifiers in one place (names.h), and text in another language in
// one place for each language (base/quoted.h).
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include "codegen/launch_list.h"
#include "export/delivery.h"
#include "graph/graph.h"

namespace warploom::export_ {
struct BundleInfo {
  std::string name;     // as the user wrote it; files and functions have it as an identifier
  std::string summary;  // a sentence for README and header: operator, shapes, types, target, track
  std::string headline = {};  // how fast it is beside what, as a sentence; "": README has none
  nlohmann::json plan = {};   // everything else to be kept in plan.json
  double tolerance = 1e-5;  // relative Frobenius error that `make check` allows, and more where its
                            // inputs are ill-conditioned
  uint64_t seed = 1;
  // For adopt() of the PyTorch module: how the constants are made of the model's weights
  // (graph/weights.h), and the model without them (onnx/load.h). Empty where that is not known.
  nlohmann::json weights;
  std::string outline;
};

// Its files, plan.json last. Large problems (check data over 64 MiB) store a seed and sampled
// outputs instead of whole tensors: `check` makes the same inputs again and compares samples.
Result<std::vector<BundleFile>> bundle_files(const BundleInfo& info, const LaunchList& list,
                                             const graph::Graph& graph);

// Those of them that are text, of a record (record.h) that check_data.h and kernel_text.h have
// added to.
std::vector<BundleFile> texts_of(const nlohmann::json& record, Engine engine);

// Makes them, proves them by their own Makefile and puts them in the place of `folder`: delivery.h
// says what may be replaced and what is proven.
Result<Delivered> write_bundle(const std::filesystem::path& folder, const BundleInfo& info,
                               const LaunchList& list, const graph::Graph& graph,
                               const Until& until = {});

// `text` as lines of `// ` comment no wider than 100 columns.
std::string comment(std::string_view text);
}  // namespace warploom::export_
