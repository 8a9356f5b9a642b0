// Whether a launch list that came as text can be launched at all: a plan.json is input like any
// other, and whoever launches one trusts its numbers.
//
// Looked at are ranges (grid, threads, bytes, sizes of tensor maps), names (symbols are C
// identifiers, every argument names a buffer, no buffer comes twice), and that what is described
// lies in its buffer; not what the kernels do, which is for a judge. Errors: plan-invalid with the
// place as in JSON, "kernels[2].grid", and plan-too-large.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include "codegen/launch_list.h"

namespace warploom {
// Before it is read: every number is whole and fits its field.
Status check_numbers(const nlohmann::json& list);
// After it was read.
Status check_launches(const LaunchList& list);
}  // namespace warploom
