// RowReduction on a GPU. A row's place is a field: in the registers of one block or of a cluster of
// blocks (one pass over memory), the same fed by a ring of rows that arrive while others are
// computed, in shared memory (one pass, longer rows), or nowhere (one pass over memory for each of
// the nest's). More blocks than a cluster of the target has share a row as well, up to one a
// multiprocessor: they run at the same time, take one row after another and meet in memory.
#include "kernels/row_program.h"

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
      bytes = (stages * held * bytes_of(rows_.nest.loads[at(*feeds_.begin())].dtype) + kBeside) *
              blocks;
    return fits(s, bytes);
  }

  Result<Programs> programs(const Schedule& s) const override {
    const int64_t cluster = field(s, "cluster");
    RowProgram p(rows_, extents(s), cluster);
    p.l2_bytes = capabilities_.l2_bytes;
    p.threads = field(s, "warps") * 32;
    p.in_pieces = in_registers(s) && !whole(s);
    p.in_memory = p.streaming =
        in_memory(s);  // a row that large leaves what stays in the L2 no room
    const bool ring = field(s, "place") == kRing;
    const bool turns = ring || p.in_memory;  // blocks take one row after another
    const int64_t all = p.tiles(p.rows.outer);
    const int64_t at_once = p.in_memory
                                ? capabilities_.num_sms / cluster
                                : capabilities_.clusters_at_once(cluster, field(s, "blocks"));
    const int64_t workers = turns ? std::clamp<int64_t>(at_once, 1, all) : all;
    p.b.grid(workers * cluster).warps(static_cast<int>(p.threads / 32));
    if (p.in_memory)
      p.b.cooperative();
    else if (cluster > 1)
      p.b.cluster(cluster);
    const auto compute = [&](const Index& rows) {
      p.go_to(rows);
      if (whole(s))
        p.in_registers();
      else
        p.in_passes(field(s, "place") != kStreamed);
    };
    const Index first = tile::block(0) / cluster;
    if (ring) in_ring(p, s, first, workers);
    if (turns)
      p.b.for_("r", first, all, workers, compute);
    else
      compute(first);
    Programs out;
    p.draft.finish(out);
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

  // The loads that the first pass makes along all of a tile.
  static std::set<int> feeds(const RowReduction& rows) {
    std::set<int> out;
    const auto visit = [&](const auto& self, int id) -> void {
      const RowTerm& term = rows.term(id);
      if (term.kind == RowTerm::Kind::load && rows.fills_tile(term.varies)) out.insert(term.load);
      for (const int arg : term.operands) self(self, arg);
    };
    for (const int root : rows.passes[0].roots(rows)) visit(visit, root);
    return out;
  }

  // Fills the ring before the first row. What a row loads first it takes from there, and fetches
  // another. Beside the ring stays what every row takes, as much of it as fits, where a block has
  // several.
  void in_ring(RowProgram& p, const Schedule& s, const Index& first, int64_t workers) const {
    auto& b = p.b;
    const size_t load = at(*feeds_.begin());
    const Access& access = p.rows.nest.loads[load];
    const int64_t stages = field(s, "stages");
    const int64_t ahead = std::max<int64_t>(1, stages - 1);
    const int64_t extent = p.at.extent[p.rows.row[0]];
    const int64_t pieces = p.tiles(p.rows.row);
    const TensorId slot = b.shared("slot", access.dtype, {1, extent * pieces});
    const int64_t slots = stages * extent * pieces * bytes_of(access.dtype);
    std::set<int> same;
    int64_t bytes = 0;  // of a tile of them
    for (size_t i = 0; i < rows_.nest.loads.size(); ++i) {
      const Access& each = rows_.nest.loads[i];
      const auto used = [&](size_t axis) { return each.uses(axis); };
      if (each.in_bounds && std::ranges::all_of(rows_.row, used) &&
          std::ranges::none_of(rows_.outer, used)) {
        same.insert(static_cast<int>(i));
        bytes += extent * bytes_of(each.dtype);
      }
    }
    p.go_to(first);
    if (!same.empty() && p.tiles(p.rows.outer) >= 4 * workers)
      p.stay(same,
             std::min(pieces,
                      (capabilities_.shared_bytes / field(s, "blocks") - slots - kBeside) / bytes));
    const auto ring = b.pipeline("ring", static_cast<int>(stages), {slot});
    const auto produce = [=, &p, &b](const Index& r) {
      p.go_to(r);
      TileCoord row = p.at;
      row.extent[p.rows.row[0]] = extent * pieces;
      b.produce(ring, [&] { b.copy(p.in[load].at(row), b.all(slot), 0, p.in_memory); });
    };
    for (int64_t i = 0; i < ahead; ++i) produce(first + i * workers);
    p.fetch = [=, &p, &b, dtype = access.dtype](TensorId to) {
      const auto arrived = [&](int64_t i) {
        return pieces == 1 ? to
                           : p.reg(fmt::format("arrived{}", i),
                                   std::vector<bool>(p.start.size(), true), dtype);
      };
      if (p.piece > 0) return b.copy(b.all(arrived(p.piece)), b.all(to));
      b.consume(ring, 0, [&] {
        for (int64_t i = 0; i < pieces; ++i)
          b.copy(b.tile(slot, {0, i * extent}, {1, extent}), b.all(arrived(i)));
      });
      const auto refill = [=, &p, r = p.group] {
        produce(r + ahead * workers);
        p.go_to(r);
      };
      if (p.in_memory)
        p.meanwhile.push_back(refill);
      else
        refill();
      if (pieces > 1) b.copy(b.all(arrived(0)), b.all(to));
    };
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

  static constexpr int64_t kBeside = 1024;  // bytes for reductions, beside a ring
  RowReduction rows_;
  std::set<int> feeds_ = feeds(rows_);
};
}  // namespace

FamilyPtr rowwise_gpu_family(const Region& region, const Capabilities& capabilities) {
  auto rows = capabilities.gpu ? read_rows(region.nests()) : std::nullopt;
  return rows ? std::make_shared<RowwiseGpu>(*std::move(rows), capabilities) : nullptr;
}
}  // namespace warploom::kernels
