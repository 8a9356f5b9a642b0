// CpuConvolution: a convolution as the family conv_cpu computes it. Worked example:
//
//   y = relu(conv(x, w) + bias), x [8,64,56,56], w [128,64,3,3], pads 1
//     rows of a product    {image, p, q}: windows of a patch of x
//     columns              co, side by side in vectors
//     depth                {ci, kh, kw}, as w has them in memory
//   tile_p=14 tile_q=56 block_n=128 block_c=16
//     patch    [64, 16, 58]              of all channels, with the padding
//     windows  [14, 56, 16, 3, 3]        at strides [58, 1, 928, 58, 1] of the patch
//     w        [144, 32]                 of 16 channels: a panel of the packed weights
//     acc      [784, 32]                 of 4 such panels one after another
//
// No window is copied out: an element of a patch is read for each window that has it, and spread
// over a vector. So strides and dilations cost nothing, and a tile of 7 × 7 pixels has no lane
// idle. A program before packs the weights, in prepare where they are constant, to
//
//   [groups, panel, term of the sum, column of the panel]
//
// so that channels of the output lie side by side, and what a panel's products read is one stream.
// The results are turned on their way out where pixels are neighbours in memory. The idea of window
// order is im2win's (Lu, Chu, Liu, 2023).
//
// A pool behind a convolution whose windows do not overlap has accumulators of its own for each
// place of its windows: those of all places make one result, and nothing of the convolution's goes
// to memory. Of 2 × 2 places and tile_p=14 tile_q=28, acc0 to acc3 have 392 rows each.
#pragma once
#include <optional>
#include <string>
#include "kernels/kernel_builder.h"
#include "loopnest/contraction.h"
#include "loopnest/pool.h"

namespace warploom::kernels {
struct CpuConvolution {
  Contraction c;               // with pixels as rows: a is the input, b the weights
  Access input;                // dimensions that move the same pixels are one
  Access weights;              // the dimensions of the sum are one, the last
  std::vector<size_t> pixels;  // axes of tiles: image, p, q, as many as there are, slowest first
  std::vector<size_t> depth;   // axes of the sum, as the weights have them, slowest first
  int64_t taps = 1;            // terms of the sum at one index of the first of them
  Pool pool;                   // behind it, where there is one, and all that is computed
  std::vector<int> operands;   // loads that follow the sum

  int64_t size(size_t axis) const { return c.nest.axes[axis]; }

  size_t blocked() const { return depth[0]; }  // the axis of the sum that is taken by blocks
};

// Nothing where a nest is none: the input is read backwards, or two axes of pixels move one
// dimension, or the weights do not lie in one order, or a pool's windows overlap. `weights`: the
// name of their tensor, where either operand could be it, as in a product of 1 × 1 windows.
std::optional<CpuConvolution> cpu_convolution_of(const LoopNest& nest, const std::string& weights);

// How a tile lies in memory: the box of the input that its windows take, and their strides in it.
struct PatchShape {
  std::vector<size_t> dims;      // of the input, as they lie in memory, slowest first
  std::vector<int64_t> extents;  // of the box along them
  std::vector<int64_t> steps;    // every so-manyth element
  std::vector<int64_t> windows;  // extents of the windows: pixels, then depth
  std::vector<int64_t> strides;  // of the windows in the box
  std::vector<int64_t> begins;   // of the windows in the box, one for each place of a pool
  int64_t elements = 1;          // of the box

  PatchShape(const CpuConvolution& convolution, const std::vector<int64_t>& extent);
};

// What a task of a convolution on a CPU takes.
struct ConvolutionTile {
  std::vector<int64_t> extent;  // of a task, by axis: all of the axes of the sum
  int64_t depth = 1;            // of the first axis of the sum, that a product takes
  int64_t panel = 1;            // columns side by side in vectors
};

// The program that packs the weights, and that of the tasks.
void add_cpu_convolution(Family::Programs& out, const CpuConvolution& convolution,
                         const ConvolutionTile& tile);
}  // namespace warploom::kernels
