// Row reductions on the CPU.
//
// A task computes rows_per_task rows. A row that fits in one register tile stays there. A longer
// one is walked in chunks, once for each pass of the nest (softmax: once for maximum and sum
// together, then for the result). With row_in_scratch=1 what passes keep stays in scratch memory
// (the L2 cache) in between, so memory is read once and written once; else the row is read again.
// Where neighbours in memory belong to different rows, a task takes rows_per_task of them at once,
// side by side in vectors.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_chunked_softmax.h"
#include "kernels/pieces/row_kernel.h"
#include "kernels/pieces/row_tiles.h"
#include "loopnest/row_reduction.h"
#include "tile/index.h"

namespace warploom::kernels {
namespace {
using F = CpuRowwiseConfig::Field;

// Elements that a register tile may have and still sit in the L1 cache.
constexpr int64_t kLongestChunk = 2048;

class RowwiseCpu final : public Family {
 public:
  RowwiseCpu(RowReduction rows, const Capabilities& capabilities)
      : Family(CpuRowwiseConfig::type(), capabilities, Specialization::general),
        rows_(std::move(rows)) {}

  Space space() const override {
    const Values counts = row_counts();
    const Values stores = all_f32() ? choices(true, false) : choices(false);
    Space space{name(), {}};
    space.offer<CpuRowwiseConfig>(F::chunk, chunks());
    space.offer<CpuRowwiseConfig>(F::rows_per_task, counts);
    space.offer<CpuRowwiseConfig>(F::row_in_scratch, residencies(counts[0]));
    space.offer<CpuRowwiseConfig>(F::nontemporal_store, stores);
    return space;
  }

  FailedConstraints constraints(const KernelConfig& config) const override {
    const auto& s = config.as<CpuRowwiseConfig>();
    Checks<CpuRowwiseConfig> checks;
    const bool some = s.chunk >= 1 && s.rows_per_task >= 1;
    checks.require(some, {F::chunk, F::rows_per_task}, "chunk and rows_per_task of at least 1",
                   s.chunk);
    const bool too_wide = rows_.interleaved && s.rows_per_task > kLongestChunk;
    const bool fits_registers = s.chunk <= kLongestChunk && !too_wide;
    checks.require(fits_registers, {F::chunk, F::rows_per_task}, "a chunk that registers hold",
                   s.chunk);
    const bool in_scratch = s.row_in_scratch && !is_whole_row(s);
    const int64_t bytes = in_scratch ? scratch_bytes(s.rows_per_task) : 0;
    checks.require_fits(bytes, capabilities_.shared_bytes,
                        {F::chunk, F::rows_per_task, F::row_in_scratch});
    return std::move(checks).failed();
  }

  // Cycles: memory or L2 traffic and arithmetic, the overhead of chunks and rows, and idle cores.
  double guess(const KernelConfig& config) const override {
    const auto& s = config.as<CpuRowwiseConfig>();
    const auto count = as_double(s.rows_per_task);
    const auto rows = as_double(rows_.row_count());
    const double tasks = std::ceil(rows / count);
    // A task's first and last passes share their loop with no other, and at the end cores wait for
    // each other's last task.
    const double turns = std::ceil(tasks / capabilities_.num_sms) + 0.5;
    return turns * ((count + 0.5) * cycles_of_row(s) + 200);
  }

  Result<Programs> programs(const KernelConfig& config) const override {
    const auto& s = config.as<CpuRowwiseConfig>();
    const bool keeps = s.row_in_scratch && rows_.kept_sets() > 0;
    RowKernel kernel(rows_, options_of(s));
    RowTiles& tiles = kernel.tiles;
    const int64_t groups = tiles.row_groups();
    const int64_t groups_per_task = rows_.interleaved ? 1 : std::min(s.rows_per_task, groups);
    tiles.b.grid(ceil_div(groups, groups_per_task)).warps(1);
    const Index first = tile::block(0) * groups_per_task;
    const Index left = tile::min(groups_per_task, Index(groups) - first);
    std::optional<RowChunkedSoftmax> softmax;
    if (!is_whole_row(s) && !rows_.interleaved && RowChunkedSoftmax::serves(rows_))
      softmax.emplace(kernel, keeps);
    const auto compute = [&](const Index& group) {
      tiles.go_to_rows(group);
      if (is_whole_row(s))
        compute_in_registers(kernel);
      else
        compute_in_passes(kernel, keeps);
    };
    if (rows_.interleaved)
      compute(tile::block(0));
    else if (softmax)
      softmax->compute_rows(first, left, groups_per_task > 1);
    else
      tiles.b.for_("r", 0, left, 1, [&](const Index& r) { compute(first + r); });
    Programs out;
    tiles.draft.finish(out);
    return out;
  }

