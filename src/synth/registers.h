// Register layouts: which of them the statements allow, found by propagation and depth-first search.
#pragma once
#include "synth/sites.h"
#include "synth/synthesize.h"
namespace warploom::synth {
struct RegisterSolution {
  std::map<tile::TensorId, layout::TvLayout> registers;
  std::map<tile::TensorId, const tile::Statement*> set_by;              // the statement that asked for the layout
  std::map<const tile::Statement*, const target::Instruction*> matrix;  // by Mma statement
};

// All that the search finds within its node budget, at most kMostSolutions: every tiling of the matrix statements, each with the
// widest vectors that fit. Fails when there is none.
inline constexpr std::size_t kMostSolutions = 24;
Result<std::vector<RegisterSolution>> solve_registers(const tile::Program& program, const std::vector<Site>& sites,
                                                      const Bounds& bounds, const target::Capabilities& capabilities);

// The ways to spread one matrix statement over `threads` threads from `first` on, cheapest first.
struct MatrixTiling {
  const target::Instruction* instruction = nullptr;
  layout::TvLayout acc, a, b;  // a and b only where they live in registers
  double cost = 0;
};
std::vector<MatrixTiling> matrix_tilings(const tile::Program& program, const tile::Mma& mma, int first, int threads,
                                         const target::Capabilities& capabilities);

// Why there is none: for every row of the operands' type what the statement lacks.
std::string why_no_tiling(const tile::Program& program, const tile::Mma& mma, int first, int threads,
                          const target::Capabilities& capabilities);

// limits.cpp: what no layout can mend. Before the search: clusters and registers beyond the target's, statements on part of a
// register tensor. After it: a register tensor alone must fit in the registers that a thread of its role has.
Status check_limits(const tile::Program& program, const std::vector<Site>& sites, const target::Capabilities& capabilities);
Status check_registers(const tile::Program& program, const std::vector<Site>& sites, const target::Capabilities& capabilities,
                       const RegisterSolution& solution);

// The error of layout::coalesced as one of a statement: its threads do not divide the elements of its tensor.
Error not_spread(const tile::Program& program, const Site& site, tile::TensorId tensor);
}  // namespace warploom::synth
