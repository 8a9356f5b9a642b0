// The normal form of a nest (nest.h says what that is). And what it does with expressions.
#pragma once
#include "kernels/nest.h"
namespace warploom::kernels {
// Of a nest whose affine coordinates may lack trailing steps and whose values do not know along what they vary.
Nest normal_form(Nest nest);

// `value` with operand `which`, a map, written out. Equal terms and equal operands are one.
void inline_operand(NestValue& value, std::size_t which, const NestValue& map);
double tree_nodes(const graph::Expression& expression);  // where shared terms are written out
}  // namespace warploom::kernels
