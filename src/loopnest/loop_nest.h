// LoopNest: what a region of primitive operators computes, as loops over axes, without the
// operators.
//
// Every value of a region is a function of the indices along the axes of the nest:
//   load      an element of a tensor, at coordinates that are affine in the indices
//   apply     an elementwise operation on other values at the same indices
//   reduce    another value combined over some of the axes
//   scan      another value combined along one axis, each element with those before it
//   index     an affine coordinate as a number
//   round     another value rounded to a narrower type
//   constant  a number
// Transposes, slices, paddings, windows, broadcasts and reshapes are nothing but coordinates. Which
// values are kept and which are computed again is for builders of programs to say.
//
// A nest is in a normal form: axes of size 1 are gone; neighbouring axes that all accesses and
// reductions treat alike are one; equal values are one; what constants alone make is a constant.
//
// Worked example 1: y = softmax(x), x [8,128,1024]. An axis that is both reduced and written is
// one axis:
//
//   axes {1024, 1024}
//   loads   0: x [1024,1024] at {i0, i1}
//   values  0: load 0
//           1: reduce max of 0 over {1}
//           2: 0 - 1
//           3: exp 2
//           4: reduce add of 3 over {1}
//           5: 3 / 4
//   outputs value 5 at {i0, i1}
//
//   values 1 and 4 vary along {0}; values 0, 2, 3 and 5 along {0, 1}
//
// Worked example 2: y = relu(conv(x, w)), x [1,16,32,32], w [24,16,3,3], strides 2, pads 1. The
// axes are those of the output, then those of the sum:
//
//   axes {24, 16, 16, 16, 3, 3}, called (co, p, q, ci, kh, kw)
//   loads   0: x at {ci, 2p + kh - 1, 2q + kw - 1}, not in bounds, padding value 0
//           1: w at {co, ci, kh, kw}
//   values  0: load 0
//           1: load 1
//           2: 0 · 1
//           3: reduce add of 2 over {3, 4, 5}
//           4: relu 3
//   outputs value 4 at {co, p, q}
#pragma once
#include <optional>
#include <string>
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "loopnest/affine.h"
#include "tile/program.h"

namespace warploom::loopnest {
// Axes are not merged beyond this size, and longer ones are cut where a power of two divides them:
// coordinates on a GPU have 32 bits, and tiles go beyond the end.
inline constexpr int64_t kLongestAxis = (int64_t{1} << 31) - (int64_t{1} << 25);

// A tensor of the graph as the nest reads or writes it.
//
// In the normal form the dimensions that no coordinate leaves (of an output: that begin at 0 as
// well) are replaced by one dimension for each axis that they step along, in the order of the axes.
// Before them stands a dimension of two elements, read at 1, where they do not begin at the first
// element of the tensor. The other dimensions follow as they are, without those of size 1.
struct Access {
  graph::TensorId tensor = graph::kAbsent;
  std::string name;
  Dtype dtype = Dtype::f32;
  graph::Shape shape;        // elements
  graph::Shape strides;      // elements
  Coordinates at;            // one a dimension
  double padding_value = 0;  // of a load: what an element outside the tensor counts as
  bool in_bounds = true;     // no coordinate ever leaves the shape
  // Gathered along dimension gather_dim (-1: not gathered): the coordinate there is what
  // `gather_indices`, a tensor of integers, holds at the flat place at[gather_dim]. Negative
  // indices count from the end; those that leave the dimension count as outside the tensor.
  graph::TensorInfo gather_indices = {};
  int gather_dim = -1;

  bool is_gathered() const { return gather_dim >= 0; }

  bool is_gather_dim(size_t dim) const { return gather_dim == static_cast<int>(dim); }

  bool uses(size_t axis) const;       // whether a coordinate steps along the axis
  int64_t stride(size_t axis) const;  // elements from one index along the axis to the next
  void erase(size_t dim);             // as if the tensor lacked the dimension
  // The dimension that steps along an axis; nothing where none does, or several do.
  std::optional<size_t> dim_of(size_t axis) const;
};

struct Expr {
  enum class Kind : uint8_t { constant, load, index, apply, round, reduce, scan };
  Kind kind = Kind::constant;
  double value = 0;           // constant
  int load = 0;               // load: of LoopNest::loads
  Affine at;                  // index: this number
  ValueOp op = ValueOp::add;  // apply; reduce: add, max, min or mul; scan: add
  Dtype dtype = Dtype::f32;   // round: to this narrower type
  std::vector<int> operands;  // earlier values; of a reduction, a scan and of rounding one
  // reduce: over all of these axes, ascending, whether or not the operand varies along them;
  // scan: along one
  std::vector<size_t> axes;
  bool reverse = false;  // scan: each element with those behind it
  // apply, reduce, scan: computed on integers of 64 bits, which wrap;
  // round: an integer, as the type holds it
  bool integers = false;
  std::vector<bool> varies;  // by axis: whether the value varies along it

