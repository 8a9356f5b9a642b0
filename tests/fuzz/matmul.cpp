// Matrix products with operands in every place and orientation, and rings of stages: within one
// thread of control, or filled by a role for others.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "fuzz/program.h"
#include "generator.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::fuzz {
using namespace tile;

struct Generator::Product {
  Dtype global = Dtype::bf16;
  Dtype operand = Dtype::bf16;
  Dtype acc_dtype = Dtype::f32;
  int64_t m = 64;
  int64_t n = 64;
  int64_t k = 32;
  int64_t steps = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  bool a_in_registers = false;
  bool b_in_registers = false;
  bool loop_inside = false;
  int64_t inner = 1;           // parts of k that are taken into registers one after another
  bool through_shared = true;  // operands in registers come from shared memory, else from global
  TensorId acc = -1;
  TensorId sa = -1;
  TensorId sb = -1;
  TensorId fa = -1;
  TensorId fb = -1;
  // Boxes of the global operands; offsets in terms of the step, which load_operands puts in.
  Tile a;
  Tile b;
  bool either_major = true;  // shared operands may be contiguous along m or n

  Shape a_shape() const { return transpose_a ? Shape{k, m} : Shape{m, k}; }

  Shape b_shape() const { return transpose_b ? Shape{n, k} : Shape{k, n}; }

  Shape a_part() const { return transpose_a ? Shape{k / inner, m} : Shape{m, k / inner}; }

  Shape b_part() const { return transpose_b ? Shape{n, k / inner} : Shape{k / inner, n}; }
};

// Which rows a consuming role multiplies, of which stages.
struct Generator::Consumer {
  PipelineId ring;
  int lag;
  std::string k;  // the loop's variable
  int64_t first_row;
  int64_t rows;
};

namespace {
const Index kStep = Index::variable("step");

// The index with another in the place of kStep.
Index with_step(const Index& index, const Index& step) {
  if (index.op() == IndexOp::constant) return index;
  if (index.op() == IndexOp::variable) return index.same(kStep) ? step : index;
  return Index::make(index.op(), with_step(index.left(), step), with_step(index.right(), step));
}
}  // namespace

void Generator::load_operands(const Product& p, const Index& step) {
  const auto one = [&](Tile from, TensorId shared, TensorId registers) {
    for (Index& at : from.offset)
      at = with_step(at, step);
    b_.copy(from, b_.all(shared >= 0 ? shared : registers));
  };
  one(p.a, p.sa, p.fa);
  one(p.b, p.sb, p.fb);
}

void Generator::multiply(const Product& p) {
  if (p.inner > 1) {  // fragments of a part of k at a time
    const int64_t part = p.k / p.inner;
    const auto piece = [&](const Index& i) {
      const auto of_a = p.transpose_a ? b_.tile(p.sa, {i * part, 0}, {part, p.m})
                                      : b_.tile(p.sa, {0, i * part}, {p.m, part});
      const auto of_b = p.transpose_b ? b_.tile(p.sb, {0, i * part}, {p.n, part})
                                      : b_.tile(p.sb, {i * part, 0}, {part, p.n});
      b_.copy(of_a, b_.all(p.fa));
      b_.copy(of_b, b_.all(p.fb));
      b_.mma(p.acc, b_.all(p.fa), b_.all(p.fb), p.transpose_a, p.transpose_b);
    };
    if (p.loop_inside) return b_.for_("inside", 0, p.inner, 1, piece, true);
    for (int64_t i = 0; i < p.inner; ++i)
      piece(i);
    return;
  }
  if (p.sa >= 0 && p.fa >= 0) b_.copy(b_.all(p.sa), b_.all(p.fa));
  if (p.sb >= 0 && p.fb >= 0) b_.copy(b_.all(p.sb), b_.all(p.fb));
  b_.mma(p.acc, b_.all(p.fa >= 0 ? p.fa : p.sa), b_.all(p.fb >= 0 ? p.fb : p.sb), p.transpose_a,
         p.transpose_b);
}

