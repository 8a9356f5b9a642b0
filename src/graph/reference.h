// The FP64 reference: what a graph's outputs are, so that everything else can be checked against
// it.
//
// What is evaluated is the decomposed graph (graph.h); many calls for one graph had better pass
// that. Inputs are packed bytes in their own element types, in the graph's order; outputs are
// doubles. All in between is FP64 and rounded nowhere, except that Cast rounds to its target (that
// is its meaning). Integers are whole numbers of 64 bits that wrap as their type does, never
// doubles: 2^53 + 1 is what it is.
//
// Rows. A whole output can be too large to hold in FP64 (a 13 GB softmax) or to compute (a big
// matmul), so rows_of() cuts it into equal rows over as many leading axes as the graph allows:
// [16,1024,768] from a MatMul is 16384 rows of 768 elements; a Softmax over the middle axis of it
// is 16 rows of 1024·768. evaluate_magnitude_rows() is right for every graph; where rows are not
// independent (x·(y·z): each row needs all of y·z) it repeats work and evaluate() is the better
// call. Inputs are read in place; only what the rows need is ever expanded to doubles.
//
// Magnitude. Next to a value v, evaluate_magnitude_rows() gives E, a bound of the first order on
// how far rounding can move it: plain evaluation in a type of unit roundoff u errs by at most about
// c·u·E, where c grows with the length of the sums (1 for one operation; k for k terms in sequence,
// log2 k in a tree); where numbers underflow, the smallest normal one is added:
//
//   inputs and constants   E = 0 (they are given)
//   MatMul, Conv           E = Σ|a||b| + Σ(|a| E_b + E_a |b|): for one MatMul, |A|·|B|
//   ReduceSum, SumPool     E = Σ(|x| + E_x)
//   ReduceMax, MaxPool …   the largest E_x
//   ReduceProd             as of its multiplications in sequence
//   CumSum                 E of an element = Σ(|x| + E_x) of those that it sums
//   pointwise operators    E = |value| + Σ |∂term/∂arg| E_arg of each term of the expression
//                          (pointwise.h)
//   views and movement     E moves with the element
//
// An infinite value has the E of its infinite arguments, 0 if they are given: a mask of -inf does
// not move.
//
// Where every operator works element by element, or where it is asked for (EvalOptions::marks), a
// number on the way that is more than its tensor's type holds makes E a NaN for the elements that
// come of it; elsewhere the whole part is said to have overflowed.
#pragma once
#include <functional>
#include <span>
#include "graph/graph.h"

namespace warploom::graph {
using Bytes = std::span<const std::byte>;

// FP64 matrix products of operands of any element type and layout: c[b] += a[b]·b[b] for each b of
// a batch, and the same of absolute values. The reference spends nearly all of its time on them, so
// a GPU may take them over (ProductEngine).

// A line is a row of a or a column of b, depth runs along k; an element is at lines[i] + depths[k].
struct Operand {
  const void* data;
  Dtype dtype;
  const int64_t* lines;
  const int64_t* depths;
};

struct Offsets {  // of one product of a batch, in elements
  int64_t a;
  int64_t b;
  int64_t c;
};

struct Product {
  Operand a;
  Operand b;
  int64_t m;
  int64_t n;
  int64_t k;
  std::vector<Offsets> batch = {};
};

// Adds a·b to `value` and |a|·|b| to `magnitude`, row-major with rows of n elements, where they are
// not null; or leaves them as they are, and says false.
using ProductEngine = std::function<bool(const Product& product, double* value, double* magnitude)>;

struct EvalOptions {
  EvalOptions(int own = 0) : threads(own) {}

  int threads;             // 0: one a core
  ProductEngine products;  // asked first, where there is one
  bool magnitudes = true;  // beside the values
  // Of a NaN and a number max, min, relu and the reductions of that kind take the number, as C's
  // fmax.
  bool drops_nan = false;
  bool marks = false;  // elements that come of a number beyond its type, whatever the operators
};

// By the engine or else here: blocked, packed into panels for the widest vectors the processor has,
// on several threads. Every element is summed in the same order whatever the number of threads:
// blocks of 256 along k, in sequence.
void multiply_add(const Product& product, double* value, double* magnitude,
                  const EvalOptions& options);

struct OutputRows {
  int64_t count = 1;        // rows of the output
  int64_t elements = 1;     // elements of a row; count * elements is the whole output
  bool independent = true;  // a row costs no more than its share of the whole
  size_t axes = 0;          // leading axes of the output that are cut
};

// Output `output` (index into graph.outputs) cut into rows.
OutputRows rows_of(const Graph& graph, int output = 0);

// Elements of a tensor, by their flat indices.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// What rows [begin, end) of an output are computed from: of each of the graph's inputs, in order,
// one range that holds all that evaluate_magnitude_rows() reads of it. Of a softmax over rows it is
// those rows; of a matmul rows of a, and all of b.
Result<std::vector<ElementRange>> inputs_of_rows(const Graph& graph, int output, int64_t begin,
                                                 int64_t end);

struct ValueAndMagnitude {
  std::vector<double> value;
  std::vector<double> magnitude;
  std::vector<int64_t> integers;  // of an output of integers: the values, exactly
  bool overflowed = false;        // a number on the way here is larger than its tensor's type holds
  bool marked = false;            // and the elements of which that is so have a magnitude of NaN
};

// Every output whole, without magnitudes.
Result<std::vector<ValueAndMagnitude>> evaluate_exactly(const Graph& graph,
                                                        std::span<const Bytes> inputs,
                                                        EvalOptions options = {});

// The values of that. `inputs[i]` holds the bytes of graph.inputs[i].
Result<std::vector<std::vector<double>>> evaluate(const Graph& graph, std::span<const Bytes> inputs,
                                                  EvalOptions options = {});

// Rows [begin, end) of one output, (end - begin) * rows_of().elements doubles; of magnitudes none
// where they are not wanted.
Result<ValueAndMagnitude> evaluate_magnitude_rows(const Graph& graph, std::span<const Bytes> inputs,
                                                  int output, int64_t begin, int64_t end,
                                                  const EvalOptions& options = {});
}  // namespace warploom::graph
