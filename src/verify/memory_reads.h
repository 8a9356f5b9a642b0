// Memory reads: which bytes an instruction is about to read, by what the registers of the thread
// hold that stands before it.
//
//   WholeInstruction one;                                     // vmovups ymm0, [rsi + 4 * rcx]
//   zydis->decode(bytes, one);
//   for (const MemoryRead& read : memory_reads(one, state))  // {rsi + 4 * rcx, 32, true}
//     …
//
// Lanes that a mask leaves out are not read, and those of a gather are told one by one, as are the
// rows of one of AMX's tiles. Prefetches and the addresses of lea read nothing. Source: Intel SDM,
// volumes 1 (13.4: XSAVE) and 2 (TILELOADD, LDTILECFG). Within the room only.
#pragma once
#include <sys/user.h>
#include <cstdint>
#include <functional>
#include <vector>
#include "verify/disassembler.h"

namespace warploom::verify {
// Bytes that an instruction is about to read.
struct MemoryRead {
  uint64_t address = 0;
  uint64_t bytes = 0;
  bool of_vector = false;  // one access of 16 bytes or more, or of lanes
};

// A thread that stands before an instruction.
struct ThreadState {
  user_regs_struct registers{};
  // NT_X86_XSTATE, asked for where an instruction needs it.
  std::function<std::vector<char>()> vectors;
};

std::vector<MemoryRead> memory_reads(const WholeInstruction& one, const ThreadState& state);

// What a register of 64, 32 or 8 bits holds; of the instruction pointer where the next one begins.
uint64_t value_of(ZydisRegister which, const user_regs_struct& all, uint64_t next);
// Where an operand in memory begins, but for what a gather's lanes add.
uint64_t address_of(const WholeInstruction& one, const ZydisDecodedOperand& operand,
                    const user_regs_struct& all);
}  // namespace warploom::verify
