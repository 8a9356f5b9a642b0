#include "synth/synthesize.h"
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "synth/sites.h"
#include "synth/solve.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::synth {
namespace {
using tile::Builder;
using tile::Index;
using tile::TensorId;

target::Capabilities sm90a() {
  return *target::capabilities_of("sm_90a");
}

target::Capabilities sm80() {
  return *target::capabilities_of("sm_80");
}

Result<Solution> synthesize(const tile::Program& program,
                            const target::Capabilities& capabilities) {
  return synthesize_best(program, capabilities, 1).map([](std::vector<Solution> best) {
    return std::move(best.front());
  });
}

const InstructionChoice& choice_of(const tile::Program& program, const Solution& solution,
                                   size_t copy_number) {
  size_t seen = 0;
  for (const Site& site : sites_of(program))
    if (std::holds_alternative<tile::Copy>(site.statement->node) && seen++ == copy_number)
      return solution.choices.at(site.statement->id);
  throw std::out_of_range("no such copy");
}

// The pieces of ring_matmul: operands in global and shared memory, and the ring of the latter.
struct RingMatmul {
  TensorId A;
  TensorId B;
  TensorId sa;
  TensorId sb;
  tile::PipelineId ring;
  int64_t depth;  // of a stage
};

void fill_ring(Builder& b, const RingMatmul& p) {
  b.for_("k", 0, 256 / p.depth, 1, [&](const Index& k) {
    b.produce(p.ring, [&] {
      b.copy(b.tile(p.A, {0, k * p.depth}, {64, p.depth}), b.all(p.sa));
      b.copy(b.tile(p.B, {0, k * p.depth}, {64, p.depth}), b.all(p.sb));
    });
  });
}

void multiply_from_ring(Builder& b, const RingMatmul& p, TensorId C) {
  const TensorId acc = b.reg("acc", Dtype::f32, {64, 64});
  b.fill(acc, 0);
  b.for_("k", 0, 256 / p.depth, 1, [&](const Index&) {
    b.consume(p.ring, 1, [&] { b.mma(acc, b.all(p.sa), b.all(p.sb), false, true); });
  });
  b.copy(b.all(acc), b.all(C));
}

// One 64×64×64 product per block, operands through a ring filled by another role.
tile::Program ring_matmul(Dtype dtype, bool b_is_row_major_kn) {
  Builder b("mm");
  const TensorId A = b.global("A", dtype, {64, 256});
  const TensorId B = b_is_row_major_kn ? b.global("B", dtype, {64, 256}, {1, 64})
                                       : b.global("B", dtype, {64, 256});
  const TensorId C = b.output("C", Dtype::f32, {64, 64});
  const int64_t depth = 128 / bytes_of(dtype);
  const TensorId sa = b.shared("a", dtype, {64, depth});
  const TensorId sb = b.shared("b", dtype, {64, depth});
  const RingMatmul parts{A, B, sa, sb, b.pipeline("ring", 2, {sa, sb}), depth};
  b.roles([&] {
    b.role("producer", 4, 0, [&] { fill_ring(b, parts); });
    b.role("consumer", 4, 0, [&] { multiply_from_ring(b, parts, C); });
  });
  return b.finish();
}

TEST(Synthesis, RingBetweenRolesIsFilledByTheCopyEngineAndReadByWarpgroups) {
  const tile::Program program = ring_matmul(Dtype::bf16, false);
  const auto solution = synthesize(program, sm90a());
  ASSERT_TRUE(solution.has_value()) << describe(solution.error());
  EXPECT_EQ(choice_of(program, *solution, 0).instruction->name, "tma_load");
  for (const auto& [id, choice] : solution->choices) {
    const tile::Statement* statement = tile::statement_with(program, id);
    if (!std::holds_alternative<tile::Mma>(statement->node)) continue;
    EXPECT_EQ(choice.instruction->name, "wgmma_bf16");
  }
}

TEST(Synthesis, SlotsOfTheCopyEngineAreSwizzledPanelsOnBoundariesOf1024Bytes) {
  const tile::Program program = ring_matmul(Dtype::bf16, true);
  const auto solution = synthesize(program, sm90a());
  ASSERT_TRUE(solution.has_value()) << describe(solution.error());
  for (const auto& [id, layout] : solution->shared) {
    EXPECT_EQ(layout.swizzle, (layout::Swizzle{3, 4, 3}));
    EXPECT_EQ(solution->shared_offset.at(id) % 1024, 0);
    const std::vector<int64_t>& shape = program.tensor(id).shape;
    std::set<int64_t> bytes;
    for (layout::Coord c = {0, 0}; c[0] < shape[0]; ++c[0])
      for (c[1] = 0; c[1] < shape[1]; ++c[1])
        EXPECT_TRUE(bytes.insert(layout.byte_offset(c)).second);
  }
  EXPECT_EQ(solution->shared.at(program.pipelines[0].tensors[1]).dims[0][0].stride, 1)
      << "B is contiguous along n";
}

TEST(Synthesis, Tf32WithNContiguousHasNoLayoutAndSaysWhichStatementsClash) {
  const auto solution = synthesize(ring_matmul(Dtype::tf32, true), sm90a());
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kNoLayout);
  EXPECT_NE(solution.error().message.find("'b'"), std::string::npos);
  EXPECT_NE(solution.error().expected.find("wgmma_tf32"), std::string::npos);
  EXPECT_NE(solution.error().found.find("copy B"), std::string::npos);
  EXPECT_NE(solution.error().place.find("synthesize_test.cpp"), std::string::npos);
}

