// Statements on register tensors: loads, maps of random trees, casts, reductions over any axis and
// over clusters, loops and branches round them, round trips through shared memory in other boxes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/value_op.h"
#include "fuzz/program.h"
#include "generator.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::fuzz {
using namespace tile;

TensorId Generator::reg(const Shape& shape, Dtype dtype) {
  const TensorId id = b_.reg(fresh("r"), dtype, shape);
  return id;
}

const Generator::Register* Generator::any_register(
    const std::function<bool(const Register&)>& fits) {
  std::vector<const Register*> found;
  for (const Register& r : registers_)
    if (fits(r)) found.push_back(&r);
  return found.empty() ? nullptr : pick(found);
}

// A tree over constants and the tensors that broadcast to the shape. Arguments of functions with a
// domain are brought into it.
Value Generator::value(const Shape& shape, int depth) {
  if (depth == 0 || chance(0.25)) {
    const Register* r = any_register([&](const Register& x) {
      return x.shape.size() == shape.size() &&
             std::equal(x.shape.begin(), x.shape.end(), shape.begin(),
                        [](auto own, auto full) { return own == full || own == 1; });
    });
    if (r && chance(0.85)) return b_.value(r->id);
    if (chance(0.4)) {
      const Index shift =
          vars_.empty() ? Index(0) : at_same(pick(vars_)) * pick({1, 3, 8}) - between(0, 20);
      return coordinate(static_cast<int>(random_.below(shape.size())), shift);
    }
    return constant(pick({0.5, 1.0, 2.0, -1.0, 0.25, 3.0}));
  }
  const auto sub = [&] { return value(shape, depth - 1); };
  const auto of = [&](ValueOp op, std::vector<Value> operands) {
    return apply(op, std::move(operands));
  };
  const auto positive = [&] { return of(ValueOp::abs, {sub()}) + constant(0.5); };
  if (data_ == Data::real && chance(0.4)) switch (between(0, 10)) {
      case 0: return of(ValueOp::exp, {of(ValueOp::min, {sub(), constant(1)})});
      case 1: return of(ValueOp::exp2, {of(ValueOp::min, {sub(), constant(2)})});
      case 2: return of(ValueOp::log, {positive()});
      case 3: return of(ValueOp::sqrt, {positive()});
      case 4: return of(ValueOp::rsqrt, {positive()});
      case 5: return of(ValueOp::reciprocal, {positive()});
      case 6: return of(ValueOp::tanh, {sub()});
      case 7: return of(ValueOp::erf, {sub()});
      case 8: return of(ValueOp::sigmoid, {sub()});
      case 9: return of(pick({ValueOp::sin, ValueOp::cos}), {sub()});
      default: return sub() / positive();
    }
  switch (between(0, 13)) {
    case 0:
    case 1: return sub() + sub();
    case 2: return sub() - sub();
    case 3: return sub() * constant(pick({0.5, 2.0, -1.0}));
    case 4: return sub() * sub();
    case 5: return of(ValueOp::max, {sub(), sub()});
    case 6: return of(ValueOp::min, {sub(), sub()});
    case 7: return of(ValueOp::fma, {sub(), constant(0.5), sub()});
    case 8:
      return of(ValueOp::where,
                {of(pick({ValueOp::less, ValueOp::equal}), {sub(), sub()}), sub(), sub()});
    case 9: return of(ValueOp::neg, {sub()});
    case 10: return of(ValueOp::abs, {sub()});
    case 11: return of(ValueOp::relu, {sub()});
    case 12: return of(ValueOp::floor, {sub()});
    default: return of(ValueOp::round_tf32, {sub()});
  }
}

void Generator::add_load(const Shape& shape) {
  const Dtype dtype = any_dtype();
  const TensorId id = reg(shape, dtype);
  load(box(shape, dtype, {.packs = true}), b_.all(id));
  registers_.push_back({id, shape, dtype});
}

