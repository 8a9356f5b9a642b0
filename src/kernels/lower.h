// A tile program alone, without a region or a family: verified, synthesized and emitted for a
// target.
//
//   WARPLOOM_TRY(const Lowered lowered, lower(program, capabilities));
//   lowered.list.kernels[0].source       // complete text
//   lowered.solutions[0].registers       // what synthesis chose; none for the CPU, whose code
//   generation chooses itself
//
// The launch list's inputs are the program's global tensors, its outputs those that it writes; a
// tensor with strides stands as the storage that it spans. Errors: tile-invalid, no-layout,
// no-instruction, resource-limit.
#pragma once
#include "codegen/launch_list.h"
#include "synth/synthesize.h"

namespace warploom::kernels {
struct Lowered {
  LaunchList list;
  std::vector<synth::Solution> solutions;  // the best few, cheapest predicted first; the list is of
                                           // number `which`, of 0 where there are fewer
  size_t which = 0;
};

Result<Lowered> lower(const tile::Program& program, const target::Capabilities& capabilities,
                      size_t which = 0);
}  // namespace warploom::kernels