// What follows a product: maps with a bias or a function, a reduction, a cast, and out, perhaps
// through shared memory.
void Generator::epilogue(TensorId acc, const Shape& shape, Dtype dtype) {
  registers_ = {{acc, shape, dtype}};
  if (chance(0.3)) add_load(chance(0.5) ? Shape{1, shape[1]} : shape);
  if (chance(0.4)) {
    const Dtype to = dtype == Dtype::i32 ? pick({Dtype::f32, Dtype::i32}) : Dtype::f32;
    const TensorId id = reg(shape, to);
    b_.map(id, value(shape, 2));
    registers_.push_back({id, shape, to});
  }
  if (chance(0.2)) {
    add_reduce();
    add_store(registers_.back());
  }
  Register out = registers_[0];
  for (const Register& r : registers_)
    if (r.shape == shape) out = r;
  if (chance(0.4)) {
    const Dtype to = pick({Dtype::bf16, Dtype::f16, Dtype::f32});
    const TensorId id = reg(shape, to);
    b_.copy(b_.all(out.id), b_.all(id));
    out = {id, shape, to};
  }
  if (chance(0.3)) {
    const TensorId s = b_.shared(fresh("s"), out.dtype, shape);
    b_.copy(b_.all(out.id), b_.all(s));
    b_.copy(b_.all(s), box(shape, out.dtype, {.output = true, .aligned = chance(0.5)}));
  } else {
    add_store(out);
  }
}

// Slots filled ahead and consumed in one loop.
void Generator::product_in_one_thread(Product& p) {
  const int stages = static_cast<int>(between(1, 4));
  const PipelineId ring = b_.pipeline(fresh("ring"), stages, {p.sa, p.sb});
  const int64_t ahead = stages > 1 && chance(0.8) ? stages - 1 : between(1, stages);
  const auto produce = [&](const Index& k) { b_.produce(ring, [&] { load_operands(p, k); }); };
  const bool past_the_end =
      !persistent_ && chance(0.5);  // stages outside the tensors rather than a branch
  const std::string first = fresh("p");
  const std::string k = fresh("k");
  b_.for_(first, 0, past_the_end ? Index(ahead) : min(ahead, p.steps), 1, produce, chance(0.5));
  b_.for_(k, 0, p.steps, 1, [&](const Index& step) {
    b_.consume(ring, 0, [&] { multiply(p); });
    if (past_the_end)
      produce(step + ahead);
    else
      b_.if_less(step + ahead, p.steps, [&] { produce(step + ahead); });
  });
}

// A role that fills stages and one or two that multiply, each its own rows.
void Generator::product_in_roles(Product& p) {
  const int stages = static_cast<int>(between(2, 4));
  const int consumers = p.a_in_registers || p.m % 128 ? 1 : static_cast<int>(between(1, 2));
  const PipelineId ring = b_.pipeline(fresh("ring"), stages, {p.sa, p.sb});
  const int producer_warps = chance(0.1) ? 1 : 4;
  const int lag = p.a_in_registers ? 0 : static_cast<int>(between(0, 1));
  const bool budgets = producer_warps == 4 && chance(0.5);
  const int tiles =
      chance(0.3) ? static_cast<int>(between(2, 3)) : 1;  // a persistent loop in every role
  const auto around = vars_;
  const std::string tile_name = fresh("tile");
  const std::string k = fresh("k");
  const auto each_tile = [&](const std::function<void()>& body) {
    if (tiles == 1) return body();
    b_.for_(tile_name, 0, tiles, 1, [&](const Index&) { body(); });
  };
  if (tiles > 1) vars_.push_back({Index::variable(tile_name), tiles, 1});
  vars_.push_back({kStep, p.steps, 1});
  p.a = box(p.a_shape(), p.global, {.aligned = true, .transposed = p.either_major && chance(0.3)});
  p.b = box(p.b_shape(), p.global, {.aligned = true, .transposed = p.either_major && chance(0.3)});
  vars_.pop_back();
  b_.warps(producer_warps + 4 * consumers);
  if (chance(0.2)) {  // something before the roles
    registers_.clear();
    const auto in_tiles = std::exchange(vars_, around);
    add_load({16, 32});
    if (chance(0.5)) add_through_shared(registers_.back());
    add_store(registers_.back());
    vars_ = in_tiles;
  }
  const auto fill_stages = [&] {
    b_.for_(k, 0, p.steps, 1,
            [&](const Index& step) { b_.produce(ring, [&] { load_operands(p, step); }); });
  };
  const int64_t rows = p.m / consumers;
  b_.roles([&] {
    b_.role("producer", producer_warps, budgets ? 40 : 0, [&] { each_tile(fill_stages); });
    for (int c = 0; c < consumers; ++c)
      b_.role("consumer" + std::to_string(c), 4, budgets ? 232 : 0,
              [&] { consumer_role(p, {ring, lag, k, c * rows, rows}, each_tile); });
  });
  vars_ = around;
}

