// CpuProduct: a contraction on a CPU, by register tiles.
//
// A task computes some rows of tiles of some columns of tiles. Of each column of tiles it goes
// through blocks of k, and of each block through its rows:
//
//   for column tile j:  for block of k:  b ← B[k, j], if tasks pack it
//     for row tile i:  part = A[i, k] · b, in registers; plus what the blocks before have summed
//       the last block: what follows the sum, and the result; else: kept in scratch memory
//
// What reduces rows of the result, a norm or a softmax, finds them whole in scratch memory, behind
// all columns.
//
// Tiles lie side by side but for the last one of rows and of columns, which is moved back to end
// where the tensor does: what it computes again is the same. (Where one task has all columns, the
// last of them are a narrower tile instead.) So no tile is partly outside, and operands can be read
// in place. Blocks of k are summed apart (promotion.h). Packed operands:
//
//   A, by a program: rows at a pitch that is no multiple of what caches and pages fold
//   B: [panel, k, tile_n], a panel for each column of tiles, one row behind another
//
// Dot products (`instruction`) take pairs of terms: rows of A whose terms are neighbours, and of B
// [panel, k / 2, 2, tile_n], where the two rows of a pair are neighbours, element by element. Both
// are bf16; or whole numbers of 16 bits, which numbers of 8 bits are less their zero points. Of an
// odd number of terms A is packed as well, and the last pair of both has a zero. Tiles take the
// same, 32 terms at a time: where their number is no multiple of that, zeros fill up both.
#pragma once
#include <optional>
#include <string>
#include <vector>
#include "kernels/config/configs.h"
#include "kernels/kernel_builder.h"
#include "loopnest/contraction.h"
#include "loopnest/whole_product.h"
#include "target/cpu_tiles.h"

namespace warploom::kernels {
// Where the tiles along an axis are: so many, `per_task` of them a task's.
struct TileLine {
  int64_t size = 1;  // elements of the axis
  int64_t tile = 1;  // elements of a tile
  int64_t per_task = 1;

  TileLine() = default;

  TileLine(int64_t elements, int64_t of_tile, int64_t tasks)
      : size(elements), tile(of_tile), per_task(ceil_div(count(), tasks)) {}

  int64_t count() const { return ceil_div(size, tile); }

  int64_t tasks() const { return ceil_div(count(), per_task); }

  // The first tile of a task, where the last task begins early enough to be whole.
  Index first(const Index& task) const;
  // The first element of a tile.
  Index origin(const Index& number) const;
};

// Terms of a sum that an instruction takes at once.
constexpr int64_t terms_of_step(CpuInstruction instruction) {
  switch (instruction) {
    case CpuInstruction::fma: return 1;
    case CpuInstruction::dot: return 2;
    case CpuInstruction::tile: return target::CpuTiles::kTerms;
  }
  return 1;
}

class CpuProduct {
 public:
  // The contraction and the zero points outlive it. `lanes`: floats of a vector. `zero_points`: of
  // products of whole numbers.
  CpuProduct(const Contraction& contraction, const MatmulCpuConfig& s, int64_t lanes,
             const loopnest::ZeroPoints* zero_points = nullptr);

  // The kernel, behind the programs that pack its operands.
  void add_to(Family::Programs& out);

  int64_t tasks() const;

  // Blocks of k, and terms of one; the last has what is left.
  int64_t blocks() const { return ceil_div(depth_of_sum(), depth_); }

  // Whether the last column of tiles is narrower than the others.
  bool has_narrow_end() const;
  // Of a task, in scratch memory.
  int64_t scratch_floats() const;

 private:
  // An operand as the kernel reads it: in the tensor, or packed, with a dimension more for the
  // axes that are neither rows, columns nor k.
  struct Packed {
    TensorId tensor = -1;
    std::vector<size_t> outer;
  };

  bool takes_pairs() const { return s_.instruction != CpuInstruction::fma; }

  // Terms; with the zeros that make the last step of an instruction whole.
  int64_t depth_of_sum() const { return round_up(c_.nest.axes[k_], terms_of_step(s_.instruction)); }

  // A block of k.
  int64_t depth_of_block() const {
    const int64_t depth = depth_of_sum();
    return round_up(ceil_div(depth, ceil_div(depth, s_.block_k)), terms_of_step(s_.instruction));
  }

  Dtype packed_type() const {
    if (zero_points_) return Dtype::i16;
    return takes_pairs() ? Dtype::bf16 : Dtype::f32;
  }

  Dtype sum_type() const { return zero_points_ ? Dtype::i32 : Dtype::f32; }

  std::vector<size_t> outer_axes(const Access& access) const;
  Index place_along(const std::vector<size_t>& axes, const TileCoord& at) const;
  int64_t count_along(const std::vector<size_t>& axes) const;
  void pack_rows(Family::Programs& out);
  void pack_panels(Family::Programs& out);
  void pack_pairs(Family::Programs& out);
  void subtract_zero_point(KernelBuilder& draft, TensorId held, size_t load, const TileCoord& at,
                           const std::vector<size_t>& order) const;
  void go_to_task();
  void begin_width(int64_t width, const std::string& suffix);
  void column(const Index& number, const Index& origin);
  void block(const Index& number, const Index& k, int64_t depth, bool last);

  // Whether what follows the sum needs whole rows of it.
  bool holds_rows() const { return !c_.reductions.empty(); }

  void finish_rows();
  tile::Tile kept(const Index& row) const;
  void take_over(const Index& row, const Index& number);
  void add_before(const Index& row, const Index& number);
  void multiply(const Index& k, int64_t depth);
  tile::Tile rows_of_a(const Index& k, int64_t depth) const;
  tile::Tile panel_of_b(const Index& k, int64_t depth) const;

  const Contraction& c_;
  const LoopNest& nest_;
  MatmulCpuConfig s_;
  int64_t lanes_;
  const loopnest::ZeroPoints* zero_points_;
  size_t k_;
  int64_t depth_;
  TileLine rows_;
  TileLine columns_;
  std::vector<size_t> result_;  // axes of a tile
  std::vector<size_t> walked_;  // axes of one element a task
  KernelBuilder draft_{"matmul"};
  tile::Builder& t_ = draft_.b;
  TileCoord here_;
  std::optional<TensorTile> global_a_;
  std::optional<TensorTile> global_b_;
  Packed a_;
  Packed b_;
  Index panel_ = 0;    // the number of the column of tiles
  int64_t width_ = 0;  // of its tiles
  Index first_row_ = 0;
  Index first_panel_ = 0;
  TensorId scratch_b_ = -1;
  TensorId part_ = -1;
  TensorId sums_ = -1;
};
}  // namespace warploom::kernels
