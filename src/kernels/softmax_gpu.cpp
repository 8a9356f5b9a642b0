// Softmax over rows on a GPU. The row's place is a field: in the registers of one block or of a cluster of blocks (one pass over
// memory), the same fed by a ring of rows that arrive while others are computed, in shared memory (one pass, longer rows), or
// nowhere (two passes with running maximum and sum).

#include <limits>
#include "kernels/gpu_matmul.h"
namespace warploom::kernels {
namespace {
using tile::Index;
using tile::ReduceOp;
using tile::TensorId;
using tile::Value;

enum Place : std::int64_t { kRegisters = 0, kShared = 1, kStreamed = 2, kRing = 3 };

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::int64_t power_of_two_above(std::int64_t value) {
  std::int64_t power = 1;
  while (power < value) power *= 2;
  return power;
}

class SoftmaxGpu : public Family {
 public:
  std::string name() const override { return "softmax_rows"; }

  bool covers(const Region& region, const target::Capabilities& capabilities) const override {
    const auto softmax = match_softmax(region.graph);
    return capabilities.gpu && softmax && softmax->inner == 1;
  }

  Space space(const Region&, const target::Capabilities& capabilities) const override {
    std::vector<std::int64_t> clusters = {1};
    for (std::int64_t c = 2; c <= capabilities.max_cluster; c *= 2) clusters.push_back(c);
    return {name(),
            {{"place",
              {kRegisters, kRing, kShared, kStreamed},
              "where the row stays: 0 registers, 3 registers fed by a ring of rows, 1 shared memory, 2 nowhere"},
             {"cluster", clusters, "blocks that share a row"},
             {"warps", {8, 4, 16, 32, 2, 1}, "warps a block"},
             {"rows", {1, 2, 4, 8, 16}, "rows a block takes at once"},
             {"chunk", {4, 8, 16}, "elements a thread takes at once, where the row is not in registers"},
             {"stages", {2, 3, 4}, "rows of a ring"},
             {"blocks", {2, 1, 3, 4}, "blocks a multiprocessor holds, where a ring feeds them"}}};
  }

  Status legal(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto softmax = *match_softmax(region.graph);
    const auto threads = field(s, "warps") * 32, rows = field(s, "rows"), cluster = field(s, "cluster"),
               place = field(s, "place");
    if (cluster > capabilities.max_cluster)
      return fail(illegal(s, "a cluster the target has", fmt::format("cluster={}", cluster)));
    const std::int64_t part = width(softmax, s);
    if (softmax.has_prologue && part * cluster != softmax.size)
      return fail(illegal(s, "a row that the tiles divide, when something is computed before it is normalised",
                          fmt::format("{}", softmax.size)));
    if (cluster > 1 && place == kStreamed)
      return fail(illegal(s, "cluster=1 where the row is streamed", fmt::format("{}", cluster)));
    if (cluster > 1 && softmax.size < 1024 * cluster)
      return fail(illegal(s, "at least 1024 elements a block", fmt::format("{}", softmax.size)));
    if (rows > 1 && (cluster > 1 || place != kRegisters))
      return fail(illegal(s, "rows=1 with clusters, a ring, shared memory or streaming", fmt::format("{}", rows)));
    if (rows > softmax.outer) return fail(illegal(s, "no more rows than there are", fmt::format("{}", rows)));
    const bool ring = place == kRing;
    if (!ring && (field(s, "stages", 2) != 2 || field(s, "blocks", 2) != 2))
      return fail(illegal(s, "stages=2 blocks=2 where there is no ring", s.text()));
    if (ring) {
      const auto bytes = field(s, "stages") * part * bytes_of(softmax.operands[0].dtype) + 1024;
      if (softmax.has_prologue || part * cluster != softmax.size || softmax.operands[0].shape[1] != softmax.size)
        return fail(illegal(s, "a row that the tiles divide, and nothing before it", fmt::format("{}", softmax.size)));
      if (bytes * field(s, "blocks") > capabilities.shared_bytes || threads * field(s, "blocks") > 2048)
        return fail({ErrorCode::kResourceLimit, "the rings do not fit in a multiprocessor", s.text(),
                     fmt::format("{} bytes", capabilities.shared_bytes), fmt::format("{} bytes", bytes * field(s, "blocks")),
                     "use fewer stages, fewer blocks or a larger cluster"});
    }
    if (place == kRegisters || ring) {
      const auto values = part * rows / threads;
      if (values < 1 || values > (threads > 512 ? 32 : 64))
        return fail(illegal(s, "1 to 64 elements a thread (32 with more than 16 warps)", fmt::format("{}", values)));
      if (field(s, "chunk") != 4) return fail(illegal(s, "chunk=4 where the row is in registers", ""));
    } else if (threads * field(s, "chunk") > power_of_two_above(softmax.size / cluster)) {
      return fail(illegal(s, "a chunk no longer than the row", fmt::format("{}", threads * field(s, "chunk"))));
    }
    if (place == kShared && part * 4 + 4096 > capabilities.shared_bytes)
      return fail({ErrorCode::kResourceLimit, "the row does not fit in shared memory", s.text(),
                   fmt::format("{} bytes", capabilities.shared_bytes), fmt::format("{} bytes", part * 4),
                   "use a larger cluster or place=2"});
    return ok();
  }

