// Instruction sets of CPUs: what emitted kernels count on of a processor, one row each.
//
//   instruction_set("x86-64-v3")->vectors    "AVX2", of 32 bytes, 16 of them
//   instruction_set("sm_90a")                null: no CPU's
//   instruction_set_here().name              "x86-64-v4", on this machine
//
// The text of a kernel is portable C++ over vectors of vector_bytes (device/cpu): a row decides how
// wide they are, how large tiles of registers may be, and what a compiler is told. Sources: System
// V ABI, x86-64 supplement, "Micro-architecture levels"; Arm Architecture Reference Manual for
// A-profile, C1.2 "Advanced SIMD".
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace warploom::target {
enum class Processor : uint8_t { x86_64, aarch64 };

struct InstructionSet {
  std::string_view name;     // what `--target` takes and plans are kept by
  std::string_view vectors;  // how its makers call its vectors
  Processor processor = Processor::x86_64;
  int vector_bytes = 16;
  int registers = 16;            // for vectors
  int multiply_adds = 2;         // of vectors, that no core of today exceeds a cycle
  std::string_view march;        // how g++ and clang++ call it, behind -march=
  std::string_view tuning = {};  // one more argument for g++; empty: none
};

// Widest first among those of a processor: what is preferred where a machine has several.
std::span<const InstructionSet> instruction_sets();
// By its name; null where no CPU's is called so.
const InstructionSet* instruction_set(std::string_view name);
// The first that this machine has.
const InstructionSet& instruction_set_here();
}  // namespace warploom::target
