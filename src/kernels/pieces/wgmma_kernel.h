// The wgmma kernel for sm_90a: one producer warpgroup drives TMA through a circular buffer of
// stages in shared memory, one or two math warpgroups multiply from there. CTAs are persistent: the
// producer runs ahead into the next tile while the math warpgroups still store the last one.
//
// wgmma takes 32-bit operands K-major only, so an M-major tf32 tile of a is loaded unswizzled by
// TMA and transposed on its way into registers, where it is rounded.
//
// Operands that are scaled by blocks along k are multiplied stage by stage, each within a block,
// and every stage's sum is scaled as it is added to those before. In a round of several stages
// (promotion_interval) the next one's product is computed meanwhile, in registers of its own.
#pragma once
#include "kernels/pieces/wgmma_tiles.h"

namespace warploom::kernels {
class WgmmaKernel {
 public:
  // All but `s` outlive it. a and b are read as they were prepared.
  WgmmaKernel(const WgmmaProduct& product, const Contraction& sides, const Prepared& a,
              const Prepared& b, const WgmmaChoices& s);

  // The kernel as a program of its own.
  void add_to(Family::Programs& out);

 private:
  // Accumulators of one stage of a round, and what scales them.
  struct StageSums {
    std::string name;
    TensorId part;
    std::vector<TensorId> scales;
  };

  using Axes = std::vector<size_t>;

  void add_operands();
  void add_operand(const char* name, const char* stage, const Access& access, const Axes& axes,
                   int64_t rows);
  // What TMA fetches for operand i of a stage.
  tile::Tile box_of(size_t i, const TileCoord& tile) const;
  void produce();
  void produce_stage(const TileCoord& tile);
  void consume();
  std::vector<StageSums> sums_of_round();
  void sum_tile(const TileCoord& tile, const Index& begin, const Index& end,
                std::vector<StageSums>& sets);
  void multiply_stage(const TileCoord& stage, StageSums& set);
  void add_products(const StageSums& set);
  void add_product(TensorId part, TensorId x, size_t operand);
  void promote(const StageSums& set);
  void finish(const TileCoord& tile);

  const WgmmaProduct& product_;
  const Contraction& c_;
  const Prepared& a_;
  const Prepared& b_;
  WgmmaChoices s_;
  Precision precision_;
  // Where pixels are of two axes, they are so on the side that they take.
  AxisIfAny rows_above_;
  AxisIfAny columns_above_;
  Axes result_;
  size_t row_axes_;
  Axes summed_;
  WgmmaTiles tiles_;
  bool promotes_;
  bool meanwhile_;    // a stage's sums are added while the next is multiplied, in a set of its own
  bool compensates_;  // what those additions lose is carried into the stages that follow
  KernelBuilder draft_{"matmul"};
  tile::Builder& t_ = draft_.b;
  std::vector<TensorTile> from_;
  std::vector<TensorId> stages_;  // the operands of a stage: a as [m, k], b as [n, k]
  tile::PipelineId pipeline_ = -1;
  TensorId lines_ = -1;    // a transposed tile as [m, k]
  TensorId staging_ = -1;  // what results leave through
  TensorId acc_ = -1;
  TensorId total_ = -1;
};
}  // namespace warploom::kernels
