// Pointwise operators as expressions over the operations of base/value_ops.def.
//
// Idea. A pointwise operator computes each output element from the input elements at the same index
// after broadcasting. expression_of() returns that computation as a list of terms, in the
// operations that tile programs and emitted source have. A chain of pointwise operators is fused by
// joining their lists; fusion needs no knowledge of any one operator.
//
// Worked example, Gelu with approximate = "none", 0.5 · x · (1 + erf(x / √2)):
//
//   0  input 0            x
//   1  constant 1/√2
//   2  mul(0, 1)          x / √2
//   3  erf(2)
//   4  constant 1
//   5  add(3, 4)
//   6  constant 0.5
//   7  mul(0, 6)
//   8  mul(7, 5)          the result
//
// A term refers to earlier terms only. The last term is the result before it is rounded to the
// output's type: within a fused chain, a cast to a narrower type must still round.
//
// Accuracy. Expressions are accurate when every term is rounded to fp32, not only in exact
// arithmetic: Softplus at -20 is not log(1 + 2e-9) = 0, and Elu near 0 is not exp(x) - 1.
//
// Integers. Div and a Cast from float truncate, in the expression. Where all tensors of a node are
// integers and every term has a meaning on them (in_integers), evaluate_integers() computes in 64
// bits that wrap.
//
// Units. Buffers are FP64, or int64_t for evaluate_integers(); `count` is in elements. The FP64
// reference evaluates these expressions, but for Pow, which an expression only approximates; tests
// compare the others with the C library.
//
// Errors: none. expression_of() returns nothing for an operator that is not pointwise.
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
