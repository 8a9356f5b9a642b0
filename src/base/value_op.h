// Elementwise operations: one vocabulary (value_ops.def) for graphs, tile programs and emitted
// source.
//
//   apply(ValueOp::max, 1, 2)          2
//   value_op_named("fma")              ValueOp::fma, of arity 3
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace warploom {
enum class ValueOp : uint8_t {
#define WARPLOOM_VALUE_OP(name, arity, fp64, moved) name,
#include "base/value_ops.def"
};

std::string_view name_of(ValueOp op);
std::optional<ValueOp> value_op_named(std::string_view name);
int arity_of(ValueOp op);
double apply(ValueOp op, double a, double b = 0, double c = 0);  // the result, in FP64
// First-order error bound: how far the result v at arguments x moves at most when argument i moves
// by at most e[i] (the row's `moved`). A NaN in e, from an overflow, gives NaN.
double moved(ValueOp op, const double* x, double v, const double* e);
}  // namespace warploom
