// Rows that are one tile.
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_kernel.h"
#include "kernels/pieces/row_terms.h"
#include "kernels/pieces/row_tiles.h"
#include "loopnest/row_reduction.h"

namespace warploom::kernels {
namespace {
constexpr int64_t kRegisterBytes = 160;  // a thread, of what a row keeps and of what comes early

int64_t bytes_of_tile(const RowTiles& tiles, const std::vector<bool>& varies, Dtype dtype) {
  int64_t bytes = bytes_of(dtype);
  for (const size_t axis : tiles.rows.dims)
    if (axis >= varies.size() || varies[axis]) bytes *= tiles.at().extent[axis];
  return bytes;
}

// What the last pass alone loads comes while rows are reduced, where registers are left for it.
RowTerms::Bindings load_early(RowKernel& kernel) {
  const RowReduction& rows = kernel.rows();
  const RowTiles& tiles = kernel.tiles;
  const auto loads = kernel.terms.loads_of_last_pass(rows.passes.size() - 2);
  int64_t taken = rows.kept_sets() * bytes_of_tile(tiles, {}, Dtype::f32);
  for (const int id : loads) {
    const RowTerm& load = rows.term(id);
    taken += bytes_of_tile(tiles, load.varies, rows.loaded(load).dtype);
  }
  RowTerms::Bindings ready;
  if (taken > kRegisterBytes * tiles.options.threads) return ready;
  for (const int id : loads)
    if (!kernel.terms.is_bound(id)) ready[id] = kernel.terms.compute(id);
  return ready;
}

void reduce_tile(RowKernel& kernel, int reduction) {
  RowTiles& tiles = kernel.tiles;
  const int operand = kernel.rows().term(reduction).operands[0];
  const Value inside = kernel.terms.masked(reduction, kernel.terms.bound(operand));
  const bool is_masked = inside.kind != Value::Kind::tensor;
  if (is_masked) tiles.b.map(tiles.tile_reg("inside"), inside);
  const TensorId from = is_masked ? tiles.tile_reg("inside") : inside.tensor;
  if (kernel.split_softmax)
    kernel.all_reduce.reduce_own_part(reduction, from);
  else
    kernel.all_reduce.reduce(reduction, from);
}
}  // namespace

void compute_in_registers(RowKernel& kernel) {
  RowTerms& terms = kernel.terms;
  const RowReduction& rows = kernel.rows();
  const size_t last = rows.passes.size() - 1;
  kernel.tiles.go_to_first_tile();
  RowTerms::Bindings ready;
  for (size_t p = 0; p < last; ++p) {
    terms.compute_scalars(p);
    terms.keep(p, true);
    terms.set_source({});
    if (p == 0) ready = load_early(kernel);
    for (const int reduction : rows.passes[p].reduces)
      reduce_tile(kernel, reduction);
    if (kernel.split_softmax && p == 0) kernel.split_softmax.after_maximum();
    if (kernel.split_softmax && p == 1) kernel.split_softmax.after_sum();
    terms.forget_all_but_kept(p);
  }
  terms.bind_all(ready);
  terms.compute_scalars(last);
  if (kernel.split_softmax) {
    kernel.split_softmax.before_last_pass();
    kernel.split_softmax.rescale_kept();
  }
  terms.store_rows();
  terms.store_scalars();
}
}  // namespace warploom::kernels
