// What follows the sums of a contraction at all places of a pool's windows: the pool, and the
// operators before and behind it.
#include <fmt/format.h>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/epilogue.h"
#include "loopnest/loop_nest.h"
#include "loopnest/pool.h"
#include "tile/build.h"

namespace warploom::kernels {
namespace {
class BehindThePool {
 public:
  BehindThePool(KernelBuilder& draft, const PooledContraction& pooled,
                const std::vector<TensorId>& acc, std::map<int, TensorId> beside)
      : draft_(draft), of_(pooled), acc_(acc), beside_(std::move(beside)) {}

  // A value as an expression of registers, the sum being that at a place.
  Value value_of(int id, size_t place) const {
    const auto known = [&](int v) -> std::optional<Value> {
      if (as_size(v) == of_.c.sum) return draft_.b.value(acc_[place]);
      const Expr& value = of_.pool.nest.value(v);
      if (as_size(v) == *of_.pool.value) return combined(value);
      if (value.kind == Kind::load) return draft_.b.value(beside_.at(value.load));
      return std::nullopt;
    };
    return made_of<Value>(of_.pool.nest, id, known, tile::constant, tile::apply);
  }

 private:
  Value combined(const Expr& pool) const {
    Value all = value_of(pool.operands[0], 0);
    for (size_t place = 1; place < acc_.size(); ++place)
      all = tile::apply(pool.op, {std::move(all), value_of(pool.operands[0], place)});
    return all;
  }

  KernelBuilder& draft_;
  const PooledContraction& of_;
  const std::vector<TensorId>& acc_;
  std::map<int, TensorId> beside_;  // what follows the sums reads, by load
};
}  // namespace

void store_pooled(KernelBuilder& draft, const PooledContraction& pooled,
                  const std::vector<TensorId>& acc, const TileCoord& tile,
                  const std::vector<size_t>& axes) {
  const LoopNest& nest = pooled.pool.nest;
  std::map<int, TensorId> beside;
  for (const int load : pooled.operands) {
    const std::string name = fmt::format("e{}", beside.size());
    beside[load] = load_beside(draft, pooled.c, name, nest.loads[as_size(load)], tile, axes, 1);
  }
  const BehindThePool behind(draft, pooled, acc, std::move(beside));
  const auto& [value, place] = nest.outputs[0];
  const auto uses = [&](size_t axis) { return place.uses(axis); };
  const TensorId result = draft.reg("result", place.dtype, shape_of(tile, axes, 1, uses));
  draft.b.map(result, behind.value_of(value, 0));
  draft.b.copy(draft.b.all(result), TensorTile(draft, "C", nest, place, axes, true).at(tile));
}
}  // namespace warploom::kernels
