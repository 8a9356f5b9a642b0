// Row reductions on a GPU. Where a row stays between passes is a choice: in the registers of one
// CTA or of a cluster of CTAs (one pass over memory), the same fed by a circular buffer of rows
// that arrive while others are computed, in shared memory (one pass, longer rows), or nowhere (one
// pass over memory for each of the nest's). More CTAs than a cluster of the target has share a row
// as well, up to one a multiprocessor: they run at the same time, take one row after another and
// exchange in global memory.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_kernel.h"
#include "kernels/pieces/row_pipeline.h"
#include "kernels/pieces/row_tiles.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reduction.h"
#include "tile/index.h"

namespace warploom::kernels {
namespace {
using F = RowwiseConfig::Field;
using Check = Checks<RowwiseConfig>;

// elems_per_thread where a tile in registers is all of a row.
constexpr int64_t kElemsOfWholeRow = 4;

// What says how large a tile is.
constexpr std::initializer_list<F> kTileFields = {F::row_residency, F::elems_per_thread, F::warps,
                                                  F::rows_per_cta, F::ctas_per_row};

bool is_buffered(const RowwiseConfig& s) {
  return s.row_residency == RowResidency::circular_buffer;
}

bool is_in_registers(const RowwiseConfig& s) {
  return s.row_residency == RowResidency::registers || is_buffered(s);
}

// Whether a tile is a whole row, or a CTA's part of it.
bool is_whole_row(const RowwiseConfig& s) {
  return is_in_registers(s) && s.elems_per_thread == kElemsOfWholeRow;
}

// Whether a row in registers is taken in several tiles.
bool is_unrolled(const RowwiseConfig& s) {
  return is_in_registers(s) && !is_whole_row(s);
}

// The extents of a tile. In registers all of a row or of a CTA's part of it, in whole vectors a
// thread; else elems_per_thread elements a thread.
std::vector<int64_t> extents_of(const RowReduction& rows, const RowwiseConfig& s) {
  constexpr int64_t kVector = 4;  // elements
  std::vector<int64_t> extent(rows.nest.axes.size() + 1, 1);
  extent[rows.tiled_outer] = s.rows_per_cta;
  const bool whole = is_whole_row(s);
  const int64_t elements = s.warps * 32 * (whole ? 1 : s.elems_per_thread);
  int64_t unit = std::max<int64_t>(1, elements / s.rows_per_cta);
  for (size_t i = rows.row.size(); i-- > 0;) {
    const bool is_fastest = i + 1 == rows.row.size();
    const int64_t ctas = is_fastest ? s.ctas_per_row : 1;
    const int64_t part = ceil_div(rows.size(rows.row[i]), ctas);
    const bool has_vectors = is_fastest && !rows.interleaved && part >= unit * kVector;
    if (whole && has_vectors) unit *= kVector;
    int64_t& own = extent[rows.row[i]];
    if (i > 0 && part < unit)
      own = power_of_two_above(part);
    else
      own = whole ? round_up(part, unit) : unit;
    unit = std::max<int64_t>(1, unit / own);
  }
  return extent;
}

// A tile, as constraints see it.
struct Tile {
  int64_t elements = 1;
  int64_t kept = 1;    // elements of all of a row, or of a CTA's part of it
  int64_t values = 0;  // a thread, of what passes keep in registers

  Tile(const RowReduction& rows, const RowwiseConfig& s) {
    const auto extent = extents_of(rows, s);
    for (const size_t axis : rows.dims) {
      elements *= extent[axis];
      const int64_t ctas = axis == rows.row.back() ? s.ctas_per_row : 1;
      const int64_t part = round_up(ceil_div(rows.size(axis), ctas), extent[axis]);
      kept *= axis == rows.tiled_outer ? extent[axis] : part;
    }
    const int64_t sets = std::max<int64_t>(1, rows.kept_sets());
    values = kept / (s.warps * 32) * sets;
  }
};

class RowwiseGpu final : public Family {
 public:
  RowwiseGpu(RowReduction rows, const Capabilities& capabilities)
      : Family(RowwiseConfig::type(), capabilities, Specialization::general),
        rows_(std::move(rows)) {}

