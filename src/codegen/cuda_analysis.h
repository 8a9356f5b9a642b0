// What is found out about a program before its CUDA text is written, and what stays as it is while
// it is written.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>
#include "codegen/pipeline_stages.h"
#include "synth/sites.h"
#include "synth/synthesize.h"

namespace warploom::codegen {
// Fills with zeros that need no instruction: the first wgmma into the tensor does not add to what
// it finds (scale-d = 0).
//
//   fill acc 0                                       no text
//   for k in 0 .. 64: consume ab: mma acc += a * b   scale-d is `k > 0 || kk > 0`
struct SkippedFills {
  std::set<StatementId> fills;
  // By Mma: the condition under which it adds although it is the first in its text. It is empty
  // outside loops, else ends in " || ".
  std::map<StatementId, std::string> adds_where;
};

class CudaAnalysis {
 public:
  CudaAnalysis(const Program& program, const synth::Solution& solution);

  const Program& program;
  const synth::Solution& solution;
  const std::vector<synth::Site> sites;
  const synth::Bounds bounds;
  const std::map<StatementId, StagesInFlight> in_flight;
  const SkippedFills skipped_fills;

  const Tensor& tensor(TensorId id) const { return program.tensor(id); }

  // The instruction of a statement; null where it has none.
  const target::Instruction* instruction_of(StatementId id) const;

  // Whether a loop over [begin, end) turns at all: for certain, or for certain not.
  bool runs(const Index& begin, const Index& end) const;
  bool never_runs(const For& loop) const;

  // Pipelines whose producer and consumer are different roles have barriers in shared memory.
  bool has_barriers(PipelineId id) const { return between_roles_.contains(id); }

  // A role whose statements are all carried out by one elected thread: it starts tma copies, waits
  // and signals.
  bool is_single_thread(int role) const;

  int cluster_reductions() const;  // in the text

 private:
  std::set<PipelineId> between_roles_;
};

// Whether a reduction along an axis of registers in this layout combines values of several warps.
bool crosses_warps(const layout::TvLayout& layout, size_t axis);

// Of a scan along an axis: how many of its levels combine values of several warps.
int warp_levels(const layout::TvLayout& layout, size_t axis);

// Whether every warp of a role has rows of its own of a tensor in this layout.
bool warps_hold_own_rows(const layout::TvLayout& layout, int role_threads);

// The pipelines whose Consumes in a loop's body let wgmma run on (Consume::lag): the loop's end
// waits for them. True where threads read their stages, too.
std::map<PipelineId, bool> lagging_in(const CudaAnalysis& analysis, const Body& body);
}  // namespace warploom::codegen
