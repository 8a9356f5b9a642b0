// What elements past the end of a row count as. The value is chosen by which the fewest reductions
// must be masked: 0 for sums, ±∞ for extremes.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include "base/dtype.h"
#include "base/value_op.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reader.h"
#include "loopnest/row_reduction.h"

namespace warploom::loopnest {
namespace {
// A number; NaN: some finite number; nothing: anything.
using PastEnd = std::optional<double>;
constexpr double kSomeNumber = std::numeric_limits<double>::quiet_NaN();

// Terms past the end of the row, where loads along all of the row give the padding value.
class TermsPastEnd {
 public:
  TermsPastEnd(const RowReduction& rows, double padding_value)
      : rows_(rows), padding_value_(padding_value) {}

  PastEnd operator[](int term) {
    if (const auto found = known_.find(term); found != known_.end()) return found->second;
    const PastEnd value = compute(rows_.term(term));
    known_[term] = value;
    return value;
  }

 private:
  PastEnd compute(const RowTerm& term) {
    switch (term.kind) {
      case Kind::constant: return term.value;
      case Kind::load: return loaded(rows_.loaded(term));
      case Kind::round: return (*this)[term.operands[0]];
      case Kind::apply: return applied(term);
      default: return kSomeNumber;
    }
  }

  PastEnd loaded(const Access& load) const {
    const auto uses = [&](size_t axis) { return load.uses(axis); };
    const bool ends_outside = load.in_bounds && std::ranges::all_of(rows_.row, uses);
    return ends_outside ? rounded(load.dtype, padding_value_) : kSomeNumber;  // integers hold no ∞
  }

  PastEnd applied(const RowTerm& term) {
    std::array<double, 3> args = {0, 0, 0};
    bool all_known = true;
    bool any_infinite = false;
    for (size_t i = 0; i < term.operands.size(); ++i) {
      const PastEnd arg = (*this)[term.operands[i]];
      if (!arg) return std::nullopt;
      args[i] = *arg;
      all_known = all_known && !std::isnan(*arg);
      any_infinite = any_infinite || std::isinf(*arg);
    }
    const auto [a, b, c] = args;
    if (all_known) {
      const double result = warploom::apply(term.op, a, b, c);
      return std::isnan(result) ? std::nullopt : PastEnd(result);
    }
    const bool is_zero = term.op == ValueOp::mul && (a == 0 || b == 0);
    if (!any_infinite) return is_zero ? 0 : kSomeNumber;
    if (term.op == ValueOp::add) return std::isinf(a) ? a : b;
    if (term.op == ValueOp::sub) return std::isinf(a) ? a : -b;
    return std::nullopt;
  }

  const RowReduction& rows_;
  double padding_value_;
  std::map<int, PastEnd> known_;
};

bool needs_mask(const RowReduction& rows, const RowTerm& term, double padding_value) {
  if (term.kind != Kind::reduce) return false;
  TermsPastEnd past(rows, padding_value);
  return past[term.operands[0]] != identity_of(term.op);
}
}  // namespace

void choose_padding_values(RowReduction& rows) {
  double chosen = 0;
  ptrdiff_t fewest = std::ssize(rows.terms) + 1;
  for (const double value : {0.0, -HUGE_VAL, HUGE_VAL}) {
    const auto masks = std::ranges::count_if(
        rows.terms, [&](const RowTerm& term) { return needs_mask(rows, term, value); });
    if (masks >= fewest) continue;
    fewest = masks;
    chosen = value;
  }
  for (RowTerm& term : rows.terms)
    term.masked = needs_mask(rows, term, chosen);
  for (const Access& load : rows.nest.loads)
    rows.padding_values.push_back(load.in_bounds ? chosen : load.padding_value);
}
}  // namespace warploom::loopnest
