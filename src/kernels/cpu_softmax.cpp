// Softmax and log-softmax over rows on the CPU, with pointwise operators before and behind.
//
// A task computes rows_per_task rows. A row that fits in one register tile stays there. A longer one is walked in chunks twice: for
// its maximum and sum together, then for the result. With resident=1 its exponentials stay in scratch memory (the L2 cache) in
// between, so memory is read once and written once; with resident=0 the row is read again. A row's second walk goes chunk by chunk
// with the next row's first. streaming=1 writes the result past the caches.
#include <limits>
#include "kernels/families.h"
#include "kernels/pieces.h"
namespace warploom::kernels {
namespace {
using target::Capabilities;
using tile::Index;
using tile::TensorId;
using tile::Value;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLowest = -3.0e38;  // a maximum of nothing whose difference to -infinity is still a number

constexpr std::int64_t kLongestChunk = 2048;  // elements: what a register tile may be and still sit in the L1 cache

std::int64_t field(const Schedule& schedule, const char* name) {
  const auto found = schedule.fields.find(name);
  return found == schedule.fields.end() ? -1 : found->second;
}

// The text of one program: what is shared by its passes over a row.
struct Row {
  const SoftmaxRegion& region;
  Draft& draft;
  std::int64_t chunk;
  bool streaming;
  Index row = 0;
  std::vector<TensorId> operands, loaded;
  TensorId out = -1, x = -1;

  Value value(TensorId id) const { return draft.b.value(id); }

  // x ← what is normalised, of the chunk at `column`; -infinity beyond the row's end.
  void load(const Index& column) {
    auto& b = draft.b;
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i) inputs.push_back(value(loaded[i]));
    if (!region.has_prologue) {
      const auto first = static_cast<std::size_t>(region.prologue.terms[0].input);
      b.copy(at(first, column), b.all(x), -kInfinity);
      return;
    }
    for (const std::size_t i : used(region.prologue, 0)) b.copy(at(i, column), b.all(loaded[i]));
    b.map(x, to_value(region.prologue, inputs));
  }
  // Stores `normalised` (a value over x), epilogue applied.
  void store(const Index& column, const Value& normalised) {
    auto& b = draft.b;
    std::vector<Value> inputs = {normalised};
    for (std::size_t i = 0; i < operands.size(); ++i) inputs.push_back(value(loaded[i]));
    for (const std::size_t i : used(region.epilogue, 1)) b.copy(at(i, column), b.all(loaded[i]));
    b.map(x, region.has_epilogue ? to_value(region.epilogue, inputs) : normalised);
    b.copy(b.all(x), b.tile(out, {row, column, 0}, {1, chunk, 1}), 0, streaming);
  }
  tile::Tile at(std::size_t operand, const Index& column) const {
    const View& view = region.operands[operand];
    return draft.b.tile(operands[operand], {view.shape[0] > 1 ? row : Index(0), view.shape[1] > 1 ? column : Index(0), 0},
                        {1, view.shape[1] > 1 ? chunk : 1, 1});
  }
  static std::vector<std::size_t> used(const graph::Expression& expression, int base) {
    std::vector<std::size_t> out;
    for (const auto& term : expression.terms)
      if (term.kind == graph::Term::Kind::input && term.input >= base &&
          std::find(out.begin(), out.end(), static_cast<std::size_t>(term.input - base)) == out.end())
        out.push_back(static_cast<std::size_t>(term.input - base));
    return out;
  }
};

class CpuSoftmax final : public Family {
 public:
  std::string name() const override { return "cpu_softmax"; }

  bool covers(const Region& region, const Capabilities& capabilities) const override {
    if (capabilities.gpu) return false;
    const auto problem = match_softmax(region.graph);
    return problem && problem->inner == 1 && region.track != Track::fp8 &&
           (!problem->has_prologue || !divisors(problem->size, 128).empty());
  }

