// Nests: what a region of primitive operators computes, as loops over axes, without the operators.
//
// Every value of a region is a function of the indices along the nest's axes. A load is an element
// of a tensor, at coordinates that are affine in those indices; an operation is applied to other
// values at the same indices; a reduction combines a value over some of the axes; a scan combines
// it along one, each element with those before it. Transposes, slices, paddings, windows,
// broadcasts and reshapes are nothing but coordinates. A nest is in a normal form: axes of size 1
// are gone, neighbouring axes that all accesses and reductions treat alike are one, equal values
// are one, and what constants alone make is a constant. What of it is kept and what computed again
// is for builders of programs to say.
//
// Worked examples. y = softmax(x), x [8,128,1024]: an axis that is both reduced and written is one
// axis:
//
//   axes {1024, 1024}   loads 0: x [1024,1024] at {i0, i1}
//   values  0 load 0    1 reduce max of 0 over {1}    2 0 - 1    3 exp 2    4 reduce add of 3 over
//   {1}    5 3 / 4 outputs value 5 at {i0, i1}                          varies along {0}: 1 and 4;
//   along {0, 1}: 0, 2, 3, 5
//
// y = relu(conv(x, w)), x [1,16,32,32], w [24,16,3,3], strides 2, pads 1: the axes are the
// output's, then those of the sum:
//
//   axes {24, 16, 16, 16, 3, 3}  (co, p, q, ci, kh, kw)
//   loads   0: x at {ci, 2p + kh - 1, 2q + kw - 1}, not inside, fill 0     1: w at {co, ci, kh, kw}
//   values  0 load 0   1 load 1   2 0 · 1   3 reduce add of 2 over {3, 4, 5}   4 relu 3 outputs
//   value 4 at {i0, i1, i2}
#pragma once
#include "graph/pointwise.h"
#include "tile/program.h"

namespace warploom::loopnest {
inline size_t at(int64_t index) {
  return static_cast<size_t>(index);
}

// Axes are not merged beyond this, and longer ones cut where a power of two divides them:
// coordinates on a GPU are of 32 bits, and tiles go beyond the end.
inline constexpr int64_t kLongestAxis = (int64_t{1} << 31) - (int64_t{1} << 25);

// A coordinate: begin + Σ steps[a] · (index along axis a). Steps may be negative.
struct Affine {
  int64_t begin = 0;
  std::vector<int64_t> steps;  // one an axis of the nest
  friend auto operator<=>(const Affine&, const Affine&) = default;
};

inline bool steps_along(const Affine& coordinate,
                        const std::vector<size_t>& axes) {  // one of them
  return std::ranges::any_of(axes, [&](size_t axis) { return coordinate.steps[axis] != 0; });
}

// That which is `step` times the index along an axis, in a nest of so many.
inline Affine along(size_t axis, size_t axes, int64_t step = 1) {
  Affine out{0, std::vector<int64_t>(axes)};
  out.steps[axis] = step;
  return out;
}

// A tensor of the graph as the nest reads or writes it. Of its dimensions those that are never left
// (of an output: and begin at 0) are one for each axis that they vary along, in their order, and
// before them one of two elements (read at 1) where they do not begin at the tensor's first; the
// others follow as they are, without those of size 1.
struct Access {
  graph::TensorId tensor = graph::kAbsent;
  std::string name;
  Dtype dtype = Dtype::f32;
  // elements
  graph::Shape shape;
  graph::Shape strides;
  std::vector<Affine> at;  // one a dimension
  double fill = 0;         // of a load: what an element outside counts as
  bool inside = true;      // no coordinate ever leaves the shape
  // Gathered along dimension lookup_dim: its coordinate is what `lookup`, a tensor of integers,
  // holds at (flat) place at[lookup_dim], below 0 counted from the end. An index outside the
  // dimension counts as outside.
  graph::TensorInfo lookup = {};
  int lookup_dim = -1;

  bool uses(size_t axis) const;       // whether a coordinate steps along it
  int64_t stride(size_t axis) const;  // how many elements further the next one along it lies
  void erase(size_t dim);             // as if the tensor lacked the dimension
  // The dimension that steps along an axis; nothing where none does, or several do.
  std::optional<size_t> dim_of(size_t axis) const;
};

struct Expr {
  enum class Kind : uint8_t {
    constant,
    load,
    index,
    apply,
    round,
    reduce,
    scan
  } kind = Kind::constant;
  double value = 0;           // constant
  int load = 0;               // load: of LoopNest::loads
  Affine at;                  // index: this number
  ValueOp op = ValueOp::add;  // apply; reduce: add, max, min or mul; scan: add
  Dtype dtype = Dtype::f32;   // round: to this narrower type
  std::vector<int> operands;  // earlier values; of a reduction, a scan and of rounding one
  // reduce: over all of these axes, ascending, whether or not the operand varies along them; scan:
  // along one
  std::vector<int> axes;
  bool reverse = false;  // scan: of an element and those behind it, not before
  // apply, reduce, scan: computed on whole numbers of 64 bits, which wrap; round: whole, as the
  // type holds it.
  bool integers = false;
  std::vector<bool> varies;  // along which axes of the nest the value varies

