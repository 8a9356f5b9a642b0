// Bounds of what follows a sum of products.
#include <algorithm>
#include <cstddef>
#include <vector>
#include "base/casts.h"
#include "base/value_op.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
// Of a value, while the sum grows beyond all bounds and all else stays as it is.
struct Bounded {
  bool below = true;
  bool above = true;

  bool both() const { return below && above; }
};

constexpr Bounded kNowhere{false, false};

Bounded bounded_apply(ValueOp op, const std::vector<Bounded>& of) {
  switch (op) {
    case ValueOp::tanh:
    case ValueOp::sigmoid:
    case ValueOp::erf:
    case ValueOp::atan:
    case ValueOp::sin:
    case ValueOp::cos:
    case ValueOp::less:
    case ValueOp::equal: return {};
    case ValueOp::relu:
    case ValueOp::exp: return {true, of[0].above};
    case ValueOp::max: return {of[0].below || of[1].below, of[0].above && of[1].above};
    case ValueOp::min: return {of[0].below && of[1].below, of[0].above || of[1].above};
    case ValueOp::add: return {of[0].below && of[1].below, of[0].above && of[1].above};
    case ValueOp::neg: return {of[0].above, of[0].below};
    case ValueOp::where: return {of[1].below && of[2].below, of[1].above && of[2].above};
    default: return std::ranges::all_of(of, &Bounded::both) ? Bounded{} : kNowhere;
  }
}
}  // namespace

bool saturates(const Contraction& c) {
  std::vector<Bounded> bounded;
  for (size_t id = 0; id < c.nest.values.size(); ++id) {
    const Expr& value = c.nest.values[id];
    std::vector<Bounded> of;
    for (const int operand : value.operands)
      of.push_back(bounded[as_size(operand)]);
    if (id == c.sum)
      bounded.push_back(kNowhere);
    else if (value.kind == Kind::apply)
      bounded.push_back(bounded_apply(value.op, of));
    else
      bounded.push_back(std::ranges::all_of(of, &Bounded::both) ? Bounded{} : kNowhere);
  }
  return std::ranges::any_of(c.nest.outputs, [&](const LoopNest::Output& output) {
    return bounded[as_size(output.value)].both();
  });
}
}  // namespace warploom::loopnest
