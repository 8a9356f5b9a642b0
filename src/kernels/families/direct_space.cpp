// The values that the fields of the family `direct` may take.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "kernels/config/configs.h"
#include "kernels/families/direct.h"
#include "kernels/family.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels::direct {
namespace {
using F = DirectConfig::Field;

class SpaceMaker {
 public:
  SpaceMaker(const std::vector<LoopNestTiling>& tilings, const Capabilities& capabilities)
      : tilings_(tilings), capabilities_(capabilities) {}

  Space space() const {
    const bool gpu = capabilities_.gpu;
    const Sizes sizes = largest_sizes();
    const bool one = tilings_.size() == 1;
    const bool may_multiply = !gpu && one && tilings_[0].product;
    const Values wide = widths();
    Values rows = {1, 2, 4, 8, 16, 32, 64};
    if (may_multiply) rows = {64, 128, 256, 32, 16, 8, 4, 1};
    if (!gpu && one && is_transpose(tilings_[0])) rows.insert(rows.end(), {128, 256, 512});
    const Values reduced = sizes.reduction == 1 ? Values{1} : wide;
    const bool has_window = sizes.window > 1 && sizes.window <= 49;
    const bool has_chains = !gpu && !may_multiply && sizes.walked > kShortChain;
    Space space{std::string(DirectConfig::type().family), {}};
    space.offer<DirectConfig>(F::tile_x, fitting(sizes.x, wide));
    space.offer<DirectConfig>(F::tile_y, fitting(sizes.y, rows));
    space.offer<DirectConfig>(F::reduction_tile, fitting(sizes.reduction, reduced));
    space.offer<DirectConfig>(F::unroll, has_window || has_chains ? Values{8, 1} : Values{1});
    if (gpu) space.offer<DirectConfig>(F::warps, {4, 8, 2, 1, 16});
    if (gpu && one && tilings_[0].scanned) space.offer<DirectConfig>(F::ctas_per_scan, scan_ctas());
    if (!gpu && is_large(tilings_))
      space.offer<DirectConfig>(F::nontemporal_store, choices(true, false));
    const bool has_rows = sizes.y > 1 && !scans_along_y();
    const Values row_by_row = has_rows ? choices(true, false) : choices(false);
    if (!gpu) space.offer<DirectConfig>(F::row_by_row, row_by_row);
    if (!may_multiply) return space;
    space.offer<DirectConfig>(F::blocked_product, choices(true, false));
    space.offer<DirectConfig>(F::rows_per_product, product_rows());
    space.offer<DirectConfig>(F::block_k, product_depths(tilings_[0]));
    return space;
  }

 private:
  // The largest of all nests.
  struct Sizes {
    int64_t x = 1;
    int64_t y = 1;
    int64_t reduction = 1;
    int64_t window = 1;
    int64_t walked = 1;  // reduced element by element
  };

  static constexpr int64_t kShortChain = 16;

  Sizes largest_sizes() const {
    Sizes sizes;
    for (const LoopNestTiling& tiling : tilings_) {
      const auto grow = [&](int64_t& size, MaybeAxis axis) {
        if (axis) size = std::max(size, tiling.nest.axes[*axis]);
      };
      sizes.x = std::max(sizes.x, widest(tiling));
      grow(sizes.y, tiling.roles.y);
      grow(sizes.reduction, tiling.roles.reduction);
      sizes.window = std::max(sizes.window, tiling.roles.window);
      for (size_t a = 0; a < tiling.reduced.size(); ++a)
        if (tiling.reduced[a] && a != tiling.roles.reduction)
          sizes.walked = std::max(sizes.walked, tiling.nest.axes[a]);
    }
    return sizes;
  }

  bool scans_along_y() const {
    return std::ranges::any_of(tilings_, [](const LoopNestTiling& tiling) {
      return tiling.scanned && tiling.scanned == tiling.roles.y;
    });
  }