 private:
  // A row of moderate length whole, in as many vectors as it takes; else so many vectors.
  Values chunks() const {
    if (rows_.interleaved) return {1};
    const int64_t lanes = capabilities_.lanes();
    const int64_t size = rows_.size(rows_.row.back());
    const int64_t whole = round_up(size, lanes);
    Values chunks;
    for (const int64_t vectors : {64, 32, 16, 128, 8, 4, 1})
      if (vectors == 1 || vectors / 2 * lanes < size) chunks.push_back(vectors * lanes);
    const bool is_missing = std::ranges::find(chunks, whole) == chunks.end();
    if (whole <= kLongestChunk && is_missing) chunks.insert(chunks.begin(), whole);
    return chunks;
  }

  // Those that divide the rows come first.
  Values row_counts() const {
    constexpr int64_t kTask = 1 << 22;  // elements
    const int64_t outer = rows_.size(rows_.tiled_outer);
    Values counts;
    if (rows_.interleaved) {
      for (const int64_t count : {512, 256, 1024, 128, 64, 32, 16, 8, 4})
        if (count <= outer || count <= capabilities_.lanes()) counts.push_back(count);
    } else {
      for (const int64_t count : {1, 4, 16, 64, 256, 1024})
        if (rows_.row_count() % count == 0 && count * rows_.row_size() <= kTask)
          counts.push_back(count);
    }
    const auto divides = [&](int64_t count) { return outer % count == 0; };
    std::ranges::stable_partition(counts, divides);
    return counts.empty() ? Values{1} : counts;
  }

  Values residencies(int64_t count) const {
    constexpr int64_t kLong = 4096;  // elements: a row that may as well be read again
    Values residencies;
    if (rows_.kept_sets() > 0 && scratch_bytes(count) <= capabilities_.shared_bytes)
      residencies.push_back(1);
    const bool is_read_again = rows_.row_size() > kLong || may_ask_for_next_row();
    if (residencies.empty() || is_read_again) residencies.push_back(0);
    return residencies;
  }

  // Whether the emitted kernel asks for the next row while it writes one.
  bool asks_for_next_row(const CpuRowwiseConfig& s) const {
    const bool reads_again = !s.row_in_scratch && !is_whole_row(s) && s.rows_per_task > 1;
    return s.nontemporal_store && reads_again && may_ask_for_next_row();
  }

  // Rows that are read once for each pass, and that stay in a core's L2 meanwhile: while one is
  // written, the next may be on its way there.
  bool may_ask_for_next_row() const {
    const bool has_passes = !rows_.interleaved && rows_.passes.size() > 1;
    const bool writes_rows = !rows_.passes.back().roots(rows_).empty();
    const bool in_chunks = rows_.row.size() > 1 || rows_.row_size() > capabilities_.lanes();
    const int64_t loads = as_int64(rows_.nest.loads.size());
    const bool fits = 8 * loads * rows_.row_size() <= capabilities_.shared_bytes;
    const bool is_kept = RowChunkedSoftmax::serves(rows_);
    return has_passes && writes_rows && in_chunks && fits && !is_kept && rows_.row_count() > 1;
  }

  // Whether no cache holds what is read and written.
  bool is_large() const {
    constexpr double kCaches = 32e6;  // bytes
    return as_double(rows_.row_count()) * as_double(rows_.row_size()) * 8 > kCaches;
  }

  // Of a row whose elements lie apart: at every step a piece of so many rows is read. Beyond a page
  // of sums, of what they lost and of what is read, it was slower where that was measured, perhaps
  // because stores wait for loads whose addresses end alike.
  double cycles_of_interleaved(const CpuRowwiseConfig& s) const {
    constexpr double kStep = 20;    // cycles to begin one in memory
    constexpr double kBytes = 12;   // of a row in a piece, in all
    constexpr double kPage = 4096;  // bytes
    constexpr double kAliased = 1.3;
    const auto count = as_double(s.rows_per_task);
    const double vectors = std::ceil(count / as_double(capabilities_.lanes()));
    const double step = vectors * cycles_of_vector(s) + kStep;
    const double aliased = kBytes * count > kPage ? kAliased : 1;
    return as_double(rows_.row_size()) * step * aliased / count;
  }

