// The header of a launcher, for both engines: what the user of a bundle reads.
#pragma once

#include "export/parts.h"

namespace warploom::export_ {

// One line a parameter: "//   A  input, bf16 [4096,4096]".
std::string describe_parameters(const Frame& frame);
// Blocks of a kernel: the product of its grid.
std::int64_t block_count(const Kernel& kernel);

}  // namespace warploom::export_