  Values widths() const {
    const LoopNestTiling& first = tilings_[0];
    if (!capabilities_.gpu) {
      const int64_t vector = capabilities_.lanes();
      return {2048, 1024, 512, 256, 4096, 128, 64, 4 * vector, 2 * vector, vector, 1};
    }
    Values wide = {256, 128, 512, 64, 1024, 32, 16, 8, 4, 2, 1};
    if (first.scanned && first.scanned == first.roles.x)
      wide.insert(wide.end(), {2048, 4096, 8192, 16384});
    return wide;
  }

  // Those of the values that an axis has; on a CPU also all of it, where it is short.
  Values fitting(int64_t size, Values values) const {
    constexpr int64_t kShort = 4096;
    const bool gpu = capabilities_.gpu;
    const auto is_too_large = [&](int64_t value) {
      if (value <= 1) return false;
      return gpu ? value / 2 >= size : value > size;
    };
    std::erase_if(values, is_too_large);
    const bool is_missing = std::ranges::find(values, size) == values.end();
    if (!gpu && size <= kShort && is_missing) values.insert(values.begin(), size);
    return values;
  }

  // As many CTAs a line as run at the same time, where lines alone are too few for the GPU.
  Values scan_ctas() const {
    const LoopNestTiling& tiling = tilings_[0];
    int64_t lines = 1;
    for (size_t a = 0; a < tiling.nest.axes.size(); ++a) {
      if (tiling.is_walked(a)) continue;
      const int64_t size = tiling.nest.axes[a];
      lines *= a == tiling.roles.x ? ceil_div(size, 32) : size;
    }
    Values ctas = {1};
    if (3 * lines > capabilities_.num_sms) return ctas;
    for (int64_t n = 2; n * lines <= kScanCtasPerSm * capabilities_.num_sms; n *= 2)
      ctas.insert(ctas.begin(), n);
    return ctas;
  }

  Values product_rows() const {
    const LoopNestTiling& tiling = tilings_[0];
    Values rows = {1};
    for (const int64_t count : {2, 4, 7, 8, 14, 16, 28})
      if (tiling.roles.z && count <= tiling.nest.axes[*tiling.roles.z]) rows.push_back(count);
    return rows;
  }

  const std::vector<LoopNestTiling>& tilings_;
  const Capabilities& capabilities_;
};
}  // namespace

Space direct_space(const std::vector<LoopNestTiling>& tilings, const Capabilities& capabilities) {
  return SpaceMaker(tilings, capabilities).space();
}

Values product_depths(const LoopNestTiling& tiling) {
  constexpr int64_t kMost = 600;  // terms
  const int64_t size = tiling.nest.axes[tiling.product->k];
  const int64_t taps = tiling.product->taps;
  Values out;
  for (const int64_t count : {256, 384, 512, 128, 64, 32, 16, 8, 4}) {
    const bool divides = count <= 256 || size % count == 0;
    if (count * taps <= kMost && count < size && divides) out.push_back(count);
  }
  if (size * taps <= kMost || out.empty()) out.insert(out.begin(), std::min(size, kMost));
  return out;
}

bool is_transpose(const LoopNestTiling& tiling) {
  const LoopNest& nest = tiling.nest;
  if (!tiling.roles.y || !tiling.is_read_along(*tiling.roles.y)) return false;
  if (nest.loads.size() != 1 || nest.outputs.size() != 1) return false;
  const LoopNest::Output& output = nest.outputs[0];
  const bool is_load = nest.value(output.value).kind == Kind::load;
  const bool floats = nest.loads[0].dtype == Dtype::f32 && output.place.dtype == Dtype::f32;
  return is_load && floats && nest.loads[0].in_bounds && !nest.loads[0].is_gathered();
}

bool is_large(const std::vector<LoopNestTiling>& tilings) {
  constexpr double kCaches = 32e6;  // bytes
  double bytes = 0;
  for (const LoopNestTiling& tiling : tilings)
    for (const LoopNest::Output& output : tiling.nest.outputs)
      bytes += 4 * as_double(graph::element_count(output.place.shape));
  return bytes > kCaches;
}
}  // namespace warploom::kernels::direct
