// Any nest with at most one level of reduction, for GPUs and CPUs: out = epilogue(reduce over loops
// (prologue(loads))); or with scans along one axis: a block goes along it tile by tile, and carries
// what it has passed.
//
// A block computes one tile of the output: tile_x elements along its fastest axis, tile_y along a
// second one (that along which another tensor is fastest, as in a transpose; or along which an
// operand of a product is used again), one along all others. Reduced axes are loops, except that
// reduction_tile elements of the one that lies fastest in memory are taken at once and brought
// together at the end, and that short ones (a window's) may be written out. Where a tensor is read
// outside, the padding of the copy is its value.
#include "kernels/families/direct.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/value_op.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_kernel.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "kernels/pieces/loop_tile.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace direct {
namespace {
using F = DirectConfig::Field;
using Check = Checks<DirectConfig>;

// What says how large a tile is, and what else a product takes.
constexpr std::initializer_list<F> kTileFields = {F::tile_x, F::tile_y, F::reduction_tile,
                                                  F::row_by_row};
constexpr std::initializer_list<F> kProductFields = {F::blocked_product, F::rows_per_product};

// Whether every output goes along all axes that are not reduced: tiles along another would all
// store the same elements.
bool stores_each_once(const LoopNest& nest) {
  const auto reduced = nest.reduced();
  return std::ranges::all_of(nest.outputs, [&](const LoopNest::Output& output) {
    for (size_t a = 0; a < nest.axes.size(); ++a)
      if (!reduced[a] && !output.place.uses(a)) return false;
    return true;
  });
}

// Whether the target computes with all that a nest loads, stores and combines.
bool computes(const LoopNest& nest, const Capabilities& capabilities) {
  const bool converts = !capabilities.gpu || capabilities.fp8_tflops > 0;  // floats of 8 bits
  const auto is_fp8 = [](Dtype dtype) { return is_float(dtype) && bits_of(dtype) == 8; };
  const auto loads = [&](const Access& access) {
    return is_computed(access.dtype) || (converts && is_fp8(access.dtype));
  };
  const auto stores = [&](const LoopNest::Output& output) {
    const Dtype dtype = output.place.dtype;
    return is_computed(dtype) || (!capabilities.gpu && is_fp8(dtype));
  };
  // Threads of a GPU combine floats alone.
  const auto scans_integers = [](const Expr& value) {
    return value.integers && value.kind == Kind::scan;
  };
  if (!std::ranges::all_of(nest.loads, loads)) return false;
  if (!std::ranges::all_of(nest.outputs, stores) || !stores_each_once(nest)) return false;
  return !capabilities.gpu || std::ranges::none_of(nest.values, scans_integers);
}

// Of all nests of a region; none where the family does not cover one of them.
std::vector<LoopNestTiling> tilings_of(const Region& region, const Capabilities& capabilities) {
  std::vector<LoopNestTiling> tilings;
  for (const LoopNest& nest : region.nests()) {
    auto tiling = tiling_of(nest, capabilities.gpu);
    if (!tiling || !computes(nest, capabilities)) return {};
    tilings.push_back(std::move(*tiling));
  }
  return tilings;
}

// A tile under a config, as constraints see it.
struct Tile {
  const LoopNestTiling& tiling;
  std::vector<int64_t> extents;
  int64_t elements = 1;   // of the register tensors; 1 where a product is
  int64_t bodies = 1;     // of loops that are written out
  bool is_within = true;  // no larger than its axes

  Tile(const LoopNestTiling& all, const DirectConfig& s, bool gpu)
      : tiling(all), extents(tile_of(all, s)) {
    for (size_t a = 0; a < extents.size(); ++a) {
      const int64_t size = tiling.nest.axes[a];
      const bool fits = gpu ? extents[a] / 2 < size : extents[a] <= size;
      is_within = is_within && (extents[a] == 1 || fits);
      elements *= extents[a];
      if (tiling.reduced[a] && size <= s.unroll) bodies *= size;
    }
    if (is_product(tiling, s)) elements = 1;
  }
};

class Direct final : public Family {
 public:
  Direct(std::vector<LoopNestTiling> tilings, const Capabilities& capabilities)
      : Family(DirectConfig::type(), capabilities, Specialization::general),
        tilings_(std::move(tilings)) {}

