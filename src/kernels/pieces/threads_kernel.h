// The kernel of matmul_mma and matmul_simt, for any GPU since sm_80: all threads copy, through a
// circular buffer of stages in shared memory filled by cp.async, and all multiply, with mma.sync or
// with fused multiply-adds.
//
// Rows are A's axis m (of a convolution its output channels), columns a block_n · tile_p patch of
// B's (pixels of one image; of a matmul tile_p is 1). A stage holds block_k ·
// filter_taps_per_stage of the sum's terms: so many input channels at so many places of the filter.
// Sums of fused multiply-adds, where they are long, are promoted every kLongestChain terms
// (promotion.h), those of split operands by every stage.
//
// A pool behind a convolution (loopnest/pool.h) has accumulators for each place of its windows, and
// a stage a patch of B for each. They share a stage's weights, and what the pool combines lies in
// one thread's registers: nothing of the convolution's results goes to memory.
//
// Nothing is unfolded in memory: a patch at a place of the filter is a box of the input, and what
// padding adds lies outside and counts as 0.
#pragma once
#include <optional>
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/tile_scheduler.h"
#include "loopnest/pool.h"

namespace warploom::kernels {
// The choices of both families, which have the same fields.
template <Config T> MatmulMmaConfig threads_choices(const T& s) {
  MatmulMmaConfig out;
#define WARPLOOM_FIELD(given, type, name, otherwise, aliases, meaning) out.name = s.name;
#include "kernels/config/matmul_threads.def"
  return out;
}

// How a stage's products are computed.
struct ThreadsMath {
  Precision precision;
  int64_t k_step;  // elements of k of an instruction
  bool promotes;   // sums of stages are added up in fp32 registers
};

class ThreadsKernel {
 public:
  // The contraction and what pools its results, null where nothing does, outlive it; `a` is read in
  // place of its first operand.
  ThreadsKernel(const Contraction& contraction, const PooledContraction* pooled, const Access& a,
                std::optional<size_t> second, const ThreadsMath& math, const MatmulMmaConfig& s);

  // The kernel as a program of its own.
  void add_to(Family::Programs& out);

 private:
  // What each place of a pool has of its own; without a pool there is one.
  struct Place {
    std::vector<int64_t> at;  // its indices along the pool's axes
    TensorId b = -1;          // of a stage, in shared memory
    TensorId acc = -1;        // accumulators, and those of a stage
    TensorId part = -1;
  };

  void add_places();
  void produce(const Index& k);
  void produce_taps();
  void sum(const Index& begin, const Index& end);
  void multiply_stage(const Place& place);
  void promote(const Place& place, const std::vector<TensorId>& scales);
  void multiply_tf32(const Place& place);

  const Contraction& c_;
  const PooledContraction* pooled_;
  const LoopNest& nest_;
  MatmulMmaConfig s_;
  ThreadsMath math_;
  int64_t columns_;             // of a tile
  int64_t depth_;               // of a stage
  std::vector<size_t> result_;  // axes of a tile, those of rows first
  std::vector<size_t> summed_;
  TileCoord tile_;
  TileScheduler order_;
  TileCoord stage_;
  KernelBuilder draft_{"matmul"};
  tile::Builder& t_ = draft_.b;
  TensorTile global_a_;
  TensorTile global_b_;
  // a stage's first operand; sums on their way; an instruction's operands
  TensorId shared_a_ = -1;
  std::vector<Place> places_;
  tile::PipelineId stages_ = -1;
  TensorId total_ = -1;
  int64_t stages_of_part_ = 1;
  bool compensates_ = false;
  TensorId a_ = -1;
  TensorId b_ = -1;
};
}  // namespace warploom::kernels
