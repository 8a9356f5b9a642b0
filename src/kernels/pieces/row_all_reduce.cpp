#include "kernels/pieces/row_all_reduce.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "loopnest/loop_nest.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::ReduceOp;

namespace {
const char* result_name(ReduceOp op) {
  if (op == ReduceOp::sum) return "total";
  return op == ReduceOp::max ? "top" : "low";
}
}  // namespace

void RowAllReduce::reduce_own_part(int reduction, TensorId from) {
  const ReduceOp op = *reduce_op(rows_.term(reduction).op);
  const TensorId to = t_.scalar(fmt::format("{}{}", result_name(op), reduction));
  auto varies = t_.everywhere();
  for (size_t i = rows_.row.size(); i-- > 0;) {
    const size_t axis = rows_.row[i];
    varies[axis] = false;
    const TensorId part = i == 0 ? to : t_.reg(fmt::format("part{}", i), varies);
    b_.reduce(part, from, t_.dim_of(axis), op);
    from = part;
  }
  terms_.bind(reduction, to);
}

void RowAllReduce::reduce(int reduction, TensorId from) {
  reduce_own_part(reduction, from);
  if (!t_.shares_rows()) return;
  const ReduceOp op = *reduce_op(rows_.term(reduction).op);
  const TensorId to = terms_.bound(reduction).tensor;
  if (t_.options.exchange_in_memory)
    b_.reduce(to, gather({to})[0], t_.row_dim(), op);
  else
    b_.cluster_reduce(to, op);
}

int64_t RowAllReduce::exchanges_a_row() const {
  return std::ranges::count(rows_.terms, Kind::reduce, &RowTerm::kind);
}

Index RowAllReduce::number_of(int64_t exchange) const {
  return t_.group() * exchanges_a_row() + exchange;
}

RowAllReduce::Layout RowAllReduce::exchange_layout() const {
  Layout layout{{1}, {1}, {exchanges()}};
  for (const size_t axis : rows_.dims) {
    const int64_t own = axis == rows_.tiled_outer ? t_.at().extent[axis] : 1;
    const int64_t all = axis == t_.last_axis() ? t_.options.ctas_per_row : own;
    layout.own.push_back(own);
    layout.all.push_back(all);
    layout.workspace.push_back(all);
  }
  return layout;
}

std::vector<TensorId> RowAllReduce::gather(const std::vector<TensorId>& own) {
  const Layout layout = exchange_layout();
  if (exchanged_ == 0) {
    parts_ = t_.draft.workspace("parts", "row_parts", Dtype::f32, layout.workspace);
    flags_ = t_.draft.workspace("flags", "row_flags", Dtype::i32, {exchanges()});
    b_.zeroed(flags_);
  }
  const auto place = [&](size_t i, const Index& cta, const std::vector<int64_t>& extent) {
    std::vector<Index> offset(extent.size(), 0);
    offset[0] = number_of(exchanged_ + as_int64(i));
    offset[as_size(t_.row_dim()) + 1] = cta;
    return b_.tile(parts_, std::move(offset), extent);
  };
  const auto flag = b_.tile(flags_, {number_of(exchanged_)}, {1});
  for (size_t i = 0; i < own.size(); ++i)
    b_.copy(b_.all(own[i]), place(i, t_.cta_rank(), layout.own));
  b_.add(tile::Signal{flag, 1});
  for (const Work& work : std::exchange(meanwhile_, {}))
    work();
  b_.add(tile::Wait{flag, t_.options.ctas_per_row});
  const std::vector<int64_t> shape(layout.all.begin() + 1, layout.all.end());
  std::vector<TensorId> gathered;
  for (size_t i = 0; i < own.size(); ++i) {
    const TensorId met = t_.draft.reg(fmt::format("met{}", i), Dtype::f32, shape);
    b_.copy(place(i, 0, layout.all), b_.all(met));
    gathered.push_back(met);
  }
  exchanged_ += std::ssize(own);
  return gathered;
}
}  // namespace warploom::kernels
