// What the host tells each kernel of the oracle on a GPU (verify/truth_engine.cpp includes this
// file, too): a record of 8-byte fields. Addresses are numbers; places, strides and counts are in
// elements.
typedef long long Word;

enum {
  kMostAxes = 8,
  kMostInputs = 16,
  kMostTerms = 128,
  kMostSlots = 48,
};

// Where elements lie: bytes of an element type (by its place in base/dtype.def), or what a kernel
// made: doubles with their magnitudes beside them, or whole numbers of 64 bits.
struct Numbers {
  Word data;
  Word magnitude;  // 0: all are 0
  Word type;
};

// The element at x_0, x_1, .. is at origin + sum of x_a * stride_a.
struct Strided {
  Numbers of;
  Word origin;
  Word strides[kMostAxes];
};

struct Box {
  Word axes;
  Word count;  // of all elements
  Word size[kMostAxes];
};

// One term of an expression: an input, a constant or an operation (by its place in
// base/value_ops.def) on slots, into a slot.
struct Term {
  Word kind;  // 0: input `op`; 1: `value`; 2: operation `op`
  Word op;
  Word slot;
  Word arity;
  Word args[3];
  double value;
};

struct PointwiseTask {
  Box box;
  Numbers to;
  Word inputs;
  Strided input[kMostInputs];
  Word terms;
  Term term[kMostTerms];
  Word power;
  Word integers;
  Word wraps;
  Word rounds;
  Word saturates;
  Word type;
  Word drops_nan;
};

struct CopyTask {
  Box box;
  Strided from;  // data 0: `value` or `whole`
  Strided to;
  double value;
  Word whole;
  Word is_whole;
};

struct GatherTask {
  Box box;
  Strided from;
  Strided index;
  Word stride;
  Word extent;
  Numbers to;
  Word is_whole;
};

// Outputs of a box, each of `terms` elements, which lie as `taps` says. With several parts an
// output's terms are shared among so many, whose results follow one another.
struct ReduceTask {
  Box box;
  Strided from;
  Box taps;
  Word steps[kMostAxes];
  Word op;
  double start;
  Word start_whole;
  Word type;
  Word drops_nan;
  Word is_whole;
  Word parts;
  Numbers to;
};

struct ScanTask {
  Box box;
  Strided from;
  Strided to;
  Word extent;
  Word begin;
  Word count;
  Word from_stride;
  Word to_stride;
  Word reverse;
  Word type;
  Word is_whole;
};

// Line, depth and place of a batch: in a table, or `step` apart where there is none.
struct Places {
  Word table;
  Word step;
};

struct ProductSide {
  Numbers of;
  Places lines;
  Places depths;
  Places batch;
};

// c[b] = a[b] * b[b]; with several parts each sums a part of k, and their results follow one
// another, `part_step` apart.
struct ProductTask {
  Word m;
  Word n;
  Word k;
  Word batch;
  Word parts;
  Word part_step;
  ProductSide a;
  ProductSide b;
  Places c;
  Numbers to;
  Word type;
};

// Parts of a product, or of a reduction, as one.
struct MergeTask {
  Word count;  // results
  Word parts;
  Word part_step;    // from a result's part to its next
  Word result_step;  // from a result to the next
  Word op;
  Word drops_nan;
  Numbers from;
  Numbers to;
};

// Gives numbers beyond their type a magnitude of NaN, and says in `found` that there are some.
struct MarkTask {
  Numbers of;
  Word count;
  Word type;
  Word stored;  // values are stored in the type
  Word sums;    // magnitudes are of sums in fp32
  Word found;
};

// Whether some value is NaN, into `found`.
struct NanTask {
  Numbers of;
  Word count;
  Word found;
};

// What verify/tolerance.h's Comparison holds, of the elements of a block.
struct Seen {
  double error_squares;
  double reference_squares;
  double reference_fourths;
  double magnitude_squares;
  double magnitude_fourths;
  double largest_error;
  double largest_reference;
  double worst_ratio;
  double worst_found;
  double worst_expected;
  Word worst_index;
  Word compared;
  Word undetermined;
  Word counts[4];  // not finite, unwritten, lost NaN, lost infinity
  Word firsts[4];
  Word has_number;      // some element is not 0
  Word expects_number;  // some reference is larger than a step
  Word beyond;
};

struct CompareTask {
  Word found;  // packed elements of `type`
  Word type;
  Numbers truth;
  Numbers without_nan;  // data 0: the same
  Word mixed;
  Word marked;
  Word begin;  // the first one's number in the whole output
  Word count;
  Word is_whole;
  double per_magnitude;
  double relative;
  double absolute;
  double largest;
  double step;
  Word poison;
  Word seen;  // one Seen a block
};

// Whether bytes differ, into `found`; or those of `a` moved to `b`.
struct BytesTask {
  Word a;
  Word b;
  Word bytes;
  Word found;
};

// The sum of a hash of each 8 bytes, into `hash`.
struct HashTask {
  Word data;
  Word bytes;
  Word hash;
};

// Elements [begin, begin + count) of a stream (verify/inputs.h).
struct DrawTask {
  Word to;
  Word type;
  Word begin;
  Word count;
  Word state;     // of a block's keys, less what the block adds
  Word shape;     // of the family
  Word elements;  // of the tensor
  Word is_whole;  // integers of a type's whole range
  Word to_ends;   // a lattice's ends, every other one
  Word shift;
  Word outlier;
  double deviation;  // held by an fp32
  double largest;    // of the outlier that is assured; 0: none
  double scale;
  double low;  // of a lattice
  double step;
  double numbers;
  double least;  // what is beyond is folded at it
  double most;
  Word nonzero;
  Word rare;
  Word only_negative;
  Word without_least;
  Word without_zeros;
  Word row;       // elements along the last axis
  Word rows_key;  // of the numbers of level rows
  double span;    // held by an fp32
  Word ends;      // fp32
  Word end_count;
};
