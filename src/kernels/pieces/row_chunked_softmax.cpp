#include "kernels/pieces/row_chunked_softmax.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_kernel.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/index.h"
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

// Whether rows are read while others are written: of numbers that are read as they are, since those
// of a chunk are read twice.
bool RowChunkedSoftmax::overlaps() const {
  const bool writes = !rows_.passes[2].roots(rows_).empty();
  return keeps_ && writes && rows_.term(x_).kind == Kind::load;
}

void RowChunkedSoftmax::compute_rows(const Index& first, const Index& count, bool are_several) {
  if (!are_several || !overlaps()) {
    b_.for_("r", 0, count, 1, [&](const Index& r) {
      tiles_.go_to_rows(first + r);
      terms_.with_own_bindings([&] { compute_row(); });
    });
    return;
  }
  tiles_.go_to_rows(first);
  terms_.with_own_bindings([&] {
    begin_row();
    read_row();
    end_row();
  });
  b_.for_("r", 1, count, 1, [&](const Index& r) {
    terms_.with_own_bindings([&] { read_and_write_row(first + r); });
  });
  tiles_.go_to_rows(first + count - 1);
  terms_.with_own_bindings([&] {
    bind_written();
    write_row();
  });
}

void RowChunkedSoftmax::compute_row() {
  begin_row();
  read_row();
  end_row();
  bind_written();
  if (!rows_.passes[2].roots(rows_).empty()) write_row();
}

void RowChunkedSoftmax::begin_row() {
  terms_.compute_scalars(0);
  b_.fill(high_, kLowest);
  b_.fill(all_, 0);
  b_.fill(lost_, 0);
}

void RowChunkedSoftmax::read_row() {
  terms_.for_each_tile([&](const Index& chunk) { read_chunk(chunk); });
}

void RowChunkedSoftmax::write_row() {
  terms_.for_each_tile([&](const Index& chunk) { write_chunk(chunk); });
}

// What the row's last pass needs of it outlasts the next row's first.
void RowChunkedSoftmax::end_row() {
  b_.map(written_sum_, b_.value(all_) + b_.value(lost_));
  b_.map(written_high_, b_.value(high_));
  terms_.bind(maximum_, written_high_);
  terms_.bind(sum_, written_sum_);
  terms_.compute_scalars(2);
  tiles_.go_to_first_tile();
  terms_.store_scalars();
  written_ = terms_.bindings();
}

void RowChunkedSoftmax::bind_written() {
  terms_.bind_all(written_);
}

// The row, and meanwhile the one before it.
void RowChunkedSoftmax::read_and_write_row(const Index& row) {
  tiles_.go_to_rows(row);
  begin_row();
  tiles_.go_to_tile(0);
  terms_.with_own_bindings([&] { find_maximum(); });
  terms_.for_each_tile([&](const Index& chunk) { read_and_write_chunk(row, chunk); });
  end_row();
}

tile::Tile RowChunkedSoftmax::maximum_of_chunk(const Index& chunk) {
  return b_.tile(highs_, {0, chunk}, {1, 1});
}

// Of the tile.
void RowChunkedSoftmax::find_maximum() {
  const TensorId x = terms_.materialize(x_, "ahead");
  const Value inside = terms_.masked(maximum_, b_.value(x));
  if (inside.kind == Value::Kind::op) b_.map(x, inside);
  kernel_.all_reduce.reduce(maximum_, x);
  found_ = terms_.bound(maximum_).tensor;
}

// From the maximum before the chunk to that with it; and by what older sums are scaled.
TensorId RowChunkedSoftmax::rise_to_maximum(const Index& chunk) {
  const TensorId next = tiles_.scalar("next");
  const TensorId scale = tiles_.scalar("scale");
  b_.map(next, max(terms_.bound(maximum_), b_.value(high_)));
  b_.map(scale, exp(b_.value(high_) - b_.value(next)));
  b_.map(high_, b_.value(next));
  if (keeps_exponentials_) b_.copy(b_.all(high_), maximum_of_chunk(chunk));
  return scale;
}

// Those of the tile's x, and their sum.
void RowChunkedSoftmax::exponentials(TensorId x) {
  const TensorId each = tiles_.tile_reg(keeps_exponentials_ ? "x" : "e");
  b_.map(each, exp(b_.value(x) - b_.value(high_)));
  kernel_.all_reduce.reduce(sum_, each);
  if (keeps_exponentials_) b_.copy(b_.all(each), terms_.scratch_of(0));
}

void RowChunkedSoftmax::read_chunk(const Index& chunk) {
  const TensorId x = terms_.materialize(x_, "x");
  tiles_.scalar("total");
  const Value inside = terms_.masked(maximum_, b_.value(x));
  if (inside.kind == Value::Kind::op) b_.map(x, inside);
  if (keeps_ && !keeps_exponentials_) b_.copy(b_.all(x), terms_.scratch_of(0));
  kernel_.all_reduce.reduce(maximum_, x);
  const TensorId scale = rise_to_maximum(chunk);
  exponentials(x);
  add_compensated(terms_.bound(sum_), scale);
}

void RowChunkedSoftmax::read_and_write_chunk(const Index& row, const Index& chunk) {
  tiles_.scalar("total");
  terms_.bind(maximum_, found_);
  if (keeps_exponentials_) read_factor(chunk);
  const TensorId scale = rise_to_maximum(chunk);
  const auto go_to = [&](const Index& of_row, const Index& of_chunk) {
    tiles_.go_to_rows(of_row);
    tiles_.go_to_tile(of_chunk);
  };
  go_to(row - 1, chunk);
  terms_.with_own_bindings([&] {
    terms_.forget(maximum_);
    bind_written();
    write_kept();
  });
  go_to(row, chunk);
  const TensorId x = terms_.materialize(x_, "x");
  const Value inside = terms_.masked(maximum_, b_.value(x));
  if (inside.kind == Value::Kind::op) b_.map(x, inside);
  if (!keeps_exponentials_) b_.copy(b_.all(x), terms_.scratch_of(0));
  exponentials(x);
  const Value sum = terms_.bound(sum_);
  go_to(row, tile::min(chunk + 1, tiles_.tiles_of_a_row() - 1));
  terms_.forget(x_);
  find_maximum();
  go_to(row, chunk);
  add_compensated(sum, scale);
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

// From a chunk's own maximum to its row's.
void RowChunkedSoftmax::read_factor(const Index& chunk) {
  const TensorId factor = tiles_.scalar("factor");
  b_.copy(maximum_of_chunk(chunk), b_.all(factor));
  b_.map(factor, exp(b_.value(factor) - b_.value(written_high_)));
}

void RowChunkedSoftmax::write_kept() {
  const TensorId kept = tiles_.tile_reg("old");
  if (keeps_) b_.copy(terms_.scratch_of(0), b_.all(kept));
  if (keeps_exponentials_)
    terms_.bind(exponential_, b_.value(kept) * b_.value(tiles_.scalar("factor")));
  else if (keeps_)
    terms_.bind(x_, kept);
  terms_.store_rows();
}

void RowChunkedSoftmax::write_chunk(const Index& chunk) {
  if (keeps_exponentials_) read_factor(chunk);
  write_kept();
}
}  // namespace warploom::kernels
