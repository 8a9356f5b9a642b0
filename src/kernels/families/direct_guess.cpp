// A guess of the time that the kernels of the family `direct` take on a CPU, for configs to be
// tried in a good order. Cycles are those of one core.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/casts.h"
#include "kernels/config/configs.h"
#include "kernels/families/direct.h"
#include "kernels/family.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels::direct {
namespace {
class Guess {
 public:
  Guess(const LoopNestTiling& tiling, const DirectConfig& config, const Capabilities& capabilities)
      : tiling_(tiling),
        nest_(tiling.nest),
        s_(config),
        capabilities_(capabilities),
        lanes_(as_double(capabilities.lanes())) {
    for (const int64_t extent : tile_of(tiling, config))
      tile_.push_back(as_double(extent));
  }

  double cycles() const {
    constexpr double kTask = 30;  // to hand one out
    double task = is_product(tiling_, s_) ? cycles_of_product() : cycles_of_values();
    if (is_row_by_row(tiling_, s_)) task *= as_double(s_.tile_y);
    return std::ceil(count(false) / capabilities_.num_sms) * (task + kTask);
  }

 private:
  // Tiles along the axes that a task walks itself, or tasks along the others.
  double count(bool walked) const {
    std::vector<double> taken = tile_;  // by a task
    if (is_product(tiling_, s_) && tiling_.roles.z)
      taken[*tiling_.roles.z] = as_double(s_.rows_per_product);
    if (is_row_by_row(tiling_, s_)) taken[*tiling_.roles.y] = as_double(s_.tile_y);
    double product = 1;
    for (size_t a = 0; a < taken.size(); ++a)
      if (tiling_.is_walked(a) == walked) product *= std::ceil(as_double(nest_.axes[a]) / taken[a]);
    return product;
  }

  double cycles_of_product() const {
    const LoopNestTiling::Product& product = *tiling_.product;
    const double m = tile_[*tiling_.roles.y];
    const double x = tile_[*tiling_.roles.x];
    const double rows = as_double(s_.rows_per_product);
    const double taps = as_double(product.taps);
    const double deep = taps > 1 ? taps : as_double(s_.block_k);
    const double vectors = std::ceil(x * rows / lanes_);
    const double cycles_a_vector = product.b.in_bounds ? 2 : 4;
    const double copied = std::ceil(x / lanes_) * cycles_a_vector + 1;
    const double multiplied = m * vectors * (0.5 + 1.5 / deep);
    const double trip = multiplied + 2 * m / lanes_ + rows * copied;
    return count(true) * product.part * trip + m * vectors * 4;
  }

  double cycles_of_values() const {
    double cycles = 0;
    for (const Expr& value : nest_.values)
      cycles += cycles_of(value);
    return cycles;
  }

  // Of the tile's elements of a value: all, those of one row, and how often they are computed.
  struct Extent {
    double elements = 1;
    double row = 1;
    double times = 1;
  };

  Extent extent_of(const Expr& value) const {
    Extent extent;
    for (size_t a = 0; a < tile_.size(); ++a) {
      if (!value.varies[a]) continue;
      if (tiling_.is_walked(a)) extent.times = count(true);
      if (tile_[a] == 1) continue;
      extent.elements *= tile_[a];
      extent.row = tile_[a];
    }
    return extent;
  }

  double cycles_of(const Expr& value) const {
    if (value.kind == Kind::constant) return 0;
    const Extent extent = extent_of(value);
    // What lies in one row shares a loop and stays in registers.
    const bool is_fused = extent.elements == extent.row;
    const double vectors = extent.elements / extent.row * std::ceil(extent.row / lanes_);
    double cycles = vectors * (is_fused ? 1 : 3) + 2;
    if (value.kind == Kind::load) cycles = cycles_of_load(nest_.load_of(value), extent, cycles);
    if (value.kind == Kind::scan) cycles = 5 * vectors + 20;
    if (value.kind == Kind::apply) cycles = cycles * 2 / 3;
    // Where each term has a loop of its own sums are loaded and stored again.
    if (value.kind == Kind::reduce && s_.unroll == 1) cycles *= 2;
    return extent.times * cycles;
  }

  // Of a load that takes so many cycles if it is of whole vectors.
  double cycles_of_load(const Access& load, const Extent& extent, double cycles) const {
    const MaybeAxis own = fastest(load);
    const MaybeAxis inner = tiling_.roles.reduction ? tiling_.roles.reduction : tiling_.roles.x;
    const bool is_fused = extent.elements == extent.row;
    const double vectors = extent.elements / extent.row * std::ceil(extent.row / lanes_);
    const bool is_vectors = own && own == inner && stride_along(load, own) == 1 && tile_[*own] != 1;
    if (is_turned(own, extent)) return cycles_turned(tile_[*own], extent);
    if (extent.elements > 1 && !is_vectors) {
      const bool is_pairs = own == inner && stride_along(load, own) == 2;
      cycles = extent.elements * cycles_an_element(is_pairs);
      if (is_pairs && is_fused) cycles = 3 * vectors;
    }
    if (load.in_bounds) return cycles;
    return is_fused ? cycles + 2 * vectors : cycles * 2 + 10;
  }

  // Whether squares of a vector's width are transposed in registers.
  bool is_turned(MaybeAxis own, const Extent& extent) const {
    const bool along_y = own && own == tiling_.roles.y && extent.elements > extent.row;
    return along_y && std::fmod(tile_[*own], 8) == 0 && std::fmod(extent.row, lanes_) == 0;
  }

  // Of a tile of so many elements a row in memory: whole cache lines are read, rows on both sides
  // have their own pages, and what the first cache does not hold is moved once more.
  double cycles_turned(double high, const Extent& extent) const {
    constexpr double kLine = 16;     // elements
    constexpr double kPage = 8;      // cycles to begin a row
    constexpr double kCache = 6144;  // elements that the first cache holds beside all else
    constexpr double kAnElement = 0.4;
    const double lines = std::ceil(high / kLine) * kLine / high;
    const bool is_streamed = s_.nontemporal_store && is_transpose(tiling_);
    if (is_streamed) return cycles_streamed(extent.row, extent.elements, lines);
    const double again = extent.elements > kCache ? 1 : 0;
    const double moved = extent.elements * kAnElement * (lines + again);
    return moved + kPage * (high + extent.row);
  }

  // Of a transpose past the caches, whose blocks of 64 by 64 elements go by way of the first cache:
  // what lies beside a block is asked for, so that tiles of one row of blocks are the fastest.
  static double cycles_streamed(double row, double elements, double lines) {
    constexpr double kBlock = 64;
    constexpr double kAnElement = 0.4;
    constexpr double kShortRows = 0.1;
    constexpr double kFence = 300;
    double an_element = kAnElement * lines;
    if (row < kBlock) an_element += kShortRows * (kBlock / row - 1);
    if (row > kBlock) an_element *= 1.1;
    return elements * an_element + kFence;
  }

  static double cycles_an_element(bool is_pairs) { return is_pairs ? 0.3 : 1.5; }

  const LoopNestTiling& tiling_;
  const LoopNest& nest_;
  const DirectConfig& s_;
  const Capabilities& capabilities_;
  double lanes_;
  std::vector<double> tile_;
};
}  // namespace

double cycles_of(const LoopNestTiling& tiling, const DirectConfig& config,
                 const Capabilities& capabilities) {
  return Guess(tiling, config, capabilities).cycles();
}
}  // namespace warploom::kernels::direct
