// Rows on the CPU.
//
// A task computes rows_per_task rows. A row that fits in one register tile stays there. A longer one is walked in chunks, once for
// each pass of the nest (softmax: once for maximum and sum together, then for the result). With resident=1 what passes hold stays in
// scratch memory (the L2 cache) in between, so memory is read once and written once; with resident=0 the row is read again. A row's
// last walk goes chunk by chunk with the next row's first. streaming=1 writes the result past the caches. Where neighbours in memory
// belong to different rows, a task takes rows_per_task of them at once, side by side in vectors.
#include "kernels/families.h"
#include "kernels/row_program.h"
namespace warploom::kernels {
namespace {
using target::Capabilities;
using tile::Index;
using tile::TensorId;
using tile::Value;

constexpr double kLowest = -3.0e38;  // a maximum of nothing whose difference to -infinity is still a number

constexpr std::int64_t kLongestChunk = 2048;  // elements: what a register tile may be and still sit in the L1 cache

std::int64_t lanes_of(const Capabilities& capabilities) { return std::max(4, capabilities.vector_bytes / 4); }
Value exp(Value value) { return tile::apply(ValueOp::exp, {std::move(value)}); }

// Rows of many chunks, the last walk of one together with the first of the next.
struct Overlapped {
  RowProgram& p;
  bool resident;
  const Rows& rows = p.rows;
  tile::Builder& b = p.b;
  std::size_t last = rows.passes.size() - 1;
  // Maximum and sum of exponentials together: the running maximum is one number for all lanes and changes between chunks only, so
  // that the pass costs one exponential an element. Kept exponentials stay relative to the maximum that their chunk knew.
  bool joint = rows.joint && (!resident || last == 2);
  int top = joint ? rows.passes[0].reduces[0] : -1, sum = joint ? rows.passes[1].reduces[0] : -1;
  int x = joint ? rows.term(top).operands[0] : -1, e = joint ? rows.term(sum).operands[0] : -1;
  bool keeps_exponentials = joint && resident && rows.passes[1].held.size() == 1 && rows.passes[1].held.contains(e);
  TensorId highs = keeps_exponentials ? b.shared("highs", Dtype::f32, {1, p.tiles(rows.row)}) : -1;
  std::map<int, Value> final = {};  // what the last walk knows of its row

  TensorId accumulator(int id) { return p.number(fmt::format("all{}", id)); }
  TensorId lost(int id) { return p.number(fmt::format("lost{}", id)); }

  std::vector<int> reduces(std::size_t pass) const {
    return joint && pass == 0 ? std::vector{top, sum} : rows.passes[pass].reduces;
  }

  void all(const char* variable, const std::function<void(const Index&)>& body) {
    b.for_(variable, 0, p.tiles(rows.row), 1, body);
  }

  void begin(std::size_t pass) {
    p.settle(pass);
    for (const int id : reduces(pass)) {
      b.fill(accumulator(id), joint && id == top ? kLowest : identity_of(rows.term(id).op));
      if (rows.term(id).op == ValueOp::add) b.fill(lost(id), 0);
    }
  }

  // all ← all + part, and what rounding lost of it: there may be thousands of chunks.
  void add(int id, const Value& part, const std::optional<Value>& scale = {}) {
    const TensorId all = accumulator(id), total = p.number("sum");
    const Value was = scale ? b.value(lost(id)) * *scale : b.value(lost(id));
    if (scale) b.map(all, b.value(all) * *scale);
    b.map(total, b.value(all) + part);
    b.map(lost(id), was + (part - (b.value(total) - b.value(all))));
    b.map(all, b.value(total));
  }
  Value reduced(int id, TensorId from) {
    p.reduce(id, from);
    return p.bound.at(id);
  }

