// Nests by plain loops in FP64 against the FP64 reference, and the forms that some graphs take.
#include "loopnest/loop_nest.h"
#include <gtest/gtest.h>
#include <cmath>
#include "graph/reference.h"
#include "kernels/family.h"
#include "large_integers.h"
#include "nets.h"
#include "problems.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using graph::Shape;
using graph::TensorId;
using test::Attributes;
using test::Ints;
using test::Net;
using At = std::vector<int64_t>;

// The only nest of a graph, where it is one and gathers nothing.
std::optional<LoopNest> nest_of(const graph::Graph& graph) {
  auto nests = nests_of(graph);
  const auto gathers = [](const Access& load) { return load.lookup_dim >= 0; };
  if (nests.size() == 1 && std::any_of(nests[0].loads.begin(), nests[0].loads.end(), gathers))
    return std::nullopt;
  return nests.size() == 1 ? std::optional(std::move(nests[0])) : std::nullopt;
}

// One line a value.
std::string to_text(const LoopNest& nest) {
  const auto coordinate = [](const Affine& c) {
    std::string text;
    for (size_t a = 0; a < c.steps.size(); ++a)
      if (c.steps[a] != 0)
        text += fmt::format("{}{}i{}", text.empty() ? "" : " + ",
                            c.steps[a] == 1 ? "" : fmt::format("{}·", c.steps[a]), a);
    return c.begin == 0 && !text.empty()
               ? text
               : fmt::format("{}{}{}", text, text.empty() ? "" : " + ", c.begin);
  };
  const auto place = [&](const Access& access) {
    std::vector<std::string> parts;
    for (const Affine& c : access.at) parts.push_back(coordinate(c));
    return fmt::format("{} {} [{}] at {{{}}}{}", access.name, name_of(access.dtype),
                       fmt::join(access.shape, ","), fmt::join(parts, ", "),
                       access.inside ? "" : fmt::format(", fill {}", access.fill));
  };
  std::string out = fmt::format("axes {{{}}}\n", fmt::join(nest.axes, ", "));
  for (size_t v = 0; v < nest.values.size(); ++v) {
    const Expr& value = nest.values[v];
    out += fmt::format("{} ", v);
    if (value.kind == Expr::Kind::load)
      out += "load " + place(nest.loads[static_cast<size_t>(value.load)]);
    if (value.kind == Expr::Kind::index) out += "index " + coordinate(value.at);
    if (value.kind == Expr::Kind::reduce)
      out += fmt::format("reduce {} of {} over {{{}}}", name_of(value.op), value.operands[0],
                         fmt::join(value.axes, ", "));
    if (value.kind == Expr::Kind::scan)
      out += fmt::format("scan of {} along i{}{}", value.operands[0], value.axes[0],
                         value.reverse ? " reverse" : "");
    if (value.kind == Expr::Kind::constant) out += fmt::format("#{}", value.value);
    if (value.kind == Expr::Kind::apply)
      out += fmt::format("{}({})", name_of(value.op), fmt::join(value.operands, ","));
    if (value.kind == Expr::Kind::round)
      out += fmt::format("{} of {}", name_of(value.dtype), value.operands[0]);
    out += "\n";
  }
  for (const auto& output : nest.outputs)
    out += fmt::format("output {} -> {}\n", output.value, place(output.place));
  return out;
}

// A value as both sorts of operations take it.
struct Number {
  double real = 0;
  int64_t whole = 0;

  static Number of(double real) { return {real, saturated_integer(Dtype::i64, real)}; }

  static Number of_whole(int64_t whole) { return {static_cast<double>(whole), whole}; }
};

