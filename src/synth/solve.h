// The passes of synthesis, each a file of its own: register layouts, shared layouts with the
// instruction of every copy, and the predicted time.
#pragma once
#include <optional>
#include "synth/sites.h"
#include "synth/synthesize.h"

namespace warploom::synth {
using layout::TvLayout, target::Instruction, target::Method;

// What every pass reads.
struct SynthesisContext {
  const Program& program;
  const target::Capabilities& capabilities;
  std::vector<Site> sites = sites_of(program);
  Bounds bounds = Bounds(program);
};

// Register layouts, found by propagation and depth-first search: all that the statements allow
// within the search's node budget, at most kMostSolutions; every tiling of the matrix statements,
// each with the widest vectors that fit. Fails when there is none. Of a solution it fills
// registers, their reasons, and the choices of matrix statements.
inline constexpr size_t kMostSolutions = 24;
Result<std::vector<Solution>> solve_registers(const SynthesisContext& question);

// The ways to spread one matrix statement over `threads` threads from `first` on, cheapest first;
// where there are none, what the statement lacks for each row of its operands' type.
struct MatrixTiling {
  const Instruction* instruction = nullptr;
  // a and b only where they live in registers
  TvLayout acc;
  TvLayout a;
  TvLayout b;
  double cost = 0;
};

struct MatrixTilings {
  std::vector<MatrixTiling> found;
  std::string lacks;
};

MatrixTilings matrix_tilings(const Program& program, const Mma& mma, int first, int threads,
                             const target::Capabilities& capabilities);

// The error of layout::coalesced as one of a statement: its threads do not divide the elements of
// its tensor.
Error not_spread(const Program& program, const Site& site, TensorId tensor);

// Fills solution.shared and solution.choices of copies; solution.registers must be complete.
Status solve_shared(const SynthesisContext& question, Solution& solution);

// Fills solution.prepacked; solution.registers must be complete.
void solve_prepacked(const SynthesisContext& question, Solution& solution);

// The dimension of a shared tensor whose elements are neighbours.
size_t contiguous_dim(const layout::MemoryLayout& layout, const Tensor& tensor);

// A register layout seen over the dimensions of another tensor that it meets in a copy: wide
// dimensions correspond in order.
TvLayout seen_from(const TvLayout& registers, const std::vector<int64_t>& other_extent);

// Whether every element is seen as often as any other: not so where threads or values straddle
// dimensions that meet one together.
bool meets_whole(const TvLayout& registers, const std::vector<int64_t>& other_extent);

// The predicted time of a program under a solution, so that solutions and schedules can be ordered
// without running them.
Cost predict(const SynthesisContext& question, const Solution& solution);

// A change of register layout by the threads of a warp alone: which lane and which of its registers
// holds what a thread wants.
//
// Where both layouts are bit matrices (layout/memory_layout.h), so is the map between them. A
// thread wants its value i from the lane from(thread) ^ from(i), register pick(thread) ^ pick(i),
// each a XOR of columns. A shuffle names one register for all lanes, so a value takes as many
// shuffles as pick(thread) has images.
//
// Worked example: a thread holds columns 2t, 2t + 1 of a row and wants columns t, t + 4: value 0 of
// lane t is value t % 2 of lane t / 2, two shuffles.
struct WarpShufflePlan {
  // elements that move together, at most 4 bytes; units a thread holds
  int unit = 1;
  int units = 1;
  // Columns, by bits of the thread's number and of the unit wanted.
  std::vector<int64_t> lane_of_thread;
  std::vector<int64_t> lane_of_unit;
  std::vector<int64_t> pick_of_thread;
  std::vector<int64_t> pick_of_unit;
  std::vector<int64_t> picks() const;  // a basis of pick(thread)
  int64_t shuffles() const;
};

// nullopt where elements change warps, or the layouts are no bit matrices.
std::optional<WarpShufflePlan> warp_shuffle_plan(const TvLayout& from, const TvLayout& to,
                                                 int element_bits);

// A layout over (x, y) as one over (y, x), where `flip` says so.
TvLayout flipped(TvLayout layout, bool flip);
}  // namespace warploom::synth
