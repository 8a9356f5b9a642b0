// The CPU's blocked matmul, with pointwise operators behind it.
//
// A task computes block_m × block_n of the result. For each block_k of k it packs its part of A and of B into scratch memory that
// stays in the L2 cache, zeros beyond the edges, and runs over micro tiles of micro_m × micro_n that are held in vector
// registers; partial sums wait in scratch between blocks of k, and behind the last block the epilogue is applied before the
// one store. Operands of 16 bits become floats as they are packed; transposed ones are packed transposed.
//
//   fields   block_m, block_n, block_k  elements; made equal among the blocks of the problem and rounded up to whole micro tiles
//            micro_m, micro_n           elements; micro_n in whole vectors
//
// Matrix times vector is computed as vector times matrix.
#include "kernels/families.h"
#include "kernels/pieces.h"
namespace warploom::kernels {
namespace {
using target::Capabilities;
using tile::Index;
using tile::TensorId;

// The region as this family computes it: n is not 1 unless m is.
std::optional<MatmulRegion> matched(const Region& region) {
  auto found = match_matmul(region.nests());
  if (!found || found->n != 1 || found->m == 1) return found;
  MatmulRegion turned = *found;
  turned.m = found->n;
  turned.n = found->m;
  turned.a = found->b.transposed();
  turned.b = found->a.transposed();
  turned.out = found->out.transposed();
  for (View& operand : turned.operands) operand = operand.transposed();
  return turned;
}

// Products in fp32 throughout: more than any track of 16-bit types asks for, and not what tf32 or fp8 mean.
bool has_track(Track track) { return track != Track::fp8; }

std::int64_t lanes_of(const Capabilities& capabilities) { return std::max(4, capabilities.vector_bytes / 4); }

struct Blocks {
  std::int64_t micro_m, micro_n, block_m, block_n, block_k;
  std::int64_t tiles_m, tiles_n, tiles_k;
  std::int64_t scratch_bytes;
};

// Equal parts of at most `wanted`, in whole units.
std::int64_t equal_part(std::int64_t size, std::int64_t wanted, std::int64_t unit) {
  const std::int64_t parts = ceil_div(size, std::max(wanted, unit));
  return round_up(ceil_div(size, parts), unit);
}

Blocks blocks_of(const MatmulRegion& region, const Schedule& schedule) {
  const auto field = [&](const char* name) {
    const auto found = schedule.fields.find(name);
    return found == schedule.fields.end() ? std::int64_t{0} : found->second;
  };
  Blocks blocks{field("micro_m"), field("micro_n"), 0, 0, 0, 0, 0, 0, 0};
  if (blocks.micro_m < 1 || blocks.micro_n < 1 || field("block_m") < 1 || field("block_n") < 1 || field("block_k") < 1) return {};
  blocks.block_m = equal_part(region.m, field("block_m"), blocks.micro_m);
  blocks.block_n = equal_part(region.n, field("block_n"), blocks.micro_n);
  blocks.block_k = equal_part(region.k, field("block_k"), 1);
  blocks.tiles_m = ceil_div(region.m, blocks.block_m);
  blocks.tiles_n = ceil_div(region.n, blocks.block_n);
  blocks.tiles_k = ceil_div(region.k, blocks.block_k);
  const std::int64_t sums = blocks.tiles_k > 1 ? blocks.block_m * blocks.block_n : 0;
  blocks.scratch_bytes = 4 * ((blocks.block_m + blocks.block_n + 64) * (blocks.block_k + 32) + sums + 4096);
  return blocks;
}

class CpuMatmul final : public Family {
 public:
  std::string name() const override { return "cpu_matmul"; }

  bool covers(const Region& region, const Capabilities& capabilities) const override {
    const auto found = match_matmul(region.nests());
    return !capabilities.gpu && has_track(region.track) && found && bits_of(found->a.dtype) > 8;
  }

  Space space(const Region& region, const Capabilities& capabilities) const override {
    const auto problem = matched(region);
    if (!problem) return {name(), {}};
    const std::int64_t lanes = lanes_of(capabilities);
    Space space{name(), {}};
    space.fields.push_back(
        {"block_m", sizes(problem->m, {256, 128, 512, 64, 1024, 32}), "rows of the result a task computes, at most"});
    space.fields.push_back(
        {"block_n", sizes(problem->n, {512, 256, 1024, 128, 2048, 64}), "columns of the result a task computes, at most"});
    space.fields.push_back(
        {"block_k", sizes(problem->k, {256, 384, 512, 192, 128}), "products summed between two packings, at most"});
    std::vector<std::int64_t> rows;
    for (const std::int64_t value : {8, 12, 6, 14, 4, 2, 1})
      if (value <= problem->m && (value > 2 || problem->m < 4)) rows.push_back(value);
    space.fields.push_back({"micro_m", rows, "rows of the result held in registers"});
    std::vector<std::int64_t> columns;
    for (const std::int64_t vectors : {3, 2, 4, 1})
      if (vectors == 1 || (vectors - 1) * lanes < problem->n) columns.push_back(problem->n == 1 ? 1 : vectors * lanes);
    space.fields.push_back({"micro_n", columns, "columns of the result held in registers"});
    return space;
  }

