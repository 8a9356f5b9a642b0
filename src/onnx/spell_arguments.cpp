#include "onnx/spell_arguments.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/nearest.h"
#include "graph/graph.h"
#include "onnx/spell_context.h"
#include "onnx/spell_functions.h"
#include "onnx/spell_syntax.h"

namespace warploom::spell {
namespace {
// Of two numbers; nothing of an operation that is for tensors alone.
std::optional<double> computed(const std::string& function, double a, double b) {
  if (function == "add") return a + b;
  if (function == "sub") return a - b;
  if (function == "mul") return a * b;
  if (function == "div") return a / b;
  if (function == "pow") return std::pow(a, b);
  return std::nullopt;
}

// A function's parameter for an argument: nothing where there is none.
const Parameter* parameter_of(const Function& function, const Given& given, size_t order) {
  if (given.name.empty())
    return order < function.parameters.size() ? &function.parameters[order] : nullptr;
  const auto found = std::ranges::find(function.parameters, given.name, &Parameter::name);
  return found == function.parameters.end() ? nullptr : &*found;
}

bool takes(const Parameter& parameter, const SpelledValue& value) {
  const bool absent = std::holds_alternative<Absent>(value);
  if (absent) return !parameter.otherwise.empty();
  const bool list = std::holds_alternative<List>(value);
  switch (parameter.takes) {
    case Takes::tensor: return std::holds_alternative<TensorValue>(value) || is_number(value);
    case Takes::number: return is_number(value);
    case Takes::list:
    case Takes::sizes: return list || is_number(value);
    case Takes::text: return std::holds_alternative<std::string>(value);
  }
  return false;
}

}  // namespace

bool fits(const Function& function, const std::vector<Given>& given) {
  std::set<std::string> there;
  for (size_t i = 0; i < given.size(); ++i) {
    const Parameter* const parameter = parameter_of(function, given[i], i);
    if (parameter == nullptr || !takes(*parameter, given[i].value)) return false;
    if (!there.insert(parameter->name).second) return false;
  }
  return std::ranges::all_of(function.parameters, [&](const Parameter& parameter) {
    return !parameter.otherwise.empty() || there.contains(parameter.name);
  });
}

// Why a function does not take its arguments.
tl::unexpected<Error> misfit(const Context& context, const Function& function, Place place,
                             const std::vector<Given>& given) {
  static constexpr std::string_view kKinds[] = {"a tensor", "a number", "a list of numbers",
                                                "a number or a list", "a text"};
  const std::string form = fmt::format("{}({})", function.shown.name, function.shown.arguments);
  std::vector<std::string> names;
  for (const Parameter& parameter : function.parameters)
    names.push_back(parameter.name);
  for (size_t i = 0; i < given.size(); ++i) {
    const Parameter* const parameter = parameter_of(function, given[i], i);
    const std::string& name = given[i].name;
    const std::string found = described(given[i].value);
    if (parameter == nullptr && !name.empty()) {
      const std::string message = "the function has no argument of this name";
      return context.wrong(given[i].place, message, form, name, did_you_mean(name, names));
    }
    if (parameter == nullptr)
      return context.wrong(given[i].place, "there is an operand too many", form, found);
    if (!takes(*parameter, given[i].value)) {
      const std::string message = fmt::format("{} is of another kind", parameter->name);
      const std::string_view kind = kKinds[as_int(parameter->takes)];
      const std::string expected = fmt::format("{} in {}", kind, form);
      return context.wrong(given[i].place, message, expected, found);
    }
  }
  const std::string found = fmt::format("{} operands", given.size());
  const std::string remedy = "as in " + function.shown.example;
  return context.wrong(place, "an operand is missing", form, found, remedy);
}

Result<std::map<std::string, SpelledValue>> bound(const Context& context, const Function& function,
                                                  const std::vector<Given>& given) {
  std::map<std::string, SpelledValue> out;
  for (size_t i = 0; i < given.size(); ++i) {
    const Parameter& parameter = *parameter_of(function, given[i], i);
    SpelledValue value = given[i].value;
    if (is_number(value) && parameter.takes == Takes::list) value = List{std::get<double>(value)};
    const auto* const tensor = std::get_if<TensorValue>(&value);
    if (tensor != nullptr && parameter.rank > 0) {
      const auto& shape = context.writer.tensor(tensor->id).shape;
      if (std::ssize(shape) != parameter.rank) {
        const std::string message = fmt::format("{} has a wrong number of axes", parameter.name);
        const std::string expected =
            fmt::format("{} axes for {}", parameter.rank, function.shown.name);
        const std::string remedy = "as in " + function.shown.example;
        return context.wrong(given[i].place, message, expected, graph::to_text(shape), remedy);
      }
    }
    out[parameter.name] = std::move(value);
  }
  return out;
}

std::optional<double> known_when_spelled(const std::string& name, const std::vector<Given>& given) {
  if (given.empty() || !std::ranges::all_of(given, is_number, &Given::value)) return std::nullopt;
  const double first = std::get<double>(given[0].value);
  if (name == "neg" && given.size() == 1) return -first;
  if (given.size() != 2) return std::nullopt;
  return computed(name, first, std::get<double>(given[1].value));
}

}  // namespace warploom::spell