  Space space() const override { return direct_space(tilings_, capabilities_); }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const auto& s = config.as<DirectConfig>();
    Check checks;
    const int64_t least =
        std::min({s.tile_x, s.tile_y, s.reduction_tile, s.unroll, s.warps, s.ctas_per_scan});
    checks.require(least >= 1,
                   {F::tile_x, F::tile_y, F::reduction_tile, F::unroll, F::warps, F::ctas_per_scan},
                   "tiles, unroll and, on a GPU, warps of at least 1", least);
    const bool stores_plainly = !capabilities_.gpu || !s.nontemporal_store;
    checks.require(stores_plainly, {F::nontemporal_store}, "nontemporal_store=0 on a GPU", 1);
    if (least < 1) return std::move(checks).failed();
    for (const LoopNestTiling& tiling : tilings_) {
      const Tile tile(tiling, s, capabilities_.gpu);
      check_scan(checks, s, tile);
      check_rows(checks, s, tiling);
      check_product(checks, s, tile);
      check_tile(checks, s, tile);
    }
    return std::move(checks).failed();
  }

  double guess(const KernelConfig& config) const override {
    constexpr double kThroughCaches = 1.1;  // of large results
    const auto& s = config.as<DirectConfig>();
    double cycles = 0;
    for (const LoopNestTiling& tiling : tilings_)
      cycles += cycles_of(tiling, s, capabilities_);
    return is_large(tilings_) && !s.nontemporal_store ? cycles * kThroughCaches : cycles;
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    const auto& s = config.as<DirectConfig>();
    Programs out;
    for (const LoopNestTiling& tiling : tilings_) {
      const size_t part = out.programs.size();
      const std::string own = part == 0 ? name() : fmt::format("direct_part{}", part);
      add_loop_kernel(out, tiling, options_of(tiling, s, capabilities_), capabilities_, own);
    }
    return out;
  }

 private:
  // Lines that several CTAs scan.
  void check_scan(Check& checks, const DirectConfig& s, const Tile& tile) const {
    const LoopNestTiling& tiling = tile.tiling;
    const int64_t ctas = s.ctas_per_scan;
    if (ctas == 1) return;
    const bool scans = capabilities_.gpu && tiling.scanned && tilings_.size() == 1;
    checks.require(scans, {F::ctas_per_scan}, "ctas_per_scan=1 without scans, or on a CPU", ctas);
    if (!scans) return;
    const int64_t along = tile.extents[*tiling.scanned];
    int64_t all = ctas;
    int64_t beside = 1;
    for (size_t a = 0; a < tile.extents.size(); ++a) {
      if (tiling.is_walked(a)) continue;
      all *= ceil_div(tiling.nest.axes[a], tile.extents[a]);
      beside *= tile.extents[a];
    }
    const int64_t resident = ceil_div(all, capabilities_.num_sms);
    const bool one_line = tiling.scanned != tiling.roles.x || beside == 1;
    checks.require(one_line, {F::ctas_per_scan, F::tile_y, F::row_by_row},
                   "tile_y=1 where lines along x are scanned together", beside);
    const int64_t line = tiling.nest.axes[*tiling.scanned];
    const bool tile_each = along >= 2 && (ctas - 1) * along < line;
    checks.require(tile_each, {F::ctas_per_scan, F::tile_x, F::tile_y, F::row_by_row},
                   "ctas_per_scan=1, or a tile of the line for every CTA", along);
    const bool run_together = resident <= kScanCtasPerSm && resident * s.warps <= 32;
    checks.require(run_together, {F::ctas_per_scan, F::tile_x, F::tile_y, F::row_by_row, F::warps},
                   "no more CTAs that scan together than multiprocessors hold: 4 and 32 warps each",
                   all);
  }