TEST(Synthesis, NoWarpgroupInstructionBeforeSm90) {
  const auto solution = synthesize(ring_matmul(Dtype::bf16, false), sm80());
  ASSERT_FALSE(solution.has_value());
  EXPECT_EQ(solution.error().code, ErrorCode::kNoInstruction);
}

TEST(Synthesis, ARowWithOddLengthIsMovedElementByElement) {
  Builder b("rows");
  const TensorId x = b.global("X", Dtype::f32, {8, 77});
  const TensorId y = b.output("Y", Dtype::f32, {8, 77});
  const TensorId r = b.reg("r", Dtype::f32, {1, 128});
  b.grid(8).warps(1);
  b.copy(b.tile(x, {tile::block(0), 0}, {1, 128}), b.all(r));
  b.copy(b.all(r), b.tile(y, {tile::block(0), 0}, {1, 128}));
  const tile::Program program = b.finish();
  const auto solution = synthesize(program, sm80());
  ASSERT_TRUE(solution.has_value()) << describe(solution.error());
  EXPECT_EQ(choice_of(program, *solution, 0).vector, 1);
}

TEST(Synthesis, AlignedRowsMoveIn16ByteVectors) {
  Builder b("rows");
  const TensorId x = b.global("X", Dtype::f32, {8, 512});
  const TensorId y = b.output("Y", Dtype::f32, {8, 512});
  const TensorId r = b.reg("r", Dtype::f32, {1, 512});
  b.grid(8).warps(4);
  b.copy(b.tile(x, {tile::block(0), 0}, {1, 512}), b.all(r));
  b.copy(b.all(r), b.tile(y, {tile::block(0), 0}, {1, 512}));
  const tile::Program program = b.finish();
  const auto solution = synthesize(program, sm80());
  ASSERT_TRUE(solution.has_value()) << describe(solution.error());
  EXPECT_EQ(choice_of(program, *solution, 0).vector, 4);
  EXPECT_EQ(choice_of(program, *solution, 1).vector, 4);
}

