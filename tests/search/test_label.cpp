#include <gtest/gtest.h>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "graph/graph.h"
#include "plan/region.h"
#include "search/label.h"

namespace warploom::search {
namespace {
// relu(x·w), and the region that is all of it.
struct Case {
  graph::Graph given;
  graph::Graph whole;  // the same in primitives
  plan::Region region;

  Case() {
    graph::Builder b("net");
    const auto product = b.add(graph::OpKind::MatMul, {b.input("x", Dtype::f32, {4, 8}),
                                                       b.input("w", Dtype::f32, {8, 4})});
    b.output(b.add(graph::OpKind::Relu, {product}));
    given = *b.finish();
    whole = given;
    region.graph = given;
    region.graph.name = "MatMul+Relu";
    for (const graph::Tensor& tensor : given.tensors)
      region.tensors.push_back(tensor.name);
  }
};

TEST(Label, NamesTheModelsOperatorsInItsOrder) {
  const Case all;
  EXPECT_EQ(label_of(all.given, all.whole, all.region), "MatMul + Relu");
}

TEST(Label, NamesOnlyThoseWhoseResultsTheRegionMakes) {
  Case first;
  first.region.graph.nodes.pop_back();
  EXPECT_EQ(label_of(first.given, first.whole, first.region), "MatMul");
}

// A product with its bias becomes two steps, neither of which keeps the product's name.
TEST(Label, CountsAnOperatorOfWhichNothingIsLeftWithThoseThatReadIt) {
  Case fused;
  const std::string gone = fused.given.tensor(fused.given.nodes[0].outputs[0]).name;
  for (std::string& name : fused.region.tensors)
    if (name == gone) name = "product";
  for (graph::Tensor& tensor : fused.whole.tensors)
    if (tensor.name == gone) tensor.name = "product";
  EXPECT_EQ(label_of(fused.given, fused.whole, fused.region), "MatMul + Relu");
}

TEST(Label, OfAStepThatTheModelDoesNotHaveIsTheRegionsOwnName) {
  Case inner;
  for (std::string& name : inner.region.tensors)
    name = "inner/" + name;
  EXPECT_EQ(label_of(inner.given, inner.whole, inner.region), "MatMul+Relu");
}
}  // namespace
}  // namespace warploom::search
