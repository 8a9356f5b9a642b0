// Pure data movement: chains of scopes from global to global memory, boxes of boxes, many ranks,
// orders and types.
#include <algorithm>
#include "generator.h"

namespace warploom::fuzz {
using namespace tile;

void Generator::moves() {
  make_grid(true);
  warps_ = pick({1, 2, 4, 8});
  b_.warps(warps_);
  static constexpr Scope kG = Scope::global;
  static constexpr Scope kS = Scope::shared;
  static constexpr Scope kR = Scope::reg;
  const std::vector<std::vector<Scope>> chains = {
      {kG, kS, kG},         {kG, kR, kG},         {kG, kS, kR, kG},        {kG, kR, kS, kG},
      {kG, kS, kR, kS, kG}, {kG, kR, kS, kR, kG}, {kG, kS, kR, kS, kR, kG}};
  const auto chain = [&] {
    Dtype dtype = chance(0.3) ? Dtype::f32
                              : pick({Dtype::bf16, Dtype::f16, Dtype::f32, Dtype::e4m3, Dtype::e5m2,
                                      Dtype::i32, Dtype::i8, Dtype::u8});
    if (chance(0.02)) dtype = pick({Dtype::i64, Dtype::f64, Dtype::boolean, Dtype::tf32});
    if (!on_gpu()) dtype = pick({Dtype::f32, Dtype::bf16, Dtype::f16});
    Shape shape;
    const int64_t rows = pick({1, 4, 8, 16, 32});
    const int64_t columns = pick({8, 16, 32, 64, 128});
    switch (between(0, 4)) {
      case 0: shape = {columns * 4}; break;
      case 1: shape = {pick({2, 4}), rows, columns}; break;
      default: shape = {rows, columns};
    }
    if (chance(0.1)) shape.back() = pick({4, 12, 24, 96, 1, 5});
    std::vector<Scope> scopes = pick(chains);
    if (chance(0.02))
      scopes = pick(std::vector<std::vector<Scope>>{{kG, kS, kS, kG}, {kG, kR, kR, kG}});
    const bool transposed = chance(0.15);
    // One dimension here may be several in global memory.
    const auto finer = [&] {
      Shape fine = shape;
      const size_t d = random_.below(shape.size());
      const int64_t inner = pick({2, 4, 8});
      if (chance(0.2) && fine[d] % inner == 0 && fine[d] > inner) {
        fine[d] /= inner;
        fine.insert(fine.begin() + static_cast<ptrdiff_t>(d) + 1, inner);
      }
      return fine;
    };
    Tile last = box(finer(), dtype, {.transposed = transposed, .packs = scopes[1] == kR});
    const bool grouped = wide_dims(last.extent).size() != wide_dims(shape).size();
    for (size_t i = 1; i < scopes.size(); ++i) {
      if (scopes[i] == kG) {
        b_.copy(last,
                box(finer(), dtype, {.output = true, .transposed = transposed != chance(0.1)}), 0,
                chance(0.1));
        break;
      }
      // Shared tensors may be larger than what moves, filled in parts, and dimensions of extent 1
      // may come in between.
      Shape own = shape;
      std::vector<Index> at(own.size(), 0);
      if (scopes[i] == kS && chance(0.3)) {
        const size_t d = random_.below(own.size());
        const int64_t more = pick<int64_t>({1, 4, 8, 16});
        own[d] += more;
        if (chance(0.5)) at[d] = more;
      }
      Shape extent = shape;
      if (chance(0.1)) {
        own.insert(own.begin(), 1);
        extent.insert(extent.begin(), 1);
        at.insert(at.begin(), 0);
      }
      const TensorId id =
          scopes[i] == kS ? b_.shared(fresh("s"), dtype, own) : b_.reg(fresh("r"), dtype, own);
      const Tile here = b_.tile(id, at, extent);
      if (scopes[i] == kS && i == 1 && !grouped && chance(0.25) && shape.size() == extent.size() &&
          shape[0] % 2 == 0 && shape[0] > 2) {
        // Two halves of the first dimension, in a loop or one after the other.
        Shape half = extent;
        half[0] /= 2;
        const Tile whole = last;
        const size_t front = whole.extent.size() - extent.size();
        const auto part = [&](const Index& p) {
          Tile from = whole;
          Tile to = here;
          from.extent[front] = to.extent[0] = half[0];
          from.offset[front] = from.offset[front] + p * half[0];
          to.offset[0] = to.offset[0] + p * half[0];
          load(from, to);
        };
        if (chance(0.5))
          b_.for_(fresh("h"), 0, 2, 1, part);
        else {
          part(0);
          part(1);
        }
      } else if (i == 1) {
        load(last, here);
      } else {
        b_.copy(last, here);
      }
      last = here;
    }
  };
  const int count = static_cast<int>(between(1, 2));
  for (int i = 0; i < count; ++i) {
    if (chance(0.3))
      loop(between(1, 4), [&](const Variable&) { chain(); });
    else
      chain();
  }
}
}  // namespace warploom::fuzz
