// A pipeline stage of the family im2win: a patch of the input, planes of rows of pixels, and the
// weights that go with it. Math warpgroups read the windows of the patch, which overlap, as a
// strided view of it.
//
//   x [100,3,224,224], w [96,3,11,11], strides 4; tile_q=64 tile_p=2 block_c=1
//   filter_rows_per_stage=4:
//      patch    [9, 232]            the rows 4p - 2 .. 4p + 6 of one plane
//      windows  [2, 64, 1, 4, 12]   at strides [928, 4, 2088, 232, 1] of the patch
//      weights  [9, 96, 48]         by stages: 11 elements of a row of the filter and a zero;
//                                   channels fastest where a stage has 8 or more
#pragma once
#include <optional>
#include "kernels/pieces/epilogue.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/tile_scheduler.h"

namespace warploom::kernels {
// A convolution whose input TMA can fetch as patches: the product with its sides exchanged, so that
// pixels are rows of the accumulators.
struct Im2winProduct {
  Im2winProduct(const Contraction& contraction, const Precision& used);

  // Whether TMA can fetch patches: pixels are neighbours in memory, all else lies at multiples of
  // 16 bytes.
  bool reads_patches() const;

  const Access& input() const { return c.nest.loads[c.a]; }

  int64_t size(AxisIfAny axis) const { return axis ? c.nest.axes[*axis] : 1; }

  Contraction c;
  Precision precision;
  AxisIfAny second;         // the slower axis of pixels
  AxisIfAny filter_rows;    // the slower axis of the filter
  std::optional<size_t> x;  // dimensions of the input: along a row, and the rows
  std::optional<size_t> y;

 private:
  bool is_readable(const Access& from, size_t dim) const;
};

struct Im2winStage {
  Im2winStage(const Im2winProduct& product, const Im2winConfig& s);

  // Stages of a tile's sum.
  int64_t count() const { return groups * parts; }

  // The windows of a patch, declared as a tensor: [tile_p, tile_q, …], the terms of the sum last.
  TensorId windows(tile::Builder& t, TensorId patch, const std::string& name) const;

  // Weights stage by stage, with zeros where a stage reaches beyond the filter, by programs of
  // their own.
  Prepared pack_weights(Family::Programs& out, const Capabilities& capabilities) const;

  // Part of the sum's terms: so many elements along an axis of the nest, every so-manyth.
  struct Term {
    AxisIfAny axis;
    int64_t extent;
    int64_t stride;  // in the patch
    int64_t every = 1;
  };

  const Im2winProduct& of;
  // pixels of a tile; channels and rows of the filter of a stage
  int64_t tile_q;
  int64_t tile_p;
  int64_t planes;
  int64_t taps;
  // Tiles that it serves: one a math warpgroup where tiles have 64 pixels, so that few lie beyond
  // the image.
  int64_t tiles;
  bool planes_first;  // channels are neighbours among the terms of the sum
  int64_t groups;     // of channels
  int64_t parts;      // of the filter's rows
  int64_t across;     // elements of a row of the filter
  int64_t depth;      // terms of the sum
  // from pixel to pixel, and between the filter's elements, along a row and from row to row
  int64_t move_x;
  int64_t move_y;
  int64_t apart_x;
  int64_t apart_y;
  int64_t begin;            // where the patch begins in a row, a multiple of 4
  int64_t first;            // from there to the first window
  int64_t rows = 1;         // of the patch
  int64_t width = 1;        // of its rows
  std::vector<Term> terms;  // of the sum, slowest first

 private:
  void size_patch();
  int bank_conflicts(int64_t wide) const;
  int widen(int64_t needed);
  void order_terms();
};
}  // namespace warploom::kernels