  void read(std::size_t pass, const Index& chunk) {
    p.go_along(chunk);
    const auto outside = p.bound;
    if (joint && pass == 0) {
      if (const Value v = p.masked(top, b.value(p.put(x, "x"))); v.kind == Value::Kind::op) b.map(p.whole("x"), v);
      if (resident && !keeps_exponentials) b.copy(b.all(p.whole("x")), p.keep(0));
      const TensorId high = accumulator(top), next = p.number("next"), scale = p.number("scale"),
                     each = p.whole(keeps_exponentials ? "x" : "e");
      b.map(next, tile::apply(ValueOp::max, {reduced(top, p.whole("x")), b.value(high)}));
      b.map(scale, exp(b.value(high) - b.value(next)));
      b.map(high, b.value(next));
      if (keeps_exponentials) b.copy(b.all(high), b.tile(highs, {0, chunk}, {1, 1}));
      b.map(each, exp(b.value(p.whole("x")) - b.value(high)));
      const Value part = reduced(sum, each);
      if (keeps_exponentials) b.copy(b.all(each), p.keep(0));
      add(sum, part, b.value(scale));
    } else {
      if (pass > 0 && resident) p.take(pass - 1);
      p.hold(pass, resident, true);
      if (resident) p.leave(pass);
      for (const int id : rows.passes[pass].reduces) {
        const Value part = reduced(id, p.operand(id));
        const TensorId all = accumulator(id);
        if (rows.term(id).op == ValueOp::add) add(id, part);
        else b.map(all, tile::apply(rows.term(id).op, {b.value(all), part}));
      }
    }
    p.bound = outside;
  }
  void end(std::size_t pass) {
    for (const int id : reduces(pass)) {
      if (rows.term(id).op == ValueOp::add) b.map(accumulator(id), b.value(accumulator(id)) + b.value(lost(id)));
      p.bound[id] = b.value(accumulator(id));
    }
  }

  // What follows a row's first walk, up to its last.
  void middle() {
    end(0);
    for (std::size_t pass = joint ? 2 : 1; pass < last; ++pass) {
      begin(pass);
      all("m", [&](const Index& c) { read(pass, c); });
      end(pass);
    }
    // The next row's numbers take these ones' places while this row is still written.
    final.clear();
    for (const int id : p.settle(last)) {
      const TensorId to = p.number(fmt::format("last{}", id));
      b.map(to, p.bound.at(id));
      final[id] = b.value(to);
    }
    p.at = p.start;
    p.store(false);
    p.bound.clear();
  }

  // The only term after the sum that is made of this one; -1: there are several.
  int only_user(int id) const {
    int user = std::count(rows.results.begin(), rows.results.end(), id) ? -2 : -1;
    for (int t = 0; t < static_cast<int>(rows.terms.size()); ++t)
      if (const auto& args = rows.term(t).operands; t != sum && std::count(args.begin(), args.end(), id))
        user = user == -1 ? t : -2;
    return std::max(user, -1);
  }

  void write(const Index& chunk) {
    p.go_along(chunk);
    const auto outside = std::exchange(p.bound, final);
    if (keeps_exponentials) {
      const TensorId factor = p.number("factor"), kept = p.whole("x");
      b.copy(b.tile(highs, {0, chunk}, {1, 1}), b.all(factor));
      Value scaled = exp(b.value(factor) - final.at(top));
      int from = e;  // or e · u, where nothing else is made of e: then u is part of the factor
      if (const int user = only_user(e); user >= 0 && rows.term(user).op == ValueOp::mul) {
        const auto& args = rows.term(user).operands;
        if (const auto number = final.find(args[0] == e ? args[1] : args[0]); number != final.end())
          scaled = std::move(scaled) * number->second, from = user;
      }
      b.map(factor, scaled);
      b.copy(p.keep(0), b.all(kept));
      p.bound[from] = b.value(kept) * b.value(factor);
    } else if (joint && resident) {
      b.copy(p.keep(0), b.all(p.whole("x")));
      p.bound[x] = b.value(p.whole("x"));
    } else if (resident) {
      p.take(last - 1);
    }
    p.store(true);
    p.bound = outside;
  }

