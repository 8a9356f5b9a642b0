#include "onnx/spell.h"
#include <fmt/format.h>
#include <google/protobuf/text_format.h>
#include <onnx/onnx.pb.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "onnx/load.h"
#include "onnx/spell_arguments.h"
#include "onnx/spell_context.h"
#include "onnx/spell_functions.h"
#include "onnx/spell_syntax.h"
#include "onnx/spell_writer.h"

namespace warploom {
using onnx::ModelProto;

namespace spell {
namespace {
using graph::OpKind, graph::TensorId;

struct Scope {
  std::map<std::string, SpelledValue> values;
  std::map<std::string, Place> unused;  // names of statements that nothing has read yet
};

class Speller {
 public:
  Speller(std::string_view text, Dtype dtype, std::set<std::string> names)

      : context_{text, dtype, ModelWriter(std::move(names))} {}

  Result<ModelProto> run(const Text& read, std::string_view name) {
    Scope scope;
    WARPLOOM_TRY(const SpelledValue last, statements(read, scope));
    if (context_.writer.empty())
      return context_.wrong(read.statements.back().value.place, "the model computes nothing",
                            "a function or an operator, as in relu(x[64])");
    WARPLOOM_CHECK(outputs(read, scope, last));
    for (const auto& [unused, place] : scope.unused)
      return context_.wrong(place, "a value is never used", "a later use of " + unused, unused,
                            fmt::format("use it, leave it out, or give it out with -> {}", unused));
    return context_.writer.model(name);
  }

 private:
  Result<SpelledValue> statements(const Text& read, Scope& scope) {
    SpelledValue last;
    for (const Statement& statement : read.statements) {
      if (&statement != &read.statements.back() && statement.names.empty())
        return context_.wrong(statement.value.place, "a value is lost", "a name for it, as h = …",
                              "", "name it and use it, or leave it out");
      WARPLOOM_TRY(last, assigned(statement, scope));
      if (&statement == &read.statements.back() && read.outputs.empty())
        for (const Name& name : statement.names)
          scope.unused.erase(name.text);
    }
    return last;
  }

  Result<SpelledValue> assigned(const Statement& statement, Scope& scope) {
    const size_t count = std::max<size_t>(1, statement.names.size());
    WARPLOOM_TRY(std::vector<SpelledValue> values, evaluated(statement.value, scope, count));
    for (size_t i = 0; i < statement.names.size(); ++i) {
      const Name& name = statement.names[i];
      if (scope.values.contains(name.text) || inputs_.contains(name.text))
        return context_.wrong(name.place, "a name is given twice", "another name", name.text);
      const auto* const tensor = std::get_if<TensorValue>(&values[i]);
      if (tensor != nullptr && context_.within.empty()) context_.writer.name(tensor->id, name.text);
      scope.values[name.text] = values[i];
      scope.unused[name.text] = name.place;
    }
    return values[0];
  }

  Status outputs(const Text& read, Scope& scope, const SpelledValue& last) {
    const Statement& end = read.statements.back();
    if (end.names.empty() && !read.outputs.empty())
      return context_.wrong(end.value.place, "a value is lost", "a name for it, as h = …", "",
                            "name it and give it out behind ->");
    std::vector<Name> names = read.outputs.empty() ? end.names : read.outputs;
    std::vector<SpelledValue> values;
    for (const Name& name : names) {
      Expression wanted{.kind = Expression::Kind::name, .place = name.place, .name = name.text};
      WARPLOOM_TRY(const std::vector<SpelledValue> value, evaluated(wanted, scope, 1));
      values.push_back(value[0]);
    }
    if (names.empty()) {
      const bool taken = scope.values.contains("y") || inputs_.contains("y");
      values.push_back(last);
      const std::string name = taken ? context_.writer.fresh("y", 1) : "y";
      names.push_back({name, end.value.place});
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const auto* const tensor = std::get_if<TensorValue>(&values[i]);
      if (tensor == nullptr)
        return context_.wrong(names[i].place, "the model's output is no tensor", "a tensor",
                              described(values[i]));
      if (const Status named = context_.writer.output(tensor->id, names[i].text); !named)
        return context_.at_call(names[i].place, named.error());
    }
    return ok();
  }

