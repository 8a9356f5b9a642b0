// Rewrites: the same numbers by another graph, what that saves, and where it is refused.
#include "graph/rewrite.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "builder.h"
#include "evaluated.h"
#include "graph/graph.h"
#include "graph/track.h"

namespace warploom::graph {
namespace {
using Integers = std::vector<int64_t>;

// Every offer of a kind, legal or not.
std::vector<RewriteOffer> offers_of(const Graph& graph, RewriteKind kind,
                                    Track track = Track::fp32) {
  auto offers = rewrites_of(graph, track);
  std::erase_if(offers, [&](const RewriteOffer& one) { return one.rewrite.kind != kind; });
  return offers;
}

// What a graph of few operators is: built by hand, f64, so that numbers agree to rounding.
class Sketch {
 public:
  explicit Sketch(Dtype dtype = Dtype::f64) : dtype_(dtype) {}

  TensorId input(const std::string& name, const Shape& shape) {
    return b_.input(name, dtype_, shape);
  }

  TensorId number(const std::string& name, double value) {
    return b_.constant(name, dtype_, {}, std::vector{value});
  }

  TensorId weights(const std::string& name, const Shape& shape) {
    Random random(2, name);
    std::vector<double> values(static_cast<size_t>(element_count(shape)));
    for (double& value : values)
      value = 0.5 + random.uniform();
    return b_.constant(name, dtype_, shape, values);
  }

  TensorId add(OpKind op, std::vector<TensorId> inputs,
               std::map<std::string, Attribute> attributes = {}) {
    return b_.add(op, std::move(inputs), std::move(attributes));
  }

  TensorId product(TensorId a, TensorId b) { return add(OpKind::MatMul, {a, b}); }

  TensorId sum(TensorId x, const Integers& axes, int64_t keepdims) {
    return add(OpKind::ReduceSum, {x}, {{"axes", axes}, {"keepdims", keepdims}});
  }

  TensorId turned(TensorId x, const Integers& order) {
    return add(OpKind::Transpose, {x}, {{"perm", order}});
  }

  void output(TensorId id) { b_.output(id); }

  Graph with_output(TensorId id) {
    b_.output(id);
    const auto made = b_.finish();
    EXPECT_TRUE(made) << describe(made.error());
    return *made;
  }

