#include "loopnest/pool.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
// What follows the sum, as a tree down to it.
class Tail {
 public:
  Tail(const Pool& pool, size_t sum) : pool_(pool), nest_(pool.nest), sum_(sum) {}

  // Finds the loads; false where a tile cannot compute it.
  bool read() {
    return std::ranges::all_of(nest_.outputs, [&](const LoopNest::Output& output) {
      const Expr& last = nest_.value(output.value);
      const bool rounded_by_store = last.kind == Kind::round && last.dtype == output.place.dtype;
      return read(rounded_by_store ? last.operands[0] : output.value) && nodes_ <= kMostNodes;
    });
  }

  std::vector<int> loads;

 private:
  static constexpr int64_t kMostNodes = 1024;

  bool read(int id) {
    const Expr& value = nest_.value(id);
    const bool is_pool = pool_.value && as_size(id) == *pool_.value;
    if (++nodes_ > kMostNodes) return false;
    if (as_size(id) == sum_ || value.kind == Kind::constant) return true;
    if (value.kind == Kind::load) return take(value.load);
    if (value.kind != Kind::apply && !is_pool) return false;
    const int64_t times = is_pool ? pool_.place_count() : 1;
    const int64_t before = nodes_;
    const bool reads = std::ranges::all_of(value.operands, [&](int each) { return read(each); });
    nodes_ += (times - 1) * (nodes_ - before);
    return reads;
  }

  // An operand is the same for all places of a pool.
  bool take(int load) {
    if (std::ranges::find(loads, load) == loads.end()) loads.push_back(load);
    const auto moves = [&](size_t axis) { return nest_.loads[as_size(load)].uses(axis); };
    return std::ranges::none_of(pool_.places, moves);
  }

  const Pool& pool_;
  const LoopNest& nest_;
  size_t sum_;
  int64_t nodes_ = 0;
};
}  // namespace

std::optional<size_t> pool_of(const LoopNest& nest) {
  std::vector<size_t> reductions;
  for (size_t v = 0; v < nest.values.size(); ++v)
    if (nest.values[v].kind == Kind::reduce) reductions.push_back(v);
  if (reductions.size() != 2 || nest.outputs.size() != 1) return std::nullopt;
  return reductions[1];
}

LoopNest without_pool(LoopNest nest, size_t pool) {
  constexpr int64_t kFar = int64_t{1} << 40;
  auto& [value, place] = nest.outputs[0];
  value = nest.values[pool].operands[0];
  const auto axes = nest.values[pool].axes;
  nest.values.resize(pool);  // operands come before users
  for (const size_t axis : axes) {
    place.shape.push_back(nest.axes[axis]);
    place.strides.push_back(kFar);
    place.at.push_back(along(axis, nest.axes.size()));
  }
  return nest;
}

int64_t Pool::place_count() const {
  int64_t count = 1;
  for (const size_t axis : places)
    count *= nest.axes[axis];
  return count;
}

std::vector<int64_t> Pool::indices_of(int64_t place) const {
  std::vector<int64_t> indices(places.size());
  for (size_t i = places.size(); i-- > 0;) {
    indices[i] = place % nest.axes[places[i]];
    place /= nest.axes[places[i]];
  }
  return indices;
}

bool Pool::lies_apart(const Access& access, const std::vector<size_t>& outputs) const {
  return std::ranges::all_of(places, [&](size_t place) {
    const int64_t step = access.stride(place);
    if (!access.dim_of(place) || step <= 0) return false;
    const int64_t reach = step * nest.axes[place];
    return std::ranges::none_of(outputs, [&](size_t axis) {
      const int64_t move = access.stride(axis);
      return move != 0 && move % step == 0 && std::abs(move) < reach;
    });
  });
}

std::optional<std::vector<int>> operands_behind(const Pool& pool, size_t sum) {
  Tail tail(pool, sum);
  if (!tail.read()) return std::nullopt;
  return std::move(tail.loads);
}

std::optional<size_t> PooledContraction::second() const {
  const auto axis = second_column(c);
  const auto uses_both_or_none = [&](int operand) {
    const Access& load = pool.nest.loads[as_size(operand)];
    return load.uses(*axis) == load.uses(c.column);
  };
  if (!axis || !std::ranges::all_of(operands, uses_both_or_none)) return std::nullopt;
  return axis;
}

std::optional<PooledContraction> pooled_contraction_of(const LoopNest& nest, int64_t most) {
  const auto value = pool_of(nest);
  if (!value) return std::nullopt;
  auto c = contraction_of(without_pool(nest, *value));
  if (!c || c->scaled || c->skips_zeros() || !c->domain_constraints.empty()) return std::nullopt;
  if (c->nest.axes.size() != nest.axes.size()) return std::nullopt;  // a row was added
  PooledContraction found{*std::move(c), {nest, value, nest.values[*value].axes}, {}};
  const auto& places = found.pool.places;
  const auto is_place = [&](size_t axis) { return std::ranges::count(places, axis) > 0; };
  auto& columns = found.c.n;
  if (is_place(found.c.column)) return std::nullopt;
  const auto is_column = [&](size_t axis) { return std::ranges::count(columns, axis) > 0; };
  if (!std::ranges::all_of(places, is_column)) return std::nullopt;
  std::ranges::stable_partition(columns, is_place);
  std::vector<size_t> outputs;
  std::ranges::remove_copy_if(columns, std::back_inserter(outputs), is_place);
  const Access& input = found.c.access_b();
  if (found.pool.place_count() > most || !found.pool.lies_apart(input, outputs))
    return std::nullopt;
  auto operands = operands_behind(found.pool, found.c.sum);
  if (!operands) return std::nullopt;
  found.operands = *std::move(operands);
  return found;
}
}  // namespace warploom::loopnest
