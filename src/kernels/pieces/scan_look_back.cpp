#include "kernels/pieces/scan_look_back.h"
#include <fmt/format.h>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels::direct {
using tile::ReduceOp;
using tile::Tile;

Tile ScanLookBack::flag_of(const Scan& scan, const Index& round) {
  const int64_t flags = t_.lines() * rounds_ * scans_;
  if (flags_ < 0)
    flags_ = b_.zeroed(t_.draft.workspace("flags", "scan_flags", Dtype::i32, {flags}));
  return b_.tile(flags_, {place_of(round) * scans_ + scan.number}, {1});
}

TensorId ScanLookBack::exchange(const Scan& scan, const Index& round,
                                const std::function<void()>& meanwhile) {
  const int64_t ctas = t_.options.ctas_per_scan;
  const int row_dim = t_.dim_of(scan.axis);
  const auto dim = as_size(row_dim);
  const auto name = [&](const char* stem) { return fmt::format("{}{}", stem, scan.value); };
  auto own = t_.shape_of(scan.varies);
  std::vector<int64_t> all = own;
  own[dim] = 1;
  all[dim] = ctas;
  // Scans differ in the axes that they vary along: each has parts of its own.
  std::vector<int64_t> shape = {t_.lines() * rounds_};
  shape.insert(shape.end(), all.begin(), all.end());
  const TensorId parts = t_.draft.workspace(name("parts"), name("scan_parts"), Dtype::f32, shape);
  const auto part_of = [&](const Index& cta, std::vector<int64_t> extent) {
    std::vector<Index> offset(shape.size(), 0);
    offset[0] = place_of(round);
    offset[dim + 1] = cta;
    extent.insert(extent.begin(), 1);
    return b_.tile(parts, std::move(offset), std::move(extent));
  };
  const Tile flag = flag_of(scan, round);
  b_.copy(b_.all(scan.aggregate), part_of(t_.cta_rank(), own));
  b_.add(tile::Signal{flag, 1});
  meanwhile();
  b_.add(tile::Wait{flag, ctas});
  const TensorId met = t_.draft.reg(name("met"), Dtype::f32, all);
  const TensorId earlier = t_.draft.reg(name("earlier"), Dtype::f32, all);
  b_.copy(part_of(0, all), b_.all(met));
  const Value behind_own = tile::coordinate(row_dim, Index(0) - t_.cta_rank());
  const Value is_before = less(behind_own, tile::constant(0));
  b_.map(earlier, where(is_before, b_.value(met), tile::constant(0)));
  auto one_a_line = scan.varies;
  one_a_line[scan.axis] = false;
  const TensorId prefix = t_.reg(name("behind"), Dtype::f32, one_a_line);
  b_.reduce(prefix, earlier, row_dim, ReduceOp::sum);
  b_.reduce(scan.aggregate, met, row_dim, ReduceOp::sum);
  return prefix;
}
}  // namespace warploom::kernels::direct
