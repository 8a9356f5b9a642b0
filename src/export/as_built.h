// A bundle's kernels as people build them: the launch list of its plan with the text of its kernel
// file, NAME.cu or NAME_kernels.cpp, as it lies there now.
//
// plan.json holds each kernel's text, too; but who takes a bundle compiles the file, with the
// headers of the bundle's own device/. So a judge is given that: the file, with those headers
// written out where they are included, less the lines by which a GPU's launcher finds the kernels.
// Everything else that is built with it (the launcher, check.cpp, the Makefile, the module for
// PyTorch) is no kernel and cannot be judged; it must have the hashes that the plan has of it.
//
// Errors: bundle-changed, plan-outside, plan-invalid, file-unreadable.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include "codegen/launch_list.h"

namespace warploom::export_ {
struct AsBuilt {
  LaunchList list;
  std::string kernel_file;  // "mm_kernels.cpp"; empty: there is none beside the plan, whose own
                            // texts these are
};

AsBuilt as_planned(LaunchList list);
Result<AsBuilt> as_built(const std::filesystem::path& folder, const nlohmann::json& plan,
                         LaunchList list);
}  // namespace warploom::export_