  Status legal(const Region& region, const Schedule& schedule, const Capabilities& capabilities) const override {
    const auto problem = matched(region);
    const Blocks blocks = problem ? blocks_of(*problem, schedule) : Blocks{};
    if (blocks.micro_m < 1)
      return fail({ErrorCode::kScheduleIllegal, "a field of the schedule is missing or below 1", schedule.text(),
                   "block_m, block_n, block_k, micro_m and micro_n", "", "take the fields from the family's space"});
    const std::int64_t vectors = ceil_div(blocks.micro_n, lanes_of(capabilities));
    if (problem->m == 1 && blocks.micro_m != 1)
      return fail({ErrorCode::kScheduleIllegal, "micro_m exceeds the rows of the problem", schedule.text(), "micro_m=1",
                   std::to_string(blocks.micro_m), "take micro_m from the family's space"});
    if (blocks.micro_m * vectors + vectors + 1 > capabilities.registers)
      return fail({ErrorCode::kScheduleIllegal, "a micro tile does not fit in the vector registers", schedule.text(),
                   fmt::format("micro_m · vectors + vectors + 1 at most {}", capabilities.registers),
                   fmt::format("{} · {} + {} + 1", blocks.micro_m, vectors, vectors), "take a smaller micro_m or micro_n"});
    if (blocks.scratch_bytes > capabilities.shared_bytes)
      return fail({ErrorCode::kResourceLimit, "the packed blocks do not fit in a core's L2 cache", schedule.text(),
                   fmt::format("at most {} bytes", capabilities.shared_bytes), fmt::format("{} bytes", blocks.scratch_bytes),
                   "take a smaller block_m, block_n or block_k"});
    return ok();
  }

  // Cycles of the core that works longest: products at the rate that the micro tile's loads allow, packing, sums kept between
  // blocks of k.
  double guess(const Region& region, const Schedule& schedule, const Capabilities& capabilities) const override {
    const auto problem = matched(region);
    if (!problem || !legal(region, schedule, capabilities)) return HUGE_VAL;
    const Blocks s = blocks_of(*problem, schedule);
    const auto lanes = static_cast<double>(lanes_of(capabilities));
    const auto d = [](std::int64_t value) { return static_cast<double>(value); };
    const double vectors = std::ceil(d(s.micro_n) / lanes), rows = d(s.micro_m);
    // A fused multiply-add has a latency of 4 cycles and two units; each row of b costs `vectors` loads, each element of a one.
    const double step = std::max({rows * vectors / 2, (vectors + rows) / 2, 4.0});
    const double overhead = 60 + 3 * rows * vectors;  // around the loop over k: loading, storing, epilogue
    const double used_m = d(round_up(std::min(s.block_m, problem->m), s.micro_m)),
                 used_n = d(round_up(std::min(s.block_n, problem->n), s.micro_n));
    const double micro = (used_m / rows) * (used_n / d(s.micro_n));
    double task = d(s.tiles_k) * micro * (d(s.block_k) * step + overhead);
    const double pack_b = problem->b.fast_axis() == 1 ? 1 : 2, pack_a = 1;
    task += d(s.tiles_k) * d(s.block_k) * (used_m * pack_a + used_n * pack_b) * 3 / lanes;
    if (s.tiles_k > 1) task += d(s.tiles_k) * used_m * used_n * 1.5 / lanes;
    // A panel of b stays in the L1 cache beside the rows of a that pass by, or it does not.
    if (s.micro_n * s.block_k * 4 > 32 << 10) task *= 1.05;
    const double tasks = d(s.tiles_m * s.tiles_n * problem->batch_count());
    const double edge = d(problem->m * problem->n) / (d(s.tiles_m * s.tiles_n) * used_m * used_n);
    return task * std::max(std::ceil(tasks / capabilities.processors) * std::min(1.0, edge * 1.02),
                           tasks * edge / capabilities.processors);
  }

