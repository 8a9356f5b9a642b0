#include "kernels/pieces/loop_kernel.h"
#include <cstddef>
#include <string>
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_product.h"
#include "kernels/pieces/loop_reduction.h"
#include "kernels/pieces/loop_tile.h"
#include "kernels/pieces/loop_values.h"
#include "kernels/pieces/scan_walk.h"

namespace warploom::kernels::direct {
namespace {
// A tile of a nest without scans: what loops need, the loops, and what follows them.
void compute_reductions(LoopTile& tile, LoopValues& values) {
  LoopReduction reduction(tile, values);
  const size_t count = tile.nest.values.size();
  for (size_t v = 0; v < count; ++v)
    if (reduction.is_operand(v) && !reduction.varies_in_loops(v)) values.compute(v);
  reduction.start();
  const auto compute_in_loops = [&] {
    for (size_t v = 0; v < count; ++v)
      if (reduction.is_operand(v) && reduction.varies_in_loops(v)) values.compute(v);
  };
  if (tile.options.multiplies) {
    const size_t sum = reduction.reductions()[0];
    LoopProduct(tile).add_to(values.held(sum), reduction.accumulated(sum));
  } else if (!reduction.reductions().empty()) {
    reduction.run_loops(compute_in_loops);
  }
  reduction.finish();
  for (size_t v = 0; v < count; ++v)
    if (!values.is_held(v) && !reduction.varies_in_loops(v)) values.compute(v);
  for (size_t i = 0; i < tile.nest.outputs.size(); ++i)
    values.store(i);
}

void compute_tile(LoopTile& tile, LoopValues& values) {
  if (tile.tiling.scanned)
    ScanWalk(tile, values).run();
  else
    compute_reductions(tile, values);
}
}  // namespace

void add_loop_kernel(Family::Programs& out, const LoopNestTiling& tiling,
                     const LoopKernelOptions& options, const Capabilities& capabilities,
                     const std::string& name) {
  LoopTile tile(tiling, options, capabilities, name);
  LoopValues values(tile);
  if (options.rows_in_turn > 1) {
    tile.for_rows_in_turn([&] { compute_tile(tile, values); });
    tile.store_gathered();
  } else {
    compute_tile(tile, values);
  }
  tile.draft.finish(out);
}
}  // namespace warploom::kernels::direct