  bool same(const Expr& other) const;  // equal in all but `varies`
  size_t hash() const;                 // equal for those that are the same
};

using Kind = Expr::Kind;

struct LoopNest {
  std::vector<int64_t> axes;  // sizes above 1: first those of the outputs, as the first output has
                              // them
  std::vector<Access> loads;
  std::vector<Expr> values;  // operands before users

  struct Output {
    int value = 0;
    Access place;
  };

  std::vector<Output> outputs;

  const Expr& value(int id) const { return values[static_cast<size_t>(id)]; }

  const Access& load_of(const Expr& value) const { return loads[static_cast<size_t>(value.load)]; }

  std::vector<bool> reduced() const;  // by axis: whether some reduction goes over it
  const Expr* scan() const;           // the first scan; null where there is none
  // The least and the greatest value of a coordinate.
  std::pair<int64_t, int64_t> range(const Affine& coordinate) const;
  // The largest magnitude of an integer value; infinite where nothing is known of it.
  double largest_magnitude(int value) const;
  // Whether a value is an integer that floats need not hold: an operand of integer arithmetic.
  bool is_integer_value(int value) const;
  bool has_integers() const;  // whether some value is computed on integers of 64 bits
  // Whether loops over the elements of an output would make a reduction of more than so many terms
  // again and again: what reads it is computed along an axis that the reduction does not vary
  // along, as a difference to a row's mean is.
  bool repeats_reductions(int64_t terms) const;
  // Whether a load should bypass the L1 cache of a GPU: its elements are used once, and the nest
  // hardly writes, or all that it moves fits in the L2. Beside as many writes DRAM serves loads
  // through the L1 faster, by 5 % (measured: docs/performance.md).
  bool bypasses_l1(const Access& load, int64_t l2_bytes) const;
};

// The normal form of a nest whose coordinates may lack trailing steps and whose values do not know
// along which axes they vary.
LoopNest normal_form(LoopNest nest);

// The largest number of operations that programs compute again rather than keep.
inline constexpr int kLargestCopy = 12;

// A value as an expression tree of type T, down to the values that `known` gives: in numbers, or as
// the tile language says it. A value with several users is expanded for each of them, so `known`
// must give what is large and shared: 60 steps of x = x·x + x are 3^60 operations as a tree.
template <class T, class Known, class Constant, class Apply>
T made_of(const LoopNest& nest, int id, const Known& known, const Constant& constant,
          const Apply& apply) {
  if (std::optional<T> found = known(id)) return *std::move(found);
  const Expr& value = nest.value(id);
  if (value.kind == Expr::Kind::constant) return constant(value.value);
  std::vector<T> operands;
  for (const int operand : value.operands)
    operands.push_back(made_of<T>(nest, operand, known, constant, apply));
  if (value.kind == Expr::Kind::round) return operands[0];
  return apply(value.op, std::move(operands));
}

// How much reading a graph took: the number of tensors read, each at coordinates of its own, and
// whether that came to the limit.
//
// A product reads its operands along an axis that nothing else has, a convolution reads beside
// itself. So what such an operator and others read is read at two places, and what that is made of
// at two for each. Ten blocks x = relu(conv(relu(conv(x))) + x), one behind another, read their
// first x at 2^10 places, and a kernel of all ten would compute it there. A graph that comes to the
// limit has no nests. Asking costs no more than the limit, which grows with the nodes alone.
struct ReadWork {
  int64_t places = 0;
  bool too_large = false;
};

// The nests that compute a graph of primitives, each writing outputs of its own or parts of them
// (the pieces of a Concat). None where an operator or a combination of operators has no such form,
// or one that is too large. `work`, where given, is added to.
std::vector<LoopNest> nests_of(const graph::Graph& primitive, ReadWork* work = nullptr);

// The types that emitted kernels load, store and compute with on every target: f32, bf16 and f16;
// and integers, as fp32 numbers where those hold them, as integers of 64 bits elsewhere.
inline bool is_computed_float(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16;
}

inline bool is_computed(Dtype dtype) {
  return is_computed_float(dtype) || is_integer(dtype);
}

// The neutral element of a reduction: 0, -inf, inf or 1.
double identity_of(ValueOp op);
// The tile language's name of a reduction; nothing for mul.
std::optional<tile::ReduceOp> reduce_op(ValueOp op);
}  // namespace warploom::loopnest