// The meaning of a nest: every value at every index, without any thought of speed.
class Plain {
 public:
  Plain(const LoopNest& nest, const graph::Graph& graph,
        const std::vector<std::vector<std::byte>>& inputs)
      : nest_(nest) {
    const auto data_of = [&](TensorId id) {
      const auto& constant = graph.tensor(id).constant;
      const auto found = std::find(graph.inputs.begin(), graph.inputs.end(), id);
      return constant ? constant->data()
                      : inputs[static_cast<size_t>(found - graph.inputs.begin())].data();
    };
    for (const Access& load : nest.loads) {
      data_.push_back(data_of(load.tensor));
      lookups_.push_back(load.lookup_dim < 0 ? nullptr
                                             : data_of(*graph.tensor_named(load.lookup.name)));
    }
  }

  // Writes what the nest writes of output number `o`.
  void write(size_t o, std::vector<Number>& to) {
    const auto& [value, place] = nest_.outputs[o];
    std::vector<int64_t> sizes(nest_.axes.size(), 1);
    for (size_t a = 0; a < sizes.size(); ++a)
      if (place.uses(a)) sizes[a] = nest_.axes[a];
    each(sizes, [&](const At& at) {
      int64_t offset = 0;
      for (size_t d = 0; d < place.at.size(); ++d)
        offset += coordinate(place.at[d], at) * place.strides[d];
      to[static_cast<size_t>(offset)] = result(value, at);
    });
  }

 private:
  const LoopNest& nest_;
  std::vector<const std::byte*> data_;
  std::vector<const std::byte*> lookups_;
  std::map<std::pair<int, At>, Number> known_;

  static int64_t coordinate(const Affine& c, const At& at) {
    int64_t sum = c.begin;
    for (size_t a = 0; a < at.size(); ++a) sum += c.steps[a] * at[a];
    return sum;
  }

  static void each(const std::vector<int64_t>& sizes, const std::function<void(const At&)>& body) {
    At at(sizes.size(), 0);
    for (;;) {
      body(at);
      size_t a = sizes.size();
      while (a > 0 && ++at[a - 1] == sizes[a - 1]) at[--a] = 0;
      if (a == 0) return;
    }
  }

  Number result(int id, At at) {
    const Expr& value = nest_.values[static_cast<size_t>(id)];
    for (size_t a = 0; a < at.size(); ++a)
      if (!value.varies[a]) at[a] = 0;
    const auto found = known_.find({id, at});
    return found != known_.end() ? found->second : known_[{id, at}] = compute(value, at);
  }

  Number load(const Expr& value, const At& at) {
    const Access& load = nest_.loads[static_cast<size_t>(value.load)];
    int64_t offset = 0;
    for (size_t d = 0; d < load.at.size(); ++d) {
      int64_t c = coordinate(load.at[d], at);
      if (static_cast<int>(d) == load.lookup_dim) {
        c = static_cast<int64_t>(load_as_double(
            load.lookup.dtype, lookups_[static_cast<size_t>(value.load)], static_cast<size_t>(c)));
        if (c < 0) c += load.shape[d];
      }
      if (c < 0 || c >= load.shape[d]) {
        EXPECT_FALSE(load.inside);
        return Number::of(load.fill);
      }
      offset += c * load.strides[d];
    }
    const std::byte* const data = data_[static_cast<size_t>(value.load)];
    return is_integer(load.dtype)
               ? Number::of_whole(load_integer(load.dtype, data, offset))
               : Number::of(load_as_double(load.dtype, data, static_cast<size_t>(offset)));
  }

  // One step of a value: on whole numbers or on floats.
  static Number step(const Expr& value, ValueOp op, const Number& a, const Number& b,
                     const Number& c = {}) {
    return value.integers ? Number::of_whole(apply_integers(op, a.whole, b.whole, c.whole))
                          : Number::of(apply(op, a.real, b.real, c.real));
  }

