// Oracle: the FP64 truth of one set of inputs, in blocks of rows. Within the room only.
//
// A small output is held whole. Of a large one the oracle holds some rows (the first, the last, and others at random) and makes
// the rest block by block when a whole judgement asks for it, so that memory stays bounded whatever the output's size.
#pragma once

#include <chrono>
#include "graph/reference.h"

namespace warploom::verify {

inline double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

struct RowRange {
  int output = 0;
  std::int64_t begin = 0, end = 0;
};
struct Block {
  RowRange rows;
  std::int64_t first_element = 0;  // in the whole output
  std::vector<double> value, magnitude;
};

class Oracle {
 public:
  // Blocks of at most this many elements, unless one row is longer.
  static constexpr std::int64_t kBlockElements = 1 << 21;
  // Outputs up to this size are kept whole where that is affordable.
  static constexpr std::int64_t kWholeElements = 1 << 23;

  Oracle(const graph::Graph& graph, std::uint64_t seed) : graph_(&graph), seed_(seed) {}

  // Evaluates blocks: all of them if they are few and `flops` of work is cheap, else scattered rows until `budget_ms` is spent.
  Status sample(std::span<const graph::Bytes> inputs, double flops, double budget_ms);
  const std::vector<Block>& blocks() const { return blocks_; }

  // The rows that blocks() lacks, cut into blocks in an order that is scattered over the output.
  std::vector<RowRange> missing() const;
  Result<Block> evaluate(std::span<const graph::Bytes> inputs, const RowRange& rows) const;
  std::int64_t total_rows() const;
  std::int64_t held_rows() const;

 private:
  const graph::Graph* graph_;
  std::uint64_t seed_;
  std::vector<Block> blocks_;
  bool complete_ = false;
};

}  // namespace warploom::verify
