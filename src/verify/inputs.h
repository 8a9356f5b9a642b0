// Inputs: seeded tensors from several families, any slice of which can be made again.
//
// Element i of a tensor is a function of (seed, tensor number, family, i) alone, a counter-based
// generator: slices need no state, threads share nothing, and 13 GB of fp32 take seconds. Every
// value is one integer times one constant, rounded once to fp32 and once more to the tensor's type,
// so all machines and vector widths agree to the bit.
//
//   Stream stream{seed, 0, InputFamily::normal, Dtype::bf16};
//   fill(stream, buffer, 0, count);                  // the whole tensor
//   fill(stream, row, 7 * columns, columns);         // the same bytes as row 7 of it
//
// The bell is the sum of four 16-bit uniforms: deviation 1, cut at ±3.46. Numbers follow what they
// mean (graph/ranges.h): an index is uniform on all that its axis has, counted from either end, and
// so is whatever else has two ends; of what has one, such as a variance, the bell is folded at it.
// Other integers are uniform on [-8, 8), in the family whole_range half of them on all that the
// type has and half at its ends, beside 0 and at powers of two; booleans are fair. Every tensor has
// an outlier in the family of that name, and in those of infinities and NaN one of the inputs that
// may hold them (coverage.h) has one in four rows.
#pragma once
#include "graph/ranges.h"

namespace warploom::verify {
enum class InputFamily : uint8_t {
#define WARPLOOM_INPUT_FAMILY(name, ...) name,
#include "verify/input_families.def"
};
std::string_view name_of(InputFamily family);
const std::vector<InputFamily>& input_families();
// Whether numbers are so far apart, or no numbers at all, that norms and sums of outputs say
// nothing: elements are compared with FP64 alone.
bool is_wide(InputFamily family);

struct Stream {
  uint64_t seed = 1;
  int tensor = 0;  // its place among the inputs
  InputFamily family = InputFamily::normal;
  Dtype dtype = Dtype::f32;
  graph::Range range = {};       // what the numbers may be
  double scale = 1;              // a power of two, of floats without ends
  std::vector<float> ends = {};  // of the family of that name
  int64_t elements = 0;          // of the tensor
  int64_t rare = 0;              // of so many elements one is infinite or NaN; 0: none
  bool only_negative = false;    // of infinities
  bool without_least = false;    // of integers: not the least that the type has
  bool without_zeros = false;    // of ties, and of level rows
  int64_t row = 0;               // elements along the last axis; 0: all are one row
};

// Writes elements [begin, begin + count) to `out` on `threads` threads (0: one a core).
void fill(const Stream& stream, void* out, int64_t begin, int64_t count, int threads = 0);

// The numbers that an input of a range is drawn from, where these are so many: low, low + step, ..
struct Lattice {
  double low = 0;
  double step = 1;
  double count = 0;  // 0: it has fewer than two ends, and is no integer

  double high() const { return low + (count - 1) * step; }
};

// A stream in the numbers that a kernel draws it by (resources/truth/draw.cu), but for what the
// stream says itself.
struct Drawing {
  int shape = 0;          // of input_shapes.def, by its place
  Lattice lattice = {};   // where its count is not 0 numbers are drawn from it
  uint64_t state = 0;     // of a block's keys, before what the block adds
  bool is_whole = false;  // integers of a type's whole range
  bool to_ends = false;   // every other number of a lattice at an end of it, or beside
  int shift = 0;          // of a bell: its middle, in its own steps
  int outlier = 1;        // how many times as large an outlier is
  float deviation = 1;    // what a step of the bell is
  float assured = 0;      // the one outlier that a small tensor has; 0: none
  float span = 0;         // of the shape of that name: its ends
  uint32_t rows_key = 0;  // of the numbers of level rows
};

Drawing drawing_of(const Stream& stream);

// The power of two nearest to what makes a product of `terms` such weights as large as what they
// are multiplied with: 1/(√terms·deviation
// + terms·|mean|); 1 for one term, and for types of too few digits to be scaled.
double weight_scale(int64_t terms, double mean, double deviation, Dtype dtype);

Lattice lattice_of(Dtype dtype, const graph::Range& range);

// The streams of the graph's inputs, by their roles and by their ranges, of which `known` says what
// the graph does not. Weights of networks are drawn to their scale: else what becomes of them
// leaves the type's range some layers down, where no kernel can be right.
std::vector<Stream> streams_of(const graph::Graph& graph, InputFamily family, uint64_t seed,
                               const graph::Ranges& known = {});
}  // namespace warploom::verify
