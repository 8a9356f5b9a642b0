// Whether a bundle's folder holds what `warploom optimize` writes for its plan, and nothing else.
//
// A judge sees kernels. Whoever takes a bundle also runs its Makefile, its launcher, check.cpp and
// the module for PyTorch. Hashes in the plan keep nobody from writing his own and their hashes. But
// all of these are rendered from the plan, so that they can be rendered again: what differs was
// written by somebody else.
//
//   the kernel file        is judged (as_built.h)
//   device/, NAME.h, NAME_host.cpp, Makefile, NAME.py, NAME_torch/   are what this program writes
//   check/check.cpp        likewise, but for the numbers of its two tables
//   README.md, check/*.bin and the like   have the plan's hashes: they are data
//   build/, *.pyc          were built, and are not judged: built_in() names them, for who reads a
//                          verdict to know, since `make check` runs what is newer than its sources
//   anything else          is refused, also what links elsewhere
//
// Errors: bundle-changed with the file's name, plan-outside, plan-invalid.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"

namespace warploom::export_ {
Status check_written(const std::filesystem::path& folder, const nlohmann::json& plan,
                     const LaunchList& list);

// What was built in the folder before: "build/check".
std::vector<std::string> built_in(const std::filesystem::path& folder);

// Whether the files of the model's own constants, which `warploom run` and the PyTorch module read,
// hold what the model holds, with which the kernels are judged.
Status check_constants(const std::filesystem::path& folder, const nlohmann::json& plan,
                       const LaunchList& list, const graph::Graph& graph);
}  // namespace warploom::export_