  void rows_of_task(const Index& first, const Index& count) {
    const bool writes = !rows.passes[last].roots(rows).empty();
    const auto alone = [&](const Index& row) {
      p.go_to(row);
      begin(0);
      all("c", [&](const Index& c) { read(0, c); });
      middle();
    };
    if (!writes) return b.for_("r", 0, count, 1, [&](const Index& r) { alone(first + r); });
    alone(first);
    b.for_("r", 1, count, 1, [&](const Index& r) {
      p.go_to(first + r);
      begin(0);
      all("d", [&](const Index& d) {
        p.go_to(first + r - 1);
        write(d);
        p.go_to(first + r);
        read(0, d);
      });
      middle();
    });
    p.go_to(first + count - 1);
    all("g", [&](const Index& g) { write(g); });
  }
};

class RowwiseCpu final : public Family {
 public:
  std::string name() const override { return "cpu_rowwise"; }
  bool general() const override { return true; }

  bool covers(const Region& region, const Capabilities& capabilities) const override {
    return !capabilities.gpu && region.track != Track::fp8 && read_rows(region.nests());
  }

  Space space(const Region& region, const Capabilities& capabilities) const override {
    Space space{name(), {}};
    const auto rows = read_rows(region.nests());
    if (!rows) return space;
    const std::int64_t lanes = lanes_of(capabilities), size = rows->size(rows->row.back()), across = rows->size(rows->across);
    std::vector<std::int64_t> chunks, tasks, resident, streaming = {0};
    // A row of moderate length whole, in as many vectors as it takes.
    const std::int64_t whole = round_up(size, lanes);
    for (const std::int64_t vectors : {64, 32, 16, 128, 8, 4, 1})
      if (vectors == 1 || vectors / 2 * lanes < size) chunks.push_back(vectors * lanes);
    if (whole <= kLongestChunk && std::find(chunks.begin(), chunks.end(), whole) == chunks.end())
      chunks.insert(chunks.begin(), whole);
    if (rows->lanes_outside) chunks = {1};
    for (const std::int64_t count : {1, 4, 16, 64, 256, 1024})
      if (!rows->lanes_outside && rows->row_count() % count == 0 && count * rows->row_size() <= 1 << 22) tasks.push_back(count);
    for (const std::int64_t count : {512, 256, 1024, 128, 64, 32, 16, 8, 4})
      if (rows->lanes_outside && (count <= across || count <= lanes)) tasks.push_back(count);
    std::stable_partition(tasks.begin(), tasks.end(), [&](std::int64_t count) { return across % count == 0; });
    if (tasks.empty()) tasks = {1};
    if (rows->slots() > 0 && scratch(*rows, rows->lanes_outside ? tasks[0] : 1) <= capabilities.shared_bytes) resident = {1};
    if (resident.empty() || rows->row_size() > 4096) resident.push_back(0);
    if (all_f32(*rows)) streaming = {1, 0};
    space.fields = {{"chunk", chunks, "elements of a row taken at once, in registers"},
                    {"rows_per_task", tasks, "rows a task computes, one after another or side by side"},
                    {"resident", resident, "1: a row stays in scratch memory between passes; 0: it is read again"},
                    {"streaming", streaming, "1: the result is written past the caches"}};
    return space;
  }

  Status legal(const Region& region, const Schedule& s, const Capabilities& capabilities) const override {
    const auto rows = read_rows(region.nests());
    const std::int64_t chunk = field(s, "chunk"), count = field(s, "rows_per_task"), resident = field(s, "resident", -1);
    WARPLOOM_CHECK(first_broken(s, {{!rows || chunk < 1 || count < 1 || resident < 0 || resident > 1,
                                     "chunk, rows_per_task, resident and streaming from the family's space", chunk},
                                    {chunk > kLongestChunk || (rows && rows->lanes_outside && count > kLongestChunk),
                                     "a chunk that registers hold", chunk}}));
    return fits(s, resident == 1 && !in_registers(*rows, chunk) ? scratch(*rows, rows->lanes_outside ? count : 1) : 0,
                capabilities);
  }