  Space space() const override {
    Values ctas = {1};
    for (int64_t c = 2; c <= capabilities_.num_sms; c *= 2)
      ctas.push_back(c);
    const Values residencies = choices(RowResidency::registers, RowResidency::circular_buffer,
                                       RowResidency::smem, RowResidency::reread);
    Space space{name(), {}};
    space.offer<RowwiseConfig>(F::row_residency, residencies);
    space.offer<RowwiseConfig>(F::ctas_per_row, ctas);
    space.offer<RowwiseConfig>(F::warps, {8, 4, 16, 32, 2, 1});
    space.offer<RowwiseConfig>(F::rows_per_cta, row_counts());
    space.offer<RowwiseConfig>(F::elems_per_thread, {4, 8, 16});
    space.offer<RowwiseConfig>(F::stages, {2, 3, 4, 1});
    space.offer<RowwiseConfig>(F::ctas_per_sm, {2, 1, 3, 4});
    return space;
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const auto& s = config.as<RowwiseConfig>();
    Check checks;
    check_launch(checks, s);
    check_rows(checks, s);
    const Tile tile(rows_, s);
    check_tile(checks, s, tile);
    check_buffer(checks, s, tile);
    check_memory(checks, s, tile);
    return std::move(checks).failed();
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    const auto& s = config.as<RowwiseConfig>();
    RowKernel kernel(rows_, options_of(s));
    RowTiles& tiles = kernel.tiles;
    const bool takes_turns = is_buffered(s) || exchanges_in_memory(s);  // one row after another
    const int64_t groups = tiles.row_groups();
    int64_t workers = groups;
    if (takes_turns) workers = std::clamp<int64_t>(groups_at_once(s), 1, groups);
    tiles.b.grid(workers * s.ctas_per_row).warps(as_int(s.warps));
    if (exchanges_in_memory(s))
      tiles.b.cooperative();
    else if (s.ctas_per_row > 1)
      tiles.b.cluster(s.ctas_per_row);
    const auto compute = [&](const Index& group) {
      tiles.go_to_rows(group);
      if (is_whole_row(s))
        compute_in_registers(kernel);
      else
        compute_in_passes(kernel, s.row_residency != RowResidency::reread);
    };
    const Index first = tile::block(0) / s.ctas_per_row;
    std::optional<RowPipeline> buffer;
    if (is_buffered(s)) buffer.emplace(kernel, buffer_options(s, workers)).start(first);
    if (takes_turns)
      tiles.b.for_("r", first, groups, workers, compute);
    else
      compute(first);
    Programs out;
    tiles.draft.finish(out);
    return out;
  }

 private:
  Values row_counts() const {
    if (!rows_.interleaved) return {1, 2, 4, 8, 16};
    const int64_t most = power_of_two_above(rows_.size(rows_.tiled_outer));
    return most < 8 ? Values{most} : Values{32, 64, 16, 128, 8, 256};
  }

  // The CTAs of a row are more than a cluster of the target has.
  bool exchanges_in_memory(const RowwiseConfig& s) const {
    return s.ctas_per_row > capabilities_.max_cluster;
  }

  // How many groups of CTAs, a row each, run at the same time. Where they exchange in global memory
  // one's row is loaded while another's waits for its parts.
  int64_t groups_at_once(const RowwiseConfig& s) const {
    if (exchanges_in_memory(s)) return capabilities_.num_sms * ctas_that_fit(s) / s.ctas_per_row;
    return capabilities_.clusters_at_once(s.ctas_per_row, s.ctas_per_sm);
  }

  // CTAs of rows in shared memory that a multiprocessor holds at the same time.
  int64_t ctas_that_fit(const RowwiseConfig& s) const {
    constexpr int64_t kMost = 3;
    constexpr int64_t kReserved = 1024;  // bytes a CTA, the hardware's own
    if (s.row_residency != RowResidency::smem) return 1;
    const int64_t by_memory =
        (capabilities_.shared_bytes + kReserved) / (shared_bytes_of(s, Tile(rows_, s)) + kReserved);
    const int64_t by_threads = capabilities_.threads_per_sm / (s.warps * 32);
    return std::clamp<int64_t>(std::min(by_memory, by_threads), 1, kMost);
  }

