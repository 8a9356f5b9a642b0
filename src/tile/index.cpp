#include "tile/index.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include "base/casts.h"
#include "tile/syntax.h"

namespace warploom::tile {
namespace {
constexpr int64_t kLargestDivisor = int64_t{1} << 20;

uint64_t bits(int64_t a) {
  return as_uint64(a);
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return compute(IndexOp::sub, 0, a);
  const int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// `index` is left ⊕ constant with the operator ⊕.
bool has_constant(const Index& index, IndexOp op) {
  return index.op() == op && index.right().constant();
}

std::optional<Index> fold_add(const Index& a, const Index& b) {
  if (b.constant() == 0) return a;
  if (a.constant()) return b + a;  // constants stand right
  if (has_constant(a, IndexOp::add)) {
    if (b.constant()) return a.left() + (a.right() + b);
    return a.left() + b + a.right();
  }
  // Sums lean left, so that they need no parentheses.
  if (b.op() == IndexOp::add) return a + b.left() + b.right();
  if (b.op() == IndexOp::sub) return a + b.left() - b.right();
  return std::nullopt;
}

std::optional<Index> fold_sub(const Index& a, const Index& b) {
  if (a.same(b)) return Index(0);
  if (b.constant()) return a + (Index(0) - b);
  if (has_constant(b, IndexOp::add)) return a - b.left() - b.right();
  if (has_constant(a, IndexOp::add)) return a.left() - b + a.right();
  return std::nullopt;
}

std::optional<Index> fold_mul(const Index& a, const Index& b) {
  if (b.constant() == 0) return Index(0);
  if (b.constant() == 1) return a;
  if (a.constant()) return b * a;
  if (has_constant(a, IndexOp::mul)) {
    if (b.constant()) return a.left() * (a.right() * b);
    return a.left() * b * a.right();
  }
  if (b.constant() && has_constant(a, IndexOp::add)) return a.left() * b + a.right() * b;
  if (b.op() == IndexOp::mul) return a * b.left() * b.right();
  return std::nullopt;
}

std::optional<Index> fold_div(const Index& a, const Index& b) {
  const int64_t by = b.constant().value_or(0);
  if (by <= 0) return std::nullopt;
  if (by == 1) return a;
  const auto divides = [by](const Index& factor) { return factor.value() % by == 0; };
  if (has_constant(a, IndexOp::mul) && divides(a.right())) return a.left() * (a.right() / b);
  if (has_constant(a, IndexOp::add) && divides(a.right()) && has_constant(a.left(), IndexOp::mul) &&
      divides(a.left().right()))
    return a.left() / b + a.right() / b;
  if (has_constant(a, IndexOp::div) && a.right().value() > 0 && a.right().value() <= INT64_MAX / by)
    return a.left() / (a.right() * b);
  return std::nullopt;
}

std::optional<Index> fold_mod(const Index& a, const Index& b) {
  const int64_t by = b.constant().value_or(0);
  if (by <= 0) return std::nullopt;
  if (by == 1) return Index(0);
  if (has_constant(a, IndexOp::mul) && a.right().value() % by == 0) return Index(0);
  if (has_constant(a, IndexOp::mod) && a.right().value() > 0 && by % a.right().value() == 0)
    return a;
  return std::nullopt;
}

std::optional<Index> fold_same(const Index& a, const Index& b) {
  return a.same(b) ? std::optional(a) : std::nullopt;
}

std::optional<Index> fold(IndexOp op, const Index& a, const Index& b) {
  constexpr std::array kFolds = {fold_add, fold_sub,  fold_mul, fold_div,
                                 fold_mod, fold_same, fold_same};
  const size_t row = as_size(op) - as_size(IndexOp::add);
  if (!a.constant() || !b.constant()) return kFolds[row](a, b);
  if ((op == IndexOp::div || op == IndexOp::mod) && *b.constant() == 0) return std::nullopt;
  return Index(compute(op, *a.constant(), *b.constant()));
}

const IndexWord& word_of(IndexOp op) {
  return kIndexWords[as_size(op)];
}

std::string text_within(const Index& index, int precedence) {
  const std::string text = index.text();
  return word_of(index.op()).precedence < precedence ? "(" + text + ")" : text;
}
}  // namespace

int64_t compute(IndexOp op, int64_t a, int64_t b) {
  switch (op) {
    case IndexOp::add: return as_int64(bits(a) + bits(b));
    case IndexOp::sub: return as_int64(bits(a) - bits(b));
    case IndexOp::mul: return as_int64(bits(a) * bits(b));
    case IndexOp::div: return floor_div(a, b);
    case IndexOp::mod: {
      const auto whole = bits(floor_div(a, b)) * bits(b);
      return as_int64(bits(a) - whole);
    }
    case IndexOp::min: return std::min(a, b);
    case IndexOp::max: return std::max(a, b);
    default: return 0;
  }
}

Index::Index(int64_t value)
    : node_(std::make_shared<const Node>(Node{IndexOp::constant, value, {}, {}, {}})) {}

Index Index::variable(std::string name) {
  Node node{.op = IndexOp::variable, .name = std::move(name)};
  return Index(std::make_shared<const Node>(std::move(node)));
}

Index Index::make(IndexOp op, const Index& a, const Index& b) {
  if (auto folded = fold(op, a, b)) return *folded;
  Node node{.op = op};
  node.left = std::make_shared<const Index>(a);
  node.right = std::make_shared<const Index>(b);
  return Index(std::make_shared<const Node>(std::move(node)));
}

std::optional<int64_t> Index::constant() const {
  return op() == IndexOp::constant ? std::optional(node_->value) : std::nullopt;
}

int64_t Index::evaluate(const std::map<std::string, int64_t>& variables) const {
  if (op() == IndexOp::constant) return node_->value;
  if (op() == IndexOp::variable) {
    const auto found = variables.find(node_->name);
    return found == variables.end() ? 0 : found->second;
  }
  return compute(op(), left().evaluate(variables), right().evaluate(variables));
}

bool Index::depends_on(const std::string& variable) const {
  if (op() == IndexOp::constant) return false;
  if (op() == IndexOp::variable) return node_->name == variable;
  return left().depends_on(variable) || right().depends_on(variable);
}

int64_t Index::known_divisor() const {
  if (op() == IndexOp::constant)
    return as_int64(std::gcd(bits(node_->value), bits(kLargestDivisor)));
  if (op() == IndexOp::variable) return 1;
  const int64_t a = left().known_divisor();
  const int64_t b = right().known_divisor();
  if (op() == IndexOp::mul) return std::min(a * b, kLargestDivisor);
  if (op() == IndexOp::div)  // exact only by a power of two that is known to divide
    return right().constant() == b && a >= b ? a / b : 1;
  return std::min(a, b);
}

bool Index::is_multiple(int64_t of, const std::function<bool(const std::string&)>& is) const {
  if (of == 1) return true;
  if (op() == IndexOp::constant) return node_->value % of == 0;
  if (op() == IndexOp::variable) return is(node_->name);
  const bool a = left().is_multiple(of, is);
  const bool b = right().is_multiple(of, is);
  if (op() == IndexOp::mul) return a || b;
  const bool divides = op() == IndexOp::div || op() == IndexOp::mod;
  return a && b && !divides;
}

std::string Index::text() const {
  if (op() == IndexOp::constant) return std::to_string(node_->value);
  if (op() == IndexOp::variable) return node_->name;
  if (op() == IndexOp::min || op() == IndexOp::max) {
    const std::string_view name = word_of(op()).text;
    return fmt::format("wl::{}({}, {})", name, left().text(), right().text());
  }
  const auto added = right().constant();
  if (op() == IndexOp::add && added && *added < 0 && *added != INT64_MIN)
    return left().text() + " - " + std::to_string(-*added);
  const auto& [sign, precedence] = word_of(op());
  const std::string before = text_within(left(), precedence);
  const std::string behind = text_within(right(), precedence + 1);
  return fmt::format("{} {} {}", before, sign, behind);
}

bool Index::same(const Index& other) const {
  if (node_ == other.node_) return true;
  if (op() != other.op()) return false;
  if (op() == IndexOp::constant) return node_->value == other.node_->value;
  if (op() == IndexOp::variable) return node_->name == other.node_->name;
  if (!left().same(other.left())) return false;
  return right().same(other.right());
}

Index block(int dimension) {
  return Index::variable(std::string(kGridVariables[std::clamp(dimension, 0, 2)]));
}

Index cluster_rank() {
  return Index::variable(std::string(kGridVariables[3]));
}
}  // namespace warploom::tile
