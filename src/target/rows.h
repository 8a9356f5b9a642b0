// The tables of the architectures, one file each (sm_80.cpp, sm_90a.cpp): what each adds to those before it.
#pragma once

#include "target/instruction.h"

namespace warploom::target {

std::vector<Instruction> sm80_rows();
std::vector<Instruction> sm90a_rows();

}  // namespace warploom::target