 private:
  Builder b_{"sketch"};
  Dtype dtype_;
};

using Write = std::function<TensorId(Sketch&)>;

struct Case {
  RewriteKind kind;
  Write write;
};

// A graph that each rule fits, and beside the plainest form others that it must see through.
std::vector<Case> cases_of_products() {
  using enum RewriteKind;
  const auto x = [](Sketch& s) { return s.input("x", {3, 6, 4}); };
  const auto a = [](Sketch& s) { return s.input("a", {4, 8}); };
  return {
      {products_right,
       [=](Sketch& s) { return s.product(s.product(x(s), a(s)), s.input("b", {8, 2})); }},
      {products_left,
       [=](Sketch& s) { return s.product(x(s), s.product(a(s), s.input("b", {8, 2}))); }},
      // A batch of the right operand alone.
      {products_right,
       [=](Sketch& s) {
         return s.product(s.product(s.input("m", {6, 4}), a(s)), s.input("b", {5, 8, 2}));
       }},
      {factor,
       [=](Sketch& s) {
         const TensorId left = x(s);
         const TensorId one = s.product(left, a(s));
         return s.add(OpKind::Sub, {one, s.product(left, s.input("b", {4, 8}))});
       }},
      {factor,
       [=](Sketch& s) {
         const TensorId right = a(s);
         const TensorId one = s.product(x(s), right);
         return s.add(OpKind::Add, {one, s.product(s.input("z", {3, 6, 4}), right)});
       }},
      {factor,
       [=](Sketch& s) {
         const TensorId both = x(s);
         const TensorId one = s.add(OpKind::Mul, {both, s.input("p", {6, 4})});
         return s.add(OpKind::Add, {one, s.add(OpKind::Mul, {s.input("q", {6, 4}), both})});
       }},
      {distribute,
       [=](Sketch& s) {
         const TensorId hidden = s.product(x(s), a(s));
         const TensorId biased = s.add(OpKind::Add, {hidden, s.weights("bias", {8})});
         return s.product(biased, s.input("b", {8, 2}));
       }},
      {distribute,
       [=](Sketch& s) {
         const TensorId low = s.product(s.input("u", {4, 1}), s.input("v", {1, 8}));
         return s.product(x(s), s.add(OpKind::Sub, {a(s), low}));
       }},
  };
}

std::vector<Case> cases_of_scales() {
  using enum RewriteKind;
  const auto x = [](Sketch& s) { return s.input("x", {3, 6, 4}); };
  const auto a = [](Sketch& s) { return s.input("a", {4, 8}); };
  return {
      {scale_after,
       [=](Sketch& s) {
         return s.product(s.add(OpKind::Div, {x(s), s.input("rows", {6, 1})}), a(s));
       }},
      {scale_after,
       [=](Sketch& s) {
         return s.product(x(s), s.add(OpKind::Mul, {s.input("columns", {1, 8}), a(s)}));
       }},
      {scale_left,
       [=](Sketch& s) {
         return s.add(OpKind::Mul, {s.product(x(s), a(s)), s.input("rows", {6, 1})});
       }},
      {scale_right,
       [=](Sketch& s) {
         return s.add(OpKind::Div, {s.product(x(s), a(s)), s.number("scale", 3)});
       }},
      {sum_before, [=](Sketch& s) { return s.sum(s.product(x(s), a(s)), {2}, 1); }},
      {sum_before, [=](Sketch& s) { return s.sum(s.product(x(s), a(s)), {1, 2}, 0); }},
      {sum_before, [=](Sketch& s) { return s.sum(s.product(x(s), a(s)), {1}, 0); }},
      {sum_apart,
       [=](Sketch& s) {
         const TensorId biased = s.add(OpKind::Add, {s.product(x(s), a(s)), s.weights("c", {8})});
         return s.sum(biased, {1, 2}, 0);
       }},
      {scale_after_sum,
       [=](Sketch& s) {
         return s.sum(s.add(OpKind::Mul, {s.input("rows", {6, 1}), x(s)}), {2}, 0);
       }},
      {scale_after_sum,
       [=](Sketch& s) {
         return s.sum(s.add(OpKind::Div, {x(s), s.number("scale", 3)}), {0, 2}, 1);
       }},
      {reciprocal, [=](Sketch& s) { return s.add(OpKind::Div, {x(s), s.number("scale", 3)}); }},
      {reciprocal, [=](Sketch& s) { return s.add(OpKind::Div, {x(s), s.weights("scales", {4})}); }},
      {one_transpose, [=](Sketch& s) { return s.turned(s.turned(x(s), {2, 0, 1}), {1, 0, 2}); }},
      // Twice is not at all.
      {one_transpose, [=](Sketch& s) { return s.turned(s.turned(x(s), {2, 0, 1}), {1, 2, 0}); }},
      {transpose_product, [=](Sketch& s) { return s.turned(s.product(x(s), a(s)), {0, 2, 1}); }},
      {one_sum, [=](Sketch& s) { return s.sum(s.sum(x(s), {1}, 0), {1}, 1); }},
      {one_sum, [=](Sketch& s) { return s.sum(s.sum(x(s), {0}, 1), {2}, 0); }},
      {two_sums, [=](Sketch& s) { return s.sum(x(s), {0, 2}, 0); }},
  };
}

std::vector<Case> cases() {
  std::vector<Case> out = cases_of_products();
  std::ranges::move(cases_of_scales(), std::back_inserter(out));
  return out;
}

Graph graph_of(const Write& write, Dtype dtype = Dtype::f64) {
  Sketch sketch(dtype);
  const TensorId out = write(sketch);
  return sketch.with_output(out);
}

// The only offer of its kind, carried out.
Graph rewritten(const Graph& graph, RewriteKind kind, Track track = Track::fp32) {
  const auto offers = offers_of(graph, kind, track);
  EXPECT_EQ(offers.size(), 1u);
  if (offers.size() != 1) return graph;
  EXPECT_TRUE(offers[0].why.empty()) << offers[0].why[0].expected << ", " << offers[0].why[0].found;
  const auto made = rewrite(graph, offers[0].rewrite, track);
  EXPECT_TRUE(made) << describe(made.error());
  return made.value_or(graph);
}

TEST(Rewrites, ComputeTheSameNumbers) {
  std::set<RewriteKind> seen;
  for (const Case& one : cases()) {
    seen.insert(one.kind);
    const Graph graph = graph_of(one.write);
    SCOPED_TRACE(std::string(kRewriteRows[static_cast<size_t>(one.kind)].name) + "\n" +
                 to_text(graph));
    const Graph made = rewritten(graph, one.kind);
    EXPECT_NE(to_text(made), to_text(graph));
    const TensorInfo& was = graph.tensor(graph.outputs[0]);
    const TensorInfo& is = made.tensor(made.outputs[0]);
    EXPECT_EQ(to_text(is), to_text(was));
    for (const Tensor& tensor : made.tensors) {
      const bool is_data = tensor.constant && element_count(tensor.shape) > 1;
      const bool is_weight = is_data && is_float(tensor.dtype);
      EXPECT_TRUE(!is_weight || graph.tensor_named(tensor.name))
          << "the model lacks " << tensor.name;
    }
    const Values want = evaluated(graph);
    const Values have = evaluated(made);
    ASSERT_EQ(want.size(), have.size());
    for (size_t i = 0; i < want[0].size(); ++i)
      EXPECT_NEAR(have[0][i], want[0][i], 1e-12 * (1 + std::abs(want[0][i])));
  }
  EXPECT_EQ(seen.size(), std::size(kRewriteRows)) << "a kind has no graph here";
}

TEST(Rewrites, SayWhatTheySaveInOperationsAndBytes) {
  const Graph graph = graph_of([](Sketch& s) {
    const TensorId hidden = s.product(s.input("x", {64, 32}), s.input("a", {32, 32}));
    return s.product(hidden, s.input("b", {32, 1}));
  });
  const auto offers = offers_of(graph, RewriteKind::products_right);
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].before.operations, 2 * 64 * 32 * 32 + 2 * 64 * 32);
  EXPECT_EQ(offers[0].after.operations, 2 * 32 * 32 + 2 * 64 * 32);
  EXPECT_EQ(offers[0].after.products, offers[0].after.operations);
  EXPECT_EQ(offers[0].sentence,
            "multiply a by b first, and x by that (6144 operations instead of 135.2 k, 25.86 k "
            "bytes instead of 58.11 k): the smaller product comes first");
}