  Space space(const Region& region, const Capabilities& capabilities) const override {
    const auto problem = match_softmax(region.graph);
    Space space{name(), {}};
    if (!problem) return space;
    const std::int64_t lanes = std::max(4, capabilities.vector_bytes / 4);
    std::vector<std::int64_t> chunks, tasks, resident, streaming = {0};
    for (const std::int64_t vectors : {64, 32, 16, 128, 8, 4, 1})
      if (!problem->has_prologue && (vectors == 1 || vectors / 2 * lanes < problem->size)) chunks.push_back(vectors * lanes);
    // A row of moderate length whole, in as many vectors as it takes.
    const std::int64_t whole = round_up(problem->size, lanes);
    if (!problem->has_prologue && whole <= kLongestChunk && std::find(chunks.begin(), chunks.end(), whole) == chunks.end())
      chunks.insert(chunks.begin(), whole);
    if (problem->has_prologue) chunks = divisors(problem->size, 16 * lanes);
    for (const std::int64_t rows : {1, 4, 16, 64, 256, 1024})
      if (problem->outer % rows == 0 && rows * problem->size <= 1 << 22) tasks.push_back(rows);
    resident.push_back(problem->size * 4 + problem->size / 4 + 8192 <= capabilities.shared_bytes ? 1 : 0);
    if (resident[0] == 1 && problem->size > 4096) resident.push_back(0);
    if (problem->out.dtype == Dtype::f32) streaming = {1, 0};
    space.fields = {{"chunk", chunks, "elements of a row taken at once, in registers"},
                    {"rows_per_task", tasks, "rows a task computes, one after another"},
                    {"resident", resident, "1: a row stays in scratch memory between passes; 0: it is read twice"},
                    {"streaming", streaming, "1: the result is written past the caches"}};
    return space;
  }

  Status legal(const Region& region, const Schedule& schedule, const Capabilities& capabilities) const override {
    const auto problem = match_softmax(region.graph);
    const std::int64_t chunk = field(schedule, "chunk"), rows = field(schedule, "rows_per_task"),
                       resident = field(schedule, "resident");
    if (!problem || chunk < 1 || rows < 1 || resident < 0 || resident > 1)
      return fail({ErrorCode::kScheduleIllegal, "a field of the schedule is missing or out of range", schedule.text(),
                   "chunk, rows_per_task, resident and streaming", "", "take the fields from the family's space"});
    if (chunk > kLongestChunk)
      return fail({ErrorCode::kScheduleIllegal, "a chunk does not fit in registers", schedule.text(),
                   fmt::format("chunk at most {}", kLongestChunk), std::to_string(chunk), "take a smaller chunk"});
    // Elements beyond a row's end count as -infinity; what a prologue would make of that is anybody's guess.
    if (problem->has_prologue && problem->size % chunk != 0)
      return fail({ErrorCode::kScheduleIllegal, "behind a prologue a row must be whole chunks", schedule.text(),
                   fmt::format("a divisor of {}", problem->size), std::to_string(chunk), "take chunk from the family's space"});
    if (resident == 1 && chunk < problem->size && problem->size * 4 + problem->size / 4 + 8192 > capabilities.shared_bytes)
      return fail({ErrorCode::kResourceLimit, "a row does not fit in a core's L2 cache", schedule.text(),
                   fmt::format("at most {} bytes", capabilities.shared_bytes), fmt::format("{} bytes", problem->size * 4),
                   "take resident=0"});
    return ok();
  }

  // Cycles an element: memory or L2 traffic and arithmetic, the overhead of chunks and rows, and idle cores.
  double guess(const Region& region, const Schedule& schedule, const Capabilities& capabilities) const override {
    const auto problem = match_softmax(region.graph);
    if (!problem || !legal(region, schedule, capabilities)) return HUGE_VAL;
    const auto d = [](std::int64_t value) { return static_cast<double>(value); };
    const std::int64_t chunk = field(schedule, "chunk"), rows = field(schedule, "rows_per_task");
    const double lanes = std::max(4, capabilities.vector_bytes / 4), size = d(problem->size);
    const double chunks = std::ceil(size / d(chunk)), padded = chunks * d(chunk);
    const bool large = d(problem->outer) * size * 8 > 32e6;
    double row = padded / lanes * (chunk >= problem->size ? 12 : field(schedule, "resident") == 1 ? 14 : 22) + chunks * 60 + 60;
    const double bytes = field(schedule, "streaming") == 1 ? (large ? 8 : 14) : (large ? 12 : 8);
    row = std::max(row, size * bytes / (large ? 3.0 : 10.0));
    const double tasks = std::ceil(d(problem->outer) / d(rows));
    // A task's first and last passes share their loop with no other, and at the end cores wait for each other's last task.
    return (std::ceil(tasks / capabilities.processors) + 0.5) * ((d(rows) + 0.5) * row + 200);
  }

