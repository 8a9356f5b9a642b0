#include "loopnest/whole_product.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
namespace {
// Whether the type's elements are whole numbers of 8 bits, and their differences of 9.
bool is_small(Dtype dtype) {
  return is_integer(dtype) && dtype != Dtype::boolean && bits_of(dtype) == 8;
}

struct Ends {
  double low = -HUGE_VAL;
  double high = HUGE_VAL;
};

// What maxima and minima with constants keep a value between.
Ends ends_of(const LoopNest& nest, int id) {
  const Expr& value = nest.value(id);
  const bool is_least = value.op == ValueOp::min;
  if (value.kind != Kind::apply || !(is_least || value.op == ValueOp::max)) return {};
  const auto is_constant = [&](int operand) { return nest.value(operand).kind == Kind::constant; };
  const auto end = std::ranges::find_if(value.operands, is_constant);
  if (end == value.operands.end()) return {};
  const double number = nest.value(*end).value;
  const int other = value.operands[end == value.operands.begin() ? 1 : 0];
  const Ends kept = ends_of(nest, other);
  if (is_least) return {std::min(kept.low, number), std::min(kept.high, number)};
  return {std::max(kept.low, number), std::max(kept.high, number)};
}

// Reads a nest as such a product, and makes another one of it whose sum is of two loads alone, and
// where nothing is said of how whole numbers are kept.
class Reader {
 public:
  explicit Reader(const LoopNest& nest) : from_(nest), to_(nest), made_(nest.values.size(), -1) {
    to_.values.clear();
  }

  std::optional<WholeProduct> read() {
    if (from_.scan() || !find_sum() || !make_sum()) return std::nullopt;
    for (size_t i = 0; i < from_.outputs.size(); ++i) {
      const auto value = result(from_.outputs[i]);
      if (!value) return std::nullopt;
      to_.outputs[i].value = *value;
    }
    const bool stays_small = from_.largest_magnitude(as_int(sum_)) < 0x1p31;
    if (!stays_small && !wraps_) return std::nullopt;
    auto contraction = contraction_of(to_, false, Results::several);
    if (!contraction || !contraction->triangular_operands.empty()) return std::nullopt;
    return WholeProduct{*std::move(contraction), std::move(zero_points_)};
  }

 private:
  // The only reduction.
  bool find_sum() {
    const auto is_reduce = [](const Expr& value) { return value.kind == Kind::reduce; };
    if (std::ranges::count_if(from_.values, is_reduce) != 1) return false;
    sum_ = as_size(std::ranges::find_if(from_.values, is_reduce) - from_.values.begin());
    return from_.values[sum_].op == ValueOp::add;
  }

  bool make_sum() {
    Expr sum = from_.values[sum_];
    const Expr* product = &from_.value(sum.operands[0]);
    if (product->kind == Kind::round && product->integers && product->dtype == Dtype::i64)
      product = &from_.value(product->operands[0]);
    if (product->kind != Kind::apply || product->op != ValueOp::mul || product->integers)
      return false;
    Expr made = *product;
    for (int& factor : made.operands) {
      const auto load = take_factor(factor);
      if (!load) return false;
      factor = push(from_.value(*load));
    }
    if (zero_points_.size() != 2) return false;  // a square
    sum.operands = {push(std::move(made))};
    sum.integers = false;
    sum.dtype = Dtype::f32;
    made_[sum_] = push(std::move(sum));
    return true;
  }

  // The value that loads a factor, whose zero point is kept.
  std::optional<int> take_factor(int id) {
    const Expr& value = from_.value(id);
    const bool is_less = value.kind == Kind::apply && value.op == ValueOp::sub;
    const int element = is_less ? value.operands[0] : id;
    const Expr& load = from_.value(element);
    if (load.kind != Kind::load || !is_small(from_.load_of(load).dtype)) return std::nullopt;
    if (from_.load_of(load).is_gathered() || !from_.load_of(load).in_bounds) return std::nullopt;
    ZeroPoint zero;
    if (is_less) {
      const Expr& less = from_.value(value.operands[1]);
      const auto varies = [&](size_t axis) { return less.varies[axis]; };
      const bool is_load = less.kind == Kind::load && is_small(from_.load_of(less).dtype);
      const bool is_number = less.kind == Kind::constant && less.value == std::trunc(less.value);
      if (!is_load && !(is_number && std::abs(less.value) <= 255)) return std::nullopt;
      if (std::ranges::any_of(from_.values[sum_].axes, varies)) return std::nullopt;
      for (size_t axis = 0; axis < from_.axes.size(); ++axis)
        if (varies(axis) && !load.varies[axis]) return std::nullopt;
      if (is_load)
        zero.load = as_size(less.load);
      else
        zero.number = less.value;
    }
    zero_points_[as_size(load.load)] = zero;
    return element;
  }

  // An output's value: a float that is rounded to the output's type may be stored as it is, where
  // it lies within that.
  std::optional<int> result(const LoopNest::Output& output) {
    const Expr& value = from_.value(output.value);
    const Dtype dtype = output.place.dtype;
    if (value.kind != Kind::round || as_size(value.operands[0]) == sum_ || value.dtype != dtype)
      return copy(output.value);
    const auto [low, high] = ends_of(from_, value.operands[0]);
    const bool fits = rounded(dtype, low) == low && rounded(dtype, high) == high;
    return is_small(dtype) && fits ? copy(value.operands[0]) : std::nullopt;
  }

  // A value behind the sum; nothing where it is one of whole numbers.
  std::optional<int> copy(int id) {
    if (made_[as_size(id)] >= 0) return made_[as_size(id)];
    Expr value = from_.value(id);
    if (value.kind == Kind::round) {
      const bool keeps = value.dtype == Dtype::f32 || value.dtype == Dtype::i32;
      if (!keeps || copy(value.operands[0]) != made_[sum_]) return std::nullopt;
      wraps_ = wraps_ || value.dtype == Dtype::i32;
      return made_[sum_];
    }
    if (value.integers || value.kind == Kind::reduce) return std::nullopt;
    for (int& operand : value.operands) {
      const auto own = copy(operand);
      if (!own) return std::nullopt;
      operand = *own;
    }
    return made_[as_size(id)] = push(std::move(value));
  }

  int push(Expr value) {
    to_.values.push_back(std::move(value));
    return as_int(to_.values.size()) - 1;
  }

  const LoopNest& from_;
  LoopNest to_;
  std::vector<int> made_;  // by value of `from_`
  size_t sum_ = 0;
  bool wraps_ = false;  // the nest says that its sum is of 32 bits
  ZeroPoints zero_points_;
};
}  // namespace

std::optional<WholeProduct> whole_product_of(const std::vector<LoopNest>& nests) {
  if (nests.size() != 1) return std::nullopt;
  return Reader(nests[0]).read();
}
}  // namespace warploom::loopnest
