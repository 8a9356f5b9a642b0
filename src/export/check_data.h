// What `make check` of a bundle compares with: inputs, and outputs by the FP64 reference, whole or
// sampled.
//
// Inputs are made again anywhere from a seed: element i is SplitMix64's i-th number, of which as
// many leading bits are kept as the type's significand holds, as a fraction in [-1, 1), times a
// power of two where it is the weights of a network, without its sign where it is a variance; of
// integers, and of what else has two ends (an index counts from either end of its axis), one of the
// numbers between them. So every value is exact in its type, and a bundle's check.cpp makes the
// same bits without any rounding.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "export/delivery.h"
#include "graph/graph.h"

namespace warploom::export_ {
// The files of check/: inputs and expected outputs, or for large problems the seed and samples.
// Adds to inputs and outputs of the bundle's record (record.h) what check.cpp says of them, to an
// input whether the model itself holds it (`held`) and then where its bytes lie (`stored`), which
// NAME.py reads, too; and as `given` the inputs that it does not. An output may differ by
// `tolerance`, or by what plain fp32 arithmetic is expected to where that is more.
Result<std::vector<BundleFile>> check_data(nlohmann::json& record, const LaunchList& list,
                                           const graph::Graph& graph, double tolerance,
                                           uint64_t seed);
}  // namespace warploom::export_