  bool same(const Expr& other) const;  // but for what it varies along
  size_t hash() const;                 // equal for those that are the same
};

using Kind = Expr::Kind;
inline constexpr int kLargestCopy = 12;  // operations: what programs rather compute again than keep

struct LoopNest {
  std::vector<int64_t>
      axes;  // sizes, above 1; those of the outputs first, in the first output's order
  std::vector<Access> loads;
  std::vector<Expr> values;  // operands before users

  struct Output {
    int value = 0;
    Access place;
  };

  std::vector<Output> outputs;

  std::vector<bool> reduced() const;  // which axes some reduction goes over
  const Expr* scan() const;           // the first one; null where there is none
  std::pair<int64_t, int64_t> range(
      const Affine& coordinate) const;  // the least and the greatest it is
  double most(int value)
      const;  // the largest magnitude of an integer; infinite where nothing is known of it
  // Whether a value is a whole number that no float need hold: what operations on integers take.
  bool is_whole(int value) const;
  bool has_integers() const;  // some value is computed on whole numbers
  // Whether a load should leave a GPU's L1 cache alone: its elements are used once, and the nest
  // hardly writes or all that it moves fits in the L2. Beside as many writes DRAM serves loads by
  // way of the L1 faster, by 5 % (measured: docs/performance.md).
  bool passes_by(const Access& load, int64_t l2_bytes) const;
};

// Of a nest whose affine coordinates may lack trailing steps and whose values do not know along
// what they vary.
LoopNest normal_form(LoopNest nest);

// A value made of those that `known` gives: in numbers, or as the tile language says it. What
// several users share is made for each, and so whoever asks sees to it that `known` gives what is
// large and shared: 60 steps of x = x·x + x are 3^60 operations as a tree.
template <class T, class Known, class Constant, class Apply>
T made_of(const LoopNest& nest, int id, const Known& known, const Constant& constant,
          const Apply& apply) {
  if (std::optional<T> found = known(id)) return *std::move(found);
  const Expr& value = nest.values[at(id)];
  if (value.kind == Expr::Kind::constant) return constant(value.value);
  std::vector<T> operands;
  for (const int operand : value.operands)
    operands.push_back(made_of<T>(nest, operand, known, constant, apply));
  return value.kind == Expr::Kind::round ? operands[0] : apply(value.op, std::move(operands));
}

// What reading a graph took: so many values, each at coordinates of its own; and whether that came
// to its limit. A product reads its operands along an axis that nothing else has, a convolution
// beside itself: what such operators read and others as well is read at two places, and what it is
// made of at two for each. Ten blocks x = relu(conv(relu(conv(x))) + x), one behind another, read
// their first x at 2^10 places, and a kernel of all ten would compute it there. A graph that comes
// to the limit has no nests; asking costs no more than the limit, which grows with the nodes alone.
struct ReadWork {
  int64_t places = 0;
  bool too_large = false;
};

// The nests that compute a graph of primitives, each writing its own outputs or parts of them (the
// pieces of a Concat); none where an operator or a combination of them has no such form, or one
// that is too large. `work`, where given, is added to.
std::vector<LoopNest> nests_of(const graph::Graph& primitive, ReadWork* work = nullptr);

// What emitted kernels load, store and compute with everywhere: f32, bf16 or f16; and integers, as
// fp32 numbers where those hold them, as whole numbers of 64 bits elsewhere.
inline bool is_computed_float(Dtype dtype) {
  return dtype == Dtype::f32 || dtype == Dtype::bf16 || dtype == Dtype::f16;
}

inline bool is_computed(Dtype dtype) {
  return is_computed_float(dtype) || is_integer(dtype);
}

// What combines with a reduction's operation to nothing else: 0, -inf, inf, 1.
double identity_of(ValueOp op);
// The tile language's name of it; nothing for mul.
std::optional<tile::ReduceOp> reduce_op(ValueOp op);
}  // namespace warploom::loopnest