// mma.sync fragments: loads from shared memory use matrix loads, and no two rows of one access
// share a bank.
TEST(Synthesis, FragmentsAreLoadedAsMatricesWithoutBankConflicts) {
  Builder b("mm");
  const TensorId A = b.global("A", Dtype::bf16, {128, 32});
  const TensorId B = b.global("B", Dtype::bf16, {32, 128});
  const TensorId C = b.output("C", Dtype::f32, {128, 128});
  const TensorId sa = b.shared("a", Dtype::bf16, {128, 32});
  const TensorId sb = b.shared("b", Dtype::bf16, {32, 128});
  const auto ring = b.pipeline("ring", 2, {sa, sb});
  const TensorId acc = b.reg("acc", Dtype::f32, {128, 128});
  const TensorId fa = b.reg("fa", Dtype::bf16, {128, 16});
  const TensorId fb = b.reg("fb", Dtype::bf16, {16, 128});
  b.warps(4);
  b.fill(acc, 0);
  b.produce(ring, [&] {
    b.copy(b.all(A), b.all(sa));
    b.copy(b.all(B), b.all(sb));
  });
  b.consume(ring, 0, [&] {
    b.copy(b.tile(sa, {0, 0}, {128, 16}), b.all(fa));
    b.copy(b.tile(sb, {0, 0}, {16, 128}), b.all(fb));
    b.mma(acc, b.all(fa), b.all(fb));
  });
  b.copy(b.all(acc), b.all(C));
  const tile::Program program = b.finish();
  const auto solution = synthesize(program, sm80());
  ASSERT_TRUE(solution.has_value()) << describe(solution.error());
  EXPECT_EQ(choice_of(program, *solution, 0).instruction->name, "cp_async");
  EXPECT_EQ(choice_of(program, *solution, 2).instruction->name, "ldmatrix");
  EXPECT_EQ(choice_of(program, *solution, 2).vector, 4);
  EXPECT_EQ(choice_of(program, *solution, 3).instruction->name, "ldmatrix_trans");
  for (const TensorId id : {sa, sb}) {
    const auto& layout = solution->shared.at(id);
    layout::TvLayout rows{program.tensor(id).shape, {{8, {1, 0}}}, {{8, {0, 1}}}};
    EXPECT_EQ(bank_conflict_ways(rows, layout, 16), 1) << layout::to_string(layout);
  }
}

TEST(Synthesis, TheSameProgramAlwaysGetsTheSameSolution) {
  const tile::Program program = ring_matmul(Dtype::bf16, true);
  const auto one = synthesize(program, sm90a());
  const auto two = synthesize(program, sm90a());
  ASSERT_TRUE(one.has_value() && two.has_value());
  EXPECT_EQ(one->registers, two->registers);
  EXPECT_EQ(one->shared, two->shared);
  EXPECT_EQ(one->shared_offset, two->shared_offset);
}

TEST(Tilings, AGpuMultipliesNothingInGlobalMemory) {
  Builder b("mm");
  const TensorId acc = b.reg("acc", Dtype::f32, {128, 64});
  const TensorId x = b.global("X", Dtype::bf16, {128, 32});
  const TensorId fb = b.reg("fb", Dtype::bf16, {64, 32});
  b.warps(8);
  b.mma(acc, b.all(x), b.all(fb), false, true);
  const tile::Program program = b.finish();
  const auto& mma = std::get<tile::Mma>(program.body[0].node);
  const auto tilings = matrix_tilings(program, mma, 0, 256, sm80());
  EXPECT_TRUE(tilings.found.empty());
  EXPECT_NE(tilings.lacks.find("copied there before"), std::string::npos) << tilings.lacks;
}

TEST(Tilings, FragmentsOfEveryTilingCoverTheirTilesExactly) {
  Builder b("mm");
  const TensorId acc = b.reg("acc", Dtype::f32, {128, 64});
  const TensorId fa = b.reg("fa", Dtype::bf16, {128, 32});
  const TensorId fb = b.reg("fb", Dtype::bf16, {64, 32});
  b.warps(8);
  b.mma(acc, b.all(fa), b.all(fb), false, true);
  const tile::Program program = b.finish();
  const auto& mma = std::get<tile::Mma>(program.body[0].node);
  const auto tilings = matrix_tilings(program, mma, 0, 256, sm80()).found;
  ASSERT_FALSE(tilings.empty());
  for (const MatrixTiling& tiling : tilings) {
    EXPECT_TRUE(tiling.acc.is_exact()) << layout::to_string(tiling.acc);
    EXPECT_EQ(tiling.acc.threads() * tiling.acc.values(), 128 * 64)
        << layout::to_string(tiling.acc);
    EXPECT_TRUE(tiling.a.is_exact()) << layout::to_string(tiling.a);
    EXPECT_TRUE(tiling.b.is_exact()) << layout::to_string(tiling.b);
    EXPECT_EQ(tiling.acc.threads(), 256);
  }
}
}  // namespace
}  // namespace warploom::synth
