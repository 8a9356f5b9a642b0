// Synthesis: a tile program and a target's instruction rows → layouts for every register and shared
// tensor and an instruction for every copy and matrix statement. Layouts are never written by hand
// in a kernel; this room alone chooses them.
//
// How: matrix statements anchor their operands (the row's thread-value layouts, repeated over the
// role's warps); register tensors that meet in elementwise statements must agree up to broadcast;
// reductions project; copies between registers and memory ask for vectors; a component no anchor
// reaches takes the coalesced layout of its largest global copy. Shared tensors collect what their
// readers and writers need (swizzle atoms for tma and wgmma) and take
// the swizzle with the fewest bank conflicts. Alternatives are followed depth first within a budget
// of nodes; what is found is ordered by predicted cost. When nothing is found the error kNoLayout
// or kNoInstruction names the statements that clash.
#pragma once
#include <map>
#include "layout/memory_layout.h"
#include "target/capabilities.h"
#include "target/instruction.h"

namespace warploom::synth {
// What was chosen for one Copy, Mma or ConvertLayout statement.
struct InstructionChoice {
  const target::Instruction* instruction = nullptr;
  int vector = 1;  // copies by threads: elements an access moves
  layout::TvLayout
      mapping;  // copies between two memories by threads: who moves which vector of the shared tile
  std::string why = {};  // in words
  layout::MemoryLayout scratch =
      {};  // conversions through shared memory; without dimensions: within warps
  int64_t scratch_offset = 0;  // bytes from the start of the block's shared memory

  bool by(target::Method method) const { return instruction && instruction->method == method; }
};

// Why a tensor has its layout: the statement that asked for it first, and what it asked.
struct Reason {
  tile::StatementId by = tile::kNoStatement;
  std::string why;
};

// The predicted time of a program (cost.h says how): microseconds of the whole launch, cycles of
// one block on each unit.
struct Cost {
  double us = 0;
  double tensor = 0;
  double issue = 0;
  double shared = 0;
  double l2 = 0;
  double chain = 0;
  double dram_us = 0;
  int resident = 1;  // blocks that a multiprocessor holds
  std::string_view bound()
      const;  // what decides: "tensor", "issue", "shared", "l2", "latency" or "dram"
};

struct Solution {
  std::map<tile::TensorId, layout::TvLayout> registers;
  std::map<tile::TensorId, layout::MemoryLayout> shared;
  std::map<tile::TensorId, layout::MemoryLayout>
      prepacked;  // how packed tensors must lie in global memory, over their whole shapes
  std::map<tile::TensorId, int64_t>
      shared_offset;  // bytes from the start of the block's shared memory, one stage's
  std::map<tile::TensorId, int64_t>
      stage_bytes;           // distance between two stages of a pipeline's tensor
  int64_t shared_bytes = 0;  // all of it, barriers and scratch included
  std::map<tile::StatementId, InstructionChoice> choices;
  std::map<tile::TensorId, Reason> reasons;
  Cost cost;
};

// The best `most` solutions, cheapest predicted first; at least one.
Result<std::vector<Solution>> synthesize_best(const tile::Program& program,
                                              const target::Capabilities& capabilities,
                                              size_t most);
}  // namespace warploom::synth
