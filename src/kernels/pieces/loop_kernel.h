// LoopKernel: the program of a loop nest with at most one level of reductions or scans, out of its
// pieces.
#pragma once
#include "kernels/pieces/loop_tile.h"

namespace warploom::kernels::direct {
// Adds the program of these options.
void add_loop_kernel(Family::Programs& out, const LoopNestTiling& tiling,
                     const LoopKernelOptions& options, const Capabilities& capabilities,
                     const std::string& name);
}  // namespace warploom::kernels::direct
