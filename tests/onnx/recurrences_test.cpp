// RNN, GRU and LSTM held against sequences that are gone through one at a time, number by number.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/graph.h"
#include "model_text.h"
#include "onnx/load.h"

namespace warploom {
namespace {
using Numbers = std::vector<double>;
using Function = std::function<double(double)>;

constexpr int kSteps = 4;
constexpr int kBatch = 3;
constexpr int kFeatures = 2;
constexpr int kHidden = 5;

struct Case {
  std::string op = "LSTM";
  std::string direction = "forward";
  int layout = 0;
  bool bias = true;
  bool initial = true;
  std::vector<int> lengths = {};
  bool peepholes = false;
  double clip = 0;
  bool coupled = false;
  bool late = false;
  std::vector<std::string> activations = {};
  std::string more = "";
  std::map<std::string, Function> functions = {};  // of the activations named

  int directions() const { return direction == "bidirectional" ? 2 : 1; }

  int gates() const {
    if (op == "RNN") return 1;
    return op == "GRU" ? 3 : 4;
  }
};

// The inputs that a case has, by name, each with its shape.
struct Given {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> shapes;
  std::vector<std::vector<float>> values;

  const std::vector<float>& of(const std::string& name) const {
    return values[static_cast<size_t>(std::ranges::find(names, name) - names.begin())];
  }
};

Given given_of(const Case& one) {
  const int rows = one.gates() * kHidden;
  const int d = one.directions();
  const bool first = one.layout == 1;
  Given given;
  Random random(3);
  const auto add = [&](const std::string& name, const std::vector<int>& shape) {
    given.names.push_back(name);
    given.shapes.emplace_back();
    size_t count = 1;
    for (const int size : shape) {
      given.shapes.back().push_back(std::to_string(size));
      count *= static_cast<size_t>(size);
    }
    given.values.emplace_back();
    for (size_t i = 0; i < count; ++i)
      given.values.back().push_back(static_cast<float>(2 * random.uniform() - 1));
  };
  const std::vector<int> state =
      first ? std::vector{kBatch, d, kHidden} : std::vector{d, kBatch, kHidden};
  add("X", first ? std::vector{kBatch, kSteps, kFeatures} : std::vector{kSteps, kBatch, kFeatures});
  add("W", {d, rows, kFeatures});
  add("R", {d, rows, kHidden});
  if (one.bias) add("B", {d, 2 * rows});
  if (one.initial) add("H", state);
  if (one.initial && one.op == "LSTM") add("C", state);
  if (one.peepholes) add("P", {d, 3 * kHidden});
  return given;
}

std::string text_of(const Case& one, int output) {
  const Given given = given_of(one);
  std::string body;
  for (size_t i = 0; i < given.names.size(); ++i)
    body += input_text(given.names[i], given.shapes[i]);
  const auto has = [&](const std::string& name) {
    return std::ranges::find(given.names, name) == given.names.end() ? "" : name;
  };
  if (!one.lengths.empty())
    body += fmt::format("initializer {{ name: \"L\" data_type: 6 dims: {} int32_data: [{}] }} ",
                        kBatch, fmt::join(one.lengths, ","));
  std::vector<std::string> inputs = {"X",     "W", "R", has("B"), one.lengths.empty() ? "" : "L",
                                     has("H")};
  if (one.op == "LSTM") {
    inputs.push_back(has("C"));
    inputs.push_back(has("P"));
  }
  std::string more =
      fmt::format("attribute {{ name: \"direction\" type: STRING s: \"{}\" }} ", one.direction);
  more += integer_text("hidden_size", kHidden) + one.more;
  if (one.layout != 0) more += integer_text("layout", 1);
  if (one.clip != 0) more += real_text("clip", one.clip);
  if (one.coupled) more += integer_text("input_forget", 1);
  if (one.late) more += integer_text("linear_before_reset", 1);
  if (!one.activations.empty()) {
    more += "attribute { name: \"activations\" type: STRINGS ";
    for (const std::string& name : one.activations)
      more += fmt::format("strings: \"{}\" ", name);
    more += "} ";
  }
  std::vector<std::string> outputs(3);
  outputs[static_cast<size_t>(output)] = "y";
  while (outputs.back().empty())
    outputs.pop_back();
  return model_text(node_text(one.op, inputs, outputs, more) + body);
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// One sequence of one direction, from its first step to its last.
class Naive {
 public:
  Naive(const Case& one, const Given& given, int direction)
      : one_(one), given_(given), d_(direction) {
    const std::map<std::string, size_t> counts = {{"RNN", 1}, {"GRU", 2}, {"LSTM", 3}};
    const size_t each = counts.at(one.op);
    for (size_t i = 0; i < each; ++i) {
      const bool named = !one.activations.empty();
      const std::string name = named ? one.activations[static_cast<size_t>(d_) * each + i] : "";
      const auto known = one.functions.find(name);
      if (known != one.functions.end())
        functions_.push_back(known->second);
      else if (i == 0 && one.op != "RNN")
        functions_.emplace_back(sigmoid);
      else
        functions_.emplace_back([](double x) { return std::tanh(x); });
    }
  }

  Numbers h = Numbers(kHidden);
  Numbers c = Numbers(kHidden);

  void begin(int b) {
    if (!one_.initial) return;
    for (int j = 0; j < kHidden; ++j) {
      const int row = one_.layout == 1 ? b * one_.directions() + d_ : d_ * kBatch + b;
      h[at(j)] = given_.of("H")[at(row * kHidden + j)];
      if (one_.op == "LSTM") c[at(j)] = given_.of("C")[at(row * kHidden + j)];
    }
  }

  void step(int b, int t) {
    if (one_.op == "RNN") rnn(b, t);
    if (one_.op == "GRU") gru(b, t);
    if (one_.op == "LSTM") lstm(b, t);
  }

 private:
  static size_t at(int i) { return static_cast<size_t>(i); }

  double act(size_t which, double x) const {
    if (one_.clip != 0) x = std::clamp(x, -one_.clip, one_.clip);
    return functions_[which](x);
  }

  int row(int gate, int j) const { return (d_ * one_.gates() + gate) * kHidden + j; }

  double of_input(int b, int t, int gate, int j) const {
    double sum = bias(0, gate, j);
    for (int i = 0; i < kFeatures; ++i) {
      const int place = one_.layout == 1 ? b * kSteps + t : t * kBatch + b;
      sum += static_cast<double>(given_.of("X")[at(place * kFeatures + i)]) *
             given_.of("W")[at(row(gate, j) * kFeatures + i)];
    }
    return sum;
  }

  double bias(int second, int gate, int j) const {
    if (!one_.bias) return 0;
    const int rows = one_.gates() * kHidden;
    return given_.of("B")[at(d_ * 2 * rows + second * rows + gate * kHidden + j)];
  }

  double of_state(const Numbers& state, int gate, int j) const {
    double sum = bias(1, gate, j);
    for (int i = 0; i < kHidden; ++i)
      sum += state[at(i)] * given_.of("R")[at(row(gate, j) * kHidden + i)];
    return sum;
  }

  double peephole(int gate, int j, double cell) const {
    if (!one_.peepholes) return 0;
    return cell * given_.of("P")[at((d_ * 3 + gate) * kHidden + j)];
  }

  void rnn(int b, int t) {
    Numbers next(kHidden);
    for (int j = 0; j < kHidden; ++j)
      next[at(j)] = act(0, of_input(b, t, 0, j) + of_state(h, 0, j));
    h = next;
  }

  void gru(int b, int t) {
    Numbers z(kHidden);
    Numbers r(kHidden);
    Numbers reset(kHidden);
    Numbers next(kHidden);
    for (int j = 0; j < kHidden; ++j) {
      z[at(j)] = act(0, of_input(b, t, 0, j) + of_state(h, 0, j));
      r[at(j)] = act(0, of_input(b, t, 1, j) + of_state(h, 1, j));
      reset[at(j)] = r[at(j)] * h[at(j)];
    }
    for (int j = 0; j < kHidden; ++j) {
      const double state = one_.late ? r[at(j)] * of_state(h, 2, j) : of_state(reset, 2, j);
      const double n = act(1, of_input(b, t, 2, j) + state);
      next[at(j)] = (1 - z[at(j)]) * n + z[at(j)] * h[at(j)];
    }
    h = next;
  }

  void lstm(int b, int t) {
    Numbers next(kHidden);
    for (int j = 0; j < kHidden; ++j) {
      const double before = c[at(j)];
      const auto sum = [&](int gate) { return of_input(b, t, gate, j) + of_state(h, gate, j); };
      const double i = act(0, sum(0) + peephole(0, j, before));
      const double f = one_.coupled ? 1 - i : act(0, sum(2) + peephole(2, j, before));
      c[at(j)] = f * before + i * act(1, sum(3));
      const double o = act(0, sum(1) + peephole(1, j, c[at(j)]));
      next[at(j)] = o * act(2, c[at(j)]);
    }
    h = next;
  }

  const Case& one_;
  const Given& given_;
  int d_;
  std::vector<Function> functions_;
};

// The row of Y of a step, a direction and a sequence; of Y_h and Y_c those of one step.
int row_of(const Case& one, int steps, int t, int d, int b) {
  const int ds = one.directions();
  if (one.layout == 1) return (b * steps + t) * ds + d;
  return (t * ds + d) * kBatch + b;
}

// Output 0, 1 or 2: Y, Y_h, Y_c.
Numbers naive(const Case& one, int output) {
  const Given given = given_of(one);
  const int ds = one.directions();
  Numbers y(static_cast<size_t>((output == 0 ? kSteps : 1) * ds * kBatch * kHidden));
  for (int d = 0; d < ds; ++d)
    for (int b = 0; b < kBatch; ++b) {
      Naive state(one, given, d);
      state.begin(b);
      const int length = one.lengths.empty() ? kSteps : one.lengths[static_cast<size_t>(b)];
      const bool back = d == 1 || one.direction == "reverse";
      for (int i = 0; i < length; ++i) {
        const int t = back ? length - 1 - i : i;
        state.step(b, t);
        if (output == 0)
          std::ranges::copy(state.h, y.begin() + row_of(one, kSteps, t, d, b) * kHidden);
      }
      const Numbers& last = output == 1 ? state.h : state.c;
      if (output != 0) std::ranges::copy(last, y.begin() + row_of(one, 1, 0, d, b) * kHidden);
    }
  return y;
}

void expect_right(const Case& one) {
  for (int output = 0; output < (one.op == "LSTM" ? 3 : 2); ++output) {
    const Numbers found = made_of(text_of(one, output), given_of(one).values);
    const Numbers wanted = naive(one, output);
    ASSERT_EQ(found.size(), wanted.size()) << one.op << " output " << output;
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], wanted[i], 1e-9) << one.op << " output " << output << " at " << i;
  }
}

const std::vector<std::string> kOps = {"RNN", "GRU", "LSTM"};
const std::vector<std::string> kDirections = {"forward", "reverse", "bidirectional"};

TEST(Recurrences, GoThroughSequencesInBothDirectionsAndLayouts) {
  for (const std::string& op : kOps)
    for (const std::string& direction : kDirections)
      for (const int layout : {0, 1})
        expect_right({.op = op, .direction = direction, .layout = layout});
}

TEST(Recurrences, BeginWithZerosWhereNoStateIsGiven) {
  for (const std::string& op : kOps)
    for (const bool bias : {false, true})
      expect_right({.op = op, .direction = "bidirectional", .bias = bias, .initial = false});
}

TEST(Recurrences, LeaveOffWhereASequenceEnds) {
  for (const std::string& op : kOps)
    for (const std::string& direction : kDirections)
      for (const bool initial : {false, true})
        expect_right({.op = op, .direction = direction, .initial = initial, .lengths = {2, 4, 0}});
}

TEST(Recurrences, WholeLengthsSayNothing) {
  const Case all = {.op = "GRU", .lengths = {4, 4, 4}};
  expect_right(all);
  const auto graph = graph::decompose(*parse_onnx(text_of(all, 0)));
  EXPECT_EQ(to_text(*graph).find("Where"), std::string::npos);
}

TEST(Recurrences, GruMayResetBeforeOrAfterTheProduct) {
  for (const bool late : {false, true})
    for (const bool bias : {false, true})
      for (const bool initial : {false, true})
        expect_right({.op = "GRU", .bias = bias, .initial = initial, .late = late});
}

TEST(Recurrences, LstmHasPeepholesAndCoupledGates) {
  expect_right({.direction = "bidirectional", .peepholes = true});
  expect_right({.initial = false, .peepholes = true});
  expect_right({.coupled = true});
}

TEST(Recurrences, ClipBoundsWhatActivationsAreGiven) {
  for (const std::string& op : kOps)
    expect_right({.op = op, .clip = 0.25});
}

std::string reals_text(const std::string& name, const std::vector<double>& values) {
  std::string text = fmt::format("attribute {{ name: \"{}\" type: FLOATS ", name);
  for (const double value : values)
    text += fmt::format("floats: {} ", value);
  return text + "} ";
}

TEST(Recurrences, EveryActivationHasItsFunctionAndDefaults) {
  const std::map<std::string, Function> functions = {
      {"Relu", [](double x) { return std::max(x, 0.0); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"SIGMOID", sigmoid},
      {"Affine", [](double x) { return x; }},
      {"LeakyRelu", [](double x) { return x < 0 ? static_cast<double>(0.01F) * x : x; }},
      {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
      {"ScaledTanh", [](double x) { return std::tanh(x); }},
      {"HardSigmoid",
       [](double x) { return std::clamp(static_cast<double>(0.2F) * x + 0.5, 0.0, 1.0); }},
      {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"Softplus", [](double x) { return std::log1p(std::exp(x)); }}};
  for (const auto& [name, function] : functions)
    expect_right({.op = "RNN", .activations = {name}, .functions = functions});
}

TEST(Recurrences, ActivationsTakeTheirParametersInOrder) {
  const auto real = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  Case one = {.direction = "bidirectional",
              .activations = {"HardSigmoid", "Tanh", "Affine", "Sigmoid", "ScaledTanh", "Softsign"},
              .more = reals_text("activation_alpha", {0.3, 1.5, 0.7}) +
                      reals_text("activation_beta", {0.4, 0.25, 1.25})};
  one.functions = {
      {"HardSigmoid", [=](double x) { return std::clamp(real(0.3) * x + real(0.4), 0.0, 1.0); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"Affine", [=](double x) { return 1.5 * x + 0.25; }},
      {"Sigmoid", sigmoid},
      {"ScaledTanh", [=](double x) { return real(0.7) * std::tanh(1.25 * x); }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }}};
  expect_right(one);
}

TEST(Recurrences, ProjectAllStepsInOneProduct) {
  const auto graph = graph::decompose(*parse_onnx(text_of({.op = "RNN"}, 0)));
  int products = 0;
  int of_all_steps = 0;
  for (const graph::Node& node : graph->nodes) {
    if (node.op != graph::OpKind::MatMul) continue;
    ++products;
    of_all_steps += graph->tensor(node.outputs[0]).shape == graph::Shape{kSteps * kBatch, kHidden};
  }
  EXPECT_EQ(products, 1 + kSteps);
  EXPECT_EQ(of_all_steps, 1);
}

TEST(Recurrences, JoinManyStepsFewAtATime) {
  const std::string body = input_text("x", {"70", "1", "2"}) + input_text("w", {"1", "3", "2"}) +
                           input_text("r", {"1", "3", "3"});
  const auto graph =
      graph::decompose(*parse_onnx(model_text(node_text("RNN", {"x", "w", "r"}, {"y"}) + body)));
  for (const graph::Node& node : graph->nodes)
    EXPECT_TRUE(node.op != graph::OpKind::Concat || node.inputs.size() <= 32);
  EXPECT_EQ(graph->tensor(graph->outputs[0]).shape, (graph::Shape{70, 1, 1, 3}));
}

TEST(Recurrences, KeepHalvesInProducts) {
  const std::string body = input_text("x", {"2", "1", "4"}, 10) +
                           input_text("w", {"1", "8", "4"}, 10) +
                           input_text("r", {"1", "8", "2"}, 10);
  const auto graph =
      graph::decompose(*parse_onnx(model_text(node_text("LSTM", {"x", "w", "r"}, {"y"}) + body)));
  ASSERT_TRUE(graph) << describe(graph.error());
  for (const graph::Node& node : graph->nodes)
    EXPECT_TRUE(node.op != graph::OpKind::MatMul ||
                graph->tensor(node.inputs[0]).dtype == Dtype::f16);
  EXPECT_EQ(graph->tensor(graph->outputs[0]).dtype, Dtype::f16);
}

Error refused(const std::string& op, const std::vector<std::vector<std::string>>& shapes,
              const std::string& more = "") {
  const std::vector<std::string> names = {"x", "w", "r", "b", "l", "h"};
  std::string body;
  std::vector<std::string> inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(shapes[i].empty() ? "" : names[i]);
    if (!shapes[i].empty()) body += input_text(names[i], shapes[i], names[i] == "l" ? 6 : 1);
  }
  return refusal_of(model_text(node_text(op, inputs, {"y"}, more) + body));
}

TEST(Recurrences, OfUnfitShapesAreRefused) {
  const std::vector<std::string> x = {"4", "2", "3"};
  const std::vector<std::string> w = {"1", "5", "3"};
  const std::vector<std::string> r = {"1", "5", "5"};
  EXPECT_EQ(refused("RNN", {{"4", "2"}, w, r}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refused("RNN", {x, {"1", "5", "4"}, r}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refused("RNN", {x, w, {"5", "5"}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refused("RNN", {x, w, r, {"1", "5"}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refused("RNN", {x, w, r, {}, {"3"}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refused("RNN", {x, w, r, {}, {}, {"2", "1", "5"}}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refused("LSTM", {x, w, r}).code, ErrorCode::kOnnxShape);
  EXPECT_EQ(refused("RNN", {x, w}).code, ErrorCode::kOnnxName);
}

TEST(Recurrences, OfUnfitAttributesAreRefused) {
  const std::vector<std::vector<std::string>> shapes = {
      {"4", "2", "3"}, {"1", "5", "3"}, {"1", "5", "5"}};
  const auto text = [](const std::string& name, const std::string& value) {
    return fmt::format("attribute {{ name: \"{}\" type: STRING s: \"{}\" }} ", name, value);
  };
  const auto activation = [](const std::string& name) {
    return fmt::format("attribute {{ name: \"activations\" type: STRINGS strings: \"{}\" }} ",
                       name);
  };
  EXPECT_EQ(refused("RNN", shapes, text("direction", "sideways")).code, ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refused("RNN", shapes, integer_text("hidden_size", 6)).code, ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refused("RNN", shapes, activation("Frob")).code, ErrorCode::kOnnxAttribute);
  EXPECT_EQ(
      refused("GRU", {{"4", "2", "3"}, {"1", "15", "3"}, {"1", "15", "5"}}, activation("Tanh"))
          .code,
      ErrorCode::kOnnxAttribute);
  EXPECT_EQ(refused("RNN", shapes, reals_text("activation_alpha", {0.1})).code,
            ErrorCode::kOnnxAttribute);
}

TEST(Recurrences, OfTooManyStepsAreRefused) {
  const Error error = refused("RNN", {{"1000000", "2", "3"}, {"1", "5", "3"}, {"1", "5", "5"}});
  EXPECT_EQ(error.code, ErrorCode::kOnnxTooLarge);
  EXPECT_NE(error.remedy.find("parts of the sequence"), std::string::npos);
}
}  // namespace
}  // namespace warploom
