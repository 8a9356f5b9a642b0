// LoopProduct: a sum of products by matrix products of blocks in shared memory (on a CPU: scratch
// memory). One factor is copied as it lies, the windows of the other one tap after another.
//
//   y[m, n] = Σ_k Σ_tap A[m, k, tap] · B[k, tap, n]
//     for k by block_k: a ← A [m, block_k · taps]; w ← B [block_k, taps, n]; y ← y + a · w
//
// Each block of k is summed apart and added to those before it, of many blocks with what that loses
// (promotion.h): the rounding error of one long chain would grow with √k.
#pragma once
#include <functional>
#include "kernels/pieces/loop_tile.h"

namespace warploom::kernels::direct {
class LoopProduct {
 public:
  explicit LoopProduct(LoopTile& tile);

  // sum ← sum + the product.
  void add_to(TensorId sum, const std::vector<bool>& varies);

 private:
  void copy_windows(TensorId to, const TensorTile& from, const Index& tap);
  void multiply(TensorId to, TensorId a, TensorId b);
  // `body` at every place of the window, from this axis on.
  void for_each_tap(size_t axis, const Index& tap, const std::function<void(const Index&)>& body);

  LoopTile& t_;
  const LoopNestTiling::Product& product_;
  tile::Builder& b_;
  int64_t block_k_;
  int64_t m_;
  int64_t x_;
  int64_t n_;  // x times the rows that are taken together
};
}  // namespace warploom::kernels::direct
