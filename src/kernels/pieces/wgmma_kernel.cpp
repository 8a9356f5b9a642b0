#include "kernels/pieces/wgmma_kernel.h"
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/promotion.h"
#include "kernels/pieces/tile_scheduler.h"
#include "kernels/pieces/wgmma_product.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Tile;

// Registers a thread where two math warpgroups multiply; one leaves them as they are.
constexpr int kProducerRegisters = 40;
constexpr int kMathRegisters = 232;
}  // namespace

WgmmaKernel::WgmmaKernel(const WgmmaProduct& product, const Contraction& sides, const Prepared& a,
                         const Prepared& b, const WgmmaChoices& s)
    : product_(product),
      c_(sides),
      a_(a),
      b_(b),
      s_(s),
      precision_(product.precision_of(s)),
      rows_above_(sides.row == product.c.column ? product.second_pixels : std::nullopt),
      columns_above_(rows_above_ ? std::nullopt : product.second_pixels),
      result_(axes_of({rows_above_, sides.row, columns_above_, sides.column})),
      row_axes_(rows_above_ ? 2 : 1),
      summed_(stage_axes(sides)),
      tiles_(product, sides, s),
      promotes_(product.promotes()),
      meanwhile_(promotes_ && tiles_.stages_per_round() > 1),
      compensates_(product.compensates(s)) {}

void WgmmaKernel::add_to(Family::Programs& out) {
  const auto math = as_int(s_.num_math_warpgroups);
  const Dtype sums = c_.scales.empty() ? precision_.accumulator() : Dtype::f32;
  tiles_.set_grid(draft_, 4 + 4 * math);
  add_operands();
  const Dtype stored = c_.nest.outputs[0].place.dtype;
  if (s_.epilogue == Epilogue::smem)
    staging_ = t_.shared("staging", stored, {s_.block_m, s_.block_n});
  tiles_.declare(draft_, sums);
  t_.roles([&] {
    t_.role("producer", 4, math > 1 ? kProducerRegisters : 0, [&] { produce(); });
    t_.role("consumer", 4 * math, math > 1 ? kMathRegisters : 0, [&] {
      acc_ = t_.reg("acc", sums, {s_.block_m, s_.block_n});
      if (compensates_) total_ = t_.reg("total", sums, {s_.block_m, s_.block_n});
      consume();
    });
  });
  draft_.finish(out);
}

// One set of registers a stage of a round, two at the most: of two one is filled, or added, while
// the other is multiplied.
std::vector<WgmmaKernel::StageSums> WgmmaKernel::sums_of_round() {
  const auto set = [&](const char* name) {
    return t_.reg(name, precision_.accumulator(), {s_.block_m, s_.block_n});
  };
  const TensorId part = promotes_ ? set("part") : acc_;
  std::vector<StageSums> sets = {{"", part, {}}};
  if (tiles_.stages_per_round() <= 1) return sets;
  const TensorId next = meanwhile_ ? set("part_next") : acc_;
  sets.push_back({"_next", next, {}});
  return sets;
}

void WgmmaKernel::consume() {
  auto sets = sums_of_round();
  const auto sum = [&](const TileCoord& tile, const Index& begin, const Index& end, bool shared) {
    t_.fill(acc_, 0);
    for (const StageSums& set : sets)
      if (compensates_) t_.fill(set.part, 0);
    if (shared) tiles_.take_over(draft_, acc_, begin);
    sum_tile(tile, begin, end, sets);
    if (!shared) return finish(tile);
    tiles_.hand_over(draft_, acc_, end);
    t_.if_less(tiles_.stages() - 1, end, [&] { finish(tile); });
  };
  tiles_.for_each(draft_, sum);
}

// A stage beyond k holds zeros. No product is under way from one round to the next: there ptxas
// would wait for them before they are read.
void WgmmaKernel::sum_tile(const TileCoord& tile, const Index& begin, const Index& end,
                           std::vector<StageSums>& sets) {
  const int64_t round = tiles_.stages_per_round();
  TileCoord stage = tile;
  t_.for_("k", begin, end, round, [&](const Index& k) {
    for (int64_t i = 0; i < round; ++i) {
      stage.place(c_.nest, summed_, k + i);
      multiply_stage(stage, sets[at(i) % sets.size()]);
      if (promotes_ && meanwhile_ == (i > 0))
        promote(sets[at(meanwhile_ ? i - 1 : i) % sets.size()]);
    }
    if (meanwhile_) promote(sets[at(round - 1) % sets.size()]);
  });
}

void WgmmaKernel::multiply_stage(const TileCoord& stage, StageSums& set) {
  set.scales = load_scales(draft_, c_, stage, result_, row_axes_, set.name);
  if (promotes_ && !compensates_) t_.fill(set.part, 0);
  const int in_flight = promotes_ && !meanwhile_ ? 0 : 1;
  t_.consume(pipeline_, in_flight, [&] { add_products(set); });
}

// Of split operands the small products first: tensor cores truncate as they add.
void WgmmaKernel::add_products(const StageSums& set) {
  if (precision_.terms > 1) {
    add_product(set.part, stages_[2], 1);
    add_product(set.part, stages_[0], 3);
  }
  if (!s_.transposes_a()) return add_product(set.part, stages_[0], 1);
  const std::vector<int64_t> shape = {s_.block_m, s_.block_k};
  const TensorId seen = draft_.reg("seen", Dtype::f32, shape);
  const TensorId x = draft_.reg("x" + set.name, Dtype::tf32, shape);
  t_.copy(t_.all(lines_), t_.all(seen));
  t_.map(x, t_.value(seen));
  add_product(set.part, x, 1);
}

void WgmmaKernel::add_product(TensorId part, TensorId x, size_t operand) {
  t_.mma(part, t_.all(x), t_.all(stages_[operand]), false, true);
}

void WgmmaKernel::promote(const StageSums& set) {
  if (compensates_)
    promotion::add_compensated(t_, acc_, set.part, total_, promotion::Overflow::unasked);
  else
    t_.map(acc_, promoted(draft_, acc_, set.part, set.scales));
}

void WgmmaKernel::finish(const TileCoord& tile) {
  if (precision_.is_fp16_split())
    dequantize(draft_, c_, acc_, {&a_.amax, &b_.amax}, tile, result_, row_axes_);
  store(draft_, c_, acc_, tile, result_, row_axes_, staging_, tiles_.row_ctas());
}
}  // namespace warploom::kernels
