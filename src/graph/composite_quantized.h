// Numbers that stand for others by a scale and a zero point, and what is computed on them. Private
// to the room.
#pragma once
#include <cstddef>
#include <string_view>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/rules.h"

namespace warploom::graph {
// x as its type stores it, in the reference too: what is rounded to whole numbers next must not lie
// on the other side of a half.
Id as_stored(PrimitiveWriter& writer, Id x, std::string_view what);

// x, of the scale's measure, as the nearest numbers of a type of 8 or 16 bits: halves to the even
// one, what lies beyond the type at its ends; `zero`, which stretches to x, stands for 0. Floats of
// 8 bits have none.
Id quantized(PrimitiveWriter& writer, Id x, Id zero, Dtype type, std::string_view what);

// Input i in f32, times its scale: inputs i, i + 1 and i + 2 are numbers, scale and zero point.
Result<Id> dequantized_input(PrimitiveWriter& writer, size_t i, std::string_view what);

// x as i32 less its zero point, which stretches to it; kAbsent: none.
Id around_zero(PrimitiveWriter& writer, Id x, Id zero, std::string_view what);

// An input of one element as a scalar; 16-bit ones as f32.
Result<Id> scalar_input(PrimitiveWriter& writer, size_t i, std::string_view what);

namespace rewrites {
Result<Outputs> dynamic_quantize(PrimitiveWriter& writer);
}

bool is_small_integer(Dtype dtype);  // of 8 or 16 bits
Status check_small_integer(const NodeContext& context, size_t i);
}  // namespace warploom::graph