  Result<Programs> programs(const Region& region, const Schedule& s, const target::Capabilities& capabilities) const override {
    const auto softmax = *match_softmax(region.graph);
    Programs out;
    Maker maker(softmax, s, width(softmax, s));
    out.programs.push_back(maker.make(capabilities));
    out.buffers.push_back(maker.draft.buffers);
    return out;
  }

 private:
  // Elements of a row that one block holds (registers, shared memory) or walks over.
  static std::int64_t width(const SoftmaxRegion& region, const Schedule& s) {
    const auto threads = field(s, "warps") * 32;
    const std::int64_t part = ceil_div(region.size, field(s, "cluster"));
    if (field(s, "place") == kRegisters || field(s, "place") == kRing) {
      // Whole vectors a thread; several rows share the threads.
      const std::int64_t across = std::max<std::int64_t>(1, threads / field(s, "rows"));
      const std::int64_t vector = part >= across * 4 ? 4 : 1;
      return round_up(part, across * vector);
    }
    return round_up(part, threads * field(s, "chunk"));
  }

  // Builds the program; one function a place.
  struct Maker {
    Maker(const SoftmaxRegion& r, const Schedule& schedule, std::int64_t part_width) : region(r), s(schedule), part(part_width) {}
    const SoftmaxRegion& region;
    const Schedule& s;
    std::int64_t part;
    Draft draft{"softmax"};
    tile::Builder& b = draft.b;
    std::vector<TensorId> X;
    TensorId Y = -1;
    std::int64_t rows = 1, cluster = 1;
    Index row = 0, start = 0;  // of this block

    tile::Program make(const target::Capabilities& capabilities) {
      rows = field(s, "rows"), cluster = field(s, "cluster");
      for (std::size_t i = 0; i < region.operands.size(); ++i)
        X.push_back(draft.input(fmt::format("X{}", i), flat(region.operands[i])));
      Y = draft.output("Y", flat(region.out));
      b.grid(ceil_div(region.outer, rows) * cluster).warps(static_cast<int>(field(s, "warps")));
      if (cluster > 1) b.cluster(cluster);
      row = tile::block(0) / cluster * rows;
      start = cluster > 1 ? tile::cluster_rank() * part : Index(0);
      switch (field(s, "place")) {
        case kRegisters: in_registers(); break;
        case kRing: in_ring(capabilities); break;
        case kShared: in_shared(); break;
        default: streamed(); break;
      }
      return b.finish();
    }

    // [outer, size, 1] as [outer, size].
    static View flat(View view) {
      view.shape.pop_back();
      view.strides.pop_back();
      return view;
    }
    TensorId reg(const std::string& name, std::int64_t columns, Dtype dtype = Dtype::f32) {
      return b.reg(name, dtype, {rows, columns});
    }

