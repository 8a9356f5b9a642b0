// The tables of the architectures: what each adds to those before it, and the fragments that they share.
#pragma once

#include "target/instruction.h"

namespace warploom::target {

std::vector<Instruction> sm80_rows();
std::vector<Instruction> sm89_rows();
std::vector<Instruction> sm90a_rows();

// Operands of mma.sync (and, over four warps, of wgmma) whose elements lie `e` to 32 bits.
layout::TvLayout fragment_a(int e, int warps);
layout::TvLayout fragment_b(int e);
layout::TvLayout fragment_c(int warps);

Instruction warp_mma(std::string_view name, std::string_view call, Dtype operand);
Dtype accumulator_of(Dtype operand);  // f32, i32 for integers

}  // namespace warploom::target
