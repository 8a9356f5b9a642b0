// The terms of a row reduction.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/value_op.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "loopnest/row_reader.h"
#include "loopnest/row_reduction.h"

namespace warploom::loopnest {
namespace {
// The number of an equal term, or of this one, which is new then.
int add_term(RowReduction& rows, Expr value) {
  constexpr int kMany = 1 << 20;  // nodes
  const auto old =
      std::ranges::find_if(rows.terms, [&](const RowTerm& term) { return term.same(value); });
  if (old != rows.terms.end()) return as_int(old - rows.terms.begin());
  RowTerm term{std::move(value)};
  for (const int operand : term.operands) {
    RowTerm& from = rows.terms[as_size(operand)];
    ++from.uses;
    term.pass = std::max(term.pass, from.pass);
    if (term.kind == Kind::apply) term.nodes = std::min(term.nodes + from.nodes, kMany);
  }
  if (term.kind == Kind::reduce) ++term.pass;
  for (const size_t axis : rows.row)
    term.along_row = term.along_row || term.varies[axis];
  rows.terms.push_back(std::move(term));
  return as_int(rows.terms.size()) - 1;
}

// Makes a division by one number a row, or by a constant, a multiplication.
void multiply_by_reciprocal(RowReduction& rows, Expr& value) {
  if (value.kind != Kind::apply || value.op != ValueOp::div) return;
  const RowTerm& divisor = rows.term(value.operands[1]);
  if (!rows.term(value.operands[0]).along_row || divisor.along_row) return;
  Expr inverse{.kind = Kind::apply, .op = ValueOp::reciprocal};
  inverse.operands = {value.operands[1]};
  inverse.varies = divisor.varies;
  if (divisor.kind == Kind::constant)
    inverse = {.value = 1 / divisor.value, .varies = divisor.varies};
  value.op = ValueOp::mul;
  value.operands[1] = add_term(rows, std::move(inverse));
}

std::vector<int> users_of(const LoopNest& nest) {
  std::vector<int> users(nest.values.size());
  for (const Expr& value : nest.values)
    for (const int operand : value.operands)
      ++users[as_size(operand)];
  return users;
}

// Whether a value is an index along another axis than those of tiles.
bool is_index_beyond_tiles(const RowReduction& rows, const Expr& value) {
  if (value.kind != Kind::index) return false;
  const auto is_beyond = [&](size_t axis) { return std::ranges::count(rows.dims, axis) == 0; };
  return std::ranges::any_of(stepped_axes(value.at), is_beyond);
}

// Whether nothing but stores reads the value, into memory of the type that it is rounded to.
bool is_rounded_by_store(const LoopNest& nest, int v, int users) {
  const Expr& value = nest.value(v);
  return value.kind == Kind::round && users == 0 &&
         std::ranges::all_of(nest.outputs, [&](const LoopNest::Output& output) {
           return output.value != v || output.place.dtype == value.dtype;
         });
}
}  // namespace

bool find_row_terms(RowReduction& rows) {
  std::vector<int> term_of;  // by value
  const auto users = users_of(rows.nest);
  for (size_t v = 0; v < rows.nest.values.size(); ++v) {
    Expr value = rows.nest.values[v];
    if (is_index_beyond_tiles(rows, value)) return false;
    for (int& operand : value.operands)
      operand = term_of[as_size(operand)];
    multiply_by_reciprocal(rows, value);
    const bool by_store = is_rounded_by_store(rows.nest, as_int(v), users[v]);
    term_of.push_back(by_store ? value.operands[0] : add_term(rows, std::move(value)));
  }
  for (const LoopNest::Output& output : rows.nest.outputs)
    rows.results.push_back(term_of[as_size(output.value)]);
  return true;
}
}  // namespace warploom::loopnest
