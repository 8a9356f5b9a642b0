#include "kernels/pieces/loop_reduction.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "kernels/pieces/loop_tile.h"
#include "kernels/pieces/loop_values.h"
#include "kernels/pieces/promotion.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/index.h"

namespace warploom::kernels::direct {
namespace {
constexpr int64_t kChain = 16;  // terms that are summed one after another
}  // namespace

LoopReduction::LoopReduction(LoopTile& tile, LoopValues& values)
    : t_(tile),
      values_(values),
      nest_(tile.nest),
      b_(tile.b),
      operands_(tile.nest.values.size(), false) {
  for (size_t v = nest_.values.size(); v-- > 0;) {
    const bool is_reduction = nest_.values[v].kind == Kind::reduce;
    if (!operands_[v] && !is_reduction) continue;
    for (const int operand : nest_.values[v].operands)
      operands_[as_size(operand)] = true;
  }
  for (size_t v = 0; v < nest_.values.size(); ++v)
    if (nest_.values[v].kind == Kind::reduce) reductions_.push_back(v);
  for (size_t axis = 0; axis < nest_.axes.size(); ++axis)
    terms_ *= turns(axis);
  compensates_ = promotion::compensates(ceil_div(terms_, kChain), kChain);
}

bool LoopReduction::is_sum(size_t v) const {
  return nest_.values[v].op == ValueOp::add && !nest_.values[v].integers;
}

TensorId LoopReduction::part_of(size_t v) {
  return t_.reg(fmt::format("part{}", v), Dtype::f32, accumulated(v));
}

bool LoopReduction::varies_in_loops(size_t value) const {
  for (size_t a = 0; a < nest_.axes.size(); ++a)
    if (t_.tiling.reduced[a] && nest_.values[value].varies[a]) return true;
  return false;
}

std::vector<bool> LoopReduction::accumulated(size_t reduction) const {
  const Expr& value = nest_.values[reduction];
  auto varies = nest_.value(value.operands[0]).varies;
  for (const size_t axis : value.axes)
    varies[axis] = true;
  return varies;
}

void LoopReduction::start() {
  for (const size_t v : reductions_) {
    values_.hold(v, values_.reg("sum", v, accumulated(v)));
    b_.fill(values_.held(v), identity_of(nest_.values[v].op));
    if (compensates_ && is_sum(v)) b_.fill(part_of(v), 0);
  }
}

void LoopReduction::run_loops(const std::function<void()>& body) {
  body_ = body;
  loop_over(0);
}

int64_t LoopReduction::turns(size_t axis) const {
  return t_.tiling.reduced[axis] ? ceil_div(nest_.axes[axis], t_.extent(axis)) : 1;
}

// The reduced axes from this one on: in loops, or one body after another where an axis is short and
// to be written out.
void LoopReduction::loop_over(size_t axis) {
  if (axis == nest_.axes.size()) return step();
  const int64_t count = turns(axis);
  if (count == 1) return loop_over(axis + 1);
  const auto turn = [&](const Index& i) {
    t_.move_to(axis, i * t_.extent(axis));
    loop_over(axis + 1);
  };
  const std::string name = fmt::format("i{}", axis);
  int64_t inside = 1;  // turns of the axes behind
  for (size_t later = axis + 1; later < nest_.axes.size(); ++later)
    inside *= turns(later);
  const int64_t unroll = t_.options.unroll;
  if (unroll > 1 && count <= unroll && t_.extent(axis) == 1) {
    const auto all = [&] {
      for (int64_t i = 0; i < count; ++i)
        turn(i);
    };
    if (in_chain_ || count * inside == terms_)
      all();
    else
      in_chain(all);
  } else if (inside > kChain || count * inside <= kChain || in_chain_) {
    b_.for_(name, 0, count, 1, turn);
  } else {
    loop_in_chains(axis, std::max<int64_t>(1, kChain / inside), turn);
  }
  t_.move_to(axis, 0);
}

// The turns of an axis, in chains of so many.
void LoopReduction::loop_in_chains(size_t axis, int64_t chain, const Turn& turn) {
  const std::string name = fmt::format("i{}", axis);
  const int64_t count = turns(axis);
  const int64_t together = written_out(axis, chain);
  const int64_t groups = count / together;
  const int64_t groups_of_chain = chain / together;
  const auto turns_of = [&](const Index& group) {
    for (int64_t i = 0; i < together; ++i)
      turn(group * together + i);
  };
  b_.for_(fmt::format("from{}", axis), 0, groups, groups_of_chain, [&](const Index& from) {
    const Index end = tile::min(from + groups_of_chain, groups);
    in_chain([&] { b_.for_(name, from, end, 1, turns_of); });
  });
  const int64_t rest = groups * together;
  if (rest < count) in_chain([&] { b_.for_(name, rest, count, 1, turn); });
}

// Turns of an axis whose bodies stand one behind another in a chain of so many: on a CPU what they
// add up stays in registers meanwhile.
int64_t LoopReduction::written_out(size_t axis, int64_t chain) const {
  const int64_t unroll = t_.options.unroll;
  const bool is_last = std::find(t_.tiling.reduced.begin() + as_int(axis) + 1,
                                 t_.tiling.reduced.end(), true) == t_.tiling.reduced.end();
  const bool serves = !t_.capabilities.gpu && is_last && t_.extent(axis) == 1;
  return serves && unroll > 1 && chain % unroll == 0 ? unroll : 1;
}

// What the body adds up, from zero or from what was lost before, then added to what was before.
void LoopReduction::in_chain(const std::function<void()>& body) {
  struct Part {
    size_t reduction;
    TensorId sum;
    TensorId part;
  };

  std::vector<Part> parts;
  for (const size_t v : reductions_) {
    if (!is_sum(v)) continue;
    const TensorId part = part_of(v);
    if (!compensates_) b_.fill(part, 0);
    parts.push_back({v, values_.held(v), part});
    values_.hold(v, part);
  }
  in_chain_ = true;
  body();
  in_chain_ = false;
  for (const Part& each : parts) {
    values_.hold(each.reduction, each.sum);
    if (compensates_) {
      const TensorId total =
          t_.reg(fmt::format("grown{}", each.reduction), Dtype::f32, accumulated(each.reduction));
      promotion::add_compensated(b_, each.sum, each.part, total, promotion::Overflow::stays);
    } else {
      b_.map(each.sum, b_.value(each.sum) + b_.value(each.part));
    }
  }
}

void LoopReduction::step() {
  body_();
  for (const size_t v : reductions_)
    accumulate(v);
}

void LoopReduction::accumulate(size_t v) {
  const Expr& reduction = nest_.values[v];
  Value operand = values_.expression_of(as_size(reduction.operands[0]));
  const MaybeAxis axis = t_.tiling.roles.reduction;
  if (axis && nest_.axes[*axis] % t_.extent(*axis) != 0) {  // masked past the end of the axis
    const Affine along_axis = along(*axis, nest_.axes.size());
    const Value place = t_.at().value_at(along_axis, t_.axes());
    const double margin = reduction.integers ? 0 : 0.5;
    const double end = as_double(nest_.axes[*axis]) - margin;
    const Value identity = tile::constant(identity_of(reduction.op));
    operand = where(less(place, tile::constant(end)), std::move(operand), identity);
  }
  const TensorId sum = values_.held(v);
  const Value before = b_.value(sum);
  const bool is_product = operand.kind == Value::Kind::op && operand.op == ValueOp::mul;
  Value after = tile::apply(reduction.op, {before, operand});
  if (reduction.op == ValueOp::add && is_product) {
    const auto& factors = operand.operands;
    after = tile::apply(ValueOp::fma, {factors[0], factors[1], before});
  }
  values_.map(sum, std::move(after), reduction.integers);
}

void LoopReduction::finish() {
  for (const size_t v : reductions_)
    join_tile(v);
}

// Brings the accumulators along the reduced axis of the tile together.
void LoopReduction::join_tile(size_t v) {
  const MaybeAxis axis = t_.tiling.roles.reduction;
  if (!axis || t_.extent(*axis) == 1) return;
  const Expr& reduction = nest_.values[v];
  const TensorId whole = values_.reg("total", v, reduction.varies);
  b_.reduce(whole, values_.held(v), t_.dim_of(*axis), *reduce_op(reduction.op));
  values_.hold(v, whole);
  if (!t_.capabilities.gpu || t_.axes().size() < 3) return;
  const TensorId laid_anew = t_.reg(fmt::format("settled{}", v), Dtype::f32, reduction.varies);
  b_.convert_layout(laid_anew, whole);
  values_.hold(v, laid_anew);
}
}  // namespace warploom::kernels::direct
