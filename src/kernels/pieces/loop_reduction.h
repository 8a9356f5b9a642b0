// LoopReduction: the reductions of a loop nest, by loops over the reduced axes.
//
// An accumulator has an element for each of the tile, along the reduced axis of the tile too; that
// one is brought together at the end. Sums of floats are made in chains of at most 16 terms, which
// are added up: the rounding error of one long chain would grow with the root of its length. Of
// many chains what these additions lose is carried on (promotion.h). What is written out inside of
// loops is a chain.
//
//   reduce add of 1000 terms    for from in 0 … 1000 by 16
//                                 part ← 0; for i in from … from + 16: part ← part + term
//                                 sum ← sum + part
//
// On a CPU the bodies of several i may stand one behind another in a loop over the tile's vectors.
#pragma once
#include <functional>
#include "kernels/pieces/loop_values.h"

namespace warploom::kernels::direct {
class LoopReduction {
 public:
  LoopReduction(LoopTile& tile, LoopValues& values);

  const std::vector<size_t>& reductions() const { return reductions_; }  // by value

  bool is_operand(size_t value) const { return operands_[value]; }  // of a reduction, or below it

  bool varies_in_loops(size_t value) const;  // along a reduced axis

  void start();                                       // accumulators at the neutral element
  void run_loops(const std::function<void()>& body);  // `body`, then a step of each reduction
  void finish();

  // Dimensions of the accumulator of a reduction.
  std::vector<bool> accumulated(size_t reduction) const;

 private:
  using Turn = std::function<void(const Index&)>;

  void loop_over(size_t axis);
  void loop_in_chains(size_t axis, int64_t chain, const Turn& turn);
  void step();
  void accumulate(size_t reduction);
  void join_tile(size_t reduction);
  void in_chain(const std::function<void()>& body);
  bool is_sum(size_t reduction) const;  // of floats
  TensorId part_of(size_t reduction);
  int64_t turns(size_t axis) const;
  int64_t written_out(size_t axis, int64_t chain) const;

  LoopTile& t_;
  LoopValues& values_;
  const LoopNest& nest_;
  tile::Builder& b_;
  std::vector<size_t> reductions_;
  std::vector<bool> operands_;  // by value
  std::function<void()> body_;
  bool in_chain_ = false;
  int64_t terms_ = 1;  // of an accumulator
  bool compensates_;
};
}  // namespace warploom::kernels::direct
