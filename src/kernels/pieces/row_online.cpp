// Two reductions by one walk over a row that is kept nowhere.
#include <limits>
#include <utility>
#include "base/value_op.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_kernel.h"
#include "kernels/pieces/row_terms.h"
#include "kernels/pieces/row_tiles.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"

namespace warploom::kernels {
namespace {
// Passes 0 and 1 of one reduction each.
class OnlinePasses {
 public:
  explicit OnlinePasses(RowKernel& kernel) : kernel_(kernel) {}

  // A thread's sum is of exponentials of differences to its own maximum so far.
  void softmax() {
    declare_element();
    const TensorId highest = tiles_.tile_reg("highest");
    const TensorId higher = tiles_.tile_reg("higher");
    const TensorId sums = tiles_.tile_reg("sums");
    // Finite, since the difference of infinities is no number.
    b_.fill(highest, std::numeric_limits<float>::lowest());
    b_.fill(sums, 0);
    terms_.for_each_tile([&](const Index&) {
      const Value x = element();
      const Value top = b_.value(higher);
      b_.map(higher, max(b_.value(highest), x));
      const Value rescale = exp_of(b_.value(highest) - top);
      b_.map(sums, b_.value(sums) * rescale + exp_of(x - top));
      b_.map(highest, top);
    });
    kernel_.all_reduce.reduce(first(), highest);
    const Value rescale = exp_of(b_.value(highest) - terms_.bound(first()));
    b_.map(sums, b_.value(sums) * rescale);
    kernel_.all_reduce.reduce(second(), sums);
  }

  // A thread's extreme so far goes along with its index.
  void index_of_extreme() {
    const ValueOp op = rows_.term(first()).op;
    declare_element();
    const TensorId best = tiles_.tile_reg("best");
    const TensorId indices = tiles_.tile_reg("places");
    tiles_.go_to_tile(0);
    b_.fill(best, identity_of(op));
    // What all elements of a thread may be equal to.
    const Affine& index = rows_.term(rows_.index_of_extreme).at;
    b_.map(indices, tiles_.at().value_at(index, rows_.dims));
    terms_.for_each_tile([&](const Index&) {
      const Value x = element();
      const Value old = b_.value(best);
      const Value is_number = equal(x, x);  // a number equals itself
      const Value was_number = equal(old, old);
      const Value beyond = op == ValueOp::max ? less(old, x) : less(x, old);
      const Value only_number = where(is_number, tile::constant(0), was_number);
      const Value better = where(beyond, tile::constant(1), only_number);
      const Value index_here = terms_.compute(rows_.index_of_extreme);
      b_.map(indices, where(better, index_here, b_.value(indices)));
      b_.map(best, tile::apply(op, {old, x}));
    });
    kernel_.all_reduce.reduce(first(), best);
    terms_.with_own_bindings([&] {
      terms_.bind(operand(first()), best);
      terms_.bind(rows_.index_of_extreme, indices);
      b_.map(indices, terms_.compute(operand(second())));
    });
    kernel_.all_reduce.reduce(second(), indices);
  }

 private:
  int first() const { return rows_.passes[0].reduces[0]; }

  int second() const { return rows_.passes[1].reduces[0]; }

  int operand(int reduction) const { return rows_.term(reduction).operands[0]; }

  Value exp_of(Value x) const {
    return tile::apply(rows_.term(operand(second())).op, {std::move(x)});
  }

  bool is_loaded() const { return rows_.term(operand(first())).kind == Kind::load; }

  void declare_element() {
    if (is_loaded()) terms_.register_of(operand(first()));
  }

  // The first pass's operand, in a register tensor, where its users are many.
  Value element() {
    const int x = operand(first());
    if (is_loaded()) return terms_.masked(first(), terms_.compute(x));
    const TensorId made = terms_.materialize(x, "x");
    return terms_.masked(first(), b_.value(made));
  }

  RowKernel& kernel_;
  RowTiles& tiles_ = kernel_.tiles;
  RowTerms& terms_ = kernel_.terms;
  const RowReduction& rows_ = kernel_.rows();
  tile::Builder& b_ = kernel_.tiles.b;
};
}  // namespace

void reduce_online_softmax(RowKernel& kernel) {
  OnlinePasses(kernel).softmax();
}

void reduce_index_of_extreme(RowKernel& kernel) {
  OnlinePasses(kernel).index_of_extreme();
}
}  // namespace warploom::kernels
