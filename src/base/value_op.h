// Elementwise operations: one vocabulary for graphs, tile programs and emitted source
// (value_ops.def).
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
double apply(ValueOp op, double a, double b = 0, double c = 0);  // the meaning, in FP64
// How far rounding can have moved the result v at arguments x, to first order, when they moved by
// at most e: the row's `moved`. An e of NaN, of what overflowed, makes NaN of it.
double moved(ValueOp op, const double* x, double v, const double* e);
}  // namespace warploom