  Result<Programs> programs(const Region& region, const Schedule& schedule, const Capabilities& capabilities) const override {
    WARPLOOM_CHECK(legal(region, schedule, capabilities));
    const SoftmaxRegion problem = *match_softmax(region.graph);
    const std::int64_t size = problem.size, chunk = field(schedule, "chunk"),
                       rows = std::min(field(schedule, "rows_per_task"), problem.outer);
    Draft draft("softmax");
    auto& b = draft.b;
    b.grid(ceil_div(problem.outer, rows)).warps(1);
    Row pass{problem, draft, chunk, field(schedule, "streaming") == 1 && problem.out.dtype == Dtype::f32, 0, {}, {}, -1, -1};
    for (std::size_t i = 0; i < problem.operands.size(); ++i)
      pass.operands.push_back(draft.input(fmt::format("X{}", i), problem.operands[i]));
    pass.out = draft.output("Y", problem.out);
    const auto reg = [&](const std::string& name, std::int64_t columns) { return b.reg(name, Dtype::f32, {1, columns}); };
    pass.x = reg("x", chunk);
    for (std::size_t i = 0; i < problem.operands.size(); ++i)
      pass.loaded.push_back(reg(fmt::format("x{}", i), problem.operands[i].shape[1] > 1 ? chunk : 1));
    const TensorId high = reg("high", 1), total = reg("total", 1);
    const Index first = tile::block(0) * rows, count = tile::min(rows, Index(problem.outer) - first);
    if (chunk >= size) b.for_("r", 0, count, 1, [&](const Index& r) { in_registers(pass, first + r, high, total); });
    else in_chunks(pass, first, count, high, total, field(schedule, "resident") == 1);
    Programs out;
    out.programs.push_back(b.finish());
    out.buffers.push_back(draft.buffers);
    return out;
  }

 private:
  // Divisors of a row's size that make sensible chunks, nearest to `wanted` first; none for a large prime.
  static std::vector<std::int64_t> divisors(std::int64_t size, std::int64_t wanted) {
    std::vector<std::int64_t> out;
    for (std::int64_t value = 1; value <= std::min<std::int64_t>(size, 512); ++value)
      if (size % value == 0 && (value >= 16 || value == size)) out.push_back(value);
    const auto distance = [&](std::int64_t value) {
      return std::abs(std::log(static_cast<double>(value) / static_cast<double>(wanted)));
    };
    std::sort(out.begin(), out.end(), [&](auto a, auto b) { return distance(a) < distance(b); });
    if (out.size() > 6) out.resize(6);
    return out;
  }
  static Value exp(Value value) { return tile::apply(ValueOp::exp, {std::move(value)}); }
  static Value max(Value a, Value b) { return tile::apply(ValueOp::max, {std::move(a), std::move(b)}); }

  // The normalised value of x, once the row's maximum and the sum of its exponentials are known. `done`: x holds exponentials.
  static Value normalised(const Row& pass, TensorId high, TensorId total, bool done) {
    const Value x = pass.value(pass.x);
    if (pass.region.log) return x - pass.value(high) - pass.value(total);
    return (done ? x : exp(x - pass.value(high))) * pass.value(total);
  }
  // to ← what normalised() multiplies by or takes away.
  static void finish(Row& pass, TensorId total, TensorId to) {
    pass.draft.b.map(to, tile::apply(pass.region.log ? ValueOp::log : ValueOp::reciprocal, {pass.value(total)}));
  }

  static void in_registers(Row& pass, const Index& row, TensorId high, TensorId total) {
    auto& b = pass.draft.b;
    pass.row = row;
    pass.load(0);
    b.reduce(high, pass.x, 1, tile::ReduceOp::max);
    const TensorId e = pass.region.log ? b.reg("e", Dtype::f32, {1, pass.chunk}) : pass.x;
    b.map(e, exp(pass.value(pass.x) - pass.value(high)));
    b.reduce(total, e, 1, tile::ReduceOp::sum);
    finish(pass, total, total);
    pass.store(0, normalised(pass, high, total, true));
  }

