// Truth: the outputs of one set of inputs in FP64, in blocks of rows. Within the room only.
//
// A small output is held whole. Of a large one some rows are (the first, the last, and others at
// random), and the rest is made block by block when a whole judgement asks for it, so that memory
// stays bounded whatever the output's size.
#pragma once
#include <chrono>
#include <span>
#include "graph/projection.h"
#include "graph/reference.h"
#include "verify/inputs.h"

namespace warploom::verify {
inline double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

struct RowRange {
  int output = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

struct Block : graph::ValueAndMagnitude {
  RowRange rows;
  int64_t first_element = 0;  // in the whole output
  // The values, and their magnitudes, where maxima, minima and ReLUs take a number rather than a
  // NaN, as C's fmax does, and CUDA's; empty where that makes no difference. ONNX says nothing of
  // it: either is right.
  std::vector<double> without_nan = {};
  std::vector<double> magnitude_without_nan = {};
  // There are several of them, of which a kernel may have some drop NaN and others not: what
  // differs may be anything.
  bool has_mixed_choices = false;

  // A kernel may make anything of what the type cannot hold on the way; but the inputs that people
  // expect must not do that to it. Where the elements that come of such numbers are marked, the
  // others are compared.
  bool silent(InputFamily family) const {
    return overflowed && !marked && family != InputFamily::normal;
  }
};

Result<Block> evaluate_block(const graph::Graph& graph, std::span<const graph::Bytes> inputs,
                             const RowRange& rows, const graph::EvalOptions& options);

// How many operators take the larger or the smaller of numbers.
int64_t choices_in(const graph::Graph& graph);

struct Truth {
  std::vector<Block> blocks;
  std::vector<RowRange> missing;  // what the blocks lack, to be made by evaluate_block, in an order
                                  // scattered over the outputs
  int64_t rows = 0;               // of all outputs
  std::vector<std::vector<double>>
      sums;  // of each output's projection; empty where there is none, or all is held
};

// All of it if that is little and `flops` of work are cheap, else scattered rows until `budget_ms`
// are spent.
Result<Truth> sample_truth(const graph::Graph& graph, std::span<const graph::Bytes> inputs,
                           uint64_t seed, double flops, double budget_ms,
                           const graph::EvalOptions& options);
}  // namespace warploom::verify
