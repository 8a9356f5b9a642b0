#include "kernels/pieces/epilogue.h"
#include <fmt/format.h>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "kernels/kernel_builder.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Tile;

// The operators behind a tile's sum, made value by value: what reduces rows first, step by step,
// then the output.
class BehindTheSum {
 public:
  BehindTheSum(KernelBuilder& draft, const Contraction& contraction, TensorId acc,
               const TileCoord& tile, const std::vector<size_t>& axes, size_t rows, int64_t ctas)
      : draft_(draft),
        t_(draft.b),
        c_(contraction),
        nest_(contraction.nest),
        tile_(tile),
        axes_(axes),
        rows_(rows),
        ctas_(ctas),
        sets_{acc},
        made_{{as_int(c_.sum), acc}} {}

  void load_operands() {
    for (const int operand : epilogue_of(c_).value_or(std::vector<int>{})) {
      const std::string name = fmt::format("e{}", loaded_.size());
      const Access& access = nest_.loads[at(operand)];
      loaded_[operand] = load_beside(draft_, c_, name, access, tile_, axes_, rows_);
    }
  }

  void reduce_rows() {
    for (const RowStep& step : row_steps(c_))
      reduce_row(step);
  }

  // An output's value, rounded to its type: the sum itself where nothing follows it.
  TensorId result(const LoopNest::Output& output, const std::string& name) {
    const TensorId acc = sets_[0];
    const bool is_sum = c_.reductions.empty() && at(output.value) == c_.sum;
    if (is_sum && t_.dtype_of(acc) == output.place.dtype) return acc;
    const auto uses = [&](size_t axis) { return output.place.uses(axis); };
    const auto shape = shape_of(tile_, axes_, rows_, uses);
    const TensorId result = draft_.reg(name, output.place.dtype, shape);
    t_.map(result, value_of(output.value));
    return result;
  }

 private:
  Value value_of(int id) {
    const auto known = [&](int v) { return known_value(v); };
    return made_of<Value>(nest_, id, known, tile::constant, tile::apply);
  }

  bool varies_along_row(int v) const { return nest_.values[at(v)].varies[c_.column]; }

  // What is there already, a load or an index; and where rows are reduced, one number a row.
  std::optional<Value> known_value(int v) {
    if (const auto found = made_.find(v); found != made_.end()) return t_.value(found->second);
    const Expr& value = nest_.values[at(v)];
    if (value.kind == Kind::index) return tile_.value_at(value.at, {c_.m[0], c_.n[0]});
    if (value.kind == Kind::load) return t_.value(loaded_.at(value.load));
    if (value.kind != Kind::apply || c_.reductions.empty()) return std::nullopt;
    return number_of_row(v);
  }

  // One number a row is computed once, and dividing by it is multiplying by its reciprocal.
  std::optional<Value> number_of_row(int v) {
    const Expr& value = nest_.values[at(v)];
    const bool varies = varies_along_row(v);
    if (varies && value.op == ValueOp::div && !varies_along_row(value.operands[1])) {
      Value dividend = value_of(value.operands[0]);
      const Value reciprocal = tile::constant(1) / value_of(value.operands[1]);
      const TensorId factor = row_number("r", v, reciprocal);
      return std::move(dividend) * t_.value(factor);
    }
    if (varies) return std::nullopt;
    std::vector<Value> operands;
    for (const int operand : value.operands)
      operands.push_back(value_of(operand));
    made_[v] = row_number("u", v, tile::apply(value.op, std::move(operands)));
    return t_.value(made_[v]);
  }

  TensorId row_number(const char* stem, int v, const Value& value) {
    const TensorId to = row_register(fmt::format("{}{}", stem, v));
    t_.map(to, value);
    return to;
  }

  // One element a row.
  TensorId row_register(const std::string& name) {
    const auto of_row = [&](size_t axis) { return axis != c_.column; };
    return draft_.reg(name, Dtype::f32, shape_of(tile_, axes_, rows_, of_row));
  }

  // Elements beyond the row's end do not count.
  Value within_row(Value kept, ValueOp reduction) const {
    const int64_t width = nest_.axes[c_.column];
    if (width % (tile_.extent[c_.column] * ctas_) == 0) return kept;
    const Index beyond = tile_.origin[c_.column] - width;
    const Value inside = less(tile::coordinate(1, beyond), tile::constant(0));
    return where(inside, std::move(kept), tile::constant(identity_of(reduction)));
  }

  void reduce_row(const RowStep& step) {
    const Expr& reduction = nest_.values[step.reduction];
    const auto op = *reduce_op(reduction.op);
    const Value kept = within_row(value_of(step.kept), reduction.op);
    if (step.set == sets_.size()) {
      const auto all = [](size_t) { return true; };
      const auto shape = shape_of(tile_, axes_, rows_, all);
      sets_.push_back(draft_.reg(fmt::format("kept{}", step.set), Dtype::f32, shape));
    }
    const TensorId set = sets_[step.set];
    const bool there = made_.contains(step.kept) && kept.kind == Value::Kind::tensor;
    if (!there) t_.map(set, kept);
    std::erase_if(made_, [&](const auto& each) { return each.second == set; });
    made_[step.kept] = set;
    const TensorId total = row_register(fmt::format("total{}", step.reduction));
    t_.reduce(total, set, 1, op);
    if (ctas_ > 1) t_.cluster_reduce(total, op);
    made_[as_int(step.reduction)] = total;
  }

  KernelBuilder& draft_;
  tile::Builder& t_;
  const Contraction& c_;
  const LoopNest& nest_;
  const TileCoord& tile_;
  const std::vector<size_t>& axes_;
  size_t rows_;
  int64_t ctas_;
  std::map<int, TensorId> loaded_;  // by the loads' numbers
  std::vector<TensorId> sets_;      // accumulators, and copies of them that steps keep
  std::map<int, TensorId> made_;    // by the values' numbers
};
}  // namespace

void store(KernelBuilder& draft, const Contraction& c, TensorId acc, const TileCoord& tile,
           const std::vector<size_t>& axes, size_t rows, TensorId staging, int64_t ctas) {
  auto& t = draft.b;
  BehindTheSum behind(draft, c, acc, tile, axes, rows, ctas);
  behind.load_operands();
  behind.reduce_rows();
  for (size_t i = 0; i < c.nest.outputs.size(); ++i) {
    const LoopNest::Output& output = c.nest.outputs[i];
    const Access& place = output.place;
    const std::string number = i == 0 ? "" : fmt::format("_{}", i + 1);
    const TensorId result = behind.result(output, "result" + number);
    const Tile destination = TensorTile(draft, "C" + number, c.nest, place, axes, true).at(tile);
    const bool is_staged = staging >= 0 && i == 0;
    if (is_staged) t.copy(t.all(result), t.all(staging));
    const TensorId source = is_staged ? staging : result;
    const auto write = [&] { t.copy(t.all(source), destination); };
    if (ctas > 1 && !place.uses(c.column))
      t.if_less(tile::cluster_rank(), 1, write);
    else
      write();
  }
}
}  // namespace warploom::kernels