    std::map<std::string, TensorId> loaded_;
    // x ← prologue of the operands at `column`; elements past the row's end count as −∞.
    void load(TensorId x, const Index& column, std::int64_t columns) {
      std::vector<Value> inputs;
      for (std::size_t i = 0; i < X.size(); ++i) {
        const View view = flat(region.operands[i]);
        const std::int64_t r = view.shape[0] > 1 ? rows : 1, c = view.shape[1] > 1 ? columns : 1;
        const tile::Tile source =
            b.tile(X[i], {view.shape[0] > 1 ? row : Index(0), view.shape[1] > 1 ? column : Index(0)}, {r, c});
        if (!region.has_prologue && view.dtype == Dtype::f32) return b.copy(source, b.all(x), -kInfinity, true);
        const std::string name = fmt::format("in{}_{}", i, columns);
        if (!loaded_.count(name)) loaded_[name] = b.reg(name, view.dtype, {r, c});
        b.copy(source, b.all(loaded_[name]), region.has_prologue ? 0 : -kInfinity, true);
        inputs.push_back(b.value(loaded_[name]));
      }
      b.map(x, region.has_prologue ? to_value(region.prologue, inputs) : inputs[0]);
    }
    // y ← epilogue(normalised), stored.
    void store(const Value& normalised, const Index& column, std::int64_t columns) {
      std::vector<Value> inputs = {normalised};
      for (std::size_t i = 0; i < region.operands.size() && region.has_epilogue; ++i) {
        const View view = flat(region.operands[i]);
        const std::int64_t r = view.shape[0] > 1 ? rows : 1, c = view.shape[1] > 1 ? columns : 1;
        const std::string name = fmt::format("out_in{}_{}", i, columns);
        if (!loaded_.count(name)) loaded_[name] = b.reg(name, view.dtype, {r, c});
        b.copy(b.tile(X[i], {view.shape[0] > 1 ? row : Index(0), view.shape[1] > 1 ? column : Index(0)}, {r, c}),
               b.all(loaded_[name]));
        inputs.push_back(b.value(loaded_[name]));
      }
      const std::string name = fmt::format("y_{}", columns);
      if (!loaded_.count(name)) loaded_[name] = b.reg(name, region.out.dtype, {rows, columns});
      b.map(loaded_[name], region.has_epilogue ? to_value(region.epilogue, inputs) : normalised);
      b.copy(b.all(loaded_[name]), b.tile(Y, {row, column}, {rows, columns}), 0, true);
    }
    void all_blocks(TensorId value, ReduceOp op) {
      if (cluster > 1) b.cluster_reduce(value, op);
    }

    void in_ring(const target::Capabilities& capabilities) {
      const std::int64_t stages = field(s, "stages"), processors = capabilities.cluster_processors(static_cast<int>(cluster)),
                         workers = std::min(region.outer, std::max<std::int64_t>(1, processors * field(s, "blocks") / cluster));
      b.grid(workers * cluster);
      const Dtype dtype = region.operands[0].dtype;
      const TensorId slot = b.shared("slot", dtype, {1, part}), x = reg("x", part);
      const TensorId in = dtype == Dtype::f32 ? x : reg("in", part, dtype);
      const auto ring = b.pipeline("ring", static_cast<int>(stages), {slot});
      const auto produce = [&](const Index& r) {
        b.produce(ring, [&] { b.copy(b.tile(X[0], {r, start}, {1, part}), b.all(slot)); });
      };
      const Index first = tile::block(0) / cluster;
      for (std::int64_t i = 0; i + 1 < stages; ++i) produce(first + i * workers);
      b.for_("r", first, region.outer, workers, [&](const Index& r) {
        row = r;
        b.consume(ring, 0, [&] { b.copy(b.all(slot), b.all(in)); });
        produce(r + (stages - 1) * workers);
        if (in != x) b.map(x, b.value(in));
        normalise(x);
      });
    }

    void in_registers() {
      const TensorId x = reg("x", part);
      load(x, start, part);
      normalise(x);
    }

    // Of the row part in x; the others of the row are in the other blocks of the cluster.
    void normalise(TensorId x) {
      const TensorId top = reg("top", 1), total = reg("total", 1);
      b.reduce(top, x, 1, ReduceOp::max);
      all_blocks(top, ReduceOp::max);
      if (region.log) {
        const TensorId e = reg("e", part);
        b.map(x, b.value(x) - b.value(top));
        b.map(e, tile::apply(ValueOp::exp, {b.value(x)}));
        b.reduce(total, e, 1, ReduceOp::sum);
      } else {
        b.map(x, tile::apply(ValueOp::exp, {b.value(x) - b.value(top)}));
        b.reduce(total, x, 1, ReduceOp::sum);
      }
      all_blocks(total, ReduceOp::sum);
      finish_total(total);
      store(scaled(x, total), start, part);
    }