  void check_launch(Check& checks, const RowwiseConfig& s) const {
    const bool in_memory = exchanges_in_memory(s);
    const int64_t threads_per_sm = s.warps * 32 * s.ctas_per_sm;
    const bool buffered = is_buffered(s);
    const bool one_each = s.ctas_per_row <= capabilities_.num_sms;
    checks.require(!in_memory || one_each, {F::ctas_per_row},
                   "no more CTAs a row than multiprocessors", s.ctas_per_row);
    const bool alone = s.ctas_per_sm == 1;
    checks.require(!buffered || !in_memory || alone,
                   {F::row_residency, F::ctas_per_row, F::ctas_per_sm},
                   "ctas_per_sm=1 where CTAs exchange in global memory", s.ctas_per_sm);
    const bool unset = s.stages == 2 && s.ctas_per_sm == 2;
    checks.require(buffered || unset, {F::row_residency, F::stages, F::ctas_per_sm},
                   "stages=2 ctas_per_sm=2 without a circular buffer", s.stages);
    checks.require(!buffered || threads_per_sm <= capabilities_.threads_per_sm,
                   {F::row_residency, F::warps, F::ctas_per_sm},
                   "no more threads than a multiprocessor holds", threads_per_sm);
  }

  void check_rows(Check& checks, const RowwiseConfig& s) const {
    const int64_t size = rows_.row_size();
    const int64_t outer = rows_.size(rows_.tiled_outer);
    const bool shares_rows = s.ctas_per_row > 1;
    // A CTA's part of the last axis is read in whole sectors.
    constexpr int64_t kLeast = 1024;
    constexpr int64_t kLeastOfAxis = 32;
    const bool is_long = size >= kLeast * s.ctas_per_row &&
                         rows_.size(rows_.row.back()) >= kLeastOfAxis * s.ctas_per_row;
    const bool has_one_axis = rows_.row.size() == 1;
    checks.require(!shares_rows || is_long, {F::ctas_per_row},
                   "ctas_per_row=1, or 1024 elements a CTA, 32 of the last axis", size);
    const bool may_share = has_one_axis || !rows_.interleaved;
    checks.require(!shares_rows || may_share, {F::ctas_per_row},
                   "ctas_per_row=1 where neighbours in memory are of several rows", s.ctas_per_row);
    const bool rereads = s.row_residency == RowResidency::reread;
    const bool few_rows = rows_.row_count() < capabilities_.num_sms;
    checks.require(!shares_rows || !rereads || few_rows, {F::ctas_per_row, F::row_residency},
                   "ctas_per_row=1 where enough rows are read again", s.ctas_per_row);
    const bool in_plain_registers = s.row_residency == RowResidency::registers && !is_unrolled(s);
    const bool may_have_more = rows_.interleaved || (!shares_rows && in_plain_registers);
    checks.require(s.rows_per_cta == 1 || may_have_more,
                   {F::rows_per_cta, F::ctas_per_row, F::row_residency, F::elems_per_thread},
                   "rows_per_cta=1 but for whole rows in registers", s.rows_per_cta);
    const int64_t most = rows_.interleaved ? power_of_two_above(outer) : outer;
    checks.require(s.rows_per_cta <= most, {F::rows_per_cta}, "no more rows than there are",
                   s.rows_per_cta);
    const int64_t kept_sets = rows_.kept_sets();
    checks.require(s.row_residency != RowResidency::smem || kept_sets > 0, {F::row_residency},
                   "registers or reread where nothing is used twice", kept_sets);
  }

  void check_tile(Check& checks, const RowwiseConfig& s, const Tile& tile) const {
    const int64_t threads = s.warps * 32;
    const bool one_load = rows_.nest.loads.size() == 1;
    const bool plain_row = !rows_.interleaved && rows_.row.size() == 1;
    const bool has_tiles = plain_row && rows_.kept_sets() > 0 && tile.elements != tile.kept;
    checks.require(!is_unrolled(s) || has_tiles, kTileFields,
                   "elems_per_thread=4, or a row of several tiles", s.elems_per_thread);
    checks.require(!is_whole_row(s) || tile.values <= 32 || one_load, kTileFields,
                   "elems_per_thread=8 or 16: long rows of several tensors in tiles", tile.values);
    const bool fits = tile.elements >= threads && tile.values <= most_values(threads);
    checks.require(
        !is_in_registers(s) || fits, kTileFields,
        "1 to 64 elements a thread (with more than 16 warps 32, or 16 of several tensors "
        "or side by side)",
        tile.values);
    const int64_t taken = threads * s.elems_per_thread;
    const int64_t part = power_of_two_above(rows_.row_size() / s.ctas_per_row);
    const bool within_row = taken >= s.rows_per_cta && taken <= part * s.rows_per_cta;
    checks.require(is_in_registers(s) || within_row, kTileFields, "tiles no longer than the row",
                   taken);
  }

