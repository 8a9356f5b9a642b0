#include "kernels/pieces/row_chunked_softmax.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_kernel.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
// A maximum of nothing whose difference to -infinity is still a number.
constexpr double kLowest = -3.0e38;
}  // namespace

RowChunkedSoftmax::RowChunkedSoftmax(RowKernel& kernel, bool keeps)
    : kernel_(kernel), keeps_(keeps) {
  const auto& kept = rows_.passes[1].kept;
  keeps_exponentials_ = keeps && kept.size() == 1 && kept.contains(exponential_);
  if (keeps_exponentials_) highs_ = b_.shared("highs", Dtype::f32, {1, tiles_.tiles_of_a_row()});
}

void RowChunkedSoftmax::compute_row() {
  terms_.compute_scalars(0);
  b_.fill(high_, kLowest);
  b_.fill(all_, 0);
  b_.fill(lost_, 0);
  terms_.for_each_tile([&](const Index& chunk) { read_chunk(chunk); });
  b_.map(all_, b_.value(all_) + b_.value(lost_));
  terms_.bind(maximum_, high_);
  terms_.bind(sum_, all_);
  terms_.compute_scalars(2);
  if (!rows_.passes[2].roots(rows_).empty())
    terms_.for_each_tile([&](const Index& chunk) { write_chunk(chunk); });
  tiles_.go_to_first_tile();
  terms_.store_scalars();
}

tile::Tile RowChunkedSoftmax::maximum_of_chunk(const Index& chunk) {
  return b_.tile(highs_, {0, chunk}, {1, 1});
}

void RowChunkedSoftmax::read_chunk(const Index& chunk) {
  const TensorId x = terms_.materialize(x_, "x");
  const TensorId each = tiles_.tile_reg(keeps_exponentials_ ? "x" : "e");
  const TensorId next = tiles_.scalar("next");
  const TensorId scale = tiles_.scalar("scale");
  tiles_.scalar("total");
  const Value inside = terms_.masked(maximum_, b_.value(x));
  if (inside.kind == Value::Kind::op) b_.map(x, inside);
  if (keeps_ && !keeps_exponentials_) b_.copy(b_.all(x), terms_.scratch_of(0));
  kernel_.all_reduce.reduce(maximum_, x);
  b_.map(next, max(terms_.bound(maximum_), b_.value(high_)));
  b_.map(scale, exp(b_.value(high_) - b_.value(next)));
  b_.map(high_, b_.value(next));
  if (keeps_exponentials_) b_.copy(b_.all(high_), maximum_of_chunk(chunk));
  b_.map(each, exp(b_.value(x) - b_.value(high_)));
  kernel_.all_reduce.reduce(sum_, each);
  if (keeps_exponentials_) b_.copy(b_.all(each), terms_.scratch_of(0));
  add_compensated(terms_.bound(sum_), scale);
}

// all ← all · scale + part, and what rounding lost of it: there may be thousands of chunks.
void RowChunkedSoftmax::add_compensated(const Value& part, TensorId scale) {
  const TensorId total = tiles_.scalar("total");
  const Value all = b_.value(all_);
  const Value factor = b_.value(scale);
  b_.map(all_, all * factor);
  b_.map(total, all + part);
  b_.map(lost_, b_.value(lost_) * factor + (part - (b_.value(total) - all)));
  b_.map(all_, b_.value(total));
}

void RowChunkedSoftmax::write_chunk(const Index& chunk) {
  if (keeps_exponentials_) {
    const TensorId factor = tiles_.scalar("factor");
    const TensorId kept = tiles_.tile_reg("x");
    b_.copy(maximum_of_chunk(chunk), b_.all(factor));
    b_.map(factor, exp(b_.value(factor) - terms_.bound(maximum_)));
    b_.copy(terms_.scratch_of(0), b_.all(kept));
    terms_.bind(exponential_, b_.value(kept) * b_.value(factor));
  } else if (keeps_) {
    const TensorId x = tiles_.tile_reg("x");
    b_.copy(terms_.scratch_of(0), b_.all(x));
    terms_.bind(x_, x);
  }
  terms_.store_rows();
}
}  // namespace warploom::kernels