void Generator::add_map() {
  const Register& like = pick(registers_);
  const Shape shape = like.shape;
  const Value v = value(shape, static_cast<int>(between(1, 3)));
  if (chance(0.5)) {
    b_.map(like.id, v);
  } else {
    const Dtype dtype = chance(0.7) ? Dtype::f32 : any_dtype();
    const TensorId id = reg(shape, dtype);
    b_.map(id, v);
    registers_.push_back({id, shape, dtype});
  }
}

void Generator::add_cast() {
  const Register from = pick(registers_);
  const Dtype dtype = any_dtype();
  const TensorId id = reg(from.shape, dtype);
  b_.copy(b_.all(from.id), b_.all(id));
  registers_.push_back({id, from.shape, dtype});
}

void Generator::add_fill() {
  const Register like = pick(registers_);
  const Dtype dtype = chance(0.6) ? Dtype::f32 : any_dtype();
  const TensorId id = reg(like.shape, dtype);
  double value = 1;
  if (dtype == Dtype::u8)
    value = 2;
  else if (dtype != Dtype::boolean)
    value = pick({0.0, 1.0, -2.0, 3.0});
  b_.fill(id, value);
  registers_.push_back({id, like.shape, dtype});
}

void Generator::add_reduce() {
  const Register* from = any_register([](const Register& r) {
    return std::any_of(r.shape.begin(), r.shape.end(), [](auto e) { return e > 1; });
  });
  if (!from) return;
  Register src = *from;
  size_t axis = random_.below(src.shape.size());
  while (src.shape[axis] == 1)
    axis = (axis + 1) % src.shape.size();
  const Dtype dtype = chance(0.85) ? Dtype::f32 : any_dtype();
  const ReduceOp op = pick({ReduceOp::sum, ReduceOp::max, ReduceOp::min});
  Shape shape = src.shape;
  shape[axis] = 1;
  const TensorId id = reg(shape, dtype);
  b_.reduce(id, src.id, static_cast<int>(axis), op);
  registers_.push_back({id, shape, dtype});
  if (cluster_ > 1 && !divergent_ && chance(0.6)) b_.cluster_reduce(id, op);
}

void Generator::add_scan() {
  const Register src = pick(registers_);
  const Dtype dtype = chance(0.85) ? Dtype::f32 : any_dtype();
  const TensorId id = chance(0.2) ? src.id : reg(src.shape, dtype);
  b_.add(tile::Scan{id, src.id, static_cast<int>(random_.below(src.shape.size())),
                    pick({ReduceOp::sum, ReduceOp::max, ReduceOp::min}), chance(0.4)});
  if (id != src.id) registers_.push_back({id, src.shape, dtype});
}

// Into a tensor that starts a family of registers of its own.
void Generator::add_rearrange(const Register& from) {
  const bool transpose = from.shape.size() == 2 && chance(0.5);
  Shape shape = from.shape;
  if (transpose) std::swap(shape[0], shape[1]);
  const TensorId id = reg(shape, from.dtype);
  b_.convert_layout(id, from.id, transpose);
  const Register back{id, shape, from.dtype};
  registers_ = {back};
}

void Generator::add_store(const Register& from) {
  b_.copy(b_.all(from.id), box(from.shape, from.dtype, {.output = true}), 0, chance(0.1));
}

// Out to a shared tensor and back in another box, which starts a family of registers of its own.
void Generator::add_through_shared(const Register& from) {
  Shape larger = from.shape;
  if (chance(0.2)) larger.back() += pick<int64_t>({8, 16, 1});
  const TensorId s = b_.shared(fresh("s"), from.dtype, larger);
  std::vector<Index> origin(larger.size(), 0);
  const bool whole = larger == from.shape;
  b_.copy(b_.all(from.id), whole ? b_.all(s) : b_.tile(s, origin, from.shape));
  Shape part = from.shape;
  if (chance(0.5)) {
    const size_t d = random_.below(part.size());
    if (part[d] % 2 == 0) {
      part[d] /= 2;
      if (chance(0.5))
        origin[d] = part[d];
      else if (whole && chance(0.3) && !vars_.empty()) {
        const Variable& v = pick(vars_);
        origin[d] = (v.scale == 1 ? v.index : v.index / v.scale) % 2 * part[d];
      }
    }
  }
  const TensorId id = reg(part, from.dtype);
  b_.copy(b_.tile(s, origin, part), b_.all(id));
  const Register back{id, part, from.dtype};
  registers_ = {back};
}