  // So many values: one, but of a call of an operator with several outputs.
  Result<std::vector<SpelledValue>> evaluated(const Expression& expression, Scope& scope,
                                              size_t count) {
    using Kind = Expression::Kind;
    if (expression.kind == Kind::call) return called(expression, scope, count);
    if (count != 1)
      return context_.wrong(expression.place, "several names for one value",
                            "an operator with several outputs, as split(x, …)");
    WARPLOOM_TRY(SpelledValue value, single(expression, scope));
    return std::vector{std::move(value)};
  }

  Result<SpelledValue> single(const Expression& expression, Scope& scope) {
    using Kind = Expression::Kind;
    switch (expression.kind) {
      case Kind::absent: return Absent{};
      case Kind::number: return expression.number;
      case Kind::text: return expression.name;
      case Kind::name: return named(expression, scope);
      case Kind::input: return input(expression, scope);
      case Kind::list: return list(expression.items, scope);
      case Kind::call: break;
    }
    WARPLOOM_TRY(std::vector<SpelledValue> values, called(expression, scope, 1));
    return std::move(values[0]);
  }

  Result<SpelledValue> list(const std::vector<Expression>& items, Scope& scope) {
    List out;
    for (const Expression& item : items) {
      WARPLOOM_TRY(const SpelledValue value, single(item, scope));
      if (!is_number(value))
        return context_.wrong(item.place, "a list holds something else than numbers", "a number",
                              described(value));
      out.push_back(std::get<double>(value));
    }
    return out;
  }

  Result<SpelledValue> named(const Expression& expression, Scope& scope) {
    scope.unused.erase(expression.name);
    if (const auto found = scope.values.find(expression.name); found != scope.values.end())
      return found->second;
    const auto input = inputs_.find(expression.name);
    if (input != inputs_.end() && context_.within.empty()) return TensorValue{input->second};
    if (expression.name == "inf") return HUGE_VAL;
    std::vector<std::string> known;
    for (const auto& [name, value] : scope.values)
      known.push_back(name);
    for (const auto& [name, id] : inputs_)
      known.push_back(name);
    const std::string shape =
        fmt::format("an input has a shape where it is first named: {}[64,128]", expression.name);
    const std::string remedy =
        did_you_mean(expression.name, known, "write its shape, or name a value before it is used");
    const std::string message = "nothing has this name yet";
    return context_.wrong(expression.place, message, shape, expression.name, remedy);
  }

  Result<SpelledValue> input(const Expression& expression, Scope& scope) {
    if (scope.values.contains(expression.name) || inputs_.contains(expression.name))
      return context_.wrong(expression.place, "an input is declared twice, or is a value's name",
                            "the name alone, without a shape", expression.name);
    WARPLOOM_TRY(const SpelledValue sizes, list(expression.items, scope));
    graph::Shape shape;
    for (const double size : std::get<List>(sizes)) {
      if (!is_whole(size) || size < 0)
        return context_.wrong(expression.place, "a size of an input is none",
                              "whole numbers of 0 or more", described(size));
      shape.push_back(as_int64(size));
    }
    Dtype dtype = context_.dtype;
    if (!expression.dtype.empty()) {
      WARPLOOM_TRY(dtype, context_.type_of(expression.dtype, expression.dtype_place));
    }
    const auto counted = graph::checked_element_count(shape, "");
    if (!counted) return context_.at_call(expression.place, counted.error());
    const TensorId id = context_.writer.input(expression.name, dtype, shape);
    inputs_[expression.name] = id;
    return TensorValue{id};
  }

