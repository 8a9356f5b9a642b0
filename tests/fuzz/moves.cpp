// Pure data movement: chains of scopes from global to global memory, boxes of boxes, many ranks,
// orders and types.
#include <cstddef>
#include <cstdint>
#include <vector>
#include "base/dtype.h"
#include "generator.h"
#include "tile/program.h"

namespace warploom::fuzz {
using namespace tile;

namespace {
constexpr Scope kG = Scope::global;
constexpr Scope kS = Scope::shared;
constexpr Scope kR = Scope::reg;

using Scopes = std::vector<Scope>;

const std::vector<Scopes> kChains = {
    {kG, kS, kG},         {kG, kR, kG},         {kG, kS, kR, kG},        {kG, kR, kS, kG},
    {kG, kS, kR, kS, kG}, {kG, kR, kS, kR, kG}, {kG, kS, kR, kS, kR, kG}};
const std::vector<Scopes> kRareChains = {{kG, kS, kS, kG}, {kG, kR, kR, kG}};
}  // namespace

// What moves along a chain of scopes.
struct Generator::Move {
  Dtype dtype;
  Shape shape;
};

Dtype Generator::moved_dtype() {
  Dtype dtype = chance(0.3) ? Dtype::f32
                            : pick({Dtype::bf16, Dtype::f16, Dtype::f32, Dtype::e4m3, Dtype::e5m2,
                                    Dtype::i32, Dtype::i8, Dtype::u8});
  if (chance(0.02)) dtype = pick({Dtype::i64, Dtype::f64, Dtype::boolean, Dtype::tf32});
  if (!on_gpu()) dtype = pick({Dtype::f32, Dtype::bf16, Dtype::f16});
  return dtype;
}

Shape Generator::moved_shape() {
  Shape shape;
  const int64_t rows = pick({1, 4, 8, 16, 32});
  const int64_t columns = pick({8, 16, 32, 64, 128});
  switch (between(0, 4)) {
    case 0: shape = {columns * 4}; break;
    case 1: shape = {pick({2, 4}), rows, columns}; break;
    default: shape = {rows, columns};
  }
  if (chance(0.1)) shape.back() = pick({4, 12, 24, 96, 1, 5});
  return shape;
}

// One dimension here may be several in global memory.
Shape Generator::finer(const Shape& shape) {
  Shape fine = shape;
  const size_t d = random_.below(shape.size());
  const int64_t inner = pick({2, 4, 8});
  if (chance(0.2) && fine[d] % inner == 0 && fine[d] > inner) {
    fine[d] /= inner;
    fine.insert(fine.begin() + static_cast<ptrdiff_t>(d) + 1, inner);
  }
  return fine;
}

// A tile of a new tensor. Shared tensors may be larger than what moves, filled in parts, and
// dimensions of extent 1 may come in between.
Tile Generator::place_of(const Move& move, Scope scope) {
  Shape own = move.shape;
  std::vector<Index> at(own.size(), 0);
  if (scope == kS && chance(0.3)) {
    const size_t d = random_.below(own.size());
    const int64_t more = pick<int64_t>({1, 4, 8, 16});
    own[d] += more;
    if (chance(0.5)) at[d] = more;
  }
  Shape extent = move.shape;
  if (chance(0.1)) {
    own.insert(own.begin(), 1);
    extent.insert(extent.begin(), 1);
    at.insert(at.begin(), 0);
  }
  const TensorId id =
      scope == kS ? b_.shared(fresh("s"), move.dtype, own) : b_.reg(fresh("r"), move.dtype, own);
  return b_.tile(id, at, extent);
}

// Two halves of the first dimension, in a loop or one after the other.
void Generator::load_in_halves(const Tile& whole, const Tile& here) {
  const int64_t half = here.extent[0] / 2;
  const size_t front = whole.extent.size() - here.extent.size();
  const auto part = [&](const Index& p) {
    Tile from = whole;
    Tile to = here;
    from.extent[front] = half;
    to.extent[0] = half;
    from.offset[front] = from.offset[front] + p * half;
    to.offset[0] = to.offset[0] + p * half;
    load(from, to);
  };
  if (chance(0.5)) {
    b_.for_(fresh("h"), 0, 2, 1, part);
  } else {
    part(0);
    part(1);
  }
}

void Generator::move_chain() {
  const Dtype dtype = moved_dtype();
  const Move move{dtype, moved_shape()};
  const Shape& shape = move.shape;
  Scopes scopes = pick(kChains);
  if (chance(0.02)) scopes = pick(kRareChains);
  const bool transposed = chance(0.15);
  Tile last = box(finer(shape), dtype, {.transposed = transposed, .packs = scopes[1] == kR});
  const bool grouped = wide_dims(last.extent).size() != wide_dims(shape).size();
  for (size_t i = 1; i < scopes.size(); ++i) {
    if (scopes[i] == kG) {
      b_.copy(last,
              box(finer(shape), dtype, {.output = true, .transposed = transposed != chance(0.1)}),
              0, chance(0.1));
      break;
    }
    const Tile here = place_of(move, scopes[i]);
    if (scopes[i] == kS && i == 1 && !grouped && chance(0.25) &&
        shape.size() == here.extent.size() && shape[0] % 2 == 0 && shape[0] > 2)
      load_in_halves(last, here);
    else if (i == 1)
      load(last, here);
    else
      b_.copy(last, here);
    last = here;
  }
}

void Generator::moves() {
  make_grid(true);
  warps_ = pick({1, 2, 4, 8});
  b_.warps(warps_);
  const int count = static_cast<int>(between(1, 2));
  for (int i = 0; i < count; ++i) {
    if (chance(0.3))
      loop(between(1, 4), [&](const Variable&) { move_chain(); });
    else
      move_chain();
  }
}
}  // namespace warploom::fuzz
