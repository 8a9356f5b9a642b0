// RowPipeline: a circular buffer of rows in shared memory. A CTA takes one row after another; while
// it computes one, the next ones are on their way.
//
//   stages 3: rows r, r + 1, r + 2 of the CTA's
//     before the first row     loads r and r + 1
//     at row r                 takes r from its stage, and loads r + 2
//
// What is the same for every row (a scale, a bias) stays in shared memory beside the buffer, as
// much of it as fits, where a CTA has rows enough. Bytes are of shared memory.
#pragma once
#include <set>
#include "kernels/pieces/row_kernel.h"

namespace warploom::kernels {
struct RowPipelineOptions {
  size_t load;  // of the nest: the only one that the first pass makes along all of a tile
  int64_t stages;
  int64_t workers;       // CTAs, or groups of CTAs that share a row, that take rows in turn
  int64_t shared_bytes;  // that a CTA may have
};

class RowPipeline {
 public:
  static constexpr int64_t kReductionBytes = 1024;  // beside the buffer

  RowPipeline(RowKernel& kernel, const RowPipelineOptions& options);

  // Begins to load the first rows, from group `first` on; from then on the kernel's loads that fill
  // a tile come from the buffer.
  void start(const Index& first);

 private:
  void load_resident(const Index& first);
  void produce(const Index& group);
  void take(TensorId to);
  TensorId arrived(int64_t tile);  // the register tensor of an unrolled tile

  RowKernel& kernel_;
  RowPipelineOptions options_;
  const Access& access_;
  int64_t extent_;  // of a tile
  int64_t tiles_;   // of a CTA's part of a row
  TensorId stage_;
  tile::PipelineId pipeline_ = -1;
};

// The loads of which RowPipeline has one: those that the first pass makes along all of a tile.
std::set<int> loads_that_fill_tiles(const RowReduction& rows);
}  // namespace warploom::kernels
