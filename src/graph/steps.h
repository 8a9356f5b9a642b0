// Steps: what the FP64 reference (reference.h) does for rows of an output, as a list that something
// else than this machine's cores can carry out: a GPU (verify/truth_engine.h).
//
// A step makes one storage from others. A storage is a tensor that is given (an input's or a
// constant's bytes), or elements that a step makes: doubles with their magnitudes, or whole numbers
// of 64 bits for a tensor of integers. Views, transposes, slices and broadcasts are no steps: they
// change only where a step reads.
//
// Worked example, y = softmax(x), x [8,128] f32, rows 2 and 3 of y:
//
//   storage 0  x, given
//   step 0     Reduce  max over 128 of storage 0 from 256 on, stride 128 a row  → storage 1, [2]
//   step 1     Pointwise  input 0 - input 1: storage 0 (strides 128, 1) and 1 (1, 0) → 2, [2,128]
//   step 2     Pointwise  exp of storage 2                                       → 3
//   step 3     Reduce  add over 128 of storage 3                                 → 4, [2]
//   step 4     Pointwise  input 0 / input 1: storages 3 and 4                    → 5, the result
//
// Units: places, strides and counts are in elements.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/pointwise.h"
#include "graph/reference.h"

namespace warploom::graph {
struct StepStorage {
  TensorId given = kAbsent;  // whose bytes it is; kAbsent: a step makes it
  Dtype dtype = Dtype::f64;  // of its elements: of what is made f64 or i64
  int64_t elements = 0;
  bool is_exact = false;  // no magnitudes: all are 0
  size_t last_use = 0;    // the last step that reads it; of the result one more than there are
};

// Where a step reads or writes: the element at x_0, x_1, .. along the axes of its box is at origin
// + Σ x_a · stride_a.
struct StepView {
  int storage = -1;
  int64_t origin = 0;
  std::vector<int64_t> strides;
};

// Elementwise, by the expression of an operator (pointwise.h); the result is packed.
struct PointwiseStep {
  Shape size;
  std::vector<std::optional<StepView>> inputs;
  Expression expression;
  bool power = false;     // the value is input 0 to the power of input 1
  bool integers = false;  // whole numbers from whole numbers
  // Storing wraps the result to an integer type, or rounds it to `dtype`; saturates: to the largest
  // number rather than to infinity.
  bool wraps = false;
  bool rounds = false;
  bool saturates = false;
};

// Elements copied to where a view says; without a view to copy from, a number.
struct CopyStep {
  Shape size;
  std::optional<StepView> from;
  StepView to;
  double value = 0;   // of floats
  int64_t whole = 0;  // of integers
};

// Elements of `from`, `stride` · an index further on; an index below 0 counts from `extent`, one
// beyond it is the nearest that there is.
struct GatherStep {
  Shape size;
  StepView from;
  StepView index;
  int64_t stride = 0;
  int64_t extent = 0;
};

// Each element of the result, which is packed, combines so many elements along each of some axes.
struct ReduceStep {
  Shape size;
  StepView from;
  ValueOp op = ValueOp::add;  // add, mul, max, min
  Shape taps;
  std::vector<int64_t> steps;
  double start = 0;
  int64_t start_whole = 0;
};

// Prefix sums of lines: the boxes' elements are the lines, whose numbers [begin, begin + count) are
// wanted of `extent`.
struct ScanStep {
  Shape size;
  StepView from;  // the line's first element
  StepView to;    // the first that is wanted
  int64_t extent = 0;
  int64_t begin = 0;
  int64_t count = 0;
  int64_t from_stride = 0;
  int64_t to_stride = 0;
  bool reverse = false;
};

// c[b] = a[b]·b[b], as Product (reference.h) has it; c is row-major with rows of n elements.
struct ProductStep {
  struct Side {
    int storage = -1;
    std::vector<int64_t> lines;
    std::vector<int64_t> depths;
  };

  Side a;
  Side b;
  std::vector<Offsets> batch;
};

using StepWork =
    std::variant<PointwiseStep, CopyStep, GatherStep, ReduceStep, ScanStep, ProductStep>;

struct Step {
  StepWork work;
  int to = -1;               // the storage it writes
  Dtype dtype = Dtype::f64;  // of the tensor of which that is a part
  // Whether numbers beyond a type are looked for in what it wrote, where that is asked for: those
  // beyond `dtype`, but for the output that is wanted; and beyond fp32 those summed.
  bool marks = false;
  bool is_last = false;
  bool sums = false;
};

// The result is storage `result`, packed.
struct Steps {
  std::vector<StepStorage> storages;
  std::vector<Step> steps;
  int result = -1;
};

// Rows [begin, end) of an output of a primitive graph, as rows_of() cuts it: one list for each box
// of neighbouring elements, in order.
Result<std::vector<Steps>> steps_for(const Graph& primitive, int output, int64_t begin,
                                     int64_t end);

// Whether no operator combines elements of one tensor: then the reference marks those that come of
// a number beyond its type, without being asked (reference.h, Magnitude).
bool is_by_element(const Graph& primitive);
}  // namespace warploom::graph