  // Rows of a tile that are taken one after another.
  void check_rows(Check& checks, const DirectConfig& s, const LoopNestTiling& tiling) const {
    const MaybeAxis y = tiling.roles.y;
    const bool has_rows = !y || (y != tiling.scanned && s.tile_y <= tiling.nest.axes[*y]);
    const bool in_registers = !capabilities_.gpu && !is_product(tiling, s);
    const bool serves = in_registers && has_rows && s.tile_y >= 2 && s.rows_per_product <= 1;
    const bool may_take_rows = !s.row_by_row || serves;
    checks.require(may_take_rows,
                   {F::row_by_row, F::tile_y, F::blocked_product, F::rows_per_product},
                   "row_by_row=1 on a CPU without products, of 2 rows or more that no scan goes "
                   "along",
                   s.tile_y);
  }

  void check_product(Check& checks, const DirectConfig& s, const Tile& tile) const {
    const LoopNestTiling& tiling = tile.tiling;
    const int64_t z = s.rows_per_product;
    const int64_t depth = s.block_k;
    if (!is_product(tiling, s)) return;
    const int64_t m = tile.extents[*tiling.roles.y];
    const int64_t x = tile.extents[*tiling.roles.x];
    const int64_t elements = m * x * z;
    const bool plain = m > 1 && x > 1 && s.unroll == 1 && s.reduction_tile == 1;
    const bool sized = z >= 1 && depth >= 1 && elements <= 32768;
    checks.require(plain && sized,
                   {F::blocked_product, F::tile_x, F::tile_y, F::reduction_tile, F::row_by_row,
                    F::unroll, F::rows_per_product, F::block_k},
                   "tile_x and tile_y of at least 2, unroll=1 reduction_tile=1, at most 32768 "
                   "elements",
                   elements);
    const MaybeAxis rows = tiling.roles.z;
    const bool within = z <= 1 || (rows && z <= tiling.nest.axes[*rows]);
    checks.require(within, kProductFields, "rows_per_product within its axis", z);
    checks.require(z <= 1 || !varies_along_rows_alone(tiling), kProductFields,
                   "rows_per_product=1 where a value varies along the rows and not along x", z);
    const int64_t floats = (m + x * z + 32) * depth * tiling.product->taps;  // of both operands
    checks.require_fits(4 * floats + 8192, capabilities_.shared_bytes,
                        {F::blocked_product, F::tile_x, F::tile_y, F::reduction_tile, F::row_by_row,
                         F::rows_per_product, F::block_k});
  }

  static bool varies_along_rows_alone(const LoopNestTiling& tiling) {
    const MaybeAxis rows = tiling.roles.z;
    const auto varies_alone = [&](const Expr& value) {
      if (value.kind == Kind::index) return true;
      return rows && value.varies[*rows] && !value.varies[*tiling.roles.x];
    };
    return std::ranges::any_of(tiling.nest.values, varies_alone);
  }

  void check_tile(Check& checks, const DirectConfig& s, const Tile& tile) const {
    const LoopNestTiling& tiling = tile.tiling;
    const bool gpu = capabilities_.gpu;
    checks.require(tile.is_within, kTileFields, "a tile no larger than its axes", tile.elements);
    check_unused_product(checks, s, tiling);
    checks.require(tile.bodies <= 64, {F::unroll}, "at most 64 bodies written out", tile.bodies);
    const auto is_product_of_all = [](const Expr& v) {
      return v.kind == Kind::reduce && v.op == ValueOp::mul;
    };
    const bool multiplies = std::ranges::any_of(tiling.nest.values, is_product_of_all);
    const bool one_by_one = !tiling.roles.reduction || s.reduction_tile <= 1;
    checks.require(!multiplies || one_by_one, {F::reduction_tile},
                   "reduction_tile=1 for a product of all elements", s.reduction_tile);
    checks.require(takes_boxes(tiling, tile.extents), kTileFields,
                   "tiles that are boxes of every tensor", tile.elements);
    const int64_t threads = s.warps * 32;
    const bool enough = tile.elements >= threads || s.warps <= 1;
    const bool few_each = tile.elements <= threads * 32 && enough;
    checks.require(!gpu || few_each,
                   {F::tile_x, F::tile_y, F::reduction_tile, F::row_by_row, F::warps},
                   "1 to 32 elements a thread", tile.elements);
    const bool is_moved = !gpu && is_transpose(tiling);
    checks.require(gpu || is_moved || tile.elements <= 8192,
                   {F::tile_x, F::tile_y, F::reduction_tile, F::row_by_row, F::blocked_product},
                   "at most 8192 elements a tile", tile.elements);
    checks.require(!is_moved || tile.elements <= 32768, {F::tile_x, F::tile_y, F::row_by_row},
                   "at most 32768 elements of a transpose a tile", tile.elements);
  }

