// Pairs of reductions that one pass can compute: RowReduction::online_softmax, index_of_extreme and
// centered_squares.
#include <algorithm>
#include <vector>
#include "base/value_op.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reader.h"
#include "loopnest/row_reduction.h"

namespace warploom::loopnest {
namespace {
class PatternFinder {
 public:
  explicit PatternFinder(const RowReduction& rows)
      : rows_(rows),
        first_id_(rows.passes[0].reduces[0]),
        second_id_(rows.passes[1].reduces[0]),
        first_(rows.term(first_id_)),
        second_(rows.term(second_id_)) {}

  // The index of where(where(x == extreme, 1, where(x == x, 0, 1)), index, beyond), the least of
  // which is the first index of the extreme; -1 where the second reduction is not that.
  int index_of_extreme() const {
    const int x = first_.operands[0];
    const bool extremes = first_.op == ValueOp::max || first_.op == ValueOp::min;
    const auto chosen = operands_of(ValueOp::where, second_.operands[0]);
    if (!extremes || second_.op != ValueOp::min || chosen.empty()) return kNone;
    if (!is_rising_index(chosen[1])) return kNone;
    const auto found = operands_of(ValueOp::where, chosen[0]);
    if (found.empty() || !compares(found[0], x, first_id_) || !is(found[1], 1)) return kNone;
    const auto number = operands_of(ValueOp::where, found[2]);
    const bool numbers = !number.empty() && compares(number[0], x, x);
    if (!numbers || !is(number[1], 0) || !is(number[2], 1)) return kNone;
    return rows_.term(chosen[2]).kind == Kind::constant ? chosen[1] : kNone;
  }

  // Not where one of the two is a result: kernels bend them for rows of -infinity.
  bool is_online_softmax() const {
    const RowTerm& made = rows_.term(second_.operands[0]);
    if (first_.op != ValueOp::max || !sums_of_differences()) return false;
    if (made.op != ValueOp::exp && made.op != ValueOp::fast_exp) return false;
    const bool stays_inside = !is_result(first_id_) && !is_result(second_id_);
    if (!stays_inside || is_result(second_.operands[0])) return false;
    return difference().operands[1] == first_id_;
  }

  bool is_centered_squares() const {
    if (rows_.passes.size() != 3 || first_.op != ValueOp::add || !sums_of_differences())
      return false;
    const RowTerm& made = rows_.term(second_.operands[0]);
    const bool is_square = made.op == ValueOp::mul && made.operands[0] == made.operands[1];
    return is_square && !rows_.term(difference().operands[1]).along_row;
  }

 private:
  static constexpr int kNone = -1;

  // Whether the second reduction is a sum of an operation on x minus something.
  bool sums_of_differences() const {
    if (second_.op != ValueOp::add || rows_.term(second_.operands[0]).kind != Kind::apply)
      return false;
    const RowTerm& off = difference();
    const bool is_difference = off.kind == Kind::apply && off.op == ValueOp::sub;
    return is_difference && off.operands[0] == first_.operands[0];
  }

  const RowTerm& difference() const {
    return rows_.term(rows_.term(second_.operands[0]).operands[0]);
  }

  // Whether a term is an index that rises along rows of one axis: lanes walk from the first on.
  bool is_rising_index(int id) const {
    const RowTerm& term = rows_.term(id);
    if (term.kind != Kind::index || rows_.row.size() != 1) return false;
    return term.at.steps[rows_.row[0]] > 0;
  }

  // The operands of a term, where it is this operation; else none.
  std::vector<int> operands_of(ValueOp op, int id) const {
    const RowTerm& term = rows_.term(id);
    if (term.kind != Kind::apply || term.op != op) return {};
    return term.operands;
  }

  bool compares(int id, int a, int b) const {
    return operands_of(ValueOp::equal, id) == std::vector{a, b};
  }

  bool is(int id, double value) const {
    return rows_.term(id).kind == Kind::constant && rows_.term(id).value == value;
  }

  bool is_result(int id) const { return std::ranges::count(rows_.results, id) > 0; }

  const RowReduction& rows_;
  int first_id_;
  int second_id_;
  const RowTerm& first_;
  const RowTerm& second_;
};
}  // namespace

void find_row_patterns(RowReduction& rows) {
  const auto& passes = rows.passes;
  if (passes.size() < 3 || passes[0].reduces.size() != 1 || passes[1].reduces.size() != 1) return;
  const PatternFinder finder(rows);
  rows.index_of_extreme = finder.index_of_extreme();
  rows.online_softmax = finder.is_online_softmax();
  rows.centered_squares = finder.is_centered_squares();
}
}  // namespace warploom::loopnest
