#include "graph/operators.h"
namespace warploom::graph {
namespace rules {
#define WARPLOOM_OP(name, since, least, most, op_class, shape_rule, access_rule) ShapeRule shape_rule;
#include "graph/ops.def"
}  // namespace rules
namespace access {
#define WARPLOOM_OP(name, since, least, most, op_class, shape_rule, access_rule) AccessRule access_rule;
#include "graph/ops.def"
}  // namespace access
namespace {
constexpr std::array kOperators = {
#define WARPLOOM_OP(name, since, least, most, op_class, shape_rule, access_rule) \
  Operator{#name, since, least, most, OpClass::op_class, &rules::shape_rule, &access::access_rule},
#include "graph/ops.def"
};
}  // namespace
const Operator& operator_of(OpKind op) { return kOperators[static_cast<std::size_t>(op)]; }
std::string_view name_of(OpKind op) { return operator_of(op).name; }
OpClass class_of(OpKind op) { return operator_of(op).op_class; }
std::optional<OpKind> op_named(std::string_view name) {
  for (std::size_t i = 0; i < kOperators.size(); ++i)
    if (kOperators[i].name == name) return static_cast<OpKind>(i);
  return std::nullopt;
}
std::string supported_operators() {
  std::vector<std::string_view> names;
  for (const Operator& row : kOperators)
    if (row.since != kInternal) names.push_back(row.name);
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

const std::vector<AttributeRow>& attribute_rows() {
  constexpr std::nullopt_t kNoDefault = std::nullopt;
  static const std::vector<AttributeRow> rows = {
#define WARPLOOM_ATTRIBUTE(op, name, kind, since, otherwise) {OpKind::op, #name, AttributeKind::kind, since, otherwise},
#include "graph/attributes.def"
  };
  return rows;
}

std::size_t Question::axis(std::size_t rank) const {
  return static_cast<std::size_t>(*normalized_axis(node.integer("axis"), rank, place));
}

tl::unexpected<Error> Question::error(ErrorCode code, std::string message, std::string expected, std::string found,
                                      std::string remedy) const {
  return fail({code, std::move(message), place, std::move(expected), std::move(found), std::move(remedy)});
}
}  // namespace warploom::graph
