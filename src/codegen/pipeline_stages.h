// What is known of a program's pipelines before its text is written: how full they are, and what
// their consumers do with a stage.
#pragma once
#include <map>
#include <optional>
#include <span>
#include "tile/program.h"

namespace warploom::codegen {
using namespace tile;  // what this room writes is of programs throughout

// How many stages of a pipeline are filled and not yet consumed where one thread of control
// produces and consumes them.
//
//   for p in 0 .. 2: produce ab                before them: 0 and 1, together [0, 1]
//   for k in 0 .. 9: consume ab; produce ab    before the Consume [2, 2], so that one group of
//                                              cp.async may stay under way;
//                                              before the Produce [1, 1]
//
// Each Produce commits a group of cp.async, and so does a condition around one that is false: of
// `if k + 2 < 9: produce ab` the stages in flight run out in the last turns, the groups behind the
// oldest stage do not.
struct StagesInFlight {
  int least = 0;
  int most = 0;
  int groups = 0;  // at least so many from the oldest stage's on
  friend bool operator==(const StagesInFlight&, const StagesInFlight&) = default;
};

// Of each Produce and Consume, by its id: of its pipeline when it begins. A valid program never
// consumes an empty pipeline and never overfills one.
std::map<StatementId, StagesInFlight> stages_in_flight(const Program& program);

// How often a body fills a stage; more than any pipeline has stages where a loop does.
int produces(const Body& body, PipelineId pipeline);

// Whether a pipeline's stages are filled more than once, so that they must be handed back.
bool fills_again(const Program& program, PipelineId pipeline);

// What a consumer does with a stage.
struct StageUse {
  bool multiplies = false;  // matrix instructions read it
  bool reads = false;       // its threads read it into registers
  bool lags = false;        // it is released a stage late (Consume::lag)
};

StageUse use_in(const Program& program, const Consume& node);

// The pipelines that are produced or consumed in a body; no use where none consumes them there.
std::map<PipelineId, std::optional<StageUse>> pipelines_in(const Program& program,
                                                           std::span<const Statement> body);
}  // namespace warploom::codegen
