// What follows the sum of products of a tile: block scales, fp32 promotion, dequantization, and the
// operators behind the sum, up to the store.
#pragma once
#include <functional>
#include "kernels/kernel_builder.h"
#include "loopnest/contraction.h"
#include "loopnest/pool.h"

namespace warploom::kernels {
// Divides the sums of fp16x3 products by the scales of their rows and columns, whose largest
// magnitudes `amax` holds; axes and rows as below.
void dequantize(KernelBuilder& draft, const Contraction& contraction, TensorId acc,
                std::initializer_list<const Access*> amax, const TileCoord& tile,
                const std::vector<size_t>& axes, size_t rows = 1);

// Loads the scales of the blocks that a stage's products are of. `axes` and `rows` as below; sets
// of registers differ by their name.
std::vector<TensorId> load_scales(KernelBuilder& draft, const Contraction& contraction,
                                  const TileCoord& stage, const std::vector<size_t>& axes,
                                  size_t rows = 1, const std::string& set = "");
// `acc` with the sum of a stage's products added, times their scales.
Value promoted(KernelBuilder& draft, TensorId acc, TensorId part,
               const std::vector<TensorId>& scales);

// Rows and columns of a register tensor over a tile: 1 along the axes that it does not use.
std::vector<int64_t> shape_of(const TileCoord& tile, const std::vector<size_t>& axes, size_t rows,
                              const std::function<bool(size_t)>& uses);
// What a tile of the result takes of a tensor, in registers of that name.
TensorId load_beside(KernelBuilder& draft, const Contraction& contraction, const std::string& name,
                     const Access& access, const TileCoord& tile, const std::vector<size_t>& axes,
                     size_t rows, const std::string& set = "");

// Computes what follows the sum, for the accumulators of a tile, and stores the results. `axes`:
// those that rows follow, `rows` of them, then those of columns. The first result goes through
// `staging`, a shared tensor, where there is one. What reduces rows finds them whole in the tile,
// or in those of the `ctas` of a cluster.
void store(KernelBuilder& draft, const Contraction& contraction, TensorId acc,
           const TileCoord& tile, const std::vector<size_t>& axes, size_t rows = 1,
           TensorId staging = -1, int64_t ctas = 1);

// The same behind a pool: `acc` holds the sums at each place of its windows.
void store_pooled(KernelBuilder& draft, const PooledContraction& pooled,
                  const std::vector<TensorId>& acc, const TileCoord& tile,
                  const std::vector<size_t>& axes);
}  // namespace warploom::kernels