TEST(Rewrites, WhatFollowsOfConstantsAloneCostsNoCall) {
  const Graph graph = graph_of([](Sketch& s) {
    const TensorId hidden = s.product(s.input("x", {6, 4}), s.weights("a", {4, 8}));
    return s.product(hidden, s.weights("b", {8, 2}));
  });
  const auto offers = offers_of(graph, RewriteKind::products_right);
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].after.operations, 2 * 6 * 4 * 2);
  const Graph made = rewritten(graph, RewriteKind::products_right);
  EXPECT_EQ(work_of(made).operations, 2 * 6 * 4 * 2);
  // Bundles find what kernels load by its name in the model: a·b stays a node.
  for (const Tensor& tensor : made.tensors)
    EXPECT_TRUE(!tensor.constant || graph.tensor_named(tensor.name)) << tensor.name;
  EXPECT_EQ(made.nodes.size(), 2u);
}

TEST(Rewrites, InputsThatHoldTheSameInEveryCallCountAsConstants) {
  const Graph graph = graph_of([](Sketch& s) {
    return s.product(s.product(s.input("x", {6, 4}), s.input("a", {4, 8})), s.input("b", {8, 2}));
  });
  const auto all = rewrites_of(graph, Track::fp32, {"a", "b"});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].after.operations, 2 * 6 * 4 * 2);
  EXPECT_EQ(work_of(graph, {"x", "a", "b"}).operations, 0);
}

