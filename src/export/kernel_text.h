// The text of a bundle's kernel file, and the device headers that it needs.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>
#include "codegen/launch_list.h"
#include "export/delivery.h"

namespace warploom::export_ {
// Kernels of one text stay one text; several texts each get a namespace. Adds `kernel_text` to the
// bundle's record (record.h), and to every kernel its `symbol` and `part`, the namespace it is in.
void add_kernel_text(nlohmann::json& record, const LaunchList& list);

// The device headers that the bundle's files include, directly or through others.
std::vector<BundleFile> device_files(const LaunchList& list, const std::vector<BundleFile>& files);
}  // namespace warploom::export_
