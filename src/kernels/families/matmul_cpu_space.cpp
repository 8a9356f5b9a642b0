// Which values of its fields `matmul_cpu` offers.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/families/matmul_cpu.h"
#include "kernels/family.h"
#include "kernels/pieces/cpu_product.h"
#include "target/cpu_tiles.h"

namespace warploom::kernels::cpu_matmul {
namespace {
using F = MatmulCpuConfig::Field;

Values without_repeats(const Values& values) {
  Values out;
  for (const int64_t value : values)
    if (std::ranges::find(out, value) == out.end()) out.push_back(value);
  return out;
}

// Parts that an axis may be cut into for tasks.
Values shares_of(int64_t size, int64_t cores) {
  Values out = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, cores};
  std::erase_if(out, [&](int64_t share) { return share > std::min(size, 4 * cores); });
  return without_repeats(out);
}

class Choices {
 public:
  explicit Choices(const Problem& problem) : p_(problem) {}

  Space space() const {
    Space space{std::string(MatmulCpuConfig::type().family), {}};
    space.offer<MatmulCpuConfig>(F::tile_m, tile_rows());
    space.offer<MatmulCpuConfig>(F::tile_n, tile_columns());
    space.offer<MatmulCpuConfig>(F::block_k, depths());
    space.offer<MatmulCpuConfig>(F::step_k, steps());
    space.offer<MatmulCpuConfig>(F::tasks_m, p_.holds_rows() ? shares_in_cache() : shares(p_.rows));
    space.offer<MatmulCpuConfig>(F::tasks_n, p_.holds_rows() ? Values{1} : shares(p_.columns));
    space.offer<MatmulCpuConfig>(F::instruction, instructions());
    space.offer<MatmulCpuConfig>(F::pack_a, choices(PackedBy::nobody, PackedBy::program));
    space.offer<MatmulCpuConfig>(F::pack_b,
                                 choices(PackedBy::nobody, PackedBy::task, PackedBy::program));
    return space;
  }

 private:
  // Of whole numbers there are no multiply-adds.
  Values instructions() const {
    if (p_.zero_points) return choices(CpuInstruction::dot);
    if (!p_.has_pairs) return choices(CpuInstruction::fma);
    if (p_.has_tiles)
      return choices(CpuInstruction::tile, CpuInstruction::dot, CpuInstruction::fma);
    return choices(CpuInstruction::dot, CpuInstruction::fma);
  }

  // So few rows that memory bounds the product: whole rows of B go by.
  bool is_flat() const { return p_.rows <= 8; }

  // For each width the rows of the tile that take the fewest cycles, the last tile included; then
  // those that come second.
  Values tile_rows() const {
    Values first;
    Values second;
    for (const int64_t vectors : {4, 3, 2, 6, 1}) {
      std::vector<std::pair<double, int64_t>> rows;
      for (int64_t r = std::min(p_.rows, (p_.registers() - 1 - vectors) / vectors); r >= 1; --r)
        rows.emplace_back(as_double(ceil_div(p_.rows, r)) * cycles_a_step(r, vectors), r);
      std::ranges::stable_sort(rows, {}, &std::pair<double, int64_t>::first);
      if (!rows.empty()) first.push_back(rows[0].second);
      if (rows.size() > 1 && vectors > 1) second.push_back(rows[1].second);
    }
    if (is_flat()) first.push_back(p_.rows);
    first.insert(first.end(), second.begin(), second.end());
    if (p_.has_tiles)
      for (const int64_t side : {2, 1, 3})
        first.push_back(std::min(p_.rows, side * target::CpuTiles::kSide));
    return without_repeats(first);
  }

  Values tile_columns() const {
    Values out;
    if (p_.columns <= kMostVectors * p_.lanes()) out.push_back(p_.columns);
    for (const int64_t vectors : {4, 3, 2})
      if (vectors * p_.lanes() < p_.columns) out.push_back(vectors * p_.lanes());
    if (p_.has_tiles)
      for (const int64_t side : {2, 3, 1})
        if (side * target::CpuTiles::kSide < p_.columns)
          out.push_back(side * target::CpuTiles::kSide);
    if (p_.has_tiles) out = without_repeats(out);
    if (!is_flat()) return out.empty() ? Values{p_.columns} : out;
    for (const int64_t wide : {512, 1024, 2048, 256})
      if (wide <= p_.columns) out.push_back(wide);
    return out;
  }

  // Blocks of equal size, near the wanted ones.
  Values depths() const {
    Values out;
    const auto offer = [&](int64_t wanted) {
      const int64_t near = ceil_div(p_.depth, ceil_div(p_.depth, wanted));
      out.push_back(near);
      for (const int64_t instruction : instructions())
        out.push_back(round_up(near, terms_of_step(CpuInstruction(instruction))));
    };
    for (const int64_t wanted : {256, 512, 384, 128})
      offer(wanted);
    if (is_flat() || p_.has_tiles) offer(kLongestSumOfPairs);
    if (p_.has_tiles)
      for (const int64_t wanted : {1024, 2048})
        offer(wanted);
    return without_repeats(out);
  }

  // Where rows of B go by, few terms; where the result saturates, so few that what the sum of
  // some terms loses is small (promotion.h), for all that counts there is sums near 0.
  Values steps() const {
    if (is_flat()) return {0, 8, 16};
    if (!p_.saturates || p_.depth <= kFewTerms) return {0};
    return {kFewTerms, 0};
  }

  Values shares(int64_t size) const { return shares_of(size, p_.capabilities.num_sms); }

  Values shares_in_cache() const {
    Values out = shares(p_.rows);
    for (const int64_t tasks : {p_.tasks_in_cache(), 2 * p_.tasks_in_cache()})
      if (tasks <= p_.rows) out.push_back(tasks);
    return without_repeats(out);
  }

  const Problem& p_;
};
}  // namespace

Space space_of(const Problem& problem) {
  return Choices(problem).space();
}
}  // namespace warploom::kernels::cpu_matmul
