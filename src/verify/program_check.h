// Whether what a tile program became does what the program means: the kernel runs on the emulator
// with hazard rules on, the program in the interpreter, both on the same random inputs, and the
// outputs are compared.
//
//   WARPLOOM_TRY(const ProgramVerdict verdict, check_program(program, list, 1));
//   verdict.error                        // relative Frobenius error against the interpreter, the
//   worst output's verdict.agrees                       // within `bound`: the output type's
//   rounding and the order of fp32 sums
//
// Errors: emulator-hazard and emulator-deadlock with the kernel's line, tile-runtime where the
// program itself is undefined, resource-limit where it is too large to be interpreted.
#pragma once
#include <nlohmann/json.hpp>
#include "runtime/emulate.h"
#include "tile/program.h"

namespace warploom::verify {
struct ProgramVerdict {
  bool agrees = false;
  double error = 0;
  double bound = 0;
  int64_t wavefronts = 0;
  int64_t wavefronts_least = 0;         // of shared memory: taken, and without bank conflicts
  std::vector<runtime::BankUse> banks;  // the same by line of the kernel's text
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProgramVerdict, agrees, error, bound, wavefronts,
                                   wavefronts_least, banks)
Result<ProgramVerdict> check_program(const tile::Program& program, const LaunchList& list,
                                     uint64_t seed);
}  // namespace warploom::verify