  Result<std::vector<SpelledValue>> called(const Expression& call, Scope& scope, size_t count) {
    const std::string name = folded(call.name);
    auto functions = functions_named(name);
    // Within a function its own name is the operator's.
    if (contains(context_.within, call.name, &Call::function)) functions.clear();
    const auto op = operator_spelled(name);
    WARPLOOM_TRY(const std::vector<Given> given, arguments(call, scope));
    if (auto value = known_when_spelled(name, given)) return std::vector{SpelledValue(*value)};
    if (is_built_in(name)) return one(call_built_in(context_, name, call.place, given));
    if (contains(type_names(), call.name))
      return one(convert(context_, call.name, call.place, given));
    for (const Function* function : functions)
      if (fits(*function, given)) return one(applied(*function, call.place, given));
    if (op && (functions.empty() || fits(*op, given)))
      return call_operator(context_, *op, call.place, given, count);
    if (!functions.empty()) return misfit(context_, *functions[0], call.place, given);
    auto known = callable_names();
    for (const std::string& type : type_names())
      known.push_back(type);
    const std::string remedy =
        did_you_mean(call.name, known, "`warploom new --list` names them all");
    return context_.wrong(call.place, "there is no function of this name",
                          "a function or an ONNX operator", call.name, remedy);
  }

  static Result<std::vector<SpelledValue>> one(Result<SpelledValue> value) {
    if (!value) return fail(value.error());
    return std::vector{std::move(*value)};
  }

  // A word by itself behind `=` that is no value's name is a text: mode=linear.
  Result<std::vector<Given>> arguments(const Expression& call, Scope& scope) {
    std::vector<Given> out;
    for (const Argument& argument : call.arguments) {
      const Expression& value = argument.value[0];
      const bool has_value = scope.values.contains(value.name) || inputs_.contains(value.name);
      const bool is_word = value.kind == Expression::Kind::name && value.name != "inf";
      if (!argument.name.empty() && is_word && !has_value) {
        out.push_back({argument.name, argument.place, value.name});
        continue;
      }
      WARPLOOM_TRY(SpelledValue read, single(value, scope));
      const bool is_named = !argument.name.empty();
      const bool repeated = is_named && contains(out, argument.name, &Given::name);
      if (repeated)
        return context_.wrong(argument.place, "an argument is given twice", "", argument.name);
      out.push_back({argument.name, argument.place, std::move(read)});
    }
    return out;
  }

  // A function's body with its parameters' values.
  Result<SpelledValue> applied(const Function& function, Place place,
                               const std::vector<Given>& given) {
    Scope scope;
    WARPLOOM_TRY(scope.values, bound(context_, function, given));
    context_.within.push_back({function.shown.name, place});
    for (const Parameter& parameter : function.parameters) {
      if (scope.values.contains(parameter.name)) continue;
      WARPLOOM_TRY(scope.values[parameter.name], single(parameter.otherwise[0], scope));
    }
    WARPLOOM_TRY(SpelledValue value, statements(function.body, scope));
    context_.within.pop_back();
    return value;
  }

  Context context_;
  std::map<std::string, TensorId> inputs_;
};

// Every name that the text may give to a tensor.
void collect(const Expression& expression, std::set<std::string>& names) {
  if (expression.kind == Expression::Kind::input) names.insert(expression.name);
  for (const Expression& item : expression.items)
    collect(item, names);
  for (const Argument& argument : expression.arguments)
    collect(argument.value[0], names);
}

std::set<std::string> names_of(const Text& text) {
  std::set<std::string> names = {"y"};
  for (const Statement& statement : text.statements) {
    for (const Name& name : statement.names)
      names.insert(name.text);
    collect(statement.value, names);
  }
  return names;
}
}  // namespace
}  // namespace spell

Result<SpelledModel> spell_onnx(std::string_view text, std::string_view name, Dtype dtype) {
  WARPLOOM_TRY(const spell::Text read, spell::parse(text));
  spell::Speller speller(text, dtype, spell::names_of(read));
  WARPLOOM_TRY(const ModelProto model, speller.run(read, name));
  SpelledModel out;
  out.binary = model.SerializeAsString();
  google::protobuf::TextFormat::PrintToString(model, &out.text);
  WARPLOOM_TRY(out.graph, parse_onnx(out.binary, "the expression"));
  return out;
}
}  // namespace warploom
