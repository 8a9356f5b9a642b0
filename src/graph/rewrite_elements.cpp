// Rules of what works element by element, of sums and of transposes.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/rewrite_draft.h"

namespace warploom::graph {
namespace {
// A product or a quotient of what is scaled and a scale.
struct Scaled {
  TensorId what = kAbsent;
  TensorId scale = kAbsent;
  OpKind op = OpKind::Mul;
};

// How far an axis of a tensor of so many axes is in it; 1 where it lacks the axis.
int64_t size_at(const Draft& draft, TensorId id, size_t axis, size_t rank) {
  const size_t missing = rank - draft.rank(id);
  return axis < missing ? 1 : draft.shape(id)[axis - missing];
}

// The tensor as that, of a scale that is the same along all of these axes.
std::optional<Scaled> scaled_along(const Draft& draft, TensorId id,
                                   const std::vector<int64_t>& axes) {
  if (id == kAbsent || !draft.is_float(id)) return std::nullopt;
  for (const OpKind op : {OpKind::Mul, OpKind::Div}) {
    const Node* const node = draft.maker(id, op);
    if (!node) continue;
    const size_t rank = draft.rank(id);
    const auto fits = [&](TensorId what, TensorId scale) {
      const auto is_one = [&](int64_t axis) {
        return size_at(draft, scale, as_size(axis), rank) == 1;
      };
      return draft.shape(what) == draft.shape(id) && std::ranges::all_of(axes, is_one);
    };
    if (fits(node->inputs[0], node->inputs[1])) return Scaled{node->inputs[0], node->inputs[1], op};
    if (op == OpKind::Mul && fits(node->inputs[1], node->inputs[0]))
      return Scaled{node->inputs[1], node->inputs[0], op};
  }
  return std::nullopt;
}

bool is_product(const Draft& draft, TensorId id) {
  const Node* const node = draft.maker(id, OpKind::MatMul);
  return node && draft.is_float(id) && draft.rank(node->inputs[0]) >= 2 &&
         draft.rank(node->inputs[1]) >= 2;
}

// What the numbers of a divisor lack for their reciprocals to stand for them; "": nothing.
std::string unfit_divisor(const Draft& draft, TensorId id) {
  const auto& tensors = draft.graph().tensors;
  if (!tensors[as_size(id)].constant) return "it is made at run time";
  const Tensor& tensor = tensors[as_size(id)];
  const double least = tensor.dtype == Dtype::f16 ? 0x1p-14 : 0x1p-126;
  const double most = tensor.dtype == Dtype::f16 ? 65504 : 0x1p126;
  for (int64_t i = 0; i < element_count(tensor.shape); ++i) {
    const double value = load_as_double(tensor.dtype, tensor.constant->data(), as_size(i));
    const double inverse = std::fabs(1 / value);
    const bool fits = std::fabs(value) <= most && inverse >= least && inverse <= most;
    if (!fits) return fmt::format("{:g} is one", value);
  }
  return "";
}

std::vector<int64_t> shifted(const Draft& draft, TensorId id, const std::vector<int64_t>& axes,
                             size_t rank) {
  std::vector<int64_t> out;
  const size_t missing = rank - draft.rank(id);
  for (const int64_t axis : axes)
    if (as_size(axis) >= missing) out.push_back(axis - as_int64(missing));
  return out;
}
}  // namespace

// (s·a)·b and a·(s·b), of a scale that the sum does not run along
bool scale_after_rule(Draft& draft) {
  if (!is_product(draft, draft.out())) return false;
  for (size_t i = 0; i < 2; ++i) {
    const TensorId id = draft.in(i);
    const auto summed = as_int64(draft.rank(id)) - (i == 0 ? 1 : 2);
    const auto scaled = scaled_along(draft, id, {summed});
    if (!scaled) continue;
    draft.need_alone(id);
    draft.need_room_unscaled(draft.out(), scaled->op, scaled->scale);
    draft.names({scaled->scale, scaled->what});
    const TensorId plain = i == 0 ? draft.product(scaled->what, draft.in(1))
                                  : draft.product(draft.in(0), scaled->what);
    draft.pointwise(scaled->op, plain, scaled->scale);
    return true;
  }
  return false;
}

namespace {
// s·(a·b) with the scale on one side; it may not run along the other side's axis.
bool scale_operand(Draft& draft, size_t side) {
  const OpKind op = draft.root().op;
  if (op != OpKind::Mul && op != OpKind::Div) return false;
  const auto last = as_int64(draft.rank(draft.out())) - 1;
  if (last < 1) return false;
  const auto scaled = scaled_along(draft, draft.out(), {side == 0 ? last : last - 1});
  if (!scaled || !is_product(draft, scaled->what)) return false;
  const Node* const of = draft.maker(scaled->what, OpKind::MatMul);
  const TensorId operand = of->inputs[side];
  if (draft.rank(scaled->scale) > draft.rank(operand)) return false;
  draft.need_alone(scaled->what);
  draft.need_room_scaled(operand, scaled->op, scaled->scale);
  draft.names({scaled->scale, operand});
  const TensorId made = draft.pointwise(scaled->op, operand, scaled->scale);
  draft.need(
      draft.shape(made) == draft.shape(operand), "the scale stretches no operand",
      fmt::format("{} of {}", to_text(draft.shape(scaled->scale)), to_text(draft.shape(operand))));
  if (side == 0)
    draft.product(made, of->inputs[1]);
  else
    draft.product(of->inputs[0], made);
  return true;
}
}  // namespace

bool scale_left_rule(Draft& draft) {
  return scale_operand(draft, 0);
}

bool scale_right_rule(Draft& draft) {
  return scale_operand(draft, 1);
}

// Σ(s·x), of a scale that the sum does not run along
bool scale_after_sum_rule(Draft& draft) {
  if (draft.root().op != OpKind::ReduceSum || !draft.is_float(draft.out())) return false;
  const auto axes = draft.root().integers("axes");
  const auto scaled = scaled_along(draft, draft.in(0), axes);
  if (!scaled) return false;
  draft.need_alone(draft.in(0));
  draft.need_room_unscaled(draft.out(), scaled->op, scaled->scale);
  draft.names({scaled->scale, scaled->what});
  const TensorId sum = draft.sum(scaled->what, axes, true);
  draft.reshaped(draft.pointwise(scaled->op, sum, scaled->scale), draft.shape(draft.out()));
  return true;
}

// Σ(a + b)
bool sum_apart_rule(Draft& draft) {
  if (draft.root().op != OpKind::ReduceSum || !draft.is_float(draft.out())) return false;
  const Node* const add = draft.maker(draft.in(0), OpKind::Add);
  if (!add) return false;
  const auto axes = draft.root().integers("axes");
  const size_t rank = draft.rank(draft.in(0));
  draft.need_alone(draft.in(0));
  draft.need_no_cancelling(add->inputs[0], add->inputs[1]);
  draft.names(add->inputs);
  // What stretches along an axis is summed as often as it is read.
  const auto summed = [&](TensorId id) {
    double times = 1;
    for (const int64_t axis : axes)
      if (size_at(draft, id, as_size(axis), rank) == 1)
        times *= as_double(draft.shape(draft.in(0))[as_size(axis)]);
    const auto own = shifted(draft, id, axes, rank);
    const TensorId sum = own.empty() ? id : draft.sum(id, own, true);
    if (times == 1) return sum;
    const TensorId factor = draft.number(draft.info(id).dtype, times);
    return draft.pointwise(OpKind::Mul, sum, factor);
  };
  const TensorId first = summed(add->inputs[0]);
  const TensorId both = draft.pointwise(OpKind::Add, first, summed(add->inputs[1]));
  draft.reshaped(both, draft.shape(draft.out()));
  return true;
}

// x / c
bool reciprocal_rule(Draft& draft) {
  if (draft.root().op != OpKind::Div || !draft.is_float(draft.out())) return false;
  const std::string unfit = unfit_divisor(draft, draft.in(1));
  draft.need(unfit.empty(), "divisors are known, and their reciprocals normal numbers", unfit);
  draft.names({draft.in(0), draft.in(1)});
  const auto value = constant_scalar(draft.graph(), draft.in(1));
  const TensorId inverse =
      value ? draft.number(draft.info(draft.in(1)).dtype, 1 / *value) : draft.inverse(draft.in(1));
  draft.pointwise(OpKind::Mul, draft.in(0), inverse);
  return true;
}

// (xᵖ)ᵠ
bool one_transpose_rule(Draft& draft) {
  if (draft.root().op != OpKind::Transpose) return false;
  const Node* const first = draft.maker(draft.in(0), OpKind::Transpose);
  if (!first) return false;
  const auto before = first->integers("perm");
  std::vector<int64_t> order;
  for (const int64_t axis : draft.root().integers("perm"))
    order.push_back(before[as_size(axis)]);
  draft.names({first->inputs[0]});
  if (std::ranges::is_sorted(order))
    draft.copied(first->inputs[0]);
  else
    draft.transposed(first->inputs[0], order);
  return true;
}

// ΣΣx
bool one_sum_rule(Draft& draft) {
  if (draft.root().op != OpKind::ReduceSum || !draft.is_float(draft.out())) return false;
  const Node* const first = draft.maker(draft.in(0), OpKind::ReduceSum);
  if (!first) return false;
  const TensorId x = first->inputs[0];
  std::vector<int64_t> axes = first->integers("axes");
  std::vector<int64_t> left;  // the axes of x that the second sees
  for (size_t axis = 0; axis < draft.rank(x); ++axis)
    if (first->integer("keepdims") != 0 || !contains(axes, as_int64(axis)))
      left.push_back(as_int64(axis));
  for (const int64_t axis : draft.root().integers("axes"))
    if (!contains(axes, left[as_size(axis)])) axes.push_back(left[as_size(axis)]);
  std::ranges::sort(axes);
  draft.need_alone(draft.in(0));
  draft.names({x});
  draft.reshaped(draft.sum(x, axes, true), draft.shape(draft.out()));
  return true;
}

// Σx over several axes
bool two_sums_rule(Draft& draft) {
  if (draft.root().op != OpKind::ReduceSum || !draft.is_float(draft.out())) return false;
  auto axes = draft.root().integers("axes");
  if (axes.size() < 2) return false;
  const int64_t last = axes.back();
  axes.pop_back();
  draft.names({draft.in(0)});
  const TensorId lines = draft.sum(draft.in(0), {last}, true);
  draft.reshaped(draft.sum(lines, axes, true), draft.shape(draft.out()));
  return true;
}
}  // namespace warploom::graph
