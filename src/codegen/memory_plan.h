// Memory plan: where the workspaces of a launch list lie in one piece of memory, the arena.
//
// A workspace lives from the first kernel that names it to the last one. Workspaces that never live
// at the same time may share bytes. Bundles (loaded or exported), the judge and an executor that
// allocates workspaces itself all lay them out by this one plan, so that what is judged is what
// runs.
//
//   kernels      0: a -> b    1: b -> c    2: c -> d      (each workspace of 1000 bytes)
//   lives        a 0..0   b 0..1   c 1..2   d 2..2
//   plan         a at 0, b at 1024, c at 0, d at 1024;    arena of 2048 bytes
//
// Kernels that prepare (prepare.h) run before all others, once. What they make for calls lives
// through all calls and shares bytes with nothing of them; what they use alone is gone by then.
//
// Offsets and sizes are in bytes; offsets are multiples of kWorkspaceAlignment, and so is the
// arena's size. The plan is a function of the list alone: equal lists, equal plans.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "codegen/launch_list.h"

namespace warploom {
inline constexpr int64_t kWorkspaceAlignment = 256;

struct PlacedBuffer {
  std::string name;
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct MemoryPlan {
  int64_t arena_bytes = 0;
  std::vector<PlacedBuffer> buffers;  // the list's workspaces, in its order

  // Of a workspace of the list; it must be one.
  int64_t offset_of(const std::string& name) const;
};

// Every workspace has a place, also one that no kernel names. The arena is no larger than if each
// workspace took the first of several separate buffers that is free when its life begins, those
// that are cleared apart.
MemoryPlan memory_plan(const LaunchList& list);

// A part of the arena that no other workspaces use than these.
struct MemoryBlock {
  int64_t offset = 0;
  int64_t bytes = 0;
  std::vector<PlacedBuffer> buffers;  // their offsets are of the arena
};

// The plan's buffers by blocks: those that share bytes, directly or through others, are in one. In
// the order of offsets.
std::vector<MemoryBlock> blocks_of(const MemoryPlan& plan);
}  // namespace warploom
