#include "kernels/pieces/row_split_softmax.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include "base/casts.h"
#include "base/value_op.h"
#include "kernels/kernel_builder.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reduction.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::ReduceOp;

bool RowSplitSoftmax::serves() const {
  const bool in_a_cluster = t_.shares_rows() && !t_.options.exchange_in_memory;
  if (!in_a_cluster || !rows_.online_softmax || rows_.passes.size() != 3) return false;
  // Of what pass 1 keeps the exponentials alone need the maximum.
  return std::ranges::all_of(rows_.passes[1].kept, [&](const auto& kept) {
    return kept.first == exponential() || rows_.term(kept.first).pass == 0;
  });
}

std::optional<RowSplitSoftmax::Share> RowSplitSoftmax::share() const {
  for (size_t t = 0; t < rows_.terms.size(); ++t) {
    const RowTerm& term = rows_.terms[t];
    if (term.kind != Kind::apply || term.op != ValueOp::mul) continue;
    for (const size_t i : {0, 1}) {
      const int other = term.operands[1 - i];
      if (term.operands[i] == exponential() && !rows_.term(other).along_row)
        return Share{as_int(t), other};
    }
  }
  return std::nullopt;
}

void RowSplitSoftmax::after_maximum() {
  const TensorId made = terms_.bound(maximum()).tensor;
  t_.scalar("factor");
  own_maximum_ = t_.scalar("own");
  const Value lowest = tile::constant(std::numeric_limits<float>::lowest());
  b_.map(own_maximum_, max(b_.value(made), lowest));
  b_.cluster_reduce(made, ReduceOp::max);
  terms_.bind(maximum(), own_maximum_);
}

void RowSplitSoftmax::after_sum() {
  const TensorId made = terms_.bound(sum()).tensor;
  const TensorId factor = t_.scalar("factor");
  const Value own = b_.value(own_maximum_);
  const Value top = b_.value(t_.scalar(fmt::format("top{}", maximum())));
  terms_.bind(maximum(), top);
  const Value alike = equal(own, top);  // as infinities are
  b_.map(factor, where(alike, tile::constant(1), exp(own - top)));
  b_.map(made, b_.value(made) * b_.value(factor));
  b_.cluster_reduce(made, ReduceOp::sum);
}

void RowSplitSoftmax::before_last_pass() {
  const auto product = share();
  if (!product) return;
  const Value scale = terms_.compute(product->scale);
  const Value factor = b_.value(t_.scalar("factor"));
  b_.map(t_.scalar("share"), factor * scale);
}

void RowSplitSoftmax::rescale_kept() {
  if (!terms_.is_bound(exponential())) return;
  const Value own = terms_.bound(exponential());
  terms_.bind(exponential(), own * b_.value(t_.scalar("factor")));
  if (const auto product = share())
    terms_.bind(product->product, own * b_.value(t_.scalar("share")));
}
}  // namespace warploom::kernels
