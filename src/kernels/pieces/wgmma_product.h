// What the wgmma families multiply, and what follows from a config for it: its sides, tiles,
// stages, accumulators; and the constraints of the kernel.
//
//   y = x · w, x [4096,1024] bf16, w [1024,512], block_m=128 block_n=256 block_k=64:
//      tile_of() has extents 128 along row, 256 along column, 64 along channel
//      stages_of(64) is 16: a tile's sum takes so many stages
//
// The pieces of the kernel: wgmma_tiles.h (which CTA computes what), wgmma_kernel.h (producer, main
// loop, epilogue).
#pragma once
#include <optional>
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/tile_scheduler.h"

namespace warploom::kernels {
// Between the rows of an operand that is transposed on its way into registers, so that the 8 rows
// and 4 depths that a warp reads at once lie in 32 banks.
inline constexpr int64_t kTransposePadding = 8;
inline constexpr int64_t kMostRowCtas = 8;  // of a cluster that any sm_90a GPU runs

// The choices of both families: a convolution's differ from a matmul's in the patch of pixels.
struct WgmmaChoices : MatmulWgmmaConfig {
  int64_t tile_p = 1;

  bool transposes_a() const { return a_source == OperandSource::registers; }

  // Stages of k that a round of the k loop multiplies.
  int64_t stages_per_round() const {
    return std::max<int64_t>(transposes_a() ? 2 : 1, promotion_interval);
  }
};

class WgmmaProduct {
 public:
  WgmmaProduct(Contraction contraction, bool windows, const Precision& precision,
               const Capabilities& capabilities);

  // The contraction as the region has it, or with its sides exchanged.
  const Contraction& sides(const WgmmaChoices& s) const { return s.swap_ab ? swapped : c; }

  // How products are computed under a config.
  Precision precision_of(const WgmmaChoices& s) const;

  // A stage's part of an output tile.
  TileCoord tile_of(const Contraction& sides, const WgmmaChoices& s) const;

  // Stages of a sum, of so many elements of k each.
  int64_t stages_of(int64_t block_k) const;

  // CTAs that hold a row of the result together, where rows are reduced behind the sums.
  int64_t row_ctas(const WgmmaChoices& s) const;

  // Whether the sums of stages are added up in fp32 registers.
  bool promotes() const { return precision.promotes() || !c.scales.empty(); }

  // Whether what those additions lose is carried on (promotion.h).
  bool compensates(const WgmmaChoices& s) const;

  // The most accumulators a thread, of one set beside others.
  int64_t most_accumulators(const WgmmaChoices& s) const;

  // The axes of the result that no tile has several elements of, and how many elements there are
  // along them.
  std::pair<std::vector<size_t>, int64_t> outer_axes() const;

  // Whether TMA can read the first operand as it lies, along rows, for tf32 products: transposed on
  // its way into registers.
  bool can_transpose(const Contraction& sides) const;

  // The kernel's constraints, by the fields of MatmulWgmmaConfig.
  FailedConstraints constraints(const WgmmaChoices& s) const;

  Contraction c;
  Contraction swapped;
  bool windows;  // operands are in window order
  Precision precision;
  Capabilities capabilities;
  std::optional<size_t> second_pixels;  // of pixels the slower axis of a patch

 private:
  using Kernel = Checks<MatmulWgmmaConfig>;
  void check_tile(Kernel& checks, const WgmmaChoices& s) const;
  void check_loop(Kernel& checks, const WgmmaChoices& s) const;
  void check_epilogue(Kernel& checks, const WgmmaChoices& s) const;
  void check_scheduler(Kernel& checks, const WgmmaChoices& s) const;
  void check_memory(Kernel& checks, const WgmmaChoices& s) const;
  int64_t stored_bytes(const WgmmaChoices& s) const;

  size_t accumulator_sets_;  // that reductions of rows need
};
}  // namespace warploom::kernels
