// How many slots of a pipeline are filled and not yet consumed where one thread of control produces and consumes them.
//
//   for p in 0 .. 2: produce ring                   before them: 0 and 1, together [0, 1]
//   for k in 0 .. 9: consume ring; produce ring     before the Consume [2, 2], so that one copy group may stay under way;
//                                                   before the Produce [1, 1]
//
// Each Produce commits a copy group, and so does a condition around one that is false: of `if k + 2 < 9: produce ring` the slots in
// flight run out in the last turns, the groups behind the oldest slot do not.
#pragma once
#include "tile/program.h"
namespace warploom::codegen {
class SlotsInFlight {
 public:
  struct Range {
    int least = 0, most = 0;
    int groups = 0;  // at least so many from the oldest slot's on
    friend bool operator==(const Range&, const Range&) = default;
  };
  explicit SlotsInFlight(const tile::Program& program);
  // Of its pipeline when a Produce or Consume begins. A valid program never consumes nothing and never overfills.
  Range before(const void* node) const { return before_.at(node); }

 private:
  using Counts = std::map<tile::PipelineId, Range>;
  void walk(const tile::Body& body, Counts& counts, const tile::For* around = nullptr);
  void note(const void* node, tile::PipelineId pipeline, Counts& counts, int step);

  const tile::Program& program_;
  std::map<const void*, Range> before_;
};
}  // namespace warploom::codegen