  // Without a product its fields stay at their first values, so that no kernel has two configs.
  static void check_unused_product(Check& checks, const DirectConfig& s,
                                   const LoopNestTiling& tiling) {
    const bool unset = s.rows_per_product <= 1 && s.block_k <= 0;
    const bool one_row = tiling.product && s.rows_per_product == 1;
    const bool first = one_row && s.block_k == product_depths(tiling).front();
    const bool as_it_comes = is_product(tiling, s) || unset || first;
    checks.require(as_it_comes, {F::blocked_product, F::rows_per_product, F::block_k},
                   "rows_per_product and block_k as they come without products", s.block_k);
  }

  std::vector<LoopNestTiling> tilings_;
};
}  // namespace

std::vector<int64_t> tile_of(const LoopNestTiling& tiling, const DirectConfig& config) {
  std::vector<int64_t> tile(tiling.nest.axes.size(), 1);
  int64_t rest = config.tile_x;
  for (const size_t axis : tiling.wide) {
    const bool is_last = axis == tiling.wide.back();
    tile[axis] = is_last ? rest : std::min(rest, power_of_two_above(tiling.nest.axes[axis]));
    rest /= tile[axis];
  }
  if (tiling.roles.y) tile[*tiling.roles.y] = config.row_by_row ? 1 : config.tile_y;
  if (tiling.roles.reduction) tile[*tiling.roles.reduction] = config.reduction_tile;
  return tile;
}

LoopKernelOptions options_of(const LoopNestTiling& tiling, const DirectConfig& config,
                             const Capabilities& capabilities) {
  LoopKernelOptions options;
  options.extents = tile_of(tiling, config);
  if (is_row_by_row(tiling, config)) options.rows_in_turn = config.tile_y;
  options.unroll = config.unroll;
  options.multiplies = config.blocked_product;
  options.rows_per_product = config.rows_per_product;
  options.block_k = config.block_k;
  if (tiling.scanned) options.ctas_per_scan = config.ctas_per_scan;
  options.nontemporal_store = config.nontemporal_store;
  if (capabilities.gpu) options.warps = as_int(config.warps);
  return options;
}

void add_program(Family::Programs& out, const std::string& name, LoopNest nest, int64_t tile_y,
                 int64_t tile_x, const Capabilities& capabilities) {
  const LoopNestTiling tiling = *tiling_of(normal_form(std::move(nest)), capabilities.gpu);
  const auto up_to = [](int64_t most, int64_t all) {
    int64_t size = 1;
    while (size < most && size < all)
      size *= 2;
    return size;
  };
  const MaybeAxis y = tiling.roles.y;
  const int64_t high = up_to(tile_y, y ? tiling.nest.axes[*y] : 1);
  int64_t wide = up_to(y ? tile_x : tile_y * tile_x, widest(tiling));
  int64_t elements = 1;
  for (size_t a = 0; a < tiling.nest.axes.size(); ++a)
    elements *= tiling.reduced[a] ? 1 : tiling.nest.axes[a];
  // A tile for everyone.
  while (wide > 64 && elements < high * wide * capabilities.num_sms)
    wide /= 2;
  const int64_t warps = std::clamp<int64_t>(high * wide / 128, 1, 8);
  DirectConfig config;
  config.tile_x = wide;
  config.tile_y = high;
  config.reduction_tile = 1;
  config.unroll = 32;
  config.warps = warps;
  add_loop_kernel(out, tiling, options_of(tiling, config, capabilities), capabilities, name);
}
}  // namespace direct

FamilyPtr direct_family(const Region& region, const Capabilities& capabilities) {
  auto tilings = direct::tilings_of(region, capabilities);
  if (tilings.empty()) return nullptr;
  return std::make_shared<direct::Direct>(std::move(tilings), capabilities);
}
}  // namespace warploom::kernels
