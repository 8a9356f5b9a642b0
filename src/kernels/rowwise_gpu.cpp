// RowReduction on a GPU. A row's place is a field: in the registers of one block or of a cluster of
// blocks (one pass over memory), the same fed by a ring of rows that arrive while others are
// computed, in shared memory (one pass, longer rows), or nowhere (one pass over memory for each of
// the nest's). More blocks than a cluster of the target has share a row as well, up to one a
// multiprocessor: they run at the same time, take one row after another and meet in memory.
#include "kernels/pieces/row_kernel.h"
#include "kernels/pieces/row_ring.h"

namespace warploom::kernels {
namespace {
enum Place : int64_t { kRegisters = 0, kShared = 1, kStreamed = 2, kRing = 3 };

class RowwiseGpu final : public Family {
 public:
  RowwiseGpu(RowReduction rows, const Capabilities& capabilities)
      : Family("rowwise", capabilities, Specialization::general), rows_(std::move(rows)) {}

  Space space() const override {
    Values clusters = {1};
    Values together = {1, 2, 4, 8, 16};
    for (int64_t c = 2; c <= capabilities_.num_sms; c *= 2) clusters.push_back(c);
    if (rows_.interleaved) together = {32, 64, 16, 128, 8, 256};
    if (const auto most = power_of_two_above(rows_.size(rows_.tiled_outer));
        rows_.interleaved && most < 8)
      together = {most};
    return {name(),
            {{"place",
              {kRegisters, kRing, kShared, kStreamed},
              "where the row stays: 0 registers, 3 registers fed by a ring of rows, 1 shared "
              "memory, 2 nowhere"},
             {"cluster", clusters, "blocks that share a row"},
             {"warps", {8, 4, 16, 32, 2, 1}, "warps a block"},
             {"rows", together, "rows a block takes at once"},
             {"chunk",
              {4, 8, 16},
              "elements a thread takes at once; where the row is in registers 4 is all of it"},
             {"stages", {2, 3, 4, 1}, "rows of a ring"},
             {"blocks", {2, 1, 3, 4}, "blocks a multiprocessor holds, where a ring feeds them"}}};
  }

  Status legal(const Schedule& s) const override {
    const auto threads = field(s, "warps") * 32;
    const auto together = field(s, "rows");
    const auto cluster = field(s, "cluster");
    const auto place = field(s, "place");
    const auto chunk = field(s, "chunk");
    const auto stages = field(s, "stages", 2);
    const auto blocks = field(s, "blocks", 2);
    const bool ring = place == kRing;
    const bool registers = place == kRegisters || ring;
    const bool pieces = registers && chunk != 4;
    const auto extent = extents(s);
    int64_t part = 1;
    int64_t held = 1;  // elements of a tile; of all of a row, or of its cluster's block's part
    for (const size_t axis : rows_.dims) {
      part *= extent[axis];
      held *= axis == rows_.tiled_outer
                  ? extent[axis]
                  : round_up(ceil_div(rows_.size(axis), axis == rows_.row.back() ? cluster : 1),
                             extent[axis]);
    }
    const int64_t size = rows_.row_size();
    const int64_t slots = rows_.kept_sets();
    const int64_t across = rows_.size(rows_.tiled_outer);
    const int64_t values = held / threads * std::max<int64_t>(1, slots);
    const int64_t longest = power_of_two_above(size / cluster) * together;
    const bool outside = rows_.interleaved;
    const int64_t most = threads <= 512 ? 64 : rows_.nest.loads.size() == 1 && !outside ? 32 : 16;
    WARPLOOM_CHECK(check_constraints(
        s,
        {{in_memory(s) && cluster > capabilities_.num_sms, "no more blocks than multiprocessors",
          cluster},
         {ring && in_memory(s) && blocks != 1, "blocks=1 where they meet in memory", blocks},
         {!ring && (stages != 2 || blocks != 2), "stages=2 blocks=2 where there is no ring", place},
         {ring && threads * blocks > 2048, "at most 2048 threads a multiprocessor",
          threads * blocks},
         {cluster > 1 && (rows_.row.size() > 1 || size < 1024 * cluster),
          "cluster=1, or 1024 elements of one axis a block", size},
         {cluster > 1 && place == kStreamed && rows_.row_count() >= capabilities_.num_sms,
          "cluster=1 where enough rows are streamed", cluster},
         {together > 1 && !outside && (cluster > 1 || place != kRegisters || pieces),
          "rows=1 with clusters, a ring, pieces, shared memory or streaming", together},
         {together > (outside ? power_of_two_above(across) : across), "no more rows than there are",
          together},
         {place == kShared && slots == 0, "place=0 or place=2 where nothing is used twice", place},
         {pieces && (outside || rows_.row.size() > 1 || slots == 0 || part == held),
          "chunk=4, or a row of several chunks", chunk},
         {registers && !pieces && values > 32 && rows_.nest.loads.size() > 1,
          "chunk=8 or 16: long rows of several tensors in pieces", values},
         {registers && (part < threads || values > most),
          "1 to 64 elements a thread (with more than 16 warps 32, or 16 of several tensors or side "
          "by side)",
          values},
         {!registers && (threads * chunk < together || threads * chunk > longest),
          "a chunk no longer than the row", threads * chunk},
         {ring &&
              (outside || rows_.row.size() > 1 || held * cluster != size || feeds_.size() != 1 ||
               !std::ranges::all_of(rows_.nest.loads, &Access::in_bounds)),
          "a row that the tiles divide, of one tensor", size}}));
    int64_t bytes = place == kShared ? held * slots * 4 + 4096 : 0;
    if (ring)
      bytes = (stages * held * bytes_of(rows_.nest.loads[at(*feeds_.begin())].dtype) +
               RowRing::kReductionBytes) *
              blocks;
    return fits(s, bytes);
  }

