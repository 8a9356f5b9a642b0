// Register layouts: which of them the statements allow, found by propagation and depth-first search.
#pragma once

#include "synth/sites.h"
#include "synth/synthesize.h"

namespace warploom::synth {

struct RegisterSolution {
  std::map<tile::TensorId, layout::TvLayout> registers;
  std::map<const tile::Statement*, const target::Instruction*> matrix;  // by Mma statement
};

Result<RegisterSolution> solve_registers(const tile::Program& program, const std::vector<Site>& sites,
                                         const Bounds& bounds, const target::Capabilities& capabilities);

// The ways to spread one matrix statement over `threads` threads from `first` on, cheapest first.
struct MatrixTiling {
  const target::Instruction* instruction = nullptr;
  layout::TvLayout acc, a, b;  // a and b only where they live in registers
  double cost = 0;
};
std::vector<MatrixTiling> matrix_tilings(const tile::Program& program, const tile::Mma& mma, int first, int threads,
                                         const target::Capabilities& capabilities);

}  // namespace warploom::synth
