// Cost: the predicted time of a program under a solution, so that solutions and schedules can be ordered without running them.
//
// The model walks the program once, as block 0 would run it, and adds up what the block asks of each unit of its multiprocessor:
// tensor core, issue slots, shared memory (wavefronts, conflicts included), bytes from the L2 (whole 32-byte sectors, as the
// layout's lanes touch them); and beside these the chain of latencies that one thread of control waits for: a pipeline of s slots
// hides a slot's latency s times. Blocks that share a multiprocessor add their units and overlap their chains. DRAM traffic is
// counted by the wave: the distinct boxes that the blocks of one wave read.
//
//   round = max(chain, resident · max(tensor, issue, shared, l2));   time = max(rounds · round / clock, DRAM bytes / bandwidth)
//
// Units: microseconds in `us`, cycles elsewhere. Rates: target/rates.h. How well it orders real candidates: docs/compiler.md.
#pragma once
#include "synth/sites.h"
#include "synth/synthesize.h"
namespace warploom::synth {
Cost predict(const tile::Program& program, const Solution& solution, const target::Capabilities& capabilities);
}  // namespace warploom::synth
