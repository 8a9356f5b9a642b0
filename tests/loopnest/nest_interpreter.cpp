#include "nest_interpreter.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/integers.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"
#include "support/large_integers.h"
#include "support/problems.h"

namespace warploom::test {
namespace {
using loopnest::Access, loopnest::Affine, loopnest::Expr, loopnest::LoopNest;
using Indices = std::vector<int64_t>;  // one an axis

std::string to_text(const Affine& coordinate) {
  std::vector<std::string> parts;
  for (size_t a = 0; a < coordinate.steps.size(); ++a) {
    const int64_t step = coordinate.steps[a];
    if (step == 1) parts.push_back(fmt::format("i{}", a));
    if (step != 0 && step != 1) parts.push_back(fmt::format("{}·i{}", step, a));
  }
  if (coordinate.begin != 0 || parts.empty()) parts.push_back(std::to_string(coordinate.begin));
  return fmt::format("{}", fmt::join(parts, " + "));
}

std::string to_text(const Access& access) {
  std::vector<std::string> parts;
  for (const Affine& c : access.at)
    parts.push_back(to_text(c));
  const std::string padding =
      access.in_bounds ? "" : fmt::format(", padding value {}", access.padding_value);
  return fmt::format("{} {} [{}] at {{{}}}{}", access.name, name_of(access.dtype),
                     fmt::join(access.shape, ","), fmt::join(parts, ", "), padding);
}

std::string to_text(const LoopNest& nest, const Expr& value) {
  const std::string operands = fmt::format("{}", fmt::join(value.operands, ", "));
  switch (value.kind) {
    case Expr::Kind::constant: return fmt::format("constant {}", value.value);
    case Expr::Kind::load: return "load " + to_text(nest.load_of(value));
    case Expr::Kind::index: return "index " + to_text(value.at);
    case Expr::Kind::apply: return fmt::format("{}({})", name_of(value.op), operands);
    case Expr::Kind::round: return fmt::format("{} of {}", name_of(value.dtype), operands);
    case Expr::Kind::reduce:
      return fmt::format("reduce {} of {} over {{{}}}", name_of(value.op), operands,
                         fmt::join(value.axes, ", "));
    case Expr::Kind::scan:
      return fmt::format("scan of {} along i{}{}", operands, value.axes[0],
                         value.reverse ? " reverse" : "");
  }
  return "";
}

// A value as both sorts of operations take it.
struct Number {
  double real = 0;
  int64_t whole = 0;

  static Number of(double real) { return {real, saturated_integer(Dtype::i64, real)}; }

  static Number of_whole(int64_t whole) { return {static_cast<double>(whole), whole}; }
};

int64_t value_of(const Affine& coordinate, const Indices& at) {
  int64_t sum = coordinate.begin;
  for (size_t a = 0; a < at.size(); ++a)
    sum += coordinate.steps[a] * at[a];
  return sum;
}

// All indices below these sizes, the last axis fastest.
void for_each_index(const Indices& sizes, const std::function<void(const Indices&)>& body) {
  Indices at(sizes.size(), 0);
  for (;;) {
    body(at);
    size_t a = sizes.size();
    while (a > 0 && ++at[a - 1] == sizes[a - 1])
      at[--a] = 0;
    if (a == 0) return;
  }
}

// One step of a value: on integers or on floats.
Number step(const Expr& value, ValueOp op, const Number& a, const Number& b, const Number& c = {}) {
  if (value.integers) return Number::of_whole(apply_integers(op, a.whole, b.whole, c.whole));
  return Number::of(apply(op, a.real, b.real, c.real));
}

class NestInterpreter {
 public:
  NestInterpreter(const LoopNest& nest, const graph::Graph& graph,
                  const std::vector<std::vector<std::byte>>& inputs)
      : nest_(nest) {
    const auto data_of = [&](graph::TensorId id) {
      const auto& constant = graph.tensor(id).constant;
      if (constant) return constant->data();
      const auto found = std::ranges::find(graph.inputs, id);
      return inputs[static_cast<size_t>(found - graph.inputs.begin())].data();
    };
    for (const Access& load : nest.loads) {
      data_.push_back(data_of(load.tensor));
      const auto indices = graph.tensor_named(load.gather_indices.name);
      gather_indices_.push_back(load.is_gathered() ? data_of(*indices) : nullptr);
    }
  }