// Rows of the product from stages that a producer fills.
void Generator::consumer_role(const Product& p, const Consumer& of,
                              const std::function<void(const std::function<void()>&)>& each_tile) {
  const TensorId acc = b_.reg(fresh("acc"), p.acc_dtype, {of.rows, p.n});
  Product mine = p;
  mine.acc = acc;
  if (p.a_in_registers) mine.fa = b_.reg(fresh("fa"), p.operand, p.a_shape());
  const auto part = p.transpose_a ? b_.tile(p.sa, {0, of.first_row}, {p.k, of.rows})
                                  : b_.tile(p.sa, {of.first_row, 0}, {of.rows, p.k});
  const auto multiply_stage = [&] {
    if (of.rows == p.m)
      multiply(mine);
    else
      b_.mma(acc, part, b_.all(p.sb), p.transpose_a, p.transpose_b);
  };
  each_tile([&] {
    b_.fill(acc, 0);
    b_.for_(of.k, 0, p.steps, 1,
            [&](const Index&) { b_.consume(of.ring, of.lag, multiply_stage); });
    epilogue(acc, {of.rows, p.n}, p.acc_dtype);
  });
}

// Types of operands and sums that the target and the data allow.
void Generator::choose_types(Product& p) {
  struct Types {
    Dtype global;
    Dtype operand;
    Dtype acc;
  };

  const std::vector<Types> halves = {{Dtype::bf16, Dtype::bf16, Dtype::f32},
                                     {Dtype::f16, Dtype::f16, Dtype::f32}};
  const std::vector<Types> others = {{Dtype::f32, Dtype::f32, Dtype::f32},
                                     {Dtype::tf32, Dtype::tf32, Dtype::f32}};
  const std::vector<Types> bytes = {{Dtype::i8, Dtype::i8, Dtype::i32},
                                    {Dtype::e4m3, Dtype::e4m3, Dtype::f32},
                                    {Dtype::e5m2, Dtype::e5m2, Dtype::f32}};
  const double u = random_.uniform();
  const auto& kind = u < 0.55 ? halves : others;
  Types types = pick(u < 0.75 ? kind : bytes);
  if (target_ == "sm_80" && is_float(types.operand) && bits_of(types.operand) == 8)
    types = bytes[0];
  if (!on_gpu()) types = pick({halves[0], halves[1], others[0]});
  if (data_ == Data::real && !is_float(types.operand)) types = halves[0];
  p.global = types.global;
  p.operand = types.operand;
  p.acc_dtype = types.acc;
}

void Generator::matmul() {
  Product p;
  make_grid(false);
  choose_types(p);
  const bool simt = p.operand == Dtype::f32;
  p.steps = between(1, 5);
  p.transpose_a = chance(0.3);
  p.transpose_b = chance(0.5);
  const int64_t atom = simt ? 4 : 32 / bytes_of(p.operand);  // of k
  const bool warpgroups = target_ == "sm_90a" && !simt && chance(0.65);
  if (p.operand == Dtype::tf32 && chance(warpgroups ? 0.7 : 0.1))
    p.global = Dtype::f32;  // TMA rounds
  registers_.clear();
  if (warpgroups)
    warpgroup_product(p, atom);
  else
    warp_product(p, atom);
}

