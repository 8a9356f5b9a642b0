// Elementwise operators as expressions over base/value_ops.def.
//
// A pointwise operator computes each output element from those of its inputs that broadcasting puts
// at the same place. expression_of() says how, in the vocabulary of emitted source and tile
// programs, so that any chain can be fused without knowing one operator from another. Worked
// example, Gelu (approximate = none):
//
//   0 input 0   1 constant 1/√2   2 mul(0,1)   3 erf(2)   4 constant 1   5 add(3,4)   6 constant
//   0.5   7 mul(0,6)   8 mul(7,5)
//
// A term refers to earlier terms only and the last one is the result, before it is rounded to the
// output's type: a cast to a narrower type within a fused chain must still round. Expressions are
// accurate also when every term is rounded to fp32: Softplus near -20 does not become log(1 + 2e-9)
// = 0, nor Elu near 0 exp(x) - 1. Integers: Div and a Cast from float truncate, in the expression.
// The FP64 reference uses them, too, but for Pow, which is only approximated; tests compare them
// with the library's. Of integers it computes them on whole numbers of 64 bits.
#pragma once
#include <array>
#include <optional>
#include <span>
#include "base/value_op.h"
#include "graph/graph.h"

namespace warploom::graph {
struct ExpressionTerm {
  enum class Kind : uint8_t { input, constant, apply };
  Kind kind = Kind::constant;
  int input = 0;                        // input: index into the node's inputs
  double value = 0;                     // constant
  ValueOp op = ValueOp::add;            // apply
  std::array<int, 3> args = {0, 0, 0};  // apply: earlier terms, as many as the operation's arity
};

struct Expression {
  std::vector<ExpressionTerm> terms;  // never empty; the last is the result
};

// The expression of a pointwise node, nothing for any other. Constant scalars among the inputs
// (Clip's bounds, Pow's exponent, Add's addend) stay inputs unless the expression depends on their
// value (Pow: x·x for an exponent of 2).
std::optional<Expression> expression_of(const Graph& graph, const Node& node);

// Whether a node's expression has a meaning on whole numbers, and all its tensors are of integers:
// it is computed on those of 64 bits then (base/integers.h), which lose nothing.
bool in_integers(const Graph& graph, const Node& node, const Expression& expression);
void evaluate_integers(const Expression& expression, int64_t count,
                       std::span<const int64_t* const> inputs, int64_t* to);

// In FP64, many elements at once, since one alone would cost more in steps than in arithmetic. With
// the magnitudes of the results where `to` asks for them (reference.h has the rule): the
// expression's running error analysis to first order, given its inputs and their magnitudes.
struct Column {
  double* value = nullptr;
  double* magnitude = nullptr;
};

void evaluate(const Expression& expression, int64_t count, std::span<const Column> inputs,
              const Column& to);
}  // namespace warploom::graph
