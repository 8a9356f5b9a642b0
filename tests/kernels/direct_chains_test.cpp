// Sums over an axis that is walked element by element, on a CPU: several terms in one loop over the
// tile's vectors, whatever the axis's length.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"
#include "tile/interpret.h"
#include "tile/print.h"
#include "trials.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Net;

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

graph::Graph sum_of_columns(int64_t rows) {
  Net n;
  return n.with(
      {n.add(OpKind::ReduceSum, {n.x({rows, 64}), n.ints({0})}, {{"keepdims", int64_t{0}}})});
}

Family::Programs programs_of(const graph::Graph& graph, int64_t unroll) {
  const FamilyPtr family = direct_family({graph, Track::fp32}, *target::capabilities_of("cpu"));
  return *family->programs(DirectConfig{.tile_x = 64, .unroll = unroll});
}

TEST(DirectChains, OfAllLengthsAgreeWithFp64) {
  for (const int64_t rows : {17, 32, 100, 203, 1100}) {
    const graph::Graph graph = sum_of_columns(rows);
    const Family::Programs made = programs_of(graph, 8);
    auto inputs = test::random_inputs(graph, 1);
    std::vector<std::byte> output(64 * 4, std::byte{0xff});
    const std::map<std::string, std::span<std::byte>> buffers = {{"X0", inputs[0]}, {"Y0", output}};
    const auto done = tile::interpret(made.programs[0], buffers);
    ASSERT_TRUE(done) << describe(done.error());
    const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
    const auto want = graph::evaluate(graph, views, 1);
    ASSERT_TRUE(want) << describe(want.error());
    EXPECT_LT(test::error_of((*want)[0], Dtype::f32, output), test::allowed(Dtype::f32))
        << tile::print(made.programs[0]);
  }
}

TEST(DirectChains, KeepTheirSumsInRegisters) {
  const auto text_of = [](int64_t unroll) {
    const Family::Programs made = programs_of(sum_of_columns(1024), unroll);
    return codegen::emit_cpu(made.programs[0], *target::capabilities_of("cpu"))->source;
  };
  EXPECT_EQ(count(text_of(1), "= wl::load(X0"), 1u) << text_of(1);
  EXPECT_EQ(count(text_of(8), "= wl::load(X0"), 8u) << text_of(8);
  EXPECT_EQ(count(text_of(8), "= wl::load(part"), count(text_of(1), "= wl::load(part"));
}

// Where the processor's own prefetching does not look, far along the next rows.
TEST(DirectChains, AskForTheNextRows) {
  const Family::Programs made = programs_of(sum_of_columns(1024), 8);
  const auto text = codegen::emit_cpu(made.programs[0], *target::capabilities_of("cpu"))->source;
  EXPECT_EQ(count(text, "wl::fetch<wl::kLanes>(X0"), 8u) << text;
}
}  // namespace
}  // namespace warploom::kernels