  // The running maximum is one number for all lanes and changes between chunks only, so the first pass costs one exponential an
  // element. When values stay in scratch, they stay relative to the maximum that their chunk knew; log-softmax keeps x itself.
  // A row's second pass shares its loop with the next row's first: memory is read and written at the same time.
  static void in_chunks(Row& pass, const Index& first, const Index& count, TensorId high, TensorId total, bool resident) {
    auto& b = pass.draft.b;
    const std::int64_t size = pass.region.size, chunk = pass.chunk, chunks = ceil_div(size, chunk);
    const bool log = pass.region.log, keeps_exponentials = resident && !log;
    const auto one = [&](const char* name) { return b.reg(name, Dtype::f32, {1, 1}); };
    const TensorId row = resident ? b.shared("row", Dtype::f32, {1, chunks * chunk}) : -1;
    const TensorId highs = keeps_exponentials ? b.shared("highs", Dtype::f32, {1, chunks}) : -1;
    const TensorId e = keeps_exponentials ? pass.x : b.reg("e", Dtype::f32, {1, chunk});
    const TensorId next = one("next"), scale = one("scale"), part = one("part");
    const TensorId factor = one("factor"), last_high = one("last_high"), last_total = one("last_total");
    const TensorId lost = one("lost"), sum = one("sum");
    const auto kept = [&](const Index& c) { return b.tile(row, {0, c * chunk}, {1, chunk}); };
    const auto begin = [&] {
      b.fill(high, kLowest);
      b.fill(total, 0);
      b.fill(lost, 0);
    };
    const auto read = [&](const Index& at, const Index& c) {
      pass.row = at;
      pass.load(c * chunk);
      if (resident && log) b.copy(b.all(pass.x), kept(c));
      b.reduce(next, pass.x, 1, tile::ReduceOp::max);
      b.map(next, max(pass.value(next), pass.value(high)));
      b.map(scale, exp(pass.value(high) - pass.value(next)));
      b.map(high, pass.value(next));
      if (keeps_exponentials) b.copy(b.all(high), b.tile(highs, {0, c}, {1, 1}));
      b.map(e, exp(pass.value(pass.x) - pass.value(high)));
      b.reduce(part, e, 1, tile::ReduceOp::sum);
      if (keeps_exponentials) b.copy(b.all(e), kept(c));
      // sum ← total · scale + part, and what rounding lost of it: there may be thousands of chunks.
      b.map(total, pass.value(total) * pass.value(scale));
      b.map(sum, pass.value(total) + pass.value(part));
      b.map(lost, pass.value(lost) * pass.value(scale) + (pass.value(part) - (pass.value(sum) - pass.value(total))));
      b.map(total, pass.value(sum));
    };
    const auto end = [&] {
      b.map(total, pass.value(total) + pass.value(lost));
      b.map(last_high, pass.value(high));
      finish(pass, total, last_total);
    };
    const auto write = [&](const Index& at, const Index& c) {
      pass.row = at;
      if (keeps_exponentials) {
        b.copy(b.tile(highs, {0, c}, {1, 1}), b.all(factor));
        b.map(factor, exp(pass.value(factor) - pass.value(last_high)) * pass.value(last_total));
      }
      if (resident) b.copy(kept(c), b.all(pass.x));
      else pass.load(c * chunk);
      pass.store(c * chunk,
                 keeps_exponentials ? pass.value(pass.x) * pass.value(factor) : normalised(pass, last_high, last_total, false));
    };
    begin();
    b.for_("c", 0, chunks, 1, [&](const Index& c) { read(first, c); });
    end();
    b.for_("r", 1, count, 1, [&](const Index& r) {
      begin();
      b.for_("d", 0, chunks, 1, [&](const Index& d) {
        write(first + r - 1, d);
        read(first + r, d);
      });
      end();
    });
    b.for_("g", 0, chunks, 1, [&](const Index& g) { write(first + count - 1, g); });
  }
};
}  // namespace
const Family& cpu_softmax_family() {
  static const CpuSoftmax family;
  return family;
}
}  // namespace warploom::kernels