  // Writes what the nest writes of its output number `o`.
  void write(size_t o, std::vector<Number>& to) {
    const auto& [value, place] = nest_.outputs[o];
    Indices sizes(nest_.axes.size(), 1);
    for (size_t a = 0; a < sizes.size(); ++a)
      if (place.uses(a)) sizes[a] = nest_.axes[a];
    for_each_index(sizes, [&](const Indices& at) {
      int64_t offset = 0;
      for (size_t d = 0; d < place.at.size(); ++d)
        offset += value_of(place.at[d], at) * place.strides[d];
      to[static_cast<size_t>(offset)] = result(value, at);
    });
  }

 private:
  Number result(int id, Indices at) {
    const Expr& value = nest_.value(id);
    for (size_t a = 0; a < at.size(); ++a)
      if (!value.varies[a]) at[a] = 0;
    const auto found = known_.find({id, at});
    if (found != known_.end()) return found->second;
    const Number number = compute(value, at);
    known_[{id, at}] = number;
    return number;
  }

  Number compute(const Expr& value, const Indices& at) {
    switch (value.kind) {
      case Expr::Kind::constant: return Number::of(value.value);
      case Expr::Kind::index: return Number::of_whole(value_of(value.at, at));
      case Expr::Kind::load: return load(value, at);
      case Expr::Kind::round: return round(value, at);
      case Expr::Kind::apply: return apply_op(value, at);
      case Expr::Kind::reduce: return reduce(value, at);
      case Expr::Kind::scan: return scan(value, at);
    }
    return {};
  }

  Number load(const Expr& value, const Indices& at) {
    const Access& load = nest_.load_of(value);
    const auto number = static_cast<size_t>(value.load);
    int64_t offset = 0;
    for (size_t d = 0; d < load.at.size(); ++d) {
      int64_t c = value_of(load.at[d], at);
      if (load.is_gather_dim(d)) {
        c = load_integer(load.gather_indices.dtype, gather_indices_[number], c);
        if (c < 0) c += load.shape[d];
      }
      if (c < 0 || c >= load.shape[d]) {
        EXPECT_FALSE(load.in_bounds);
        return Number::of(load.padding_value);
      }
      offset += c * load.strides[d];
    }
    if (is_integer(load.dtype))
      return Number::of_whole(load_integer(load.dtype, data_[number], offset));
    return Number::of(load_as_double(load.dtype, data_[number], static_cast<size_t>(offset)));
  }

  Number round(const Expr& value, const Indices& at) {
    const Number of = result(value.operands[0], at);
    if (value.integers) return Number::of_whole(wrapped_integer(value.dtype, of.whole));
    return Number::of(rounded(value.dtype, of.real));
  }

  Number apply_op(const Expr& value, const Indices& at) {
    std::array<Number, 3> inputs{};
    for (size_t i = 0; i < value.operands.size(); ++i)
      inputs[i] = result(value.operands[i], at);
    return step(value, value.op, inputs[0], inputs[1], inputs[2]);
  }

  Number reduce(const Expr& value, const Indices& at) {
    Indices sizes(at.size(), 1);
    for (const size_t axis : value.axes)
      sizes[axis] = nest_.axes[axis];
    Number sum = Number::of(loopnest::identity_of(value.op));
    for_each_index(sizes, [&](Indices inner) {
      for (size_t a = 0; a < at.size(); ++a)
        if (sizes[a] == 1) inner[a] = at[a];
      sum = step(value, value.op, sum, result(value.operands[0], inner));
    });
    return sum;
  }