  // Cycles an element: memory or L2 traffic and arithmetic, the overhead of chunks and rows, and idle cores.
  double guess(const Region& region, const Schedule& schedule, const Capabilities& capabilities) const override {
    const auto rows = read_rows(region.nests());
    if (!rows || !legal(region, schedule, capabilities)) return HUGE_VAL;
    const auto d = [](std::int64_t value) { return static_cast<double>(value); };
    const std::int64_t chunk = field(schedule, "chunk"), count = field(schedule, "rows_per_task");
    const double lanes = d(lanes_of(capabilities)), last = d(rows->size(rows->row.back())), size = d(rows->row_size());
    const double chunks = std::ceil(last / d(chunk)) * size / last, padded = chunks * d(chunk);
    const bool large = d(rows->row_count()) * size * 8 > 32e6;
    const double passes = in_registers(*rows, chunk) ? 12 : field(schedule, "resident") == 1 ? 14 : 22;
    double row = padded / lanes * passes + chunks * 60 + 60;
    const double bytes = field(schedule, "streaming") == 1 ? (large ? 8 : 14) : (large ? 12 : 8);
    row = std::max(row, size * bytes / (large ? 3.0 : 10.0));
    const double tasks = std::ceil(d(rows->row_count()) / d(count));
    // A task's first and last passes share their loop with no other, and at the end cores wait for each other's last task.
    return (std::ceil(tasks / capabilities.processors) + 0.5) * ((d(count) + 0.5) * row + 200);
  }

  Result<Programs> programs(const Region& region, const Schedule& schedule, const Capabilities& capabilities) const override {
    WARPLOOM_CHECK(legal(region, schedule, capabilities));
    const Rows rows = *read_rows(region.nests());
    const std::int64_t chunk = field(schedule, "chunk"), count = field(schedule, "rows_per_task");
    std::vector<std::int64_t> extent(rows.nest.axes.size() + 1, 1);
    extent[rows.lanes_outside ? rows.across : rows.row.back()] = rows.lanes_outside ? count : chunk;
    RowProgram p(rows, extent);
    p.streaming = field(schedule, "streaming") == 1 && all_f32(rows);
    const bool resident = field(schedule, "resident") == 1 && rows.slots() > 0;
    const std::int64_t groups = p.tiles(rows.outer), together = rows.lanes_outside ? 1 : std::min(count, groups);
    p.b.grid(ceil_div(groups, together)).warps(1);
    const Index first = tile::block(0) * together, left = tile::min(together, Index(groups) - first);
    if (rows.lanes_outside) {
      p.go_to(tile::block(0));
      p.in_passes(resident);
    } else if (in_registers(rows, chunk)) {
      p.b.for_("r", 0, left, 1, [&](const Index& r) {
        p.go_to(first + r);
        p.in_registers();
      });
    } else {
      Overlapped{p, resident}.rows_of_task(first, left);
    }
    Programs out;
    p.draft.finish(out);
    return out;
  }

 private:
  static bool in_registers(const Rows& rows, std::int64_t chunk) {
    return !rows.lanes_outside && rows.row.size() == 1 && chunk >= rows.row_size();
  }
  static std::int64_t scratch(const Rows& rows, std::int64_t together) {  // bytes for what rows hold, and the maxima of chunks
    return rows.slots() * rows.row_size() * together * 4 + rows.row_size() / 4 + 8192;
  }
  static bool all_f32(const Rows& rows) {
    const auto& outputs = rows.nest.outputs;
    return std::all_of(outputs.begin(), outputs.end(), [](const auto& output) { return output.place.dtype == Dtype::f32; });
  }
};
}  // namespace
const Family& rowwise_cpu_family() {
  static const RowwiseCpu family;
  return family;
}
}  // namespace warploom::kernels