TEST(Rewrites, WhatOthersReadIsComputedAnyway) {
  Sketch sketch;
  const TensorId hidden = sketch.product(sketch.input("x", {6, 4}), sketch.input("a", {4, 8}));
  sketch.output(sketch.add(OpKind::Relu, {hidden}));
  const Graph graph = sketch.with_output(sketch.product(hidden, sketch.input("b", {8, 2})));
  const auto offers = offers_of(graph, RewriteKind::products_right);
  ASSERT_EQ(offers.size(), 1u);
  ASSERT_EQ(offers[0].why.size(), 1u);
  EXPECT_EQ(offers[0].why[0].found, "2 do");
  const auto made = rewrite(graph, offers[0].rewrite, Track::fp32);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kScheduleIllegal);
}

// x·(a + b) of given a and b: the bound is of |x||a + b|, which may be nothing beside |x||a|.
TEST(Rewrites, TermsThatMayCancelStayTogetherWhereTheTrackIsStrict) {
  const Graph graph = graph_of([](Sketch& s) {
    const TensorId both = s.add(OpKind::Add, {s.input("a", {4, 8}), s.input("b", {4, 8})});
    return s.product(s.input("x", {6, 4}), both);
  });
  for (const Track track : {Track::fp32, Track::tf32, Track::bf16}) {
    const auto offers = offers_of(graph, RewriteKind::distribute, track);
    ASSERT_EQ(offers.size(), 1u);
    ASSERT_EQ(offers[0].why.size(), 1u);
    EXPECT_EQ(offers[0].why[0].found, "both are given, track " + std::string(name_of(track)));
  }
  rewritten(graph, RewriteKind::distribute, Track::tolerance);
}

TEST(Rewrites, SumsOfGivenTermsStayTogetherAsWell) {
  const Graph graph = graph_of([](Sketch& s) {
    return s.sum(s.add(OpKind::Add, {s.input("a", {4, 8}), s.input("b", {4, 8})}), {1}, 0);
  });
  const auto offers = offers_of(graph, RewriteKind::sum_apart);
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].why.size(), 1u);
}

// 300·300 sums of halves are within fp16 where they are scaled first.
TEST(Rewrites, NumbersOfFp16DoNotGrowBeforeTheyAreScaledDown) {
  for (const double scale : {0.001, 4.0}) {
    const auto write = [&](Sketch& s) {
      return s.sum(s.add(OpKind::Mul, {s.input("x", {4, 8}), s.number("scale", scale)}), {1}, 0);
    };
    const auto offers = offers_of(graph_of(write, Dtype::f16), RewriteKind::scale_after_sum);
    ASSERT_EQ(offers.size(), 1u);
    EXPECT_EQ(offers[0].why.empty(), scale >= 1) << scale;
    EXPECT_TRUE(
        offers_of(graph_of(write, Dtype::bf16), RewriteKind::scale_after_sum)[0].why.empty());
  }
  const auto grows = [](Sketch& s) {
    const TensorId product = s.product(s.input("x", {4, 8}), s.input("a", {8, 2}));
    return s.add(OpKind::Div, {product, s.number("scale", 0.001)});
  };
  EXPECT_FALSE(offers_of(graph_of(grows, Dtype::f16), RewriteKind::scale_left)[0].why.empty());
  EXPECT_TRUE(offers_of(graph_of(grows, Dtype::f32), RewriteKind::scale_left)[0].why.empty());
}

TEST(Rewrites, OnlyDivisorsWithNormalReciprocalsAreMultipliedBy) {
  for (const double divisor : {0.0, 1e-39, 3e38}) {
    const auto write = [&](Sketch& s) {
      return s.add(OpKind::Div, {s.input("x", {4}), s.number("c", divisor)});
    };
    const auto offers = offers_of(graph_of(write, Dtype::f32), RewriteKind::reciprocal);
    ASSERT_EQ(offers.size(), 1u);
    EXPECT_EQ(offers[0].why.size(), 1u) << divisor;
  }
  const Graph given = graph_of(
      [](Sketch& s) { return s.add(OpKind::Div, {s.input("x", {4, 8}), s.input("c", {4, 1})}); });
  const auto offers = offers_of(given, RewriteKind::reciprocal);
  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].why[0].found, "it is made at run time");
}

