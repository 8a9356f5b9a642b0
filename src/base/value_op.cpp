#include "base/value_op.h"
#include <array>
#include <cmath>
#include <numbers>  // IWYU pragma: keep (base/value_ops.def)
#include <optional>
#include <string_view>
#include "base/casts.h"
#include "base/dtype.h"  // IWYU pragma: keep (base/value_ops.def)
#include "base/rows.h"

namespace warploom {
namespace {
struct Row {
  std::string_view name;
  int arity;
};

constexpr std::array kRows = {
#define WARPLOOM_VALUE_OP(name, arity, fp64, moved) Row{#name, arity},
#include "base/value_ops.def"
};
}  // namespace

std::string_view name_of(ValueOp op) {
  return kRows[as_size(op)].name;
}

std::optional<ValueOp> value_op_named(std::string_view name) {
  return row_where<ValueOp>(kRows, name, &Row::name);
}

int arity_of(ValueOp op) {
  return kRows[as_size(op)].arity;
}

double apply(ValueOp op, double a, [[maybe_unused]] double b, [[maybe_unused]] double c) {
  switch (op) {
#define WARPLOOM_VALUE_OP(name, arity, fp64, moved) \
  case ValueOp::name: return fp64;
#include "base/value_ops.def"
  }
  return 0;
}

double moved(ValueOp op, const double* of, double v, const double* e) {
  // NaN as an error says that the argument is more than its type holds: then so does the result's.
  const auto slope = [](double s, double error) {
    if (std::isnan(error)) return error;
    return error == 0 || s == 0 ? 0 : std::fabs(s) * error;
  };
  const auto larger = [](double one, double other) {
    return one > other || std::isnan(one) ? one : other;
  };
  [[maybe_unused]] const double a = of[0];
  [[maybe_unused]] const double b = of[1];
  [[maybe_unused]] const double x = e[0];
  [[maybe_unused]] const double y = e[1];
  [[maybe_unused]] const double z = e[2];
  const double taken = v == a ? x : y;
  const bool has_infinity = std::isinf(a) || std::isinf(b);
  [[maybe_unused]] const double choice = has_infinity ? taken : larger(x, y);
  switch (op) {
#define WARPLOOM_VALUE_OP(name, arity, fp64, moved) \
  case ValueOp::name: return moved;
#include "base/value_ops.def"
  }
  return 0;
}
}  // namespace warploom
