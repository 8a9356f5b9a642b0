// ExprBuilder: appends values to a nest, so that equal values are one and constants are folded.
//
// Arithmetic of kernels is in fp32. Integers are computed as fp32 numbers where those hold every
// value exactly, else as integers of 64 bits, which wrap as the graph's types do:
//
//   apply_as(Dtype::i8, ValueOp::add, {x, y})     x, y of i8: below 2^24, so in fp32, but the sum
//                                                 may leave i8: rounded to i8 as an integer
//   apply_as(Dtype::i64, ValueOp::mul, {x, y})    x, y unknown: on integers of 64 bits
//
// Values are named by their number in LoopNest::values.
#pragma once
#include <set>
#include <unordered_map>
#include "graph/pointwise.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
class ExprBuilder {
 public:
  explicit ExprBuilder(LoopNest& nest) : nest_(nest) {}

  int push(Expr value);  // the number of an equal value, or of this one
  int load(Access access);

  int constant(double value) { return push({.kind = Kind::constant, .value = value}); }

  int index(Affine at) { return push({.kind = Kind::index, .at = std::move(at)}); }

  int round(Dtype dtype, int v) {
    return push({.kind = Kind::round, .dtype = dtype, .operands = {v}});
  }

  int apply(ValueOp op, std::vector<int> operands);  // in floats

  int product(int a, int b) { return apply(ValueOp::mul, {a, b}); }

  int reduce(ValueOp op, int operand, std::vector<size_t> axes);  // in floats

  // On tensors of a type: in floats, or on integers where floats lose something.
  int apply_as(Dtype dtype, ValueOp op, const std::vector<int>& operands);
  int reduce_as(Dtype dtype, ValueOp op, int operand, const std::vector<size_t>& axes);
  // An expression on these operands, in floats or on integers.
  int evaluate(const graph::Expression& expression, const std::vector<int>& operands,
               bool on_integers);

  int to_integer(int v, Dtype dtype);  // the value of a tensor of that type, as an integer
  int to_float(int v);                 // for operations on floats
  int wrap(int v, Dtype dtype);        // what storing an integer in the type leaves of it

  // Whether a value is computed on integers of 64 bits.
  bool computes_integers(int v) const { return nest_.value(v).integers; }

  // Whether fp32 holds every integer up to the largest magnitude of the value.
  bool is_exact_in_fp32(int v) const;
  // Whether a value is one of those of a type: loaded as such, chosen among such, or rounded.
  bool is_of_type(Dtype dtype, int v) const;
  // Whether fp32 arithmetic gives the value that a tensor of an integer type has. 8 bits must not
  // leave their type, at whose ends fp32 would go on where integers wrap.
  bool holds_exactly(Dtype dtype, int v) const;

 private:
  int push_integer_of(Dtype dtype, int v);  // v as the type holds it
  int apply_integers(ValueOp op, std::vector<int> operands);
  // Values in `seen` are of the type, or were asked before.
  bool is_of_type(Dtype dtype, int v, std::set<int>& seen) const;

  LoopNest& nest_;
  std::unordered_multimap<size_t, int> numbers_;  // of the values, by hash
};
}  // namespace warploom::loopnest
