// A random graph of operators as networks have them, with its inputs: the same for the same seed
// everywhere.
#pragma once
#include <cstdint>
#include <string>
#include <vector>
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"

namespace warploom::fuzz {
struct GraphCase {
  uint64_t seed = 0;
  graph::Graph graph;  // composites as a model has them, constants folded
  Track track = Track::fp32;
  std::vector<std::vector<std::byte>> inputs;
  std::vector<std::string> targets;  // the CPU, and the GPUs in turn
};

GraphCase make_graph_case(uint64_t seed);

std::vector<graph::Bytes> bytes_of(const GraphCase& c);

// What can be compared with anything: every value finite and of a moderate size, errors bounded to
// some use, and (f32) nothing that jumps (a rounding, a comparison, the place of a maximum) so near
// to its edge that a rounding error decides.
bool is_sound(const GraphCase& c);
}  // namespace warploom::fuzz