  Result<Programs> programs(const Schedule& s) const override {
    const int64_t ctas_per_row = field(s, "cluster");
    const bool ring = field(s, "place") == kRing;
    RowKernel kernel(rows_, options_of(s));
    RowTiles& tiles = kernel.tiles;
    const bool in_turn = ring || in_memory(s);  // CTAs take one row after another
    const int64_t groups = tiles.row_groups();
    const int64_t at_once = in_memory(s)
                                ? capabilities_.num_sms / ctas_per_row
                                : capabilities_.clusters_at_once(ctas_per_row, field(s, "blocks"));
    const int64_t workers = in_turn ? std::clamp<int64_t>(at_once, 1, groups) : groups;
    tiles.b.grid(workers * ctas_per_row).warps(static_cast<int>(field(s, "warps")));
    if (in_memory(s))
      tiles.b.cooperative();
    else if (ctas_per_row > 1)
      tiles.b.cluster(ctas_per_row);
    const auto compute = [&](const Index& group) {
      tiles.go_to_rows(group);
      if (whole(s))
        compute_in_registers(kernel);
      else
        compute_in_passes(kernel, field(s, "place") != kStreamed);
    };
    const Index first = tile::block(0) / ctas_per_row;
    std::optional<RowRing> buffer;
    if (ring) buffer.emplace(kernel, ring_options(s, workers)).start(first);
    if (in_turn)
      tiles.b.for_("r", first, groups, workers, compute);
    else
      compute(first);
    Programs out;
    tiles.draft.finish(out);
    return out;
  }

 private:
  // Of a tile: all of the row or of a block's part of it, in whole vectors a thread, where it is in
  // registers; else a chunk.
  std::vector<int64_t> extents(const Schedule& s) const {
    std::vector<int64_t> extent(rows_.nest.axes.size() + 1, 1);
    extent[rows_.tiled_outer] = field(s, "rows");
    int64_t unit = std::max<int64_t>(
        1, field(s, "warps") * 32 * (whole(s) ? 1 : field(s, "chunk")) / field(s, "rows"));
    for (size_t i = rows_.row.size(); i-- > 0;) {
      const bool fastest = i + 1 == rows_.row.size();
      const int64_t part = ceil_div(rows_.size(rows_.row[i]), fastest ? field(s, "cluster") : 1);
      if (whole(s) && fastest && !rows_.interleaved && part >= unit * 4) unit *= 4;
      int64_t& own = extent[rows_.row[i]];
      if (i > 0 && part < unit)
        own = power_of_two_above(part);
      else
        own = whole(s) ? round_up(part, unit) : unit;
      unit = std::max<int64_t>(1, unit / own);
    }
    return extent;
  }

  RowKernelOptions options_of(const Schedule& s) const {
    return {.extents = extents(s),
            .ctas_per_row = field(s, "cluster"),
            .exchange_in_memory = in_memory(s),
            .unrolled = in_registers(s) && !whole(s),
            .nontemporal_store = in_memory(s),  // rows that large leave nothing else in the L2
            .threads = field(s, "warps") * 32,
            .l2_bytes = capabilities_.l2_bytes};
  }

  RowRingOptions ring_options(const Schedule& s, int64_t workers) const {
    return {.load = at(*feeds_.begin()),
            .stages = field(s, "stages"),
            .workers = workers,
            .shared_bytes = capabilities_.shared_bytes / field(s, "blocks")};
  }

  static bool in_registers(const Schedule& s) {
    return field(s, "place") == kRegisters || field(s, "place") == kRing;
  }

  static bool whole(const Schedule& s) {
    return in_registers(s) && field(s, "chunk") == 4;
  }  // is a tile, all of a row

  bool in_memory(const Schedule& s) const {
    return field(s, "cluster") > capabilities_.max_cluster;
  }

  RowReduction rows_;
  std::set<int> feeds_ = loads_that_fill_tiles(rows_);
};
}  // namespace

FamilyPtr rowwise_gpu_family(const Region& region, const Capabilities& capabilities) {
  auto rows = capabilities.gpu ? read_rows(region.nests()) : std::nullopt;
  return rows ? std::make_shared<RowwiseGpu>(*std::move(rows), capabilities) : nullptr;
}
}  // namespace warploom::kernels
