// Where the elements of the FP64 reference's tensors lie, and runs of them read as doubles or as
// whole numbers. Private to the room.
//
// Worked example: x [4,6] f32, an input, is a View of its bytes with origin 0 and strides {6, 1}.
// x[1:, ::2] transposed is the same bytes with origin 6 and strides {2, 6}: no element moves.
#pragma once
#include <boost/core/noinit_adaptor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>
#include "base/dtype.h"
#include "graph/evaluator.h"
#include "graph/graph.h"

namespace warploom::graph {
// An allocator that leaves numbers as memory has them, so that the threads that compute them are
// the first to touch its pages.
template <class T> using Unset = boost::noinit_adaptor<std::allocator<T>>;
using UnsetDoubles = std::vector<double, Unset<double>>;

// The elements of a box of a tensor that was computed: doubles with their magnitudes, or whole
// numbers for a tensor of integers, which are exact.
struct Storage {
  UnsetDoubles value;
  UnsetDoubles magnitude;  // empty where none are wanted
  std::vector<int64_t, Unset<int64_t>> integers;
  bool is_whole = false;  // `integers` holds the elements

  double* error(int64_t at) { return magnitude.empty() ? nullptr : magnitude.data() + at; }

  void fill(double with);
};

// A tensor, or an operand in an output's coordinates: element x (coordinates in the whole tensor)
// is at origin + Σ x_a · stride_a. Transposes, slices, broadcasts and most reshapes change these
// numbers only; inputs and constants are read in place.
struct View {
  const void* data = nullptr;
  Dtype dtype = Dtype::f64;
  const double* magnitude = nullptr;  // at the same addresses; null: all zero
  std::shared_ptr<Storage> owner;     // null: bytes of an input or a constant
  int64_t origin = 0;
  std::vector<int64_t> strides;

  int64_t last_stride() const { return strides.empty() ? 0 : strides.back(); }
};

// What is read outside a tensor.
struct Fill {
  double value = 0;
  double error = 0;
  int64_t whole = 0;  // where integers are stored
};

// Where a box's elements are when it is stored packed, in row-major order.
View packed(const Box& box, const std::shared_ptr<Storage>& in = {});

int64_t address(const View& view, const Shape& at);

// `count` elements that are `stride` apart, from address `offset` on: values and, where `magnitude`
// is not null, magnitudes.
void load(const View& view, int64_t offset, int64_t stride, int64_t count, double* to,
          double* magnitude);
// The same along the last axis, from coordinates `at` on.
void load(const View& view, const Shape& at, int64_t count, double* to, double* magnitude);

// The same as whole numbers: exact of integers, truncated and saturated of floats.
void load(const View& view, int64_t offset, int64_t stride, int64_t count, int64_t* to);
void load(const View& view, const Shape& at, int64_t count, int64_t* to);
int64_t load_whole(Dtype dtype, const void* data, int64_t place);

inline constexpr int64_t kRun = 4096;  // most elements of a run

// Calls body(first, count, coordinates), in parallel, for runs of at most kRun elements along the
// last axis that together make up the box. `coordinates` are a run's first element's, `first` is
// that element's place in the packed box.
using RunBody = std::function<void(int64_t first, int64_t count, const Shape& coordinates)>;
void for_runs(const Box& box, int threads, const RunBody& body);

// The address of each element of a box of `sizes`, in row-major order.
std::vector<int64_t> offsets(const Shape& sizes, const std::vector<int64_t>& strides);
}  // namespace warploom::graph
