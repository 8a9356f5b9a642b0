// What the GPU matmul families share: precision, the order of tiles, operands made ready, what
// follows the sum.
#pragma once
#include "kernels/kernel_builder.h"
#include "loopnest/contraction.h"

namespace warploom::kernels {
// How products are computed under a track. 16-bit inputs: their own type. fp32 inputs: tf32 once
// (tf32, tolerance tracks), or three products of two-part splits (fp32 track), of tf32 or of 16-bit
// floats (halves.h). 8-bit inputs, scaled: their own type.
struct Precision {
  Dtype operand = Dtype::bf16;  // of the matrix instruction
  int terms = 1;

  bool halves() const { return operand == Dtype::f16 && terms > 1; }

  // Whether the threads add up the sums of one slot each: tensor cores truncate as they add, an
  // error that grows with k, and keep 14 bits of a sum of 8-bit floats.
  bool promotes() const { return terms > 1 || (is_float(operand) && bits_of(operand) == 8); }

  Dtype accumulator() const { return is_float(operand) ? Dtype::f32 : Dtype::i32; }
};

std::optional<Precision> precision_of(Dtype a, Dtype b, Track track, bool halves = false);

// Whether to compute what reduces rows of the result in the product's kernel, which holds rows of
// at most `columns`: where there are enough of them for a good part of the GPU, and the sums are
// short. Going over the result once more takes as long as some 400 terms of the sum do (measured on
// an H200), and tiles that hold rows whole multiply a sixth slower.
bool fuses_rows(const Contraction& contraction, const Precision& precision, int64_t columns,
                const Capabilities& capabilities);

// The order in which the tiles of a contraction's result are computed. Tiles of `group`
// neighbouring rows of tiles are taken together, column by column, so that blocks which run at the
// same time share operands in the L2 cache. The blocks of a cluster take tiles below each other, or
// all those of a row `beside` each other, and count as one.
struct TileScheduler {
  const Contraction& c;
  TileCoord tile;
  int64_t group;
  int64_t cluster = 1;
  int64_t beside = 1;
  const int64_t tiles_m = ceil_div(tile.count(c.nest, c.m), cluster);
  const int64_t tiles_n = tile.count(c.nest, c.n) / beside;
  const int64_t batch = tile.count(c.nest, c.batch);

  int64_t count() const { return tiles_m * tiles_n * batch; }

  TileCoord at(const Index& number) const;  // the tile where it lies
};

// Of `count` tiles the one that a persistent block takes in a turn, blocks taking every
// `workers`-th turn: in one turn from the front of the order, in its next as far from the back, the
// same tile mirrored at the middle of the result. Of a triangle both have as much to sum as any
// other two.
Index from_both_ends(const Index& turn, int64_t count, int64_t workers);

// The axes of the sum in the order in which slots take its terms, slowest first: through the window
// at one set of channels after another.
std::vector<size_t> slot_axes(const Contraction& contraction);

// Whether it is read or written from the first element of its tensor on, each dimension along an
// axis.
bool is_whole(const Access& access);
// Whether what follows the sum, and the output, are such tensors of floats.
bool stores_whole(const Contraction& contraction);

// A tensor in other order, or padded, in workspaces that a program of its own writes; rounded to
// tf32, `low` being what rounding lost where there are three terms. Halves: `most`, the largest
// magnitude of each row, is measured before.
struct Prepared {
  Access high;
  Access low;
  Access most = {};
};

struct OperandPacking {
  Family::Programs& out;
  std::string name;  // of the operand
  Precision precision;
  const Capabilities& capabilities;

  // Element i along the new tensor's dimensions is the one at i + begin of `from`, a coordinate
  // each, 0 where that has none. Elements of a row lie along the dimensions `over`.
  Prepared relaid(const Access& from, const std::vector<int64_t>& begin,
                  const std::vector<size_t>& over, const Access& made, int64_t elements) const;
  // The same by an access of `from` and one of the new tensor, in a nest of these axes; `across` of
  // a tile's elements along the last.
  Prepared written(const std::vector<int64_t>& axes, const std::vector<size_t>& over,
                   const Access& from, const Access& made, int64_t elements, int64_t across) const;
  // One element after another along k, or for types of 16 bits along rows where it is so already,
  // all else in steps of 16 bytes.
  Prepared laid_anew(const Access& from, size_t row, size_t k, bool along_k) const;
  // The same for a kernel fed by the copy engine: where that can read the operand as it is, nothing
  // is written.
  Prepared for_copies(const Access& from, size_t row, size_t k) const;
};

// Divides the sums of halves by the units of their rows and columns; axes and rows as below.
void scale_back(KernelBuilder& draft, const Contraction& contraction, TensorId acc,
                std::initializer_list<const Access*> most, const TileCoord& tile,
                const std::vector<size_t>& axes, size_t rows = 1);

// The contraction with zeros written, by programs of their own, where factors count as 0.
Contraction filled(Family::Programs& out, Contraction contraction,
                   const Capabilities& capabilities);
// Loads the scales of the blocks that a slot's products are of. `axes` and `rows` as below; sets of
// registers differ by their name.
std::vector<TensorId> load_scales(KernelBuilder& draft, const Contraction& contraction,
                                  const TileCoord& slot, const std::vector<size_t>& axes,
                                  size_t rows = 1, const std::string& set = "");
// `acc` with the sum of a slot's products added, times their scales.
Value promoted(KernelBuilder& draft, TensorId acc, TensorId part,
               const std::vector<TensorId>& scales);

// Computes what follows the sum, for the accumulators of a tile, and stores the result. `axes`:
// those that rows follow, `rows` of them, then those of columns. Through `staging`, a shared
// tensor, where there is one. What reduces rows finds them whole in the tile, or in those of the
// `blocks` of a cluster.
void store(KernelBuilder& draft, const Contraction& contraction, TensorId acc,
           const TileCoord& tile, const std::vector<size_t>& axes, size_t rows = 1,
           TensorId staging = -1, int64_t blocks = 1);
}  // namespace warploom::kernels
