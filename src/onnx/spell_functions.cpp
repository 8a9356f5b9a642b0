#include "onnx/spell_functions.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/rendered.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "onnx/spell.h"
#include "onnx/spell_syntax.h"

namespace warploom::spell {
namespace {
constexpr int64_t kOpset = 23;

struct TakesRow {
  std::string_view name;
  Takes takes;
};

constexpr TakesRow kTakes[] = {{"number", Takes::number},
                               {"list", Takes::list},
                               {"sizes", Takes::sizes},
                               {"text", Takes::text}};

const nlohmann::ordered_json& file() {
  static const auto read = nlohmann::ordered_json::parse(resource("new/functions.json"));
  return read;
}

// A text, or a list of its lines.
std::string lines(const nlohmann::ordered_json& text) {
  if (text.is_string()) return text;
  return listed(text.get<std::vector<std::string>>(), {}, "\n");
}

std::string trimmed(const std::string& text) {
  const size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

Expression read_default(const std::string& text) {
  return parse(text).value().statements[0].value;
}

// "x", "b=_", "strides:sizes=1", "x:4": a name, what it takes or how many axes, its default.
Parameter read_parameter(const std::string& text) {
  Parameter out;
  const size_t equals = std::min(text.find('='), text.size());
  const size_t colon = std::min(text.find(':'), equals);
  out.name = text.substr(0, colon);
  if (colon < equals) {
    const std::string kind = text.substr(colon + 1, equals - colon - 1);
    const auto* const row = std::ranges::find(kTakes, kind, &TakesRow::name);
    if (row != std::end(kTakes))
      out.takes = row->takes;
    else
      out.rank = std::stoll(kind);
  }
  if (equals < text.size()) out.otherwise.push_back(read_default(text.substr(equals + 1)));
  return out;
}

Function read_function(const std::string& group, const nlohmann::ordered_json& row) {
  Function out;
  out.shown.group = group;
  out.shown.name = row.at("name");
  out.shown.meaning = row.at("meaning");
  out.shown.example = row.at("example");
  std::istringstream parameters(lines(row.at("parameters")));
  for (std::string one; std::getline(parameters, one, ',');) {
    one = trimmed(one);
    out.parameters.push_back(read_parameter(one));
    const size_t equals = std::min(one.find('='), one.size());
    out.shown.arguments += out.shown.arguments.empty() ? "" : ", ";
    out.shown.arguments += out.parameters.back().name + one.substr(equals);
  }
  out.body = parse(lines(row.at("body"))).value();
  return out;
}

// Operators that a text cannot use: a constant is written as a number or a list.
bool can_be_spelled(const graph::Operator& row) {
  return row.since <= kOpset && row.name != "Constant" && row.name != "ScaledMatMul";
}

std::string arguments_of(const graph::Operator& row) {
  static constexpr std::string_view kOperands[] = {"x", "y", "z", "v", "w"};
  std::string text;
  const int shown = row.max_inputs == graph::kVariadic ? 2 : std::max(row.max_inputs, 1);
  for (int i = 0; i < shown; ++i) {
    if (!text.empty()) text += ", ";
    text += kOperands[std::min(i, 4)];
    if (i >= row.min_inputs) text += "=_";
  }
  if (row.max_inputs == graph::kVariadic) text += ", …";
  for (const graph::AttributeRow* attribute : graph::attributes_of(*graph::op_named(row.name))) {
    text += fmt::format(", {}=", attribute->name);
    text += attribute->otherwise ? graph::to_text(*attribute->otherwise) : "_";
  }
  return text;
}
}  // namespace

const std::vector<Function>& functions() {
  static const std::vector<Function> all = [] {
    std::vector<Function> read;
    for (const auto& group : file().at("functions"))
      for (const auto& row : group.at("rows"))
        read.push_back(read_function(group.at("group"), row));
    return read;
  }();
  return all;
}

std::vector<const Function*> functions_named(const std::string& folded_name) {
  std::vector<const Function*> out;
  for (const Function& function : functions())
    if (folded(function.shown.name) == folded_name) out.push_back(&function);
  return out;
}

std::optional<graph::OpKind> operator_spelled(const std::string& folded_name) {
  for (const graph::Operator& row : graph::operators())
    if (can_be_spelled(row) && folded(row.name) == folded_name) return graph::op_named(row.name);
  return std::nullopt;
}

std::vector<std::string> callable_names() {
  std::set<std::string> names = {"extent", "rank", "swapaxes"};
  for (const Function& function : functions())
    names.insert(function.shown.name);
  for (const graph::Operator& row : graph::operators())
    if (can_be_spelled(row)) names.insert(folded(row.name));
  return {names.begin(), names.end()};
}
}  // namespace warploom::spell

namespace warploom {
std::vector<Spelling> catalogue() {
  std::vector<Spelling> out;
  for (const spell::Function& function : spell::functions())
    out.push_back(function.shown);
  const auto& examples = spell::file().at("operators");
  for (const graph::Operator& row : graph::operators()) {
    if (!spell::can_be_spelled(row)) continue;
    const std::string name = spell::folded(row.name);
    const std::string plain = name + "(x[64,512])";  // of what takes any one tensor
    Spelling shown{.group = "ONNX operators", .name = name};
    shown.arguments = spell::arguments_of(row);
    shown.example = examples.value(std::string(row.name), plain);
    out.push_back(std::move(shown));
  }
  return out;
}
}  // namespace warploom
