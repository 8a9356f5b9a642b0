#include "kernels/pieces/row_terms.h"
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reduction.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels {
void RowTerms::with_own_bindings(const std::function<void()>& body) {
  const Bindings outside = bound_;
  body();
  bound_ = outside;
}

void RowTerms::for_each_tile(const std::function<void(const Index&)>& body) {
  t_.for_each_tile([&](const Index& number) { with_own_bindings([&] { body(number); }); });
}

Value RowTerms::compute(int id) {
  if (const auto found = bound_.find(id); found != bound_.end()) return found->second;
  const RowTerm& term = rows_.term(id);
  if (term.kind == Kind::constant) return tile::constant(term.value);
  if (term.kind == Kind::index) return t_.at().value_at(term.at, rows_.dims);
  if (term.kind == Kind::load) {
    read(id, register_of(id));
    bind(id, register_of(id));
    return bound_.at(id);
  }
  std::vector<Value> operands;
  for (const int operand : term.operands)
    operands.push_back(compute(operand));
  const bool rounds = term.kind == Kind::round;
  const bool is_large_and_shared = term.uses > 1 && term.nodes > kLargestCopy;
  const Value value = rounds ? operands[0] : tile::apply(term.op, std::move(operands));
  if (!rounds && !is_large_and_shared) return value;
  const std::vector<bool> varies = term.along_row ? t_.everywhere() : std::vector<bool>{};
  const TensorId to = t_.reg(fmt::format("s{}", id), varies, term.dtype);
  b_.map(to, value);
  bind(id, to);
  return bound_.at(id);
}

void RowTerms::read(int id, TensorId to) {
  const RowTerm& term = rows_.term(id);
  if (source_ && rows_.fills_tile(term.varies)) return source_(to);
  const auto resident = resident_.find(term.load);
  if (resident == resident_.end() || t_.unrolled_tile() >= resident_tiles_) {
    const double padding = rows_.padding_values[as_size(term.load)];
    const bool bypasses_l1 = rows_.nest.bypasses_l1(rows_.loaded(term), t_.options.l2_bytes);
    const bool streams = bypasses_l1 || t_.options.streams_loads;
    return b_.copy(t_.input(term.load), b_.all(to), padding, streams);
  }
  const int64_t extent = t_.row_extent();
  const int64_t first = t_.unrolled_tile() * extent;
  const auto from = b_.tile(resident->second, {0, first}, {1, extent});
  b_.copy(from, b_.all(to));
}

void RowTerms::load_resident(const std::set<int>& loads, int64_t tiles) {
  if (tiles < 1) return;
  resident_tiles_ = tiles;
  TileCoord part = t_.at();
  int64_t& extent = part.extent[t_.last_axis()];
  extent *= tiles;
  for (const int load : loads) {
    const Dtype dtype = rows_.nest.loads[as_size(load)].dtype;
    const TensorId shared = b_.shared(fmt::format("same{}", load), dtype, {1, extent});
    b_.copy(t_.input(load, part), b_.all(shared));
    resident_[load] = shared;
  }
}

TensorId RowTerms::register_of(int load_term) {
  const RowTerm& term = rows_.term(load_term);
  return t_.reg(fmt::format("in{}", term.load), term.varies, rows_.loaded(term).dtype);
}

TensorId RowTerms::materialize(int id, const std::string& name) {
  const RowTerm& term = rows_.term(id);
  const TensorId to = t_.tile_reg(name);
  const bool unread = term.kind == Kind::load && !is_bound(id) && rows_.fills_tile(term.varies);
  if (unread && rows_.loaded(term).dtype == Dtype::f32)
    read(id, to);
  else
    b_.map(to, compute(id));
  bind(id, to);
  return to;
}

void RowTerms::compute_scalars(size_t pass) {
  std::set<int> seen;
  for (const int root : rows_.passes[pass].roots(rows_))
    add_scalars(root, seen);
}

void RowTerms::add_scalars(int id, std::set<int>& seen) {
  if (!seen.insert(id).second) return;
  const RowTerm& term = rows_.term(id);
  if (term.along_row) {
    if (is_bound(id)) return;
    for (const int operand : term.operands)
      add_scalars(operand, seen);
    return;
  }
  if (term.kind == Kind::constant) return;
  const Value value = compute(id);
  if (is_bound(id)) return;
  const TensorId to = t_.scalar(fmt::format("u{}", id));
  b_.map(to, value);
  bind(id, to);
}

Value RowTerms::masked(int id, Value value) const {
  const RowTerm& term = rows_.term(id);
  if (!term.masked) return value;
  for (const size_t axis : rows_.dims) {
    const int64_t size = rows_.size(axis);
    const int64_t ctas = axis == t_.last_axis() ? t_.options.ctas_per_row : 1;
    const bool divides = t_.tile_count(axis) * t_.at().extent[axis] * ctas == size;
    if (axis == rows_.tiled_outer || divides) continue;
    // Near the end, where it matters, the difference is exact in fp32, however long the row.
    const Index from_end = t_.at().origin[axis] - size;
    const Value past_end = tile::coordinate(t_.dim_of(axis), from_end);
    const Value inside = less(past_end, tile::constant(0));
    const Value identity = tile::constant(identity_of(term.op));
    value = where(inside, std::move(value), identity);
  }
  return value;
}

void RowTerms::store_rows() {
  for (size_t i = 0; i < rows_.nest.outputs.size(); ++i)
    if (rows_.is_along_row(rows_.nest.outputs[i].place)) store(i, true);
}

void RowTerms::store_scalars() {
  for (size_t i = 0; i < rows_.nest.outputs.size(); ++i) {
    if (rows_.is_along_row(rows_.nest.outputs[i].place)) continue;
    if (t_.shares_rows())
      b_.if_less(t_.cta_rank(), 1, [&] { store(i, false); });
    else
      store(i, false);
  }
}

void RowTerms::store(size_t output, bool along_row) {
  auto varies = t_.everywhere();
  if (!along_row) varies.assign(varies.size(), false);
  varies[rows_.tiled_outer] = true;
  const Dtype dtype = rows_.nest.outputs[output].place.dtype;
  const TensorId y = t_.reg(fmt::format("y{}", output), varies, dtype);
  b_.map(y, compute(rows_.results[output]));
  const bool nontemporal = t_.options.nontemporal_store && along_row;
  b_.copy(b_.all(y), t_.output(output), 0, nontemporal);
}

std::vector<int> RowTerms::loads_of_last_pass(size_t kept_by) const {
  std::vector<int> loads;
  std::set<int> seen;
  const auto& kept = rows_.passes[kept_by].kept;
  const auto visit = [&](const auto& self, int id) -> void {
    const RowTerm& term = rows_.term(id);
    if (!term.along_row || kept.contains(id) || !seen.insert(id).second) return;
    for (const int operand : term.operands)
      self(self, operand);
    if (term.kind == Kind::load) loads.push_back(id);
  };
  for (const int root : rows_.passes.back().roots(rows_))
    visit(visit, root);
  return loads;
}

}  // namespace warploom::kernels
