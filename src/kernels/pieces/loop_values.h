// LoopValues: the values of a loop nest over the tile that a kernel is at.
//
// A value is an expression of register tensors. Loads have one, and so does what varies along fewer
// axes than a user, what is much and used more than once, and what is rounded. Integers are
// computed on integers of 64 bits where fp32 does not hold them.
#pragma once
#include <map>
#include "kernels/pieces/loop_tile.h"

namespace warploom::kernels::direct {
class LoopValues {
 public:
  explicit LoopValues(LoopTile& tile);

  // Loads a value, or computes it into a register tensor if it is to have one.
  void compute(size_t value);
  // The value as an expression of what is held.
  Value expression_of(size_t value) const;

  bool is_held(size_t value) const { return held_[value] >= 0; }

  TensorId held(size_t value) const { return held_[value]; }

  void hold(size_t value, TensorId tensor) { held_[value] = tensor; }

  // The value number `v` as a register tensor of this stem and number.
  TensorId reg(const std::string& stem, size_t value, const std::vector<bool>& varies);

  // dst ← an expression, on integers where it is one.
  void map(TensorId dst, Value expression, bool integers);

  void store(size_t output);

  // Loads what varies along an axis, for the tile that comes next there; loading it is a copy then.
  void prefetch(size_t axis);

  // What sums, scans and values of their own are held in.
  Dtype type_of(size_t value) const {
    return nest_.values[value].integers ? Dtype::i64 : Dtype::f32;
  }

 private:
  void choose_kept();
  void load(size_t value);
  bool is_transposed(const Access& load) const;

  LoopTile& t_;
  const LoopNest& nest_;
  tile::Builder& b_;
  std::vector<TensorId> held_;  // by value: its register tensor, -1 without
  std::vector<bool> kept_;      // by value: whether it gets one, beside loads and reductions
  std::map<size_t, TensorId> prefetched_;  // by value
};
}  // namespace warploom::kernels::direct
