// The work of emission grows with the text, not with how deep its loops lie inside each other:
// counted in statements written and followed, not by clocks.
#include <gtest/gtest.h>
#include <cstdint>
#include <functional>
#include <string>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/cpu_emitter.h"
#include "codegen/cuda_analysis.h"
#include "codegen/cuda_emitter.h"
#include "codegen/pipeline_stages.h"
#include "codegen/synchronization.h"
#include "synth/synthesize.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::codegen {
namespace {
using tile::Builder, tile::Index, tile::TensorId;

// Loops inside each other, each with a way through shared memory of its own before and behind the
// next: what one loop leaves to be waited for matters to the others.
Program nested_loops(int depth, bool shared) {
  Builder b("nested");
  const TensorId x = b.global("X", Dtype::f32, {1, 128});
  const TensorId y = b.output("Y", Dtype::f32, {1, 128});
  const TensorId row = b.reg("row", Dtype::f32, {1, 128});
  b.copy(b.all(x), b.all(row));
  const std::function<void(int)> nest = [&](int level) {
    if (level == depth) return b.map(row, b.value(row) * tile::constant(2));
    const TensorId kept =
        shared ? b.shared("kept" + std::to_string(level), Dtype::f32, {1, 128}) : row;
    b.for_("k" + std::to_string(level), 0, 9, 1, [&](const Index&) {
      if (shared) b.copy(b.all(row), b.all(kept));
      nest(level + 1);
      if (shared) b.copy(b.all(kept), b.all(row));
    });
  };
  nest(0);
  b.copy(b.all(row), b.all(y));
  return b.finish();
}

int64_t count_statements(const Program& program) {
  int64_t count = 0;
  for (const Statement& statement : program.body)
    for_statements(statement, [&](const Statement&) { ++count; });
  return count;
}

// How often statements were followed to place barriers, for each that there is.
double sync_steps_a_statement(int depth) {
  const Program program = nested_loops(depth, true);
  const auto capabilities = *target::capabilities_of("sm_90a");
  const auto solutions = synth::synthesize_best(program, capabilities, 1);
  EXPECT_TRUE(solutions.has_value());
  const CudaAnalysis analysis(program, solutions->front());
  const Synchronization sync(analysis);
  return static_cast<double>(sync.steps()) / static_cast<double>(count_statements(program));
}

TEST(NestedLoops, EveryStatementIsWrittenOnce) {
  const Program program = nested_loops(12, true);
  const auto capabilities = *target::capabilities_of("sm_90a");
  const auto solutions = synth::synthesize_best(program, capabilities, 1);
  ASSERT_TRUE(solutions.has_value()) << describe(solutions.error());
  CudaEmitter emitter(program, program, capabilities, solutions->front());
  ASSERT_TRUE(emitter.run().has_value());
  EXPECT_EQ(emitter.statements_written(), count_statements(program));
}

TEST(NestedLoops, BarriersArePlacedInAsManyStepsAStatementHoweverDeepItLies) {
  const double shallow = sync_steps_a_statement(3);
  const double deep = sync_steps_a_statement(12);
  EXPECT_LE(deep, 10);
  EXPECT_LE(deep, 2 * shallow);
}

// A pipeline in loops of few turns, which are followed turn by turn: 8^12 of them.
TEST(NestedLoops, StagesInFlightAreKnown) {
  Builder b("nested");
  const TensorId x = b.global("X", Dtype::f32, {1, 128});
  const TensorId row = b.reg("row", Dtype::f32, {1, 128});
  const TensorId stage = b.shared("stage", Dtype::f32, {1, 128});
  const tile::PipelineId ab = b.pipeline("ab", 3, {stage});
  const std::function<void(int)> nest = [&](int level) {
    if (level < 12)
      return b.for_("k" + std::to_string(level), 0, 8, 1, [&](const Index&) { nest(level + 1); });
    b.produce(ab, [&] { b.copy(b.all(x), b.all(stage)); });
    b.consume(ab, 0, [&] { b.copy(b.all(stage), b.all(row)); });
  };
  nest(0);
  const Program program = b.finish();
  for (const auto& [id, in_flight] : stages_in_flight(program)) {
    const bool consumed = statement_with(program, id)->is<Consume>();
    EXPECT_EQ(in_flight.most, consumed ? 1 : 0);
  }
}

TEST(NestedLoops, TensorsWantedBehindAStatementAreKnown) {
  const Program program = nested_loops(30, false);  // 2^30 walks through the innermost body
  const auto wanted = wanted_behind(program);
  EXPECT_EQ(static_cast<int64_t>(wanted.size()), count_statements(program));
}
}  // namespace
}  // namespace warploom::codegen