  Result<Programs> programs(const Region& region, const Schedule& schedule, const Capabilities& capabilities) const override {
    WARPLOOM_CHECK(legal(region, schedule, capabilities));
    const MatmulRegion problem = *matched(region);
    const Blocks s = blocks_of(problem, schedule);
    Draft draft("matmul");
    auto& b = draft.b;
    b.grid(s.tiles_m, s.tiles_n, problem.batch_count()).warps(1);
    const TensorId A = draft.input("A", problem.a), B = draft.input("B", problem.b);
    std::vector<TensorId> operands;
    for (std::size_t i = 0; i < problem.operands.size(); ++i)
      operands.push_back(draft.input(fmt::format("E{}", i), problem.operands[i]));
    const TensorId C = draft.output("C", problem.out);

    const TensorId packed_a = b.shared("a", Dtype::f32, {s.block_m, s.block_k});
    const TensorId packed_b = b.shared("b", Dtype::f32, {s.block_k, s.block_n});
    const TensorId sums = s.tiles_k > 1 ? b.shared("sums", Dtype::f32, {s.block_m, s.block_n}) : -1;
    const TensorId acc = b.reg("acc", Dtype::f32, {s.micro_m, s.micro_n});
    // Each block of k is summed from zero and added to those before it: the rounding error of one long chain would grow with √k.
    const TensorId before = sums >= 0 ? b.reg("before", Dtype::f32, {s.micro_m, s.micro_n}) : -1;
    std::vector<TensorId> loaded;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto extent = extents(problem.operands[i], s.micro_m, s.micro_n);
      loaded.push_back(b.reg(fmt::format("e{}", i), Dtype::f32, {extent[extent.size() - 2], extent.back()}));
    }

    const Index m0 = tile::block(0) * s.block_m, n0 = tile::block(1) * s.block_n, batch = tile::block(2);
    const auto at = [&](TensorId tensor, const View& view, const Index& row, const Index& column, std::int64_t rows,
                        std::int64_t columns) {
      return b.tile(tensor, offsets(view, problem.batch, batch, row, column), extents(view, rows, columns));
    };
    const auto store = [&](const Index& i, const Index& j) {
      std::vector<tile::Value> inputs = {b.value(acc)};
      for (std::size_t e = 0; e < operands.size(); ++e) {
        b.copy(at(operands[e], problem.operands[e], m0 + i, n0 + j, s.micro_m, s.micro_n), b.all(loaded[e]));
        inputs.push_back(b.value(loaded[e]));
      }
      if (problem.has_epilogue) b.map(acc, to_value(problem.epilogue, inputs));
      b.copy(b.all(acc), at(C, problem.out, m0 + i, n0 + j, s.micro_m, s.micro_n));
    };
    b.for_("k", 0, problem.k, s.block_k, [&](const Index& k) {
      b.copy(at(A, problem.a, m0, k, s.block_m, s.block_k), b.all(packed_a));
      b.copy(at(B, problem.b, k, n0, s.block_k, s.block_n), b.all(packed_b));
      b.for_("j", 0, tile::min(s.block_n, Index(problem.n) - n0), s.micro_n, [&](const Index& j) {
        b.for_("i", 0, tile::min(s.block_m, Index(problem.m) - m0), s.micro_m, [&](const Index& i) {
          const auto part = [&] { return b.tile(sums, {i, j}, {s.micro_m, s.micro_n}); };
          b.fill(acc, 0);
          b.mma(acc, b.tile(packed_a, {i, 0}, {s.micro_m, s.block_k}), b.tile(packed_b, {0, j}, {s.block_k, s.micro_n}));
          if (sums < 0) return store(i, j);
          b.if_less(0, k, [&] {
            b.copy(part(), b.all(before));
            b.map(acc, b.value(acc) + b.value(before));
          });
          b.if_less(k + s.block_k, problem.k, [&] { b.copy(b.all(acc), part()); });
          b.if_less(problem.k - 1, k + s.block_k, [&] { store(i, j); });
        });
      });
    });
    Programs out;
    out.programs.push_back(b.finish());
    out.buffers.push_back(draft.buffers);
    return out;
  }

 private:
  // Those of the values that differ for a problem of this size.
  static std::vector<std::int64_t> sizes(std::int64_t size, std::initializer_list<std::int64_t> values) {
    std::vector<std::int64_t> out;
    std::vector<std::int64_t> parts;
    for (const std::int64_t value : values) {
      const std::int64_t count = ceil_div(size, value);
      if (std::find(parts.begin(), parts.end(), count) != parts.end()) continue;
      parts.push_back(count);
      out.push_back(value);
    }
    return out;
  }
};
}  // namespace
const Family& cpu_matmul_family() {
  static const CpuMatmul family;
  return family;
}
}  // namespace warploom::kernels
