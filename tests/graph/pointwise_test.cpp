// The expressions that kernels use against the functions that the reference uses.
#include "graph/pointwise.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/value_op.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/scalar_function.h"
#include "naive.h"

namespace warploom::graph {
namespace {
struct Case {
  Graph graph;
  Expression expression;
  ScalarFunction function;
};

// A node of `op` over as many scalars as it takes, of which the second may be a constant.
std::optional<Case> make(OpKind op, Dtype dtype,
                         const std::map<std::string, Attribute>& attributes = {},
                         std::optional<double> second = {}) {
  constexpr OpKind kLogic[] = {OpKind::And, OpKind::Or, OpKind::Xor, OpKind::Not};
  if (std::find(std::begin(kLogic), std::end(kLogic), op) != std::end(kLogic))
    dtype = Dtype::boolean;
  constexpr OpKind kWhole[] = {OpKind::Mod, OpKind::BitwiseNot, OpKind::BitwiseAnd,
                               OpKind::BitwiseOr, OpKind::BitwiseXor};
  if (std::find(std::begin(kWhole), std::end(kWhole), op) != std::end(kWhole)) dtype = Dtype::i32;
  for (int count = 1; count <= 3; ++count) {
    Builder b("t");
    std::vector<TensorId> ids;
    for (int i = 0; i < count; ++i) {
      const bool condition = op == OpKind::Where && i == 0;
      if (i == 1 && second)
        ids.push_back(b.constant("c", dtype, {}, std::vector<double>{*second}));
      else if (op == OpKind::Dequantize && i != 1)
        ids.push_back(b.input(fmt::format("x{}", i), Dtype::i8, {}));
      else
        ids.push_back(b.input(fmt::format("x{}", i), condition ? Dtype::boolean : dtype, {}));
    }
    b.output(b.add(op, ids, attributes));
    auto graph = b.finish();
    const bool all = op == OpKind::Max || op == OpKind::Min || op == OpKind::Clip;
    if (!graph || (all && count < 3)) continue;
    if (second && count < 2) continue;
    const auto expression = expression_of(*graph, graph->nodes[0]);
    if (!expression) return std::nullopt;
    return Case{*graph, *expression, scalar_function(*graph, graph->nodes[0])};
  }
  return std::nullopt;
}

void expect_same(const Case& c, std::vector<double> x, double tolerance) {
  x.resize(3, 0.0);
  const double wanted = element_of(c.function, x);
  const double got = c.function.as_stored(element_of(
      x, [&](const auto& columns, const Column& to) { evaluate(c.expression, 1, columns, to); }));
  const std::string what =
      fmt::format("{}({}, {}, {})", name_of(c.graph.nodes[0].op), x[0], x[1], x[2]);
  if (std::isnan(wanted))
    EXPECT_TRUE(std::isnan(got)) << what << " = " << got;
  else if (std::isinf(wanted))
    EXPECT_EQ(got, wanted) << what;
  else
    EXPECT_NEAR(got, wanted, tolerance * (1 + std::fabs(wanted))) << what;
}

const std::vector<double> kValues = {0,    1,   -1, 0.5, -0.5, 2,    -3,  1e-5, -1e-5,
                                     7.25, -12, 30, -30, 88,   -104, 0.3, NAN};

// What C's Annex F says of powers, every one of its cases.
TEST(Pointwise, PowersHaveTheSpecialCasesOfC) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  const double values[] = {0.0, -0.0, 1,  -1,  2,   -2,  0.5, -0.5,      3,         -3,
                           4,   2.5,  10, NAN, 1e9, 7e8, 33,  kInfinite, -kInfinite};
  const auto free = make(OpKind::Pow, Dtype::f32);
  const auto check = [](const Case& c, double x, double y) {
    const double wanted = std::pow(x, y);
    const double got = element_of({x, y, 0}, [&](const auto& columns, const Column& to) {
      evaluate(c.expression, 1, columns, to);
    });
    const std::string what = fmt::format("pow({}, {})", x, y);
    if (std::isnan(wanted))
      EXPECT_TRUE(std::isnan(got)) << what << " = " << got;
    else if (std::isinf(wanted))
      EXPECT_EQ(got, wanted) << what;
    else
      EXPECT_NEAR(got, wanted, 1e-7 * std::fabs(wanted)) << what;
  };
  for (const double x : values)
    for (const double y : values)
      check(*free, x, y);
  for (const double y : {0.5, -0.5, 2.0, 3.0, -3.0, -1.0, 0.0, 1.5, -1.5})
    for (const double x : values)
      check(*make(OpKind::Pow, Dtype::f32, {}, y), x, y);
}

TEST(Pointwise, ExpressionsAgreeWithTheReferenceFunctions) {
  int operators = 0;
  for (int i = 0; i <= static_cast<int>(OpKind::Shape); ++i) {
    const auto op = static_cast<OpKind>(i);
    if (class_of(op) != OpClass::pointwise) continue;
    std::map<std::string, Attribute> attributes;
    if (op == OpKind::Cast) attributes["to"] = int64_t{1};
    const auto c = make(op, Dtype::f32, attributes);
    ASSERT_TRUE(c) << name_of(op);
    ++operators;
    const Dtype in = c->graph.tensor(c->graph.inputs[0]).dtype;
    for (double x : kValues)
      for (double y : kValues) {
        if (!is_float(in) &&
            (rounded(in, x) != x || rounded(in, y) != y || (op == OpKind::Mod && y == 0)))
          continue;
        if (op == OpKind::Where && std::isnan(x)) continue;  // a condition is no NaN
        expect_same(*c, {x, y, 4.0}, 1e-12);
      }
  }
  EXPECT_GE(operators, 50);
}

TEST(Pointwise, ExpressionsAreTheFunctionsOfTheLibrary) {
  const auto softplus = [](double x) {
    return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
  };
  const std::pair<OpKind, std::function<double(double)>> functions[] = {
      {OpKind::Gelu, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {OpKind::Elu, [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {OpKind::Celu, [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {OpKind::Selu,
       [](double x) {
         return 1.05070102214813232421875 * (x < 0 ? 1.67326319217681884765625 * std::expm1(x) : x);
       }},
      {OpKind::Softplus, softplus},
      {OpKind::Mish, [&](double x) { return x * std::tanh(softplus(x)); }}};
  for (const auto& [op, function] : functions)
    for (double x : kValues) {
      if (std::isnan(x)) continue;
      EXPECT_NEAR(element_of(make(op, Dtype::f32)->function, {x}), function(x),
                  1e-14 * (1 + std::fabs(function(x))))
          << name_of(op) << " " << x;
    }
}

TEST(Pointwise, AttributesEnter) {
  for (const auto& [op, attributes] :
       std::vector<std::pair<OpKind, std::map<std::string, Attribute>>>{
           {OpKind::LeakyRelu, {{"alpha", 0.3}}},
           {OpKind::Selu, {{"alpha", 1.5}, {"gamma", 2.0}}},
           {OpKind::Celu, {{"alpha", 1.7}}},
           {OpKind::ThresholdedRelu, {{"alpha", 0.4}}},
           {OpKind::Elu, {{"alpha", 1.7}}},
           {OpKind::HardSigmoid, {{"alpha", 0.6}, {"beta", 0.1}}},
           {OpKind::Gelu, {{"approximate", std::string("tanh")}}}})
    for (double x : kValues)
      expect_same(*make(op, Dtype::f32, attributes), {x}, 1e-12);
}

TEST(Pointwise, PowersByConstantsAreExactProducts) {
  for (double e : {0.0, 1.0, 2.0, 3.0, 7.0, -1.0, -2.0, 0.5, -0.5, 1.5})
    for (double x : {0.5, 2.0, -3.0, 1.25})
      expect_same(*make(OpKind::Pow, Dtype::f32, {}, e), {x, e}, 1e-12);
  EXPECT_EQ(make(OpKind::Pow, Dtype::f32, {}, 2.0)->expression.terms.size(),
            2u);  // x and its square
}

TEST(Pointwise, IntegersTruncate) {
  const auto divide = make(OpKind::Div, Dtype::i32);
  for (double x : {7.0, -7.0, 8.0})
    for (double y : {2.0, -2.0, 3.0})
      expect_same(*divide, {x, y}, 0);
  const auto cast = make(OpKind::Cast, Dtype::f32, {{"to", int64_t{6}}});
  for (double x : {1.9, -1.9, 0.2, -0.2})
    expect_same(*cast, {x}, 0);
}

// The same terms with every result rounded to fp32, as a kernel computes them.
double in_fp32(const Expression& expression, double x) {
  std::vector<double> v;
  for (const ExpressionTerm& t : expression.terms) {
    const auto arg = [&](int k) { return v[static_cast<size_t>(t.args[static_cast<size_t>(k)])]; };
    double exact = x;
    if (t.kind == ExpressionTerm::Kind::constant) exact = t.value;
    if (t.kind == ExpressionTerm::Kind::apply) exact = apply(t.op, arg(0), arg(1), arg(2));
    v.push_back(static_cast<double>(static_cast<float>(exact)));
  }
  return v.back();
}

// What a function is beyond a formula's own overflow: as long as its value is a number of fp32, so
// is what every step in fp32 makes of it.
TEST(Pointwise, ExpressionsReachTheEndsOfFp32) {
  const std::pair<OpKind, double (*)(double)> functions[] = {
      {OpKind::Cosh, std::cosh},   {OpKind::Sinh, std::sinh},   {OpKind::Acosh, std::acosh},
      {OpKind::Asinh, std::asinh}, {OpKind::Atanh, std::atanh}, {OpKind::Tanh, std::tanh},
      {OpKind::Exp, std::exp},     {OpKind::Log, std::log},     {OpKind::Erf, std::erf}};
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const auto& [op, function] : functions)
    for (const float size :
         {0.0f,       1e-30f, 1e-3f, 0.99999994f, 1.0f,
          1.0000001f, 2.0f,   44.4f, 88.7f,       88.73f,
          89.0f,      89.41f, 89.5f, 104.0f,      1e9f,
          1.9e19f,    3e19f,  1e30f, kLargest,    std::numeric_limits<float>::infinity()})
      for (const float x : {size, -size}) {
        const double wanted = function(static_cast<double>(x));
        const double got = in_fp32(make(op, Dtype::f32)->expression, static_cast<double>(x));
        const std::string what = fmt::format("{}({}) = {}, not {}", name_of(op), x, got, wanted);
        if (std::isnan(wanted))
          EXPECT_TRUE(std::isnan(got)) << what;
        else if (std::fabs(wanted) > static_cast<double>(kLargest))
          EXPECT_EQ(got, std::copysign(HUGE_VAL, wanted)) << what;
        else
          EXPECT_NEAR(got, wanted, 1e-6 * std::fabs(wanted) + 0x1p-149) << what;
      }
}

TEST(Pointwise, ExpressionsKeepTheirDigitsInFp32) {
  for (OpKind op :
       {OpKind::Softplus, OpKind::Elu, OpKind::Mish, OpKind::Sigmoid, OpKind::HardSwish}) {
    const auto c = make(op, Dtype::f32);
    for (double x = -20; x < 20; x += 0.173) {
      const auto f = static_cast<double>(static_cast<float>(x));
      const double wanted = element_of(c->function, {f});
      EXPECT_NEAR(in_fp32(c->expression, f), wanted, 2e-6 * std::fabs(wanted))
          << name_of(op) << " " << f;
    }
  }
}
}  // namespace
}  // namespace warploom::graph
