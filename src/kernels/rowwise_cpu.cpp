// RowReduction on the CPU.
//
// A task computes rows_per_task rows. A row that fits in one register tile stays there. A longer
// one is walked in chunks, once for each pass of the nest (softmax: once for maximum and sum
// together, then for the result). With resident=1 what passes hold stays in scratch memory (the L2
// cache) in between, so memory is read once and written once; with resident=0 the row is read
// again. streaming=1 writes the result past the caches. Where neighbours in memory belong to
// different rows, a task takes rows_per_task of them at once, side by side in vectors.
#include "kernels/row_program.h"

namespace warploom::kernels {
namespace {
constexpr double kLowest =
    -3.0e38;  // a maximum of nothing whose difference to -infinity is still a number
constexpr int64_t kLongestChunk =
    2048;  // elements: what a register tile may be and still sit in the L1 cache

// RowReduction of many chunks whose maximum and sum of exponentials are found in one walk: the
// running maximum is one number for all lanes and changes between chunks only, so that the walk
// costs one exponential an element. Where the result is made of the exponentials, those are kept,
// relative to the maximum that their chunk knew.
class Joint {
 public:
  Joint(RowProgram& program, bool resident) : p_(program), resident_(resident) {
    const auto& held = p_.rows.passes[1].kept;
    keeps_exponentials_ = resident && held.size() == 1 && held.contains(e_);
    if (keeps_exponentials_) highs_ = b_.shared("highs", Dtype::f32, {1, p_.tiles(p_.rows.row)});
  }

  static bool serves(const RowReduction& rows) {
    return rows.online_softmax && rows.passes.size() == 3;
  }

  void row() {
    p_.settle(0);
    b_.fill(high_, kLowest);
    b_.fill(all_, 0);
    b_.fill(lost_, 0);
    p_.walk([&](const Index& chunk) { read(chunk); });
    b_.map(all_, b_.value(all_) + b_.value(lost_));
    p_.bound[top_] = b_.value(high_);
    p_.bound[sum_] = b_.value(all_);
    p_.settle(2);
    if (!p_.rows.passes[2].roots(p_.rows).empty())
      p_.walk([&](const Index& chunk) { write(chunk); });
    p_.at.origin = p_.start;
    p_.store(false);
  }

 private:
  void read(const Index& chunk) {
    const TensorId x = p_.put(x_, "x");
    const TensorId each = p_.whole(keeps_exponentials_ ? "x" : "e");
    const TensorId next = p_.number("next");
    const TensorId scale = p_.number("scale");
    const TensorId total = p_.number("total");
    if (const Value v = p_.masked(top_, b_.value(x)); v.kind == Value::Kind::op) b_.map(x, v);
    if (resident_ && !keeps_exponentials_) b_.copy(b_.all(x), p_.keep(0));
    p_.reduce(top_, x);
    b_.map(next, max(p_.bound.at(top_), b_.value(high_)));
    b_.map(scale, exp(b_.value(high_) - b_.value(next)));
    b_.map(high_, b_.value(next));
    if (keeps_exponentials_) b_.copy(b_.all(high_), b_.tile(highs_, {0, chunk}, {1, 1}));
    b_.map(each, exp(b_.value(x) - b_.value(high_)));
    p_.reduce(sum_, each);
    if (keeps_exponentials_) b_.copy(b_.all(each), p_.keep(0));
    // all ← all · scale + part, and what rounding lost of it: there may be thousands of chunks.
    const Value part = p_.bound.at(sum_);
    b_.map(all_, b_.value(all_) * b_.value(scale));
    b_.map(total, b_.value(all_) + part);
    b_.map(lost_, b_.value(lost_) * b_.value(scale) + (part - (b_.value(total) - b_.value(all_))));
    b_.map(all_, b_.value(total));
  }

  void write(const Index& chunk) {
    if (keeps_exponentials_) {
      const TensorId factor = p_.number("factor");
      const TensorId kept = p_.whole("x");
      b_.copy(b_.tile(highs_, {0, chunk}, {1, 1}), b_.all(factor));
      b_.map(factor, exp(b_.value(factor) - p_.bound.at(top_)));
      b_.copy(p_.keep(0), b_.all(kept));
      p_.bound[e_] = b_.value(kept) * b_.value(factor);
    } else if (resident_) {
      b_.copy(p_.keep(0), b_.all(p_.whole("x")));
      p_.bound[x_] = b_.value(p_.whole("x"));
    }
    p_.store(true);
  }

  RowProgram& p_;
  tile::Builder& b_ = p_.b;
  bool resident_;
  bool keeps_exponentials_ = false;
  int top_ = p_.rows.passes[0].reduces[0];
  int sum_ = p_.rows.passes[1].reduces[0];
  int x_ = p_.rows.term(top_).operands[0];
  int e_ = p_.rows.term(sum_).operands[0];
  TensorId high_ = p_.number("high");
  TensorId all_ = p_.number("all");
  TensorId lost_ = p_.number("lost");
  TensorId highs_ = -1;
};

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
    std::vector<int64_t> extent(rows_.nest.axes.size() + 1, 1);
    extent[rows_.interleaved ? rows_.tiled_outer : rows_.row.back()] =
        rows_.interleaved ? count : chunk;
    RowProgram p(rows_, extent);
    p.streaming = field(schedule, "streaming") == 1 && all_f32();
    p.compensated = p.tiles(rows_.row) > 256;
    const bool resident = field(schedule, "resident") == 1 && rows_.kept_sets() > 0;
    const int64_t groups = p.tiles(rows_.outer);
    const int64_t together = rows_.interleaved ? 1 : std::min(count, groups);
    p.b.grid(ceil_div(groups, together)).warps(1);
    const Index first = tile::block(0) * together;
    const Index left = tile::min(together, Index(groups) - first);
    const bool whole = in_registers(chunk);
    const bool jointly = !whole && !rows_.interleaved && Joint::serves(rows_);
    const auto joint = jointly ? std::make_unique<Joint>(p, resident) : nullptr;
    const auto compute = [&](const Index& group) {
      p.go_to(group);
      whole ? p.in_registers() : joint ? joint->row() : p.in_passes(resident);
    };
    if (rows_.interleaved)
      compute(tile::block(0));
    else
      p.b.for_("r", 0, left, 1, [&](const Index& r) { compute(first + r); });
    Programs out;
    p.draft.finish(out);
    return out;
  }

 private:
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