  Number compute(const Expr& value, const At& at) {
    switch (value.kind) {
      case Expr::Kind::scan: {
        const auto axis = static_cast<size_t>(value.axes[0]);
        Number sum;
        At other = at;
        for (other[axis] = 0; other[axis] < nest_.axes[axis]; ++other[axis])
          if (value.reverse ? other[axis] >= at[axis] : other[axis] <= at[axis])
            sum = step(value, ValueOp::add, sum, result(value.operands[0], other));
        return sum;
      }
      case Expr::Kind::index: return Number::of_whole(coordinate(value.at, at));
      case Expr::Kind::load: return load(value, at);
      case Expr::Kind::constant: return Number::of(value.value);
      case Expr::Kind::round: {
        const Number of = result(value.operands[0], at);
        return value.integers ? Number::of_whole(wrapped_integer(value.dtype, of.whole))
                              : Number::of(rounded(value.dtype, of.real));
      }
      case Expr::Kind::apply: {
        std::array<Number, 3> inputs{};
        for (size_t i = 0; i < value.operands.size(); ++i)
          inputs[i] = result(value.operands[i], at);
        return step(value, value.op, inputs[0], inputs[1], inputs[2]);
      }
      case Expr::Kind::reduce: break;
    }
    std::vector<int64_t> sizes(at.size(), 1);
    for (const int axis : value.axes)
      sizes[static_cast<size_t>(axis)] = nest_.axes[static_cast<size_t>(axis)];
    Number sum = Number::of(identity_of(value.op));
    each(sizes, [&](At inner) {
      for (size_t a = 0; a < at.size(); ++a)
        if (sizes[a] == 1) inner[a] = at[a];
      sum = step(value, value.op, sum, result(value.operands[0], inner));
    });
    return sum;
  }
};

// Integers to the last bit.
void expect_agreement(const graph::Graph& graph,
                      const std::vector<std::vector<std::byte>>& inputs) {
  const auto nests = nests_of(graph);
  ASSERT_FALSE(nests.empty()) << to_text(graph);
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate_exactly(graph, views, 1);
  ASSERT_TRUE(want.has_value()) << describe(want.error());
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::Tensor& tensor = graph.tensor(graph.outputs[o]);
    const auto count = static_cast<size_t>(graph::element_count(tensor.shape));
    std::vector<Number> have(count, Number{NAN, std::numeric_limits<int64_t>::min()});
    for (const LoopNest& nest : nests)
      for (size_t i = 0; i < nest.outputs.size(); ++i)
        if (nest.outputs[i].place.tensor == graph.outputs[o])
          Plain(nest, graph, inputs).write(i, have);
    for (size_t i = 0; i < count; ++i) {
      const std::string where = fmt::format("{}{}element {}", to_text(graph), to_text(nests[0]), i);
      if (is_integer(tensor.dtype)) {
        ASSERT_EQ(have[i].whole, (*want)[o].integers[i]) << where;
        continue;
      }
      const double real = (*want)[o].value[i];
      ASSERT_NEAR(have[i].real, real, 1e-9 * (1 + std::abs(real))) << where;
    }
  }
}

void expect_agreement(const graph::Graph& graph) {
  expect_agreement(graph, test::random_inputs(graph, 1));
}

// On integers that no float holds.
void expect_exact(const graph::Graph& graph) {
  expect_agreement(graph, test::large_inputs(graph, 1));
}

TEST(LoopNest, OfPointwiseOperatorsWithBroadcasts) {
  Net n;
  const auto x = n.x({2, 3, 4});
  const auto b = n.x({3, 1});
  const auto s = n.x({4});
  const auto y = n.add(OpKind::Add, {x, b});
  expect_agreement(n.with(
      {n.add(OpKind::Gelu, {n.add(OpKind::Mul, {y, s})}, {{"approximate", std::string("tanh")}})}));
}

TEST(LoopNest, OfAChainHasOneAxis) {
  Net n;
  const auto x = n.x({2, 3, 4});
  const auto y = n.x({2, 3, 4});
  const auto nest =
      nest_of(n.with({n.add(OpKind::Relu, {n.add(OpKind::Sub, {n.add(OpKind::Exp, {x}), y})})}));
  ASSERT_TRUE(nest);
  EXPECT_EQ(nest->axes, (Shape{24}));
  EXPECT_EQ(nest->values.size(), 5U) << to_text(*nest);
}

