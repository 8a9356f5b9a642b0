// Plan facts: what the tile programs of a plan do, in numbers that mean the same in every family.
//
// Tiles say how much is moved and computed, loops how often, the grid by how many. No time is
// predicted here; the facts are what a policy learns times from, in families that it never saw.
//
//   program matmul grid(8,1,1)             8 tasks
//   register part f32 [13, 32]             registers: 1664 bytes, of one task
//   for i in 0 .. 5:                       5 times
//     mma part += A[13, 256] * B[256, 32]  lane work: 13 rows · 2 vectors of 16 · 256
//     copy part -> C[13, 32]               1664 bytes moved
//
// What a tile does beyond the end of its tensor is counted, since it is done.
#pragma once
#include "kernels/family.h"
#include "target/capabilities.h"

namespace warploom::search {
struct PlanFacts {
  double programs = 0;     // tile programs, one after another
  double tasks = 0;        // blocks, or tasks on a CPU, of the program that does most
  double moved_bytes = 0;  // between global memory and faster memory, by all tasks of all programs
  // Vector operations times the vector's lanes: what is computed, and what lanes compute in vain.
  double lane_work = 0;
  double statements = 0;      // as often as they are carried out, by all tasks
  double register_bytes = 0;  // register tensors of a task, of the program that has most
  double scratch_bytes = 0;   // shared tensors, likewise
  double workspace_bytes = 0;
  double inner_extent = 0;  // elements of the widest register tensor along its fastest axis
  // Multiplications for each element that an Mma reads: how often operands are used again.
  double reuse = 0;
};

PlanFacts facts_of(const kernels::Family::Programs& programs,
                   const target::Capabilities& capabilities);
}  // namespace warploom::search