// A loop, or a branch on a variable around, and statements in it.
void Generator::add_block(bool loops, int depth) {
  const auto outside = registers_;
  const bool diverged = divergent_;
  const int inner = static_cast<int>(between(1, 3));
  if (loops) {
    const bool triangle = chance(0.15) && !vars_.empty() && vars_.back().scale == 1;
    if (triangle) {  // as many turns as the variable around says: nothing is stored by them
      const std::string name = fresh("j");
      b_.for_(name, chance(0.5) ? Index(0) : vars_.back().index, vars_.back().count, 1,
              [&](const Index&) { add_map(); });
    } else {
      loop(between(1, 4), [&](const Variable&) { add_statements(inner, depth + 1); });
    }
  } else if (!vars_.empty()) {
    const Variable v = pick(vars_);
    divergent_ = true;
    b_.if_less(v.index, between(1, v.count) * v.scale, [&] { add_statements(inner, depth + 1); });
  }
  divergent_ = diverged;
  registers_ = outside;  // what a body made need not exist behind it
}

void Generator::add_statements(int count, int depth) {
  for (int i = 0; i < count; ++i) {
    const double u = random_.uniform();
    if (u < 0.12) {
      add_load(registers_.front().shape);
    } else if (u < 0.16 && registers_.front().shape.size() > 1) {
      Shape shape = registers_.front().shape;
      shape[random_.below(shape.size())] = 1;
      add_load(shape);
    } else if (u < 0.46) {
      add_map();
    } else if (u < 0.56) {
      add_reduce();
    } else if (u < 0.60) {
      add_scan();
    } else if (u < 0.68) {
      add_cast();
    } else if (u < 0.72) {
      add_fill();
    } else if (u < 0.80) {
      add_store(pick(registers_));
    } else if (u < 0.82 && depth == 0) {
      add_rearrange(pick(registers_));
    } else if (u < 0.84 && depth == 0) {
      add_through_shared(registers_.front());
    } else if (depth < 2) {
      add_block(u < 0.94, depth);
    }
  }
}

void Generator::elementwise() {
  make_grid(true);
  warps_ = chance(0.08) ? pick({3, 5, 6}) : pick({1, 2, 4, 4, 8});
  b_.warps(warps_);
  const int64_t threads = warps_ * 32;
  Shape shape;
  const int64_t rows = pick({1, 2, 4, 8, 16});
  const int64_t columns = pick({8, 16, 32, 64, 128}) * (chance(0.1) ? 3 : 1);
  switch (between(0, 5)) {
    case 0: shape = {rows * columns}; break;
    case 1: shape = {pick({1, 2, 4}), rows, columns}; break;
    case 2: shape = {rows, pick<int64_t>({1, 2, 4}) * threads}; break;
    default: shape = {rows, columns};
  }
  if (chance(0.05)) shape.back() = pick({1, 3, 7, 33});
  if (warps_ % 3 == 0 || warps_ % 5 == 0) shape.back() *= warps_ / (warps_ % 2 ? 1 : 2);
  add_load(shape);
  // Something that persists: a block takes tile after tile.
  if (chance(0.15) && cluster_ == 1) {
    const int64_t tiles = between(2, 5);
    const auto around = vars_;
    if (!vars_.empty() && vars_[0].index.depends_on("block_x")) {
      const int64_t blocks = vars_[0].count;
      vars_.erase(vars_.begin());
      b_.for_(fresh("tile"), block(0), tiles, blocks, [&](const Index& t) {
        vars_.push_back({t, tiles, 1});
        add_load(shape);
        add_statements(static_cast<int>(between(1, 4)), 1);
        add_store(registers_.back());
        vars_.pop_back();
      });
      vars_ = around;
      registers_.resize(1);
    }
  }
  add_statements(static_cast<int>(between(2, 8)), 0);
  add_store(registers_.back());
  if (chance(0.5)) add_store(registers_.front());
}
}  // namespace warploom::fuzz