TEST(LoopNest, OfTransposesAndSlices) {
  Net n;
  const auto x = n.transpose(n.x({3, 4, 5}), {2, 0, 1});
  expect_agreement(n.with({n.add(OpKind::Neg, {n.slice(n.slice(x, 0, 4, 0, -2), 2, 1, 4)})}));
}

TEST(LoopNest, KeepsAxesThatMoveTogetherAsOne) {
  Net n;
  const auto nest = nest_of(n.with({n.transpose(n.x({2, 3, 4, 5}), {2, 3, 0, 1})}));
  ASSERT_TRUE(nest);
  EXPECT_EQ(nest->axes, (Shape{20, 6}));
}

TEST(LoopNest, SplitsAnAxisWhereAReshapeMeetsATranspose) {
  Net n;
  const auto heads = n.transpose(n.reshape(n.x({2, 5, 12}), {2, 5, 3, 4}), {0, 2, 1, 3});
  expect_agreement(n.with({n.reshape(n.add(OpKind::Mul, {heads, n.x({3, 1, 4})}), {2, 60})}));
}

TEST(LoopNest, SeesAnInputUnderAnotherShape) {
  Net n;
  const auto x = n.x({4, 6});
  const auto turned = n.reshape(x, {6, 4});
  expect_agreement(n.with({n.transpose(n.add(OpKind::Mul, {turned, n.x({6, 4})}), {1, 0})}));
}

TEST(LoopNest, HasNoFormWhereAReshapeCutsAnAxisUnevenly) {
  Net n;
  EXPECT_FALSE(nest_of(n.with({n.reshape(n.slice(n.x({4, 6}), 1, 0, 5), {5, 4})})));
}

TEST(LoopNest, OfAShuffleOfChannels) {
  Net n;
  const auto y = n.transpose(n.reshape(n.x({2, 6, 5}), {2, 3, 2, 5}), {0, 2, 1, 3});
  expect_agreement(n.with({n.add(OpKind::Mul, {n.reshape(y, {2, 6, 5}), n.x({6, 1})})}));
}

TEST(LoopNest, OfAConcatWritesPieceByPiece) {
  Net n;
  const auto both = n.add(OpKind::Concat, {n.x({2, 3}), n.x({2, 4})}, {{"axis", int64_t{1}}});
  const auto graph = n.with({n.add(OpKind::Mul, {both, n.x({7})})});
  EXPECT_EQ(nests_of(graph).size(), 2U);
  expect_agreement(graph);
}

TEST(LoopNest, OfAConcatInTheMiddleAddsUpItsPieces) {
  Net n;
  const auto both = n.add(OpKind::Concat, {n.x({2, 3}), n.add(OpKind::Exp, {n.x({2, 4})})},
                          {{"axis", int64_t{1}}});
  expect_agreement(n.with({n.transpose(both, {1, 0})}));
}

TEST(LoopNest, OfSeveralOutputs) {
  Net n;
  const auto x = n.x({2, 6});
  expect_agreement(n.with({n.slice(x, 1, 0, 3), n.slice(x, 1, 3, 6), n.add(OpKind::Exp, {x})}));
}

TEST(LoopNest, RoundsWhereACastNarrowsInAChain) {
  Net n;
  const auto y = n.add(OpKind::Cast, {n.add(OpKind::Exp, {n.x({3, 5})})},
                       {{"to", int64_t{onnx_type_of(Dtype::bf16)}}});
  const auto z = n.add(OpKind::Cast, {y}, {{"to", int64_t{onnx_type_of(Dtype::f32)}}});
  expect_agreement(n.with({n.add(OpKind::Exp, {z})}));
}

TEST(LoopNest, OfProductsWithEverySortOfOperand) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{4, 5}, {5, 3}},
                                                                 {{2, 4, 5}, {5, 3}},
                                                                 {{3, 1, 4, 5}, {2, 5, 6}},
                                                                 {{5}, {5, 3}},
                                                                 {{4, 5}, {5}},
                                                                 {{5}, {5}}}) {
    Net n;
    const auto x = n.x(a);
    const auto y = n.x(b);
    expect_agreement(n.with({n.add(OpKind::Relu, {n.add(OpKind::MatMul, {x, y})})}));
  }
}

