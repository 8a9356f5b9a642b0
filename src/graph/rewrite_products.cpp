// Rules of products: which is multiplied first, and what of sums goes through them.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/rewrite_draft.h"

namespace warploom::graph {
namespace {
// A product of matrices of floats, or of batches of them; null where the tensor is none.
const Node* product_of(const Draft& draft, TensorId id) {
  const Node* const node = draft.maker(id, OpKind::MatMul);
  if (!node || !draft.is_float(id)) return nullptr;
  const bool are_matrices = draft.rank(node->inputs[0]) >= 2 && draft.rank(node->inputs[1]) >= 2;
  return are_matrices ? node : nullptr;
}

const Node* root_product(const Draft& draft) {
  return product_of(draft, draft.out());
}

const Node* sum_of_two(const Draft& draft, TensorId id) {
  const Node* const node = draft.maker(id, OpKind::Add);
  return node ? node : draft.maker(id, OpKind::Sub);
}
}  // namespace

// (a·b)·c
bool products_right_rule(Draft& draft) {
  if (!root_product(draft)) return false;
  const Node* const first = product_of(draft, draft.in(0));
  if (!first) return false;
  draft.need_alone(draft.in(0));
  const TensorId a = first->inputs[0];
  const TensorId b = first->inputs[1];
  const TensorId c = draft.in(1);
  draft.names({a, b, c});
  draft.product(a, draft.product(b, c));
  return true;
}

// a·(b·c)
bool products_left_rule(Draft& draft) {
  if (!root_product(draft)) return false;
  const Node* const second = product_of(draft, draft.in(1));
  if (!second) return false;
  draft.need_alone(draft.in(1));
  const TensorId a = draft.in(0);
  const TensorId b = second->inputs[0];
  const TensorId c = second->inputs[1];
  draft.names({a, b, c});
  draft.product(draft.product(a, b), c);
  return true;
}

namespace {
// Which operand two products share, of elementwise ones on either side.
struct Shared {
  size_t one = 0;
  size_t other = 0;
};

std::optional<Shared> shared_by(const Draft& draft, const Node& one, const Node& other) {
  for (size_t i = 0; i < 2; ++i)
    for (size_t j = 0; j < 2; ++j) {
      const bool is_side = i == j || one.op == OpKind::Mul;
      const bool is_same = one.inputs[i] == other.inputs[j];
      const bool fits = draft.shape(one.inputs[1 - i]) == draft.shape(other.inputs[1 - j]);
      if (is_side && is_same && fits) return Shared{i, j};
    }
  return std::nullopt;
}
}  // namespace

// x·a + x·b, a·x + b·x, and the same of differences. Of elementwise products as well.
bool factor_rule(Draft& draft) {
  const OpKind op = draft.root().op;
  if ((op != OpKind::Add && op != OpKind::Sub) || !draft.is_float(draft.out())) return false;
  for (const OpKind by : {OpKind::MatMul, OpKind::Mul}) {
    const Node* const one = draft.maker(draft.in(0), by);
    const Node* const other = draft.maker(draft.in(1), by);
    if (!one || !other || one == other) continue;
    const bool multiplies = by == OpKind::MatMul;
    if (multiplies && !(product_of(draft, draft.in(0)) && product_of(draft, draft.in(1)))) continue;
    const auto shared = shared_by(draft, *one, *other);
    if (!shared) continue;
    const TensorId x = one->inputs[shared->one];
    const TensorId a = one->inputs[1 - shared->one];
    const TensorId b = other->inputs[1 - shared->other];
    draft.need_alone(draft.in(0));
    draft.need_alone(draft.in(1));
    draft.names({x, a, b});
    const TensorId both = draft.pointwise(op, a, b);
    if (!multiplies)
      draft.pointwise(by, x, both);
    else if (shared->one == 0)
      draft.product(x, both);
    else
      draft.product(both, x);
    return true;
  }
  return false;
}

// x·(a + b) and (a + b)·x
bool distribute_rule(Draft& draft) {
  if (!root_product(draft)) return false;
  for (size_t i = 0; i < 2; ++i) {
    const TensorId both = draft.in(i);
    const TensorId x = draft.in(1 - i);
    const Node* const sum = sum_of_two(draft, both);
    if (!sum || !draft.is_float(both)) continue;
    const TensorId a = sum->inputs[0];
    const TensorId b = sum->inputs[1];
    // A vector of biases is a matrix of one row.
    const auto fits = [&](TensorId term) {
      return draft.rank(term) >= 2 && draft.shape(term).back() == draft.shape(both).back();
    };
    const auto is_row = [&](TensorId term) {
      return draft.rank(term) == 1 && draft.shape(term) == Shape{draft.shape(both).back()};
    };
    if (!(fits(a) || is_row(a)) || !(fits(b) || is_row(b))) continue;
    // Rows of one operand may stretch; what is summed over may not.
    const auto rows = [&](TensorId term) {
      return is_row(term) ? int64_t{1} : draft.shape(term)[draft.rank(term) - 2];
    };
    const int64_t all = draft.shape(both)[draft.rank(both) - 2];
    if (i == 1 && (rows(a) != all || rows(b) != all)) continue;
    draft.need_alone(both);
    draft.need_no_cancelling(a, b);
    draft.names({a, b, x});
    const auto term = [&](TensorId one) {
      const Shape row = {1, draft.shape(one).back()};
      const TensorId matrix = is_row(one) ? draft.reshaped(one, row) : one;
      return i == 0 ? draft.product(matrix, x) : draft.product(x, matrix);
    };
    const TensorId first = term(a);
    draft.pointwise(sum->op, first, term(b));
    return true;
  }
  return false;
}

// Σ(a·b) over rows or columns of the product
bool sum_before_rule(Draft& draft) {
  if (draft.root().op != OpKind::ReduceSum || !draft.is_float(draft.out())) return false;
  const Node* const of = product_of(draft, draft.in(0));
  if (!of) return false;
  const auto axes = draft.root().integers("axes");
  const auto last = as_int64(draft.rank(draft.in(0))) - 1;
  const bool columns = contains(axes, last);
  const bool rows = contains(axes, last - 1);
  if (!columns && !rows) return false;
  const size_t within = (columns ? 1 : 0) + (rows ? 1 : 0);
  draft.need(
      axes.size() == within, "rows or columns of the product alone are summed",
      fmt::format("axes {}", listed(axes, [](int64_t axis) { return std::to_string(axis); })));
  draft.need_alone(draft.in(0));
  TensorId a = of->inputs[0];
  TensorId b = of->inputs[1];
  draft.names({a, b});
  if (!draft.why().empty()) return true;
  if (rows) a = draft.sum(a, {as_int64(draft.rank(a)) - 2}, true);
  if (columns) b = draft.sum(b, {as_int64(draft.rank(b)) - 1}, true);
  draft.reshaped(draft.product(a, b), draft.shape(draft.out()));
  return true;
}

// (a·b)ᵀ
bool transpose_product_rule(Draft& draft) {
  if (draft.root().op != OpKind::Transpose) return false;
  const Node* const of = product_of(draft, draft.in(0));
  if (!of) return false;
  const auto order = draft.root().integers("perm");
  const size_t rank = order.size();
  for (size_t i = 0; i + 2 < rank; ++i)
    if (order[i] != as_int64(i)) return false;
  if (order[rank - 1] != as_int64(rank) - 2) return false;
  draft.need_alone(draft.in(0));
  draft.names(of->inputs);
  const TensorId right = draft.turned(of->inputs[1]);
  draft.product(right, draft.turned(of->inputs[0]));
  return true;
}
}  // namespace warploom::graph
