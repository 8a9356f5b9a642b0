#include "kernels/pieces/im2win_math.h"
#include <cstddef>
#include <cstdint>
#include "base/dtype.h"
#include "base/value_op.h"
#include "kernels/config/configs.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/fp16_split.h"
#include "kernels/pieces/im2win_kernel.h"
#include "kernels/pieces/promotion.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels {
Im2winMath::Im2winMath(Im2winKernel& kernel, int64_t number)
    : kernel_(kernel),
      t_(kernel.t_),
      stage_(kernel.stage_),
      number_(number),
      m_(stage_.tile_q * stage_.tile_p),
      n_(kernel.s_.block_n),
      split_(kernel.product_.precision.terms > 1),
      compensates_(split_ && promotion::compensates(stage_.count(), stage_.depth)) {
  KernelBuilder& draft = kernel.draft_;
  const Dtype operand = kernel.product_.precision.operand;
  if (kernel.s_.epilogue == Epilogue::smem)
    staging_ = t_.shared(draft.name("staging", number), Dtype::f32, {m_, n_});
  draft.role = number;
  acc_ = reg("acc", Dtype::f32, n_);
  part_ = split_ ? reg("part", Dtype::f32, n_) : acc_;
  seen_ = reg("seen", Dtype::f32, stage_.depth);
  a_ = reg("a", operand, stage_.depth);
  if (!split_) return;
  rest_ = reg("a_rest", operand, stage_.depth);
  scale_ = reg("unit", Dtype::f32, 1);
  next_inverse_ = reg("next_back", Dtype::f32, 1);
  inverse_ = reg("back", Dtype::f32, 1);
  if (!compensates_) return;
  total_ = reg("total", Dtype::f32, n_);
  most_ = reg("most", Dtype::f32, 1);
}

TensorId Im2winMath::reg(const char* stem, Dtype dtype, int64_t columns) {
  return kernel_.draft_.reg(stem, dtype, {m_, columns});
}

void Im2winMath::run() {
  if (kernel_.s_.weights_stationary)
    t_.consume(kernel_.beside_, 0, [&] { sum_all(); });
  else
    sum_all();
}

void Im2winMath::sum_all() {
  if (compensates_) t_.fill(most_, 0);
  read_windows();
  kernel_.all_rounds([&](const Index& round) {
    const Index tile = kernel_.first_of(round) + number_;
    sum_tile(round);
    const int64_t tiles = kernel_.order_.count();
    if (tiles % (kernel_.own_ * kernel_.s_.cluster_m) == 0)
      finish(tile);
    else
      t_.if_less(tile, tiles, [&] { finish(tile); });
  });
}

void Im2winMath::sum_tile(const Index& round) {
  t_.fill(acc_, 0);
  if (split_) {
    t_.fill(part_, 0);
    t_.fill(inverse_, 0);
  }
  t_.for_("sum", 0, stage_.count(), 1, [&](const Index& k) {
    if (split_) add_up(compensates_);
    if (split_ && !compensates_) t_.fill(part_, 0);
    multiply(round, k);
  });
  if (split_) add_up(false);
}

// Where their largest is looked for next, all reads have to end at once.
void Im2winMath::read_windows() {
  const TensorId windows = kernel_.windows_[at(number_)];
  const int in_flight = split_ ? 0 : 1;
  t_.consume(kernel_.patch_stages_[at(number_)], in_flight,
             [&] { t_.copy(t_.all(windows), t_.all(seen_)); });
  if (!split_) return;
  const TensorId size = reg("size", Dtype::f32, stage_.depth);
  t_.map(size, tile::apply(ValueOp::abs, {t_.value(seen_)}));
  t_.reduce(scale_, size, 1, tile::ReduceOp::max);
  if (compensates_) {
    t_.map(most_, tile::max(t_.value(most_), t_.value(scale_)));
    t_.map(scale_, t_.value(most_));
  }
  t_.map(next_inverse_, fp16_split::inverse_scale_of(t_.value(scale_)));
  t_.map(scale_, fp16_split::row_scale_of(t_.value(scale_)));
}

// Adds a stage's sums to those before. What `carries`: in the scale of the stage that was read
// behind it.
void Im2winMath::add_up(bool carries) {
  const Value part = t_.value(part_);
  const Value inverse = t_.value(inverse_);
  const Value before = t_.value(acc_);
  const TensorId after = carries ? total_ : acc_;
  t_.map(after, tile::apply(ValueOp::fma, {part, inverse, before}));
  if (!carries) return;
  const Value not_added = before - t_.value(total_);
  const Value lost = tile::apply(ValueOp::fma, {part, inverse, not_added});
  t_.map(part_, lost * t_.value(scale_));
  t_.map(acc_, t_.value(total_));
}

void Im2winMath::multiply(const Index& round, const Index& k) {
  if (split_) {
    t_.map(seen_, t_.value(seen_) * t_.value(scale_));
    t_.map(inverse_, t_.value(next_inverse_));
  }
  t_.map(a_, t_.value(seen_));
  if (split_) t_.map(rest_, t_.value(seen_) - t_.value(a_));
  if (kernel_.s_.weights_stationary)
    add_products(k);
  else
    t_.consume(kernel_.beside_, 1, [&] { add_products(k); });
  // Unless it is the last round's last.
  const Index to_round_end = (k + 1 - stage_.count()) * kernel_.workers_;
  const Index rounds_left = Index(kernel_.rounds_ - kernel_.workers_) - round;
  t_.if_less(to_round_end, rounds_left, [&] {
    if (compensates_) t_.if_less(stage_.count() - 2, k, [&] { t_.fill(most_, 0); });
    read_windows();
  });
}

// The small products first: tensor cores truncate as they add.
void Im2winMath::add_products(const Index& k) {
  if (split_) {
    add_product(rest_, 0, k);
    add_product(a_, 1, k);
  }
  add_product(a_, 0, k);
}

void Im2winMath::add_product(TensorId x, size_t weights, const Index& k) {
  const Index row = kernel_.s_.weights_stationary ? k * n_ : Index(0);
  const auto factor = t_.tile(kernel_.weights_[weights], {row, 0}, {n_, stage_.depth});
  t_.mma(part_, t_.all(x), factor, false, true);
}

void Im2winMath::finish(const Index& tile) {
  KernelBuilder& draft = kernel_.draft_;
  const Contraction& c = kernel_.c_;
  const AxisIfAny second = kernel_.product_.second;
  const auto axes = axes_of({second, c.row, c.column});
  const size_t row_axes = second ? 2 : 1;
  const TileCoord where = kernel_.order_.at(tile);
  if (split_) dequantize(draft, c, acc_, {&kernel_.packed_.amax}, where, axes, row_axes);
  store(draft, c, acc_, where, axes, row_axes, staging_);
}
}  // namespace warploom::kernels