TEST(LoopNest, OfAScaledProductOfTransposedMatricesAndAnAddend) {
  Net n;
  expect_agreement(n.with(
      {n.add(OpKind::Gemm, {n.x({5, 4}), n.x({3, 5}), n.x({3})},
             {{"alpha", 0.5}, {"beta", 2.0}, {"transA", int64_t{1}}, {"transB", int64_t{1}}})}));
}

TEST(LoopNest, OfASoftmaxHasOneAxisForItsRows) {
  for (const int64_t axis : {0, 1, 2}) {
    Net n;
    const auto graph = n.with({n.add(
        OpKind::Softmax, {n.add(OpKind::Mul, {n.x({3, 4, 5}), n.x({5})})}, {{"axis", axis}})});
    const auto nest = nest_of(graph);
    ASSERT_TRUE(nest);
    EXPECT_EQ(nest->axes.size(), axis == 2 ? 2U : 3U) << to_text(*nest);
    EXPECT_EQ(nest->loads.size(), 2U) << to_text(*nest);
    expect_agreement(graph);
  }
}

TEST(LoopNest, OfALayerNormalizationReadsItsRowOnce) {
  Net n;
  const auto graph = n.with({n.add(
      OpKind::Relu, {n.add(OpKind::LayerNormalization, {n.x({2, 3, 8}), n.x({8}), n.x({8})})})});
  const auto nest = nest_of(graph);
  ASSERT_TRUE(nest);
  EXPECT_EQ(nest->axes, (Shape{6, 8})) << to_text(*nest);
  EXPECT_EQ(nest->loads.size(), 3U) << to_text(*nest);
  expect_agreement(graph);
}

TEST(LoopNest, OfAGroupNormalizationSplitsTheChannels) {
  Net n;
  const auto x = n.x({2, 6, 3, 4});
  const auto grouped = n.reshape(x, {2, 3, -1});
  const auto mean = n.add(OpKind::ReduceMean, {grouped, n.ints({2})}, {{"keepdims", int64_t{1}}});
  const auto centred = n.add(OpKind::Sub, {grouped, mean});
  const auto graph =
      n.with({n.add(OpKind::Mul, {n.reshape(centred, {2, 6, 3, 4}), n.x({1, 6, 1, 1})})});
  const auto nest = nest_of(graph);
  ASSERT_TRUE(nest);
  EXPECT_EQ(nest->axes, (Shape{2, 3, 2, 12})) << to_text(*nest);
  expect_agreement(graph);
}

TEST(LoopNest, OfReductionsWithAndWithoutTheirAxes) {
  for (const OpKind op :
       {OpKind::ReduceSum, OpKind::ReduceMax, OpKind::ReduceMin, OpKind::ReduceProd})
    for (const int64_t keep : {0, 1})
      for (const std::vector<int64_t>& axes :
           {std::vector<int64_t>{0}, {1}, {0, 2}, {-1, 1}, {0, 1, 2}}) {
        Net n;
        const auto x = n.add(OpKind::Add, {n.x({3, 4, 5}), n.x({4, 1})});
        expect_agreement(
            n.with({n.add(OpKind::Abs, {n.add(op, {x, n.ints(axes)}, {{"keepdims", keep}})})}));
      }
}

TEST(LoopNest, OfPrefixesHasOneAxisForTheLines) {
  for (const int64_t axis : {0, 1, 2})
    for (const int64_t reverse : {0, 1}) {
      Net n;
      const auto y = n.add(OpKind::CumSum, {n.add(OpKind::Exp, {n.x({3, 4, 5})}), n.ints({axis})},
                           {{"reverse", reverse}, {"exclusive", reverse}});
      const auto graph = n.with({n.add(OpKind::Mul, {y, n.x({5})})});
      const auto nest = nest_of(graph);
      ASSERT_TRUE(nest && nest->scan());
      EXPECT_EQ(nest->axes[static_cast<size_t>(nest->scan()->axes[0])], 3 + axis) << to_text(*nest);
      EXPECT_EQ(nest->scan()->reverse, reverse == 1) << to_text(*nest);
      expect_agreement(graph);
    }
}