    // total becomes what the last step needs: 1/total, or log(total).
    void finish_total(TensorId total) {
      b.map(total, tile::apply(region.log ? ValueOp::log : ValueOp::reciprocal, {b.value(total)}));
    }
    Value scaled(TensorId x, TensorId total) const {
      return region.log ? b.value(x) - b.value(total) : b.value(x) * b.value(total);
    }

    void chunks(const std::function<void(const Index&, std::int64_t)>& body, const char* variable) {
      const std::int64_t chunk = field(s, "warps") * 32 * field(s, "chunk");
      b.for_(variable, 0, part / chunk, 1, [&](const Index& i) { body(i * chunk, chunk); });
    }

    void in_shared() {
      const std::int64_t chunk = field(s, "warps") * 32 * field(s, "chunk");
      const TensorId kept = b.shared("kept", Dtype::f32, {1, part});
      const TensorId x = reg("x", chunk), lanes = reg("lanes", chunk), top = reg("top", 1), total = reg("total", 1);
      auto slice = [&](const Index& at) { return b.tile(kept, {0, at}, {1, chunk}); };
      b.fill(lanes, -kInfinity);
      chunks(
          [&](const Index& at, std::int64_t n) {
            load(x, start + at, n);
            b.copy(b.all(x), slice(at));
            b.map(lanes, tile::apply(ValueOp::max, {b.value(lanes), b.value(x)}));
          },
          "i");
      b.reduce(top, lanes, 1, ReduceOp::max);
      all_blocks(top, ReduceOp::max);
      b.fill(lanes, 0);
      chunks(
          [&](const Index& at, std::int64_t) {
            b.copy(slice(at), b.all(x));
            if (region.log) {
              b.map(x, b.value(x) - b.value(top));
              b.copy(b.all(x), slice(at));
              b.map(lanes, b.value(lanes) + tile::apply(ValueOp::exp, {b.value(x)}));
            } else {
              b.map(x, tile::apply(ValueOp::exp, {b.value(x) - b.value(top)}));
              b.copy(b.all(x), slice(at));
              b.map(lanes, b.value(lanes) + b.value(x));
            }
          },
          "i");
      b.reduce(total, lanes, 1, ReduceOp::sum);
      all_blocks(total, ReduceOp::sum);
      finish_total(total);
      chunks(
          [&](const Index& at, std::int64_t n) {
            b.copy(slice(at), b.all(x));
            store(scaled(x, total), start + at, n);
          },
          "i");
    }

    // Every lane keeps its own running maximum and the sum of exp(x − maximum); both are joined after the first pass.
    void streamed() {
      const std::int64_t chunk = field(s, "warps") * 32 * field(s, "chunk");
      const TensorId x = reg("x", chunk), highest = reg("highest", chunk), higher = reg("higher", chunk),
                     sums = reg("sums", chunk);
      const TensorId top = reg("top", 1), total = reg("total", 1);
      auto exp_of = [&](const Value& v) { return tile::apply(ValueOp::exp, {v}); };
      b.fill(highest, std::numeric_limits<float>::lowest());  // finite: −∞ − (−∞) would be no number
      b.fill(sums, 0);
      chunks(
          [&](const Index& at, std::int64_t n) {
            load(x, at, n);
            b.map(higher, tile::apply(ValueOp::max, {b.value(highest), b.value(x)}));
            b.map(sums, b.value(sums) * exp_of(b.value(highest) - b.value(higher)) + exp_of(b.value(x) - b.value(higher)));
            b.map(highest, b.value(higher));
          },
          "i");
      b.reduce(top, highest, 1, ReduceOp::max);
      b.map(sums, b.value(sums) * exp_of(b.value(highest) - b.value(top)));
      b.reduce(total, sums, 1, ReduceOp::sum);
      finish_total(total);
      chunks(
          [&](const Index& at, std::int64_t n) {
            load(x, at, n);
            const Value centred = b.value(x) - b.value(top);
            store(region.log ? centred - b.value(total) : exp_of(centred) * b.value(total), at, n);
          },
          "i");
    }
  };
};
}  // namespace
const Family& softmax_gpu_family() {
  static const SoftmaxGpu family;
  return family;
}
}  // namespace warploom::kernels
