#include "base/value_op.h"
#include <array>
#include <cmath>
#include <numbers>
#include "base/dtype.h"
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
  return kRows[static_cast<std::size_t>(op)].name;
}

std::optional<ValueOp> value_op_named(std::string_view name) {
  return row_where<ValueOp>(kRows, name, &Row::name);
}

int arity_of(ValueOp op) {
  return kRows[static_cast<std::size_t>(op)].arity;
}

double apply(ValueOp op, double a, [[maybe_unused]] double b, [[maybe_unused]] double c) {
#define WARPLOOM_VALUE_OP(name, arity, fp64, moved) \
  if (op == ValueOp::name) return fp64;
#include "base/value_ops.def"
  return 0;
}

double moved(ValueOp op, const double* of, double v, const double* e) {
  const auto slope = [](double s, double error) {
    return error == 0 || s == 0 ? 0 : std::fabs(s) * error;
  };
  [[maybe_unused]] const double a = of[0], b = of[1], x = e[0], y = e[1], z = e[2],
                                choice = std::isinf(a) || std::isinf(b) ? (v == a ? x : y)
                                                                        : std::fmax(x, y);
#define WARPLOOM_VALUE_OP(name, arity, fp64, moved) \
  if (op == ValueOp::name) return moved;
#include "base/value_ops.def"
  return 0;
}
}  // namespace warploom