  Number scan(const Expr& value, const Indices& at) {
    const size_t axis = value.axes[0];
    Number sum;
    Indices other = at;
    for (other[axis] = 0; other[axis] < nest_.axes[axis]; ++other[axis]) {
      const bool counts = value.reverse ? other[axis] >= at[axis] : other[axis] <= at[axis];
      if (counts) sum = step(value, ValueOp::add, sum, result(value.operands[0], other));
    }
    return sum;
  }

  const LoopNest& nest_;
  std::vector<const std::byte*> data_;            // by load
  std::vector<const std::byte*> gather_indices_;  // by load; null where it gathers nothing
  std::map<std::pair<int, Indices>, Number> known_;
};
}  // namespace

std::optional<LoopNest> nest_of(const graph::Graph& graph) {
  auto nests = loopnest::nests_of(graph);
  if (nests.size() != 1) return std::nullopt;
  if (std::ranges::any_of(nests[0].loads, &Access::is_gathered)) return std::nullopt;
  return std::move(nests[0]);
}

std::string to_text(const LoopNest& nest) {
  std::string out = fmt::format("axes {{{}}}\n", fmt::join(nest.axes, ", "));
  for (size_t v = 0; v < nest.values.size(); ++v)
    out += fmt::format("{} {}\n", v, to_text(nest, nest.values[v]));
  for (const LoopNest::Output& output : nest.outputs)
    out += fmt::format("output {} -> {}\n", output.value, to_text(output.place));
  return out;
}

namespace {
// What the nests of a graph write of an output of it; the least numbers where none does.
std::vector<Number> written(const std::vector<LoopNest>& nests, const graph::Graph& graph,
                            const std::vector<std::vector<std::byte>>& inputs,
                            graph::TensorId output) {
  const graph::Tensor& tensor = graph.tensor(output);
  const auto count = static_cast<size_t>(graph::element_count(tensor.shape));
  std::vector<Number> have(count, Number{NAN, std::numeric_limits<int64_t>::min()});
  for (const LoopNest& nest : nests)
    for (size_t i = 0; i < nest.outputs.size(); ++i)
      if (nest.outputs[i].place.tensor == output)
        NestInterpreter(nest, graph, inputs).write(i, have);
  return have;
}

void expect_numbers(const std::vector<Number>& have, const graph::ValueAndMagnitude& want,
                    bool integers, const std::string& what) {
  for (size_t i = 0; i < have.size(); ++i) {
    if (integers) {
      ASSERT_EQ(have[i].whole, want.integers[i]) << what << "element " << i;
      continue;
    }
    const double real = want.value[i];
    ASSERT_NEAR(have[i].real, real, 1e-9 * (1 + std::abs(real))) << what << "element " << i;
  }
}
}  // namespace

void expect_agreement(const graph::Graph& graph,
                      const std::vector<std::vector<std::byte>>& inputs) {
  const auto nests = loopnest::nests_of(graph);
  ASSERT_FALSE(nests.empty()) << to_text(graph);
  const std::vector<graph::Bytes> views(inputs.begin(), inputs.end());
  const auto want = graph::evaluate_exactly(graph, views, 1);
  ASSERT_TRUE(want.has_value()) << describe(want.error());
  const std::string what = to_text(graph) + to_text(nests[0]);
  for (size_t o = 0; o < graph.outputs.size(); ++o) {
    const graph::TensorId output = graph.outputs[o];
    const std::vector<Number> have = written(nests, graph, inputs, output);
    const bool integers = is_integer(graph.tensor(output).dtype);
    ASSERT_NO_FATAL_FAILURE(expect_numbers(have, (*want)[o], integers, what));
  }
}

void expect_agreement(const graph::Graph& graph) {
  expect_agreement(graph, random_inputs(graph, 1));
}

void expect_exact(const graph::Graph& graph) {
  expect_agreement(graph, large_inputs(graph, 1));
}
}  // namespace warploom::test
