// Convolutions for pools with rows of whole sectors: the same numbers, and only where nobody else
// reads what is made.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
using List = std::vector<int64_t>;

struct Pooled {
  // of the convolution's rows, and of the pool
  int64_t width = 31;
  int64_t kernel = 3;
  int64_t stride = 2;
  List pads = {0, 0, 0, 0};  // of the pool
  OpKind pool = OpKind::MaxPool;
  OpKind beside = OpKind::Identity;
  bool kept = false;  // the convolution is an output, too
  int64_t bias = 1;

  Graph graph() const {
    Builder b("t");
    const TensorId x = b.input("x", Dtype::f32, {1, 2, 9, 2 * width + 1});
    const TensorId w = b.input("w", Dtype::f32, {3, 2, 3, 3});
    const TensorId a = b.input("a", Dtype::f32, {3, 1, bias});
    const TensorId conv = b.add(OpKind::Conv, {x, w}, {{"strides", List{2, 2}}});
    const TensorId sum = b.add(OpKind::Add, {a, conv});
    const TensorId y = b.add(OpKind::Mul, {sum, b.add(OpKind::Sigmoid, {sum})});
    b.output(b.add(pool, {y},
                   {{"kernel_shape", List{kernel, kernel}},
                    {"strides", List{stride, stride}},
                    {"pads", pads}}));
    if (kept) b.output(conv);
    return *decompose(*b.finish());
  }
};

int64_t row_of(const Graph& graph) {  // of the convolution
  for (const Node& node : graph.nodes)
    if (node.op == OpKind::Conv) return graph.tensor(node.outputs[0]).shape.back();
  return 0;
}

TEST(AlignRows, GivesTheSameNumbersInLongerRows) {
  Random random(3);
  for (const Pooled& one : {Pooled{}, Pooled{.width = 62, .kernel = 2, .stride = 4},
                            Pooled{.width = 23, .stride = 3, .pads = {0, 1, 0, 0}},
                            Pooled{.pool = OpKind::AveragePool}}) {
    const Graph given = one.graph();
    const auto aligned = pad_rows_to_sectors(given);
    ASSERT_TRUE(aligned) << describe(aligned.error());
    EXPECT_EQ(row_of(given), one.width);
    EXPECT_EQ(row_of(*aligned), (one.width + 7) / 8 * 8) << to_text(*aligned);
    std::vector<std::vector<float>> values;
    std::vector<Bytes> inputs;
    for (const TensorId id : given.inputs) {
      values.emplace_back(static_cast<size_t>(element_count(given.tensor(id).shape)));
      for (float& value : values.back())
        value = static_cast<float>(random.uniform() - 0.5);
    }
    for (const auto& each : values)
      inputs.push_back(std::as_bytes(std::span(each)));
    const auto expected = evaluate(given, inputs);
    const auto found = evaluate(*aligned, inputs);
    ASSERT_TRUE(expected && found);
    EXPECT_EQ((*found)[0], (*expected)[0]);
  }
}

TEST(AlignRows, LeavesWhatOthersReadWhatIsAlignedAndWhatThePoolWouldSee) {
  const Pooled cases[] = {
      {.width = 32},                            // whole sectors
      {.width = 9},                             // two parts in three more
      {.width = 31, .kernel = 2, .stride = 1},  // one more result a row
      {.width = 31, .pads = {0, 0, 0, 1}},      // the row's end is looked at
      {.width = 31, .kept = true},              // an output
      {.width = 31, .bias = 31},                // added along the row
  };
  for (const Pooled& one : cases)
    EXPECT_EQ(row_of(*pad_rows_to_sectors(one.graph())), one.width) << to_text(one.graph());
}
}  // namespace
}  // namespace warploom::graph
