// The kernel of the family im2win: a producer warpgroup fetches patches by TMA, math warpgroups
// read their windows from shared memory into the registers of wgmma, and round or split them there.
// No window is ever written to memory, and what lies outside counts as TMA fills it, 0.
//
// Math warpgroups whose tiles have 64 pixels have tiles of their own, each with a circular buffer
// of its own. With staggered_consumers they begin parts of a tile after one another (ping-pong), so
// that one multiplies while another stores.
#pragma once
#include <functional>
#include <optional>
#include "kernels/pieces/im2win_stage.h"

namespace warploom::kernels {
// Registers a thread of so many math warpgroups.
int im2win_registers(int64_t num_math_warpgroups);

class Im2winKernel {
 public:
  // All but `s` outlive it.
  Im2winKernel(const Im2winProduct& product, const Im2winStage& stage, const Prepared& weights,
               const Im2winConfig& s, const Capabilities& capabilities);

  // The kernel as a program of its own.
  void add_to(Family::Programs& out);

 private:
  friend class Im2winMath;
  using Body = std::function<void(const Index&)>;

  void add_tensors();
  void add_weights();
  tile::Tile patch_of(TileCoord tile, const Index& k) const;
  // The first tile of a round of all CTAs, and all rounds of this one.
  Index first_of(const Index& round) const;
  void all_rounds(const Body& body);
  // How many stages of the first math warpgroup come before the first one of another.
  int64_t late(int64_t number) const;
  void produce();
  void produce_staggered();
  void produce_started(int64_t number, const Index& time);
  void produce_patch(int64_t number, const Index& first, const Index& k);
  void fetch_weights(const Index& row);

  const Im2winProduct& product_;
  const Contraction& c_;
  const Im2winStage& stage_;
  const Prepared& packed_;
  Im2winConfig s_;
  int64_t own_;  // tiles that a stage serves
  TileScheduler order_;
  int64_t rounds_;
  int64_t workers_;
  int64_t weight_rows_;  // in shared memory at once
  KernelBuilder draft_{"convolution"};
  tile::Builder& t_ = draft_.b;
  std::optional<TensorTile> input_;
  // of the tiles that a stage serves
  std::vector<TensorId> patches_;
  std::vector<TensorId> windows_;
  std::vector<tile::PipelineId> patch_stages_;
  // weights: in memory, in shared memory, and the pipeline that they come through
  std::vector<TensorId> from_;
  std::vector<TensorId> weights_;
  tile::PipelineId beside_ = -1;
};
}  // namespace warploom::kernels