// What runs along the summed axis is no scale, nor does a row of one operand stretch the other.
TEST(Rewrites, ScalesAlongWhatIsSummedStay) {
  const Graph graph = graph_of([](Sketch& s) {
    return s.product(s.add(OpKind::Mul, {s.input("x", {6, 4}), s.input("k", {1, 4})}),
                     s.input("a", {4, 8}));
  });
  EXPECT_TRUE(offers_of(graph, RewriteKind::scale_after).empty());
  const Graph columns = graph_of([](Sketch& s) {
    return s.add(OpKind::Mul, {s.product(s.input("x", {6, 4}), s.input("a", {4, 8})),
                               s.input("columns", {1, 8})});
  });
  EXPECT_TRUE(offers_of(columns, RewriteKind::scale_left).empty());
  EXPECT_EQ(offers_of(columns, RewriteKind::scale_right).size(), 1u);
}

TEST(Rewrites, SumsOverABatchStayBehindTheProduct) {
  const Graph graph = graph_of([](Sketch& s) {
    return s.sum(s.product(s.input("x", {3, 6, 4}), s.input("a", {3, 4, 8})), {0, 2}, 0);
  });
  const auto offers = offers_of(graph, RewriteKind::sum_before);
  ASSERT_EQ(offers.size(), 1u);
  ASSERT_EQ(offers[0].why.size(), 1u);
  EXPECT_EQ(offers[0].why[0].found, "axes 0, 2");
}

TEST(Rewrites, IntegersAreLeftAlone) {
  Builder b("integers");
  const TensorId x = b.input("x", Dtype::i32, {4, 8});
  const TensorId y = b.input("y", Dtype::i32, {4, 8});
  const TensorId one = b.add(OpKind::Mul, {x, y});
  b.output(b.add(OpKind::Add, {one, b.add(OpKind::Mul, {x, x})}));
  b.output(b.add(OpKind::Div, {x, y}));
  EXPECT_TRUE(rewrites_of(*b.finish(), Track::fp32).empty());
}

TEST(Rewrites, OneAfterAnotherTakeASumThroughAScaledProduct) {
  const Graph graph = graph_of([](Sketch& s) {
    const TensorId product = s.product(s.input("x", {64, 32}), s.weights("w", {32, 48}));
    return s.sum(s.add(OpKind::Div, {product, s.number("two", 2)}), {1}, 1);
  });
  const std::string at = graph.tensor(graph.outputs[0]).name;
  const auto scaled = rewrite(graph, {RewriteKind::scale_after_sum, at}, Track::fp32);
  ASSERT_TRUE(scaled);
  const auto offers = offers_of(*scaled, RewriteKind::sum_before);
  ASSERT_EQ(offers.size(), 1u);
  const std::vector<Rewrite> both = {{RewriteKind::scale_after_sum, at}, offers[0].rewrite};
  const auto made = rewrite(graph, both, Track::fp32);
  ASSERT_TRUE(made) << describe(made.error());
  EXPECT_EQ(work_of(*made).products, 2 * 64 * 32);
  const auto again = rewrite(graph, both, Track::fp32);
  EXPECT_EQ(to_text(*again), to_text(*made));
}

TEST(Rewrites, TextsReadBackAndOthersAreRefused) {
  const Rewrite one{RewriteKind::sum_apart, "layer 1/y"};
  EXPECT_EQ(one.text(), "sum_apart layer 1/y");
  EXPECT_EQ(*rewrite_from_text(one.text()), one);
  for (const std::string text : {"", "sum_apart", "no_such y"}) {
    const auto found = rewrite_from_text(text);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().code, ErrorCode::kPlanInvalid);
  }
  const Graph graph = graph_of([](Sketch& s) { return s.add(OpKind::Relu, {s.input("x", {4})}); });
  for (const std::string at : {"x", "nothing", "Relu_0_out"}) {
    const auto made = rewrite(graph, {RewriteKind::one_sum, at}, Track::fp32);
    ASSERT_FALSE(made) << at;
    EXPECT_EQ(made.error().code, ErrorCode::kPlanInvalid);
  }
}
}  // namespace
}  // namespace warploom::graph