void Generator::warpgroup_product(Product& p, int64_t atom) {
  p.m = pick({64, 64, 128});
  p.n = pick({8, 16, 32, 64, 96});
  p.k = atom * pick({1, 2, 4});
  if (p.k * bytes_of(p.operand) < 32) p.k = 32 / bytes_of(p.operand);
  if (bits_of(p.operand) != 16) {
    p.transpose_a = false;
    p.transpose_b = chance(0.9);
  }
  if (p.transpose_b && p.n < 32) p.n = 32;
  p.a_in_registers = chance(0.3);
  if (p.a_in_registers) p.transpose_a = false;
  p.sa = b_.shared("sa", p.operand, p.a_shape());
  p.sb = b_.shared("sb", p.operand, p.b_shape());
  p.either_major = bits_of(p.operand) == 16 || chance(0.05);
  if (chance(0.7)) return product_in_roles(p);
  // wgmma of threads that fill the stages themselves
  warps_ = p.m % 128 == 0 && chance(0.5) ? 8 : 4;
  b_.warps(warps_);
  if (p.a_in_registers) p.fa = b_.reg("fa", p.operand, p.a_shape());
  product_in_threads(p, chance(0.5));
}

void Generator::warp_product(Product& p, int64_t atom) {
  const bool cpu = !on_gpu();
  const bool simt = p.operand == Dtype::f32;
  warps_ = pick({1, 2, 4, 4, 8});
  const int64_t wm = pick({1, 2});
  const int64_t wn = std::max<int64_t>(1, warps_ / wm);
  if (simt) {
    p.m = pick({16, 32, 64});
    p.n = pick({32, 64});
    p.k = pick({4, 8, 16});
  } else {
    p.m = 16 * wm * pick({1, 2});
    p.n = 8 * wn * pick({1, 2});
    p.k = atom * pick({1, 2});
  }
  if (cpu) {
    p.m = between(1, 40);
    p.n = pick({8, 16, 17, 48, 64});
    p.k = between(1, 40);
    warps_ = 1;
  }
  b_.warps(warps_);
  p.a_in_registers = p.b_in_registers = !cpu || chance(0.2);
  if (cpu && p.b_in_registers && chance(0.9)) p.transpose_b = false;
  p.through_shared = cpu ? !p.a_in_registers : chance(0.8);
  const bool ring = p.through_shared && !cpu && chance(0.6);
  if (p.through_shared && p.a_in_registers && !simt && chance(0.3)) {
    p.inner = p.k / atom;
    p.loop_inside = chance(0.5);
  }
  if (p.through_shared) {
    p.sa = b_.shared("sa", p.operand, p.a_shape());
    p.sb = b_.shared("sb", p.operand, p.b_shape());
  }
  if (p.a_in_registers) {
    p.fa = b_.reg("fa", p.operand, p.a_part());
    p.fb = b_.reg("fb", p.operand, p.b_part());
  }
  product_in_threads(p, ring);
}

void Generator::product_in_threads(Product& p, bool ring) {
  p.acc = b_.reg("acc", p.acc_dtype, {p.m, p.n});
  const auto whole = [&] {
    const auto around = vars_;
    vars_.push_back({kStep, p.steps, 1});
    p.a = box(p.a_shape(), p.global,
              {.aligned = chance(0.6), .transposed = chance(0.3), .packs = p.sa < 0 && p.fa >= 0});
    p.b = box(p.b_shape(), p.global,
              {.aligned = chance(0.6), .transposed = chance(0.3), .packs = p.sb < 0 && p.fb >= 0});
    vars_ = around;
    b_.fill(p.acc, 0);
    if (ring) {
      product_in_one_thread(p);
    } else {
      b_.for_(fresh("k"), 0, p.steps, 1, [&](const Index& step) {
        load_operands(p, step);
        multiply(p);
      });
    }
    epilogue(p.acc, {p.m, p.n}, p.acc_dtype);
  };
  persistent_ = chance(0.15);
  if (persistent_)
    loop(between(2, 3), [&](const Variable&) { whole(); });
  else
    whole();
}