TEST(LoopNest, OfPrefixesOfFlippedRowsTurnsTheScanRound) {
  Net n;
  const auto flip = [&](TensorId x) { return n.slice(x, 1, -1, -1000, -1); };
  const auto graph = n.with({flip(n.add(OpKind::CumSum, {flip(n.x({4, 9})), n.ints({1})}))});
  const auto nest = nest_of(graph);
  ASSERT_TRUE(nest && nest->scan());
  EXPECT_TRUE(nest->scan()->reverse) << to_text(*nest);
  EXPECT_EQ(nest->loads[0].at, nest->outputs[0].place.at) << to_text(*nest);
  expect_agreement(graph);
}

TEST(LoopNest, OfAPartOfPrefixesHasToBeginWithThem) {
  const auto part = [](int64_t reverse, int64_t begin, int64_t end) {
    Net n;
    const auto y = n.add(OpKind::CumSum, {n.x({4, 9}), n.ints({1})}, {{"reverse", reverse}});
    return n.with({n.slice(y, 1, begin, end)});
  };
  expect_agreement(part(0, 0, 6));
  expect_agreement(part(1, 3, 9));
  EXPECT_FALSE(nest_of(part(0, 1, 9)));
  EXPECT_FALSE(nest_of(part(1, 0, 8)));
}

TEST(LoopNest, OfWindowsWithPaddingAndStrides) {
  for (const OpKind op : {OpKind::MaxPool, OpKind::AveragePool})
    for (const bool before : {false, true}) {
      Net n;
      auto x = n.x({2, 3, 7, 8});
      if (before) x = n.add(OpKind::Relu, {n.add(OpKind::Sub, {x, n.x({3, 1, 1})})});
      expect_agreement(n.with({n.add(op, {x},
                                     Attributes{{"kernel_shape", Ints{3, 2}},
                                                {"strides", Ints{2, 1}},
                                                {"pads", Ints{1, 0, 1, 1}}})}));
    }
}

