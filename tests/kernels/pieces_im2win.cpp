// im2win_stage and im2win_kernel: where the elements of windows lie in a patch, against every one
// of them; registers; and a convolution on the interpreter.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/im2win_kernel.h"
#include "kernels/pieces/im2win_stage.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/precision.h"
#include "loopnest/triangle_nets.h"
#include "pieces.h"
#include "support/nets.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using test::found, test::hopper, test::Net;

constexpr Precision kTf32{Dtype::tf32, 1};

graph::Graph convolution(const graph::Shape& x, const graph::Shape& w, int64_t stride,
                         int64_t pad) {
  Net net;
  const auto y =
      net.add(graph::OpKind::Conv, {net.x(x), net.x(w)},
              {{"strides", test::Ints{stride, stride}}, {"pads", test::Ints{pad, pad, pad, pad}}});
  return net.with({y});
}

// The worked example of im2win_stage.h.
TEST(PieceIm2winStage, HasThePatchOfItsWorkedExample) {
  const graph::Graph graph = convolution({100, 3, 224, 224}, {96, 3, 11, 11}, 4, 2);
  const Im2winProduct product(found(graph), kTf32);
  EXPECT_TRUE(product.reads_patches());
  const Im2winConfig s{.tile_q = 64, .tile_p = 2, .block_c = 1, .filter_rows_per_stage = 4};
  const Im2winStage stage(product, s);
  EXPECT_EQ(stage.rows, 9);
  EXPECT_EQ(stage.width, 232);
  EXPECT_EQ(stage.count(), 3 * 3);
  EXPECT_EQ(stage.depth, 48);
  tile::Builder t("windows");
  const TensorId patch = t.shared("patch", Dtype::f32, {1, stage.rows, stage.width});
  const TensorId windows = stage.windows(t, patch, "windows");
  t.pipeline("pipe", 2, {patch});
  const tile::Program program = t.finish();
  const tile::Tensor& declared = program.tensor(windows);
  EXPECT_EQ(declared.shape, (std::vector<int64_t>{2, 64, 1, 4, 12}));
  EXPECT_EQ(declared.strides, (std::vector<int64_t>{928, 4, 2088, 232, 1}));
}

// An element of the sum that a stage takes: channel, row and column of the filter.
struct Element {
  int64_t plane = 0;
  int64_t tap = 0;
  int64_t across = 0;
  int64_t offset = 0;  // in the patch, by the terms' strides
};

std::vector<Element> elements_of(const Im2winStage& stage) {
  std::vector<int64_t> extents;
  for (const Im2winStage::Term& term : stage.terms)
    extents.push_back(term.extent);
  std::vector<Element> found;
  test::for_each_index(extents, [&](const std::vector<int64_t>& at) {
    Element one;
    for (size_t i = 0; i < at.size(); ++i) {
      const Im2winStage::Term& term = stage.terms[i];
      const int64_t along = at[i] * term.every;
      if (term.axis == stage.of.c.channel) one.plane += along;
      if (term.axis == stage.of.filter_rows) one.tap += along;
      if (term.axis == stage.of.c.window) one.across += along;
      one.offset += at[i] * term.stride;
    }
    found.push_back(one);
  });
  return found;
}

// That one element of the window of the last output pixel lies where the patch has it.
void expect_in_place(const Element& one, const Im2winStage& stage, int64_t stride) {
  const int64_t row = one.plane * stage.rows + one.tap;
  EXPECT_EQ(one.offset, row * stage.width + one.across);
  const int64_t last_pixel =
      (stage.tile_p - 1) * stride * stage.width + (stage.tile_q - 1) * stride;
  const int64_t last = stage.first + last_pixel + one.offset;
  EXPECT_LT(last, stage.planes * stage.rows * stage.width) << "a window leaves the patch";
}

void expect_elements_in_place(const Im2winStage& stage, int64_t stride) {
  std::set<std::tuple<int64_t, int64_t, int64_t>> seen;
  for (const Element& one : elements_of(stage)) {
    EXPECT_TRUE(seen.emplace(one.plane, one.tap, one.across).second);
    expect_in_place(one, stage, stride);
  }
  EXPECT_EQ(std::ssize(seen), stage.planes * stage.taps * stage.across);
  EXPECT_EQ(stage.move_x, stride);
  EXPECT_EQ(stage.move_y, stride);
}

TEST(PieceIm2winStage, HoldsEachElementOfEveryWindowOnceAtItsPlaceInThePatch) {
  for (const int64_t stride : {1, 2})
    for (const int64_t channels : {3, 16})
      for (const bool split : {false, true}) {
        const graph::Graph graph =
            convolution({2, channels, 20, 36}, {8, channels, 3, 3}, stride, 1);
        const Precision precision = split ? Precision{Dtype::f16, 3} : kTf32;
        const Im2winProduct product(found(graph), precision);
        Im2winConfig s{.tile_q = 16, .tile_p = 4, .filter_rows_per_stage = split ? 4 : 3};
        s.block_c = channels == 16 ? 16 : 1;
        if (channels == 16) s.filter_rows_per_stage = 1;
        expect_elements_in_place(Im2winStage(product, s), stride);
      }
}

TEST(PieceIm2winStage, PadsFewChannelsAcrossToFoursAndNoneOfMany) {
  const graph::Graph few = convolution({1, 3, 12, 20}, {8, 3, 3, 3}, 1, 1);
  const Im2winProduct three(found(few), kTf32);
  EXPECT_EQ(Im2winStage(three, {.block_c = 3}).across, 4);
  const graph::Graph many = convolution({1, 16, 12, 20}, {8, 16, 3, 3}, 1, 1);
  const Im2winProduct sixteen(found(many), kTf32);
  EXPECT_EQ(Im2winStage(sixteen, {.block_c = 16}).across, 3);
}

TEST(PieceIm2winKernel, RegistersOfAllItsThreadsFitAMultiprocessor) {
  EXPECT_EQ(im2win_registers(1), 255);
  EXPECT_EQ(im2win_registers(2), 232);
  EXPECT_EQ(im2win_registers(3), 160);
  const auto producer = [](int64_t math) { return math > 1 ? 32 : im2win_registers(1); };
  for (const int64_t math : {1, 2, 3})
    EXPECT_LE(128 * (math * im2win_registers(math) + producer(math)), 65536) << math;
}

TEST(PieceIm2winKernel, ComputesAConvolutionFromPatches) {
  const graph::Graph graph = convolution({2, 8, 9, 20}, {16, 8, 3, 3}, 1, 1);
  const Im2winProduct product(found(graph), kTf32);
  ASSERT_TRUE(product.reads_patches());
  for (const bool stationary : {false, true})
    for (const int64_t consumers : {1, 2}) {
      const Im2winConfig s{.tile_q = 16,
                           .tile_p = 4,
                           .block_n = 16,
                           .block_c = 8,
                           .filter_rows_per_stage = 3,
                           .stages = 3,
                           .num_math_warpgroups = consumers,
                           .weights_stationary = stationary};
      const Im2winStage stage(product, s);
      Family::Programs made;
      const auto capabilities = hopper();
      const Prepared weights = stage.pack_weights(made, capabilities);
      Im2winKernel(product, stage, weights, s, capabilities).add_to(made);
      test::expect_fp64(graph, made, 2e-3);
    }
}
}  // namespace
}  // namespace warploom::kernels