  double cycles_of_row(const CpuRowwiseConfig& s) const {
    const double seen = asks_for_next_row(s) ? 0.1 : 0.3;
    if (rows_.interleaved) return cycles_of_interleaved(s);
    const auto chunk = as_double(s.chunk);
    const auto last = as_double(rows_.size(rows_.row.back()));
    const auto size = as_double(rows_.row_size());
    const double chunks = std::ceil(last / chunk) * size / last;
    const double padded = chunks * chunk;
    const bool large = is_large();
    const double vectors = padded / as_double(capabilities_.lanes());
    const double computed = vectors * cycles_of_vector(s) + chunks * cycles_to_begin() + 60;
    const double moved = size * bytes_an_element(s, large) / (large ? 3.0 : 10.0);
    // The one hides behind the other in part.
    return std::max(computed, moved) + seen * std::min(computed, moved);
  }

  // All passes over it.
  double cycles_of_vector(const CpuRowwiseConfig& s) const {
    if (is_whole_row(s)) return 12;
    const bool in_caches = s.row_in_scratch || asks_for_next_row(s);
    return (in_caches ? 14 : 22) + cycles_of_sums(s);
  }

  // Of a chunk of four vectors the compiler writes the loop out and keeps the sums in registers;
  // those of a longer one are loaded and stored again. A softmax sums within its chunk, which with
  // its exponentials should keep within a page, as in cycles_of_interleaved().
  double cycles_of_sums(const CpuRowwiseConfig& s) const {
    constexpr int64_t kWrittenOut = 4;
    constexpr int64_t kPage = 1024;  // elements
    if (rows_.interleaved) return 0;
    if (RowChunkedSoftmax::serves(rows_)) return 2 * s.chunk > kPage ? 2 : 0;
    return s.chunk > kWrittenOut * capabilities_.lanes() ? 5 : 0;
  }

  // A chunk: a softmax finds its maximum first, and waits for it.
  double cycles_to_begin() const { return RowChunkedSoftmax::serves(rows_) ? 60 : 12; }

  // Stores through the caches read what they write where it is large.
  static double bytes_an_element(const CpuRowwiseConfig& s, bool large) {
    if (s.nontemporal_store) return large ? 8 : 14;
    return large ? 12 : 8;
  }

  RowKernelOptions options_of(const CpuRowwiseConfig& s) const {
    RowKernelOptions options;
    options.extents.assign(rows_.nest.axes.size() + 1, 1);
    if (rows_.interleaved)
      options.extents[rows_.tiled_outer] = s.rows_per_task;
    else
      options.extents[rows_.row.back()] = s.chunk;
    int64_t tiles = 1;
    for (const size_t axis : rows_.row)
      tiles *= ceil_div(rows_.size(axis), options.extents[axis]);
    options.compensated_sums = tiles > kManyTiles;
    options.nontemporal_store = s.nontemporal_store && all_f32();
    options.streams_loads = s.nontemporal_store;
    return options;
  }

  bool is_whole_row(const CpuRowwiseConfig& s) const {
    return !rows_.interleaved && rows_.row.size() == 1 && s.chunk >= rows_.row_size();
  }

  // For what rows of a task keep, and the maxima of chunks.
  int64_t scratch_bytes(int64_t count) const {
    const int64_t rows = rows_.interleaved ? count : 1;
    const int64_t kept = rows_.kept_sets() * rows_.row_size() * rows * 4;
    return kept + rows_.row_size() / 4 + 8192;
  }

  bool all_f32() const {
    const auto is_f32 = [](const LoopNest::Output& output) {
      return output.place.dtype == Dtype::f32;
    };
    return std::ranges::all_of(rows_.nest.outputs, is_f32);
  }

  RowReduction rows_;
};
}  // namespace

FamilyPtr rowwise_cpu_family(const Region& region, const Capabilities& capabilities) {
  if (capabilities.gpu || region.track == Track::fp8) return nullptr;
  auto rows = read_rows(region.nests());
  if (!rows) return nullptr;
  // Of rows that fill no vector, as the windows of a pool, loops take many at once.
  const bool is_short = !rows->interleaved && rows->row_size() < capabilities.lanes();
  if (is_short && direct_family(region, capabilities)) return nullptr;
  return std::make_shared<RowwiseCpu>(*std::move(rows), capabilities);
}
}  // namespace warploom::kernels