TEST(LoopNest, OfConvolutionsOfEverySort) {
  struct Sort {
    Shape x;
    Shape w;
    Ints strides;
    Ints pads;
    Ints dilations;
    int64_t group;
  };

  for (const Sort& s :
       std::vector<Sort>{{{2, 3, 6, 7}, {4, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
                         {{1, 4, 6, 7}, {6, 2, 3, 1}, {2, 1}, {1, 0, 0, 0}, {1, 1}, 2},
                         {{1, 4, 8, 8}, {4, 1, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 4},
                         {{2, 4, 5, 5}, {3, 4, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
                         {{2, 4, 9}, {3, 4, 3}, {2}, {1, 1}, {1}, 1}}) {
    Net n;
    const Ints kernel(s.w.begin() + 2, s.w.end());
    auto x = n.x(s.x);
    if (s.group == 1) x = n.add(OpKind::Relu, {x});
    const auto y = n.add(OpKind::Conv, {x, n.x(s.w), n.x({s.w[0]})},
                         Attributes{{"kernel_shape", kernel},
                                    {"strides", s.strides},
                                    {"pads", s.pads},
                                    {"dilations", s.dilations},
                                    {"group", s.group}});
    expect_agreement(n.with({n.add(OpKind::Relu, {y})}));
  }
}

TEST(LoopNest, OfAPaddedConvolutionOfAReluReadsZerosOutside) {
  Net n;
  const auto x = n.add(OpKind::Relu, {n.x({1, 2, 4, 4})});
  const auto nest = nest_of(n.with(
      {n.add(OpKind::Conv, {x, n.x({2, 2, 3, 3})}, Attributes{{"pads", Ints{1, 1, 1, 1}}})}));
  ASSERT_TRUE(nest);
  for (const Expr& value : nest->values) EXPECT_NE(value.kind, Expr::Kind::index) << to_text(*nest);
}

TEST(LoopNest, OfPaddingAndCropping) {
  for (const bool before : {false, true}) {
    Net n;
    auto x = n.x({3, 4});
    if (before) x = n.add(OpKind::Exp, {x});
    const double fill[] = {2.5};
    const auto y =
        n.add(OpKind::Pad, {x, n.ints({1, -1, 0, 2}), n.constant("fill", Dtype::f32, {}, fill)});
    expect_agreement(n.with({n.add(OpKind::Neg, {y})}));
  }
}

TEST(LoopNest, OfASliceThatIsPaddedDoesNotShowWhatWasCutOff) {
  Net n;
  expect_agreement(
      n.with({n.add(OpKind::Pad, {n.slice(n.x({3, 6}), 1, 1, 5), n.ints({0, 1, 0, 1})})}));
}

TEST(LoopNest, OfAGatherReadsByIndices) {
  for (const int64_t axis : {0, 1, 2}) {
    Net n;
    const auto indices = n.reshape(n.ints({2, 0, 1, 1, 2, 0}), {3, 2});
    const auto y = n.add(OpKind::Gather, {n.x({3, 4, 5}), indices}, {{"axis", axis}});
    const auto graph = n.with({n.add(OpKind::Exp, {y})});
    EXPECT_FALSE(nest_of(graph));
    expect_agreement(graph);
  }
}

TEST(LoopNest, OfATableOfPlacesLoadsNothing) {
  for (const OpKind op : {OpKind::ArgMax, OpKind::ArgMin}) {
    Net n;
    const auto graph = n.with({n.add(op, {n.x({3, 7})}, {{"axis", int64_t{1}}})});
    const auto nest = nest_of(graph);
    ASSERT_TRUE(nest);
    EXPECT_EQ(nest->loads.size(), 1u) << to_text(*nest);
    expect_agreement(graph);
  }
}

TEST(LoopNest, OfATriangleComparesPlaces) {
  for (const int64_t upper : {0, 1}) {
    Net n;
    const auto y =
        n.add(OpKind::Trilu, {n.x({2, 150, 120}), n.reshape(n.ints({-3}), {})}, {{"upper", upper}});
    const auto nest = nest_of(n.with({y}));
    ASSERT_TRUE(nest);
    EXPECT_EQ(nest->loads.size(), 1u) << to_text(*nest);
  }
  Net n;
  expect_agreement(n.with({n.add(OpKind::Trilu, {n.x({2, 5, 7})})}));
}

// fp32 holds no more integers than those below 2^24.
TEST(LoopNest, ComputesOnLargeIntegersAsWholeNumbers) {
  for (const Dtype dtype : {Dtype::i32, Dtype::i64}) {
    Net sum;
    Net total;
    Net cut;
    expect_exact(sum.with({sum.add(OpKind::Add, {sum.x({40}, dtype), sum.x({40}, dtype)})}));
    expect_exact(
        total.with({total.add(OpKind::ReduceSum, {total.x({40}, dtype), total.ints({0})})}));
    expect_exact(cut.with({cut.add(OpKind::Cast, {cut.x({40}, dtype)}, {{"to", int64_t{3}}})}));
  }
}

// Floats would stop at the ends of the type.
TEST(LoopNest, WrapsArithmeticThatMayLeaveATypeOf8Bits) {
  for (const Dtype dtype : {Dtype::i8, Dtype::u8}) {
    Net sum;
    Net product;
    Net total;
    Net turned;
    Net chosen;
    expect_exact(sum.with({sum.add(OpKind::Add, {sum.x({40}, dtype), sum.x({40}, dtype)})}));
    expect_exact(product.with(
        {product.add(OpKind::MatMul, {product.x({4, 3}, dtype), product.x({3, 4}, dtype)})}));
    expect_exact(
        total.with({total.add(OpKind::ReduceSum, {total.x({40}, dtype), total.ints({0})})}));
    const int64_t other = onnx_type_of(dtype == Dtype::i8 ? Dtype::u8 : Dtype::i8);
    expect_exact(turned.with({turned.add(OpKind::Cast, {turned.x({40}, dtype)}, {{"to", other}})}));
    const auto least = chosen.add(OpKind::Min, {chosen.x({4, 3}, dtype), chosen.x({4, 3}, dtype)});
    expect_exact(chosen.with({chosen.add(OpKind::ReduceMax, {least, chosen.ints({1})})}));
  }
}

TEST(LoopNest, OfElementsOfNothingIsWhatTheyStartFrom) {
  Net product;
  Net sum;
  Net padded;
  expect_agreement(
      product.with({product.add(OpKind::MatMul, {product.x({2, 0}), product.x({0, 3})})}));
  expect_agreement(sum.with({sum.add(OpKind::ReduceSum, {sum.x({3, 0}), sum.ints({1})})}));
  expect_agreement(
      padded.with({padded.add(OpKind::Pad, {padded.x({0, 3}), padded.ints({1, 0, 1, 0})})}));
}

TEST(LoopNest, OfSmallIntegersThatStaySmall) {
  Net n;
  const auto as = [&](graph::TensorId id, int64_t type) {
    return n.add(OpKind::Cast, {id}, {{"to", type}});
  };
  const auto wide =
      n.add(OpKind::Add, {as(n.x({4}, Dtype::u8), 7), as(n.x({4}, Dtype::boolean), 7)});
  expect_agreement(
      n.with({n.add(OpKind::Mul, {wide, as(n.x({4}, Dtype::i8), 7)}), as(n.x({4}), 6)}));
}

TEST(LoopNest, ComparesLargeIntegersExactly) {
  Net small;
  Net large;
  expect_exact(
      small.with({small.add(OpKind::Equal, {small.x({4}, Dtype::i64), small.ints({0, 1, 2, 3})})}));
  expect_exact(large.with(
      {large.add(OpKind::Less, {large.x({40}, Dtype::i64), large.x({40}, Dtype::i64)})}));
}

TEST(LoopNest, HasAxesWhoseElementsGpusCount) {
  const auto exp = [](const Shape& shape) {
    Net n;
    return n.with({n.add(OpKind::Exp, {n.x(shape)})});
  };
  constexpr int64_t kLong = int64_t{1} << 32;
  EXPECT_EQ(nest_of(exp({1 << 15, 1 << 15}))->axes, (At{1 << 30}));
  EXPECT_EQ(nest_of(exp({1 << 16, 1 << 16}))->axes, (At{1 << 16, 1 << 16}));
  EXPECT_EQ(nest_of(exp({kLong}))->axes, (At{1 << 12, 1 << 20}));
  const Region odd{exp({kLong + 1}), Track::fp32};
  EXPECT_TRUE(families_for(odd, *target::capabilities_of("sm_90a")).empty());
  EXPECT_FALSE(families_for(odd, *target::capabilities_of("cpu")).empty());
}

TEST(Work, OfAProductThatIsCutIsThatOfThePart) {
  Net whole;
  Net cut;
  const auto product = [](Net& n) { return n.add(OpKind::MatMul, {n.x({64, 32}), n.x({32, 16})}); };
  const auto row =
      cut.add(OpKind::Slice, {product(cut), cut.ints({5}), cut.ints({6}), cut.ints({0})});
  const Work all = work_of({whole.with({product(whole)}), Track::fp32});
  const Work part = work_of({cut.with({row}), Track::fp32});
  EXPECT_EQ(all.flops, 2 * 64 * 32 * 16);
  EXPECT_EQ(part.flops, 2 * 32 * 16);
  EXPECT_EQ(all.bytes, 4 * (64 * 32 + 32 * 16 + 64 * 16));
  EXPECT_EQ(part.bytes, 4 * (32 + 32 * 16 + 16));
}
}  // namespace
}  // namespace warploom::kernels
