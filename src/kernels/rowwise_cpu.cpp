// RowReduction on the CPU.
//
// A task computes rows_per_task rows. A row that fits in one register tile stays there. A longer
// one is walked in chunks, once for each pass of the nest (softmax: once for maximum and sum
// together, then for the result). With resident=1 what passes hold stays in scratch memory (the L2
// cache) in between, so memory is read once and written once; with resident=0 the row is read
// again. streaming=1 writes the result past the caches. Where neighbours in memory belong to
// different rows, a task takes rows_per_task of them at once, side by side in vectors.
#include "kernels/pieces/row_chunked_softmax.h"
#include "kernels/pieces/row_kernel.h"

namespace warploom::kernels {
namespace {
constexpr int64_t kLongestChunk =
    2048;  // elements: what a register tile may be and still sit in the L1 cache

class RowwiseCpu final : public Family {
 public:
  RowwiseCpu(RowReduction rows, const Capabilities& capabilities)
      : Family("cpu_rowwise", capabilities, Specialization::general), rows_(std::move(rows)) {}

  Space space() const override {
    const int64_t lanes = capabilities_.lanes();
    const int64_t size = rows_.size(rows_.row.back());
    const int64_t across = rows_.size(rows_.tiled_outer);
    Values chunks;
    Values tasks;
    Values resident;
    Values streaming = {0};
    // A row of moderate length whole, in as many vectors as it takes.
    const int64_t whole = round_up(size, lanes);
    for (const int64_t vectors : {64, 32, 16, 128, 8, 4, 1})
      if (vectors == 1 || vectors / 2 * lanes < size) chunks.push_back(vectors * lanes);
    if (whole <= kLongestChunk && std::ranges::find(chunks, whole) == chunks.end())
      chunks.insert(chunks.begin(), whole);
    if (rows_.interleaved) chunks = {1};
    for (const int64_t count : {1, 4, 16, 64, 256, 1024})
      if (!rows_.interleaved && rows_.row_count() % count == 0 &&
          count * rows_.row_size() <= 1 << 22)
        tasks.push_back(count);
    for (const int64_t count : {512, 256, 1024, 128, 64, 32, 16, 8, 4})
      if (rows_.interleaved && (count <= across || count <= lanes)) tasks.push_back(count);
    std::stable_partition(tasks.begin(), tasks.end(),
                          [&](int64_t count) { return across % count == 0; });
    if (tasks.empty()) tasks = {1};
    if (rows_.kept_sets() > 0 && scratch(tasks[0]) <= capabilities_.shared_bytes) resident = {1};
    if (resident.empty() || rows_.row_size() > 4096) resident.push_back(0);
    if (all_f32()) streaming = {1, 0};
    return {name(),
            {{"chunk", chunks, "elements of a row taken at once, in registers"},
             {"rows_per_task", tasks, "rows a task computes, one after another or side by side"},
             {"resident", resident,
              "1: a row stays in scratch memory between passes; 0: it is read again"},
             {"streaming", streaming, "1: the result is written past the caches"}}};
  }

  Status legal(const Schedule& s) const override {
    const int64_t chunk = field(s, "chunk");
    const int64_t count = field(s, "rows_per_task");
    const int64_t resident = field(s, "resident", -1);
    WARPLOOM_CHECK(check_constraints(
        s, {{chunk < 1 || count < 1 || resident < 0 || resident > 1,
             "chunk, rows_per_task, resident and streaming from the family's space", chunk},
            {chunk > kLongestChunk || (rows_.interleaved && count > kLongestChunk),
             "a chunk that registers hold", chunk}}));
    return fits(s, resident == 1 && !in_registers(chunk) ? scratch(count) : 0);
  }

