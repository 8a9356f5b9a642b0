// Zydis, the decoder of x86-64 instructions, opened from the copy of its shared libraries that this
// program carries: Debian has no archive of it to link, and the executable needs glibc alone.
//
//   WARPLOOM_TRY(const Disassembler* const zydis, Disassembler::open());
//   ZydisDecodedInstruction one;
//   if (zydis->decode(bytes, one)) bytes.remove_prefix(one.length);
//
// Opened once a process, at the first use. Errors: internal, where the loader refuses. Within the
// room only.
#pragma once
#include <Zydis/Zydis.h>
#include <array>
#include <span>
#include <string_view>
#include "base/error.h"

namespace warploom::verify {
// An instruction with what it works on, registers and memory that it does not name among it.
struct WholeInstruction {
  ZydisDecodedInstruction head;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> room;

  std::span<const ZydisDecodedOperand> operands() const {
    return {room.data(), head.operand_count};
  }
};

class Disassembler {
 public:
  static Result<const Disassembler*> open();

  // The instruction that `bytes` begin with, in 64-bit mode; false where they begin with none.
  bool decode(std::string_view bytes, ZydisDecodedInstruction& one) const;
  bool decode(std::string_view bytes, WholeInstruction& one) const;
  std::string_view name(ZydisMnemonic mnemonic) const;  // "vfmadd231ps"

 private:
  Disassembler() = default;

  decltype(&ZydisDecoderDecodeInstruction) decode_ = nullptr;
  decltype(&ZydisDecoderDecodeOperands) decode_operands_ = nullptr;
  decltype(&ZydisMnemonicGetString) name_ = nullptr;
  ZydisDecoder decoder_{};
};
}  // namespace warploom::verify