  // Elements a thread may have in registers.
  int64_t most_values(int64_t threads) const {
    if (threads <= 512) return 64;
    return rows_.nest.loads.size() == 1 && !rows_.interleaved ? 32 : 16;
  }

  void check_buffer(Check& checks, const RowwiseConfig& s, const Tile& tile) const {
    const int64_t size = rows_.row_size();
    const bool divides = tile.kept * s.ctas_per_row == size;
    const bool is_one_tensor = loads_that_fill_tiles_.size() == 1 &&
                               std::ranges::all_of(rows_.nest.loads, &Access::in_bounds);
    const bool serves = !rows_.interleaved && rows_.row.size() == 1 && divides && is_one_tensor;
    checks.require(!is_buffered(s) || serves, kTileFields,
                   "a row that the tiles divide, of one tensor", size);
  }

  // What rows that are kept in shared memory take of it.
  int64_t shared_bytes_of(const RowwiseConfig& s, const Tile& tile) const {
    constexpr int64_t kReductions = 4096;  // bytes, beside rows
    if (s.row_residency != RowResidency::smem) return 0;
    return tile.kept * rows_.kept_sets() * 4 + kReductions;
  }

  void check_memory(Check& checks, const RowwiseConfig& s, const Tile& tile) const {
    int64_t bytes = shared_bytes_of(s, tile);
    if (is_buffered(s) && loads_that_fill_tiles_.size() == 1) {
      const int64_t row = tile.kept * bytes_of(rows_.nest.loads[buffered_load()].dtype);
      bytes = (s.stages * row + RowPipeline::kReductionBytes) * s.ctas_per_sm;
    }
    checks.require_fits(bytes, capabilities_.shared_bytes,
                        {F::row_residency, F::elems_per_thread, F::warps, F::rows_per_cta,
                         F::ctas_per_row, F::stages, F::ctas_per_sm});
  }

  RowKernelOptions options_of(const RowwiseConfig& s) const {
    RowKernelOptions options;
    options.extents = extents_of(rows_, s);
    options.ctas_per_row = s.ctas_per_row;
    options.exchange_in_memory = exchanges_in_memory(s);
    options.unrolled = is_unrolled(s);
    // Rows that large leave nothing else in the L2.
    options.nontemporal_store = exchanges_in_memory(s);
    options.threads = s.warps * 32;
    options.compensated_sums = loses_much(options.extents, s);
    options.l2_bytes = capabilities_.l2_bytes;
    return options;
  }

  // A lane of a tile adds up as many numbers as a row has tiles. Rounding them one after another
  // loses with the root of that number. That lanes even it out cannot be counted on: where a few
  // elements are far larger than all others, so are the sums of a few lanes.
  bool loses_much(const std::vector<int64_t>& extents, const RowwiseConfig& s) const {
    int64_t tiles = 1;
    for (const size_t axis : rows_.row) {
      const int64_t ctas = axis == rows_.row.back() ? s.ctas_per_row : 1;
      tiles *= ceil_div(rows_.size(axis), extents[axis] * ctas);
    }
    return tiles > kManyTiles;
  }

  RowPipelineOptions buffer_options(const RowwiseConfig& s, int64_t workers) const {
    RowPipelineOptions options;
    options.load = buffered_load();
    options.stages = s.stages;
    options.workers = workers;
    options.shared_bytes = capabilities_.shared_bytes / s.ctas_per_sm;
    return options;
  }

  size_t buffered_load() const { return as_size(*loads_that_fill_tiles_.begin()); }

  RowReduction rows_;
  std::set<int> loads_that_fill_tiles_ = loads_that_fill_tiles(rows_);
};
}  // namespace

FamilyPtr rowwise_gpu_family(const Region& region, const Capabilities& capabilities) {
  if (!capabilities.gpu) return nullptr;
  auto rows = read_rows(region.nests());
  return rows ? std::make_shared<RowwiseGpu>(*std::move(rows), capabilities) : nullptr;
}
}  // namespace warploom::kernels