// Slots that a role fills for one or two others, which take them into registers.
void Generator::ring() {
  make_grid(true);
  const int stages = static_cast<int>(between(1, 4));
  const int consumers = static_cast<int>(between(1, 2));
  const Dtype dtype = pick({Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f32});
  Shape shape = {pick({8, 16, 32}), pick({32, 64, 128})};
  if (chance(0.3)) shape = {pick({1, 2, 4}), 128 / bytes_of(dtype)};  // one panel
  if (chance(0.05)) shape = {pick({1, 2, 4}), 256};
  const int64_t turns = between(1, 6);
  const TensorId stage = b_.shared(fresh("ring_stage"), dtype, shape);
  const PipelineId ring = b_.pipeline("ring", stages, {stage});
  std::vector<PipelineId> rings = {ring};
  TensorId other = -1;
  if (chance(0.2)) {
    other = b_.shared(fresh("second_stage"), dtype, shape);
    rings.push_back(b_.pipeline("second", static_cast<int>(between(1, 3)), {other}));
  }
  vars_.push_back({kStep, turns, 1});
  std::vector<Tile> from;
  for (size_t i = 0; i < rings.size(); ++i)
    from.push_back(box(shape, dtype, {.aligned = true}));
  const int warps = pick({1, 4});
  const int consumer_warps = pick({1, 2, 4});
  vars_.pop_back();
  b_.warps(warps + consumers * consumer_warps);
  const std::string k = fresh("k");
  const auto fill_stages = [&](const Index& step) {
    for (size_t i = 0; i < rings.size(); ++i)
      b_.produce(rings[i], [&] {
        Tile tile = from[i];
        for (Index& at : tile.offset)
          at = with_step(at, step);
        b_.copy(tile, b_.all(i ? other : stage));
      });
  };
  const auto take_stages = [&](const Index& step, TensorId sum) {
    const TensorId v = b_.reg(fresh("v"), dtype, shape);
    registers_ = {{v, shape, dtype}};
    b_.consume(ring, 0, [&] { b_.copy(b_.all(stage), b_.all(v)); });
    if (other >= 0) {
      const TensorId w = b_.reg(fresh("w"), dtype, shape);
      b_.consume(rings[1], 0, [&] { b_.copy(b_.all(other), b_.all(w)); });
      registers_.push_back({w, shape, dtype});
    }
    vars_.push_back({step, turns, 1});
    const bool barred = divergent_;
    divergent_ = true;
    const int count = static_cast<int>(between(0, 2));
    for (int i = 0; i < count; ++i)
      chance(0.6) ? add_map() : add_reduce();
    if (chance(0.5)) add_store(registers_.back());
    divergent_ = barred;
    vars_.pop_back();
    b_.map(sum, b_.value(sum) + b_.value(v));
  };
  const auto consume_all = [&] {
    const TensorId sum = b_.reg(fresh("sum"), Dtype::f32, shape);
    b_.fill(sum, 0);
    b_.for_(k, 0, turns, 1, [&](const Index& step) { take_stages(step, sum); });
    registers_ = {{sum, shape, Dtype::f32}};
    add_store(registers_.back());
  };
  b_.roles([&] {
    b_.role("producer", warps, 0, [&] { b_.for_(k, 0, turns, 1, fill_stages); });
    for (int c = 0; c < consumers; ++c)
      b_.role("consumer" + std::to_string(c), consumer_warps, 0, consume_all);
  });
}
}  // namespace warploom::fuzz
