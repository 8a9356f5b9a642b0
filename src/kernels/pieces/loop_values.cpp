#include "kernels/pieces/loop_values.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "kernels/pieces/loop_tile.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels::direct {
using tile::Tile;

LoopValues::LoopValues(LoopTile& tile)
    : t_(tile), nest_(tile.nest), b_(tile.b), held_(tile.nest.values.size(), -1) {
  choose_kept();
}

void LoopValues::choose_kept() {
  const size_t count = nest_.values.size();
  std::vector<int> uses(count);
  std::vector<int> nodes(count, 1);
  for (size_t v = 0; v < count; ++v)
    for (const int id : nest_.values[v].operands) {
      const auto operand = as_size(id);
      nodes[v] = std::min(nodes[v] + nodes[operand], kLargestCopy);
      ++uses[operand];
    }
  kept_.assign(count, false);
  for (size_t v = 0; v < count; ++v) {
    const Expr& value = nest_.values[v];
    const bool applies = value.kind == Kind::apply;
    const bool is_large_and_shared = applies && uses[v] > 1 && nodes[v] == kLargestCopy;
    if (value.kind == Kind::round || is_large_and_shared) kept_[v] = true;
    for (const int id : value.operands) {
      const Expr& operand = nest_.value(id);
      const bool other_axes = applies && operand.varies != value.varies;
      const bool to_floats = operand.integers && !value.integers;
      if (operand.kind == Kind::apply && (other_axes || to_floats)) kept_[as_size(id)] = true;
    }
  }
}

Value LoopValues::expression_of(size_t value) const {
  const auto known = [&](int id) -> std::optional<Value> {
    const TensorId tensor = held_[as_size(id)];
    if (tensor >= 0) return b_.value(tensor);
    const Expr& of = nest_.value(id);
    if (of.kind == Kind::index) return t_.at().value_at(of.at, t_.axes());
    return std::nullopt;
  };
  return made_of<Value>(nest_, as_int(value), known, tile::constant, tile::apply);
}

TensorId LoopValues::reg(const std::string& stem, size_t value, const std::vector<bool>& varies) {
  return t_.reg(fmt::format("{}{}", stem, value), type_of(value), varies);
}

void LoopValues::map(TensorId dst, Value expression, bool integers) {
  if (integers)
    b_.map_integers(dst, std::move(expression));
  else
    b_.map(dst, std::move(expression));
}

void LoopValues::compute(size_t v) {
  const Expr& value = nest_.values[v];
  if (value.kind == Kind::load) return load(v);
  if (!kept_[v]) return;
  held_[v] = -1;  // where bodies are written out, it is that of the body before
  const Value expression = expression_of(v);
  held_[v] = t_.reg(fmt::format("v{}", v), value.dtype, value.varies);
  const bool rounds = value.kind == Kind::round;
  const bool of_integers = !rounds || nest_.is_integer_value(value.operands[0]);
  map(held_[v], expression, value.integers && of_integers);
}

void LoopValues::load(size_t v) {
  const Expr& value = nest_.values[v];
  const Access& load = nest_.load_of(value);
  const bool transposed = t_.capabilities.gpu && is_transposed(load);
  held_[v] = t_.reg(fmt::format("x{}", value.load), load.dtype, value.varies);
  const bool in_order = t_.capabilities.gpu && !transposed;
  const bool streams_all = !t_.capabilities.gpu && t_.options.nontemporal_store;
  const bool bypasses_l1 =
      streams_all || (in_order && nest_.bypasses_l1(load, t_.capabilities.l2_bytes));
  if (const auto found = prefetched_.find(v); found != prefetched_.end())
    b_.map(held_[v], b_.value(found->second));
  else
    t_.for_each_part(held_[v], load, [&](const Tile& part) {
      b_.copy(t_.input(value.load), part, load.padding_value, bypasses_l1);
    });
  if (!transposed) return;
  const TensorId mine = t_.reg(fmt::format("turned{}", value.load), load.dtype, value.varies);
  b_.convert_layout(mine, held_[v]);
  held_[v] = mine;
}

void LoopValues::prefetch(size_t axis) {
  for (size_t v = 0; v < nest_.values.size(); ++v) {
    const Expr& value = nest_.values[v];
    if (value.kind != Kind::load || !value.varies[axis]) continue;
    const Access& load = nest_.load_of(value);
    const std::string name = fmt::format("ahead{}", value.load);
    const TensorId ahead = t_.reg(name, load.dtype, value.varies);
    const bool bypasses_l1 = nest_.bypasses_l1(load, t_.capabilities.l2_bytes);
    b_.copy(t_.input(value.load), b_.all(ahead), load.padding_value, bypasses_l1);
    prefetched_[v] = ahead;
  }
}

// Whether neighbours in memory lie along another axis of the tile than those of the output, or
// (behind a reduction over threads) only a part of the tile is read: the threads that load it are
// not those that need it.
bool LoopValues::is_transposed(const Access& load) const {
  const TilingRoles& roles = t_.tiling.roles;
  const auto uses_not = [&](size_t axis) { return !load.uses(axis); };
  const bool reduces_over_threads = roles.reduction && t_.extent(*roles.reduction) > 1;
  if (reduces_over_threads && std::ranges::any_of(t_.axes(), uses_not)) return true;
  const MaybeAxis own = fastest(load);
  if (!own || !roles.x || own == roles.x) return false;
  const bool several_each = t_.extent(*own) > 1 && t_.extent(*roles.x) > 1;
  return several_each && !t_.tiling.reduced[*own] && load.uses(*roles.x);
}

void LoopValues::store(size_t output) {
  constexpr double kExactInFloat = 0x1p24;
  const auto& [id, place] = nest_.outputs[output];
  const auto v = as_size(id);
  const Expr& value = nest_.values[v];
  std::vector<bool> varies(nest_.axes.size());
  for (size_t a = 0; a < varies.size(); ++a)
    varies[a] = place.uses(a);
  TensorId out = held_[v];
  const bool same_shape = t_.shape_of(value.varies) == t_.shape_of(varies);
  const bool fits = out >= 0 && same_shape && b_.dtype_of(out) == place.dtype;
  if (!fits) {
    out = t_.reg(fmt::format("y{}", output), place.dtype, varies);
    const bool any_size = value.integers || value.kind == Kind::load;
    const bool is_large = any_size || nest_.largest_magnitude(id) > kExactInFloat;
    const bool integers = is_integer(place.dtype) && nest_.is_integer_value(id) && is_large;
    map(out, expression_of(v), integers);
  }
  if (const auto rows = t_.gathered(output)) {
    const int64_t row = t_.extent(*t_.tiling.roles.x);
    b_.copy(b_.all(out), b_.tile(*rows, {t_.row() * row}, {row}));
    return;
  }
  t_.for_each_part(out, place, [&](const Tile& part) {
    b_.copy(part, t_.output(output), 0, t_.options.nontemporal_store);
  });
}
}  // namespace warploom::kernels::direct
