// Programs, solutions and kernels are values: a copy stands for what it was copied from, an edit
// leaves the other statements what they were, and a kernel takes another symbol.
#include <gtest/gtest.h>
#include <cstddef>
#include <memory>
#include <utility>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "support/paths.h"
#include "synth/synthesize.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/print.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::codegen {
namespace {
using namespace tile;

target::Capabilities sm90a() {
  return *target::capabilities_of("sm_90a");
}

// Two roles, a pipeline between them, wgmma, an accumulator that begins anew.
Program matmul_program() {
  const std::string path = test::source_path("examples/tile/gemm.tile");
  return *tile::parse(*read_file(path), path);
}

// A sum over rows, which crosses warps, through shared memory.
Program row_sums() {
  Builder b("row_sums");
  b.grid(8);
  const TensorId x = b.global("X", Dtype::f32, {8, 1024});
  const TensorId y = b.output("Y", Dtype::f32, {8, 1});
  const TensorId row = b.reg("row", Dtype::f32, {1, 1024});
  const TensorId kept = b.shared("kept", Dtype::f32, {1, 1024});
  const TensorId sum = b.reg("sum", Dtype::f32, {1, 1});
  b.copy(b.tile(x, {block(0), 0}, {1, 1024}), b.all(row));
  b.copy(b.all(row), b.all(kept));
  b.copy(b.all(kept), b.all(row));
  b.reduce(sum, row, 1, ReduceOp::sum);
  b.copy(b.all(sum), b.tile(y, {block(0), 0}, {1, 1}));
  return b.finish();
}

synth::Solution best(const Program& program) {
  auto found = synth::synthesize_best(program, sm90a(), 1);
  EXPECT_TRUE(found.has_value()) << describe(found.error());
  return std::move(found->front());
}

TEST(Identity, ACopyOfAProgramWhoseOriginalIsGoneEmitsTheSameText) {
  for (const auto& make : {matmul_program, row_sums}) {
    auto original = std::make_unique<Program>(make());
    const synth::Solution solution = best(*original);
    const auto before = emit_cuda(*original, solution, sm90a());
    ASSERT_TRUE(before.has_value()) << describe(before.error());
    const Program copy = *original;
    original.reset();
    const auto after = emit_cuda(copy, solution, sm90a());
    ASSERT_TRUE(after.has_value()) << describe(after.error());
    EXPECT_EQ(after->source, before->source);
  }
}

TEST(Identity, TextGivesStatementsTheIdsThatTheBuilderDoes) {
  const Program built = row_sums();
  const Program read = *parse(print(built), "text");
  ASSERT_EQ(read.body.size(), built.body.size());
  for (size_t i = 0; i < built.body.size(); ++i)
    EXPECT_EQ(read.body[i].id, built.body[i].id);
}

TEST(Identity, AnEditLeavesTheOtherStatementsTheirChoices) {
  Program program = row_sums();
  const synth::Solution solution = best(program);
  const StatementId first = program.body.front().id;
  // Without the way through shared memory, and with a statement more in front.
  program.body.erase(program.body.begin() + 1, program.body.begin() + 3);
  program.body.insert(program.body.begin(), {Fill{program.body[1].as<Reduce>()->dst, 0}});
  number_statements(program);
  EXPECT_EQ(program.body[1].id, first);
  EXPECT_NE(program.body[0].id, first);
  ASSERT_TRUE(verify(program).has_value());
  const auto kernel = emit_cuda(program, solution, sm90a());
  ASSERT_TRUE(kernel.has_value()) << describe(kernel.error());
  EXPECT_EQ(kernel->source.find("wl::st_shared<16>"), std::string::npos);
  EXPECT_NE(kernel->source.find("wl::ld_global"), std::string::npos);
}

TEST(Identity, TwoStatementsOfOneIdAreRefused) {
  Program program = row_sums();
  program.body[1].id = program.body[0].id;
  const auto status = verify(program);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::kTileInvalid);
  EXPECT_NE(status.error().message.find("no id of its own"), std::string::npos);
}

TEST(Symbol, AKernelTakesAnother) {
  Program program = matmul_program();
  const synth::Solution solution = best(program);
  const Kernel kernel = *emit_cuda(program, solution, sm90a());
  EXPECT_EQ(kernel.symbol_at.size(), 3u);
  program.name = "other";
  const Kernel emitted = *emit_cuda(program, solution, sm90a());
  const Kernel other = renamed(kernel, "other");
  EXPECT_EQ(other.name, "other");
  EXPECT_EQ(other.source, emitted.source);
  EXPECT_EQ(renamed(other, kernel.name).source, kernel.source);
}

TEST(Symbol, ATextFromElsewhereIsToldByADefinition) {
  const Kernel kernel = renamed({.name = "mine", .source = "void mine();\n"}, "other");
  EXPECT_EQ(kernel.source, "#define mine other\nvoid mine();\n");
  EXPECT_EQ(kernel.name, "other");
}
}  // namespace
}  // namespace warploom::codegen
