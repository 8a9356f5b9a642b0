// The guessed time of products on a CPU.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/families/matmul_cpu.h"
#include "kernels/family.h"
#include "kernels/pieces/cpu_product.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "target/cpu_tiles.h"

namespace warploom::kernels::cpu_matmul {
double cycles_a_step(int64_t rows, int64_t vectors) {
  constexpr double kShare = 0.25;
  constexpr double kLate = 0.05;
  const int64_t loads = rows + vectors;
  return as_double(std::max({rows * vectors, loads, int64_t{8}})) / 2 + kShare +
         kLate * as_double(loads);
}

int64_t outer_count(const Contraction& c, const Access& access) {
  int64_t count = 1;
  for (size_t a = 0; a < c.nest.axes.size(); ++a)
    if (access.uses(a) && a != c.row && a != c.column && a != c.k[0]) count *= c.nest.axes[a];
  return count;
}

namespace {
constexpr int64_t kNear = 512;  // elements between rows that caches and pages serve well

// A guess of the time of a config, in cycles of one core.
class Guess {
 public:
  Guess(const Contraction& contraction, const MatmulCpuConfig& config,
        const Capabilities& capabilities)
      : c_(contraction),
        s_(config),
        cores_(capabilities.num_sms),
        lanes_(capabilities.lanes()),
        rows_(c_.nest.axes[c_.row]),
        columns_(c_.nest.axes[c_.column]),
        depth_(c_.nest.axes[c_.k[0]]) {}

  double cycles(Constants constants) const {
    constexpr double kLaunch = 6000;  // of a program on all cores
    const auto tasks = as_double(CpuProduct(c_, s_, lanes_).tasks());
    double cycles = std::ceil(tasks / cores_) * cycles_of_task();
    if (tasks > 1) cycles += kLaunch / 2;
    const auto packed = [&](const Access& access, int64_t elements) {
      const auto all = as_double(elements * outer_count(c_, access));
      return kLaunch + all * cycles_to_pack(access) / cores_;
    };
    if (s_.pack_a == PackedBy::program && !constants.a)
      cycles += packed(c_.access_a(), rows_ * depth_);
    if (s_.pack_b == PackedBy::program && !constants.b)
      cycles += packed(c_.access_b(), columns_ * depth_);
    return cycles;
  }

 private:
  // An element, from memory that is near to memory that is near.
  double cycles_to_pack(const Access& access) const {
    const bool is_b = &access == &c_.access_b();
    const bool in_rows = access.stride(is_b ? c_.column : c_.k[0]) == 1;
    return in_rows ? 0.35 : 0.6;
  }

  double cycles_of_task() const {
    const MatmulCpuConfig& s = s_;
    const TileLine columns(columns_, s.tile_n, s.tasks_n);
    double cycles = 100;
    if (CpuProduct(c_, s, lanes_).has_narrow_end()) {
      MatmulCpuConfig end = s;
      end.tile_n = columns_ % s.tile_n;
      cycles += as_double(columns_ / s.tile_n) * cycles_of_column(s) + cycles_of_column(end);
    } else {
      cycles += as_double(columns.per_task) * cycles_of_column(s);
    }
    return cycles;
  }

  double cycles_of_column(const MatmulCpuConfig& s) const {
    const TileLine rows(rows_, s.tile_m, s.tasks_m);
    const int64_t blocks = ceil_div(depth_, s.block_k);
    const auto depth = as_double(depth_);
    const int64_t vectors = ceil_div(s.tile_n, lanes_);
    const auto in_tile = as_double(s.tile_m * vectors);
    const auto terms = as_double(terms_of_step(s.instruction));
    double tile = depth / terms * cycles_of_tile(s);
    if (s.step_k > 0) tile += depth / as_double(s.step_k) * in_tile * 1.5;
    // Tiles go through memory to be added: what was stored a moment ago is loaded again.
    const double added = s.instruction == CpuInstruction::tile ? 16 : 3;
    tile += as_double(blocks) * (in_tile * (blocks > 1 ? added : 1) + 30) + in_tile * 2;
    double column = as_double(rows.per_task) * tile;
    if (s.pack_b == PackedBy::task)
      column += depth * as_double(s.tile_n) * cycles_to_pack(c_.access_b());
    if (s.pack_b == PackedBy::nobody) column += depth * as_double(vectors) * 2;
    return column;
  }

  // A term of a register tile, with what reading operands across pages costs.
  double cycles_of_tile(const MatmulCpuConfig& s) const {
    constexpr int64_t kPage = 1024;  // elements
    if (s.instruction == CpuInstruction::tile) return cycles_by_tiles(s);
    const int64_t vectors = ceil_div(s.tile_n, lanes_);
    double cycles = cycles_a_step(s.tile_m, std::min(vectors, kMostVectors));
    if (vectors > kMostVectors) cycles *= as_double(vectors) / as_double(kMostVectors);
    const int64_t apart_b = c_.access_b().stride(c_.k[0]);
    if (s.pack_b == PackedBy::nobody && s.step_k <= 0 && apart_b > kNear)
      cycles *= apart_b % kPage == 0 ? 1.6 : 1.15;
    cycles *= cycles_for_a(s);
    if (s.pack_a != PackedBy::nobody) return cycles;
    const Access& a = c_.access_a();
    const bool folds = a.stride(c_.row) % kPage == 0 && s.tile_m > 8;
    const bool across = a.stride(c_.k[0]) > kNear;
    return cycles * (folds || across ? 1.2 : 1);
  }

  // A product of two tiles takes 16 cycles; one that is read comes from beyond the nearest cache,
  // but for those of B where a block of them stays there.
  double cycles_by_tiles(const MatmulCpuConfig& s) const {
    constexpr double kProduct = 16;
    constexpr double kFromAfar = 32;
    constexpr double kFromNearby = 8;
    constexpr int64_t kNearest = 12 << 10;  // elements, half of the nearest cache
    const target::CpuTiles tiles(s.tile_m, s.tile_n);
    const double of_b = s.tile_n * s.block_k > kNearest ? kFromAfar : kFromNearby;
    const double reads = kFromAfar * as_double(tiles.rows) + of_b * as_double(tiles.columns);
    return std::max(kProduct * as_double(tiles.sums()), reads) + kFromNearby;
  }

  // What it costs that A comes from afar: its rows of a tile from beyond the nearest cache, where
  // panels of B go by meanwhile, and those of a task from memory, for each column of tiles.
  double cycles_for_a(const MatmulCpuConfig& s) const {
    constexpr int64_t kNearest = 6 << 10;       // elements, half of the nearest cache
    constexpr int64_t kOfTask = (8 << 20) / 4;  // elements, that a last cache holds of a task's
    constexpr double kLate = 1.05;
    const TileLine rows(rows_, s.tile_m, s.tasks_m);
    const TileLine columns(columns_, s.tile_n, s.tasks_n);
    const bool goes_by = columns.per_task > 1;
    double cycles = s.tile_m * s.block_k > kNearest ? kLate : 1;
    if (goes_by && rows.per_task * s.tile_m * depth_ > kOfTask) cycles *= kLate;
    return cycles;
  }

  const Contraction& c_;
  const MatmulCpuConfig& s_;
  double cores_;
  int64_t lanes_;
  int64_t rows_;
  int64_t columns_;
  int64_t depth_;
};

}  // namespace

double guessed_cycles(const Contraction& contraction, const MatmulCpuConfig& config,
                      const Capabilities& capabilities, Constants constants) {
  return Guess(contraction, config, capabilities).cycles(constants);
}
}  // namespace warploom::kernels::cpu_matmul
