// Pool: what combines the results of a sum of products at several places, as pooling behind a
// convolution does. Worked example:
//
//   y = max_pool(relu(conv(x, w)), 2 × 2), x [8,64,56,56], w [128,64,3,3], pads 1
//     the nest      image, co, p, q over the pool's results; ph, pw over its windows;  ci, kh, kw
//     reductions    the sum over {ci, kh, kw} and behind it a maximum over {ph, pw}
//     before it     the nest of relu(conv(x, w)) with x at {image, ci, 2p + ph + kh - 1, …}: its
//                   outputs lie at {image, co, p, q, ph, pw}, so that it is a contraction
//
// A kernel that has the sums of all places of a window, each in accumulators of its own, combines
// them there: nothing of the convolution's results goes to memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
// The value of a pool behind a sum; nothing where there is no second reduction.
std::optional<size_t> pool_of(const LoopNest& nest);

// The nest up to what a pool combines, whose axes then are the output's, far apart. Values and
// loads keep their numbers.
LoopNest without_pool(LoopNest nest, size_t pool);

struct Pool {
  LoopNest nest;                // all that is computed
  std::optional<size_t> value;  // that combines the windows; nothing: there is no pool
  std::vector<size_t> places;   // axes of its windows

  int64_t place_count() const;  // 1 without a pool
  // The index of a place along each of `places`, the last axis fastest.
  std::vector<int64_t> indices_of(int64_t place) const;
  // Whether its windows lie side by side in what an operand reads as `access`, and do not overlap
  // along these axes of the output.
  bool lies_apart(const Access& access, const std::vector<size_t>& outputs) const;
};

// The loads that follow the sum, up to the outputs. Nothing where a tile cannot compute what
// follows as a tree down to the sum, or where an operand differs from place to place of the pool.
std::optional<std::vector<int>> operands_behind(const Pool& pool, size_t sum);

struct PooledContraction {
  Contraction c;  // up to what the pool combines; the pool's places are the first of c.n
  Pool pool;
  std::vector<int> operands;  // loads that follow the sum

  // As second_column(c), for what is behind the pool as well.
  std::optional<size_t> second() const;
};

// Nothing where the nest is no contraction with a pool behind it, whose windows lie side by side
// and have at most `most` places.
std::optional<PooledContraction> pooled_contraction_of(const LoopNest& nest, int64_t most);
}  // namespace warploom::loopnest
