// The record from which the texts of resources/bundle are filled in (base/rendered.h).
//
//   bundle, summary, comment, gpu, engine, arch, …   of the whole
//   prepares          whether something is made once, of constants; then constant_names,
//                     prepared_bytes and prepare_text ("1.2 ms"; "" where nobody took its time)
//   inputs, outputs   {index, name, variable, called, type, dtype, shape, constant, …}: the
//                     launcher's parameters, `type` what they point to, `called` the model's name
//                     as a C string
//   kernels           as in the launch list; arguments with their address as the launcher spells it
//                     ("wl_tensors[2]", "static_cast<char*>(wl_workspace) + 4096")
//
// Text that the model's author chose comes in the form of the language it goes into
// (base/quoted.h): summary_markdown, called; as it is, in plan.json alone, which the PyTorch module
// reads it from.
#pragma once
#include <nlohmann/json.hpp>
#include "codegen/launch_list.h"
#include "export/bundle.h"

namespace warploom::export_ {
nlohmann::json record_of(const BundleInfo& info, const LaunchList& list);
}  // namespace warploom::export_