  // Cycles an element: memory or L2 traffic and arithmetic, the overhead of chunks and rows, and
  // idle cores.
  double guess(const Schedule& schedule) const override {
    const auto d = [](int64_t value) { return static_cast<double>(value); };
    const int64_t chunk = field(schedule, "chunk");
    const int64_t count = field(schedule, "rows_per_task");
    const double lanes = capabilities_.lanes();
    const double last = d(rows_.size(rows_.row.back()));
    const double size = d(rows_.row_size());
    const double chunks = std::ceil(last / d(chunk)) * size / last;
    const double padded = chunks * d(chunk);
    const bool large = d(rows_.row_count()) * size * 8 > 32e6;
    const double passes = in_registers(chunk) ? 12 : field(schedule, "resident") == 1 ? 14 : 22;
    double row = padded / lanes * passes + chunks * 60 + 60;
    const double bytes = field(schedule, "streaming") == 1 ? (large ? 8 : 14) : (large ? 12 : 8);
    row = std::max(row, size * bytes / (large ? 3.0 : 10.0));
    const double tasks = std::ceil(d(rows_.row_count()) / d(count));
    // A task's first and last passes share their loop with no other, and at the end cores wait for
    // each other's last task.
    return (std::ceil(tasks / capabilities_.num_sms) + 0.5) * ((d(count) + 0.5) * row + 200);
  }

  Result<Programs> programs(const Schedule& schedule) const override {
    const int64_t chunk = field(schedule, "chunk");
    const int64_t count = field(schedule, "rows_per_task");
    const bool keeps = field(schedule, "resident") == 1 && rows_.kept_sets() > 0;
    RowKernel kernel(rows_, options_of(schedule));
    RowTiles& tiles = kernel.tiles;
    const int64_t groups = tiles.row_groups();
    const int64_t groups_per_task = rows_.interleaved ? 1 : std::min(count, groups);
    tiles.b.grid(ceil_div(groups, groups_per_task)).warps(1);
    const Index first = tile::block(0) * groups_per_task;
    const Index left = tile::min(groups_per_task, Index(groups) - first);
    const bool whole = in_registers(chunk);
    std::optional<RowChunkedSoftmax> softmax;
    if (!whole && !rows_.interleaved && RowChunkedSoftmax::serves(rows_))
      softmax.emplace(kernel, keeps);
    const auto compute = [&](const Index& group) {
      tiles.go_to_rows(group);
      if (whole)
        compute_in_registers(kernel);
      else if (softmax)
        softmax->compute_row();
      else
        compute_in_passes(kernel, keeps);
    };
    if (rows_.interleaved)
      compute(tile::block(0));
    else
      tiles.b.for_("r", 0, left, 1, [&](const Index& r) { compute(first + r); });
    Programs out;
    tiles.draft.finish(out);
    return out;
  }

 private:
  RowKernelOptions options_of(const Schedule& schedule) const {
    constexpr int64_t kManyTiles = 256;
    RowKernelOptions options;
    options.extents.assign(rows_.nest.axes.size() + 1, 1);
    if (rows_.interleaved)
      options.extents[rows_.tiled_outer] = field(schedule, "rows_per_task");
    else
      options.extents[rows_.row.back()] = field(schedule, "chunk");
    options.nontemporal_store = field(schedule, "streaming") == 1 && all_f32();
    options.compensated_sums = RowTiles(rows_, options).tiles_of_a_row() > kManyTiles;
    return options;
  }

  bool in_registers(int64_t chunk) const {
    return !rows_.interleaved && rows_.row.size() == 1 && chunk >= rows_.row_size();
  }

  int64_t scratch(
      int64_t count) const {  // bytes for what rows of a task hold, and the maxima of chunks
    return rows_.kept_sets() * rows_.row_size() * (rows_.interleaved ? count : 1) * 4 +
           rows_.row_size() / 4 + 8192;
  }

  bool all_f32() const {
    return std::ranges::all_of(rows_.nest.outputs,
                               [](const auto& output) { return output.place.dtype == Dtype::f32; });
  }

  RowReduction rows_;
};
}  // namespace

FamilyPtr rowwise_cpu_family(const Region& region, const Capabilities& capabilities) {
  auto rows =
      capabilities.gpu || region.track == Track::fp8 ? std::nullopt : read_rows(region.nests());
  return rows ? std::make_shared<RowwiseCpu>(*std::move(rows), capabilities) : nullptr;
}
}  // namespace warploom::kernels
