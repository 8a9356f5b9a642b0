// What passes over rows keep for those behind them.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_terms.h"
#include "tile/program.h"

namespace warploom::kernels {
void RowTerms::keep(size_t pass, bool operands) {
  std::map<int, std::string> names;  // of the terms to materialize
  for (const int root : rows_.passes[pass].roots(rows_))
    if (operands) names[root] = fmt::format("e{}", names.size());
  for (const auto& [term, set] : rows_.passes[pass].kept)
    names[term] = set_name(set);
  for (const auto& [term, name] : names) {
    const auto found = bound_.find(term);
    if (found == bound_.end() || found->second.tensor != t_.tile_reg(name)) materialize(term, name);
  }
}

void RowTerms::forget_all_but_kept(size_t pass) {
  const auto& kept = rows_.passes[pass].kept;
  std::erase_if(bound_, [&](const auto& each) {
    return rows_.term(each.first).along_row && !kept.contains(each.first);
  });
}

std::string RowTerms::set_name(int set) const {
  const std::string name = set == 0 ? "x" : fmt::format("x{}", set);
  return t_.options.unrolled ? fmt::format("{}_{}", name, t_.unrolled_tile()) : name;
}

tile::Tile RowTerms::scratch_of(int set) {
  std::vector<int64_t> shape;
  std::vector<int64_t> extents;
  std::vector<Index> offset;
  for (const size_t axis : rows_.dims) {
    const bool is_outer = axis == rows_.tiled_outer;
    const int64_t extent = t_.at().extent[axis];
    extents.push_back(extent);
    shape.push_back(is_outer ? extent : extent * t_.tile_count(axis));
    offset.push_back(is_outer ? Index(0) : t_.at().origin[axis] - t_.start(axis));
  }
  const auto [found, added] = scratch_.try_emplace(set);
  const std::string name = set == 0 ? "kept" : fmt::format("kept{}", set);
  if (added) found->second = b_.shared(name, Dtype::f32, shape);
  return b_.tile(found->second, offset, extents);
}

void RowTerms::load_kept(size_t pass) {
  for (const auto& [term, set] : rows_.passes[pass].kept) {
    const TensorId to = set_register(set);
    if (!t_.options.unrolled) b_.copy(scratch_of(set), b_.all(to));
    bind(term, to);
  }
}
}  // namespace warploom::kernels
