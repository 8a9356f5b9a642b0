// Index expressions: integer arithmetic over block indices and loop variables, with cheap value
// semantics.
//
// An Index is an immutable tree behind a shared pointer; constants fold as trees are built, so
// `Index(4) * 16 + 0` is the constant 64. Division and remainder are floored and their right sides
// must be positive constants or loop-invariant.
//
//   Index m = block(0) * 128;          // first row of this block's tile
//   Index stage = k % 4;
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace warploom::tile {
enum class IndexOp : uint8_t { constant, variable, add, sub, mul, div, mod, min, max };

// Of two numbers, in two's complement without undefined overflow; a division by 0 gives 0.
int64_t compute(IndexOp op, int64_t a, int64_t b);

class Index {
 public:
  Index(int64_t value = 0);  // NOLINT: constants convert by design

  Index(int value) : Index(static_cast<int64_t>(value)) {}

  static Index variable(std::string name);
  static Index make(IndexOp op, const Index& a, const Index& b);

  IndexOp op() const { return node_->op; }

  int64_t value() const { return node_->value; }  // of a constant

  const std::string& name() const { return node_->name; }  // of a variable

  const Index& left() const { return *node_->left; }

  const Index& right() const { return *node_->right; }

  std::optional<int64_t> constant() const;
  int64_t evaluate(const std::map<std::string, int64_t>& variables) const;
  bool depends_on(const std::string& variable) const;
  // The largest power of two (≤ 2^20) known to divide the value whatever the variables hold.
  int64_t known_divisor() const;
  // Whether it is known to be a multiple, where variables are of which `is` says so.
  bool is_multiple(int64_t of, const std::function<bool(const std::string&)>& is) const;
  std::string text() const;  // C syntax, as few parentheses as needed: "k / 2 * 16 + m"
  bool same(const Index& other) const;

 private:
  struct Node {
    IndexOp op;
    int64_t value = 0;
    std::string name = {};
    std::shared_ptr<const Index> left = {};
    std::shared_ptr<const Index> right = {};
  };

  explicit Index(std::shared_ptr<const Node> node) : node_(std::move(node)) {}

  std::shared_ptr<const Node> node_;
};

inline Index operator+(const Index& a, const Index& b) {
  return Index::make(IndexOp::add, a, b);
}

inline Index operator-(const Index& a, const Index& b) {
  return Index::make(IndexOp::sub, a, b);
}

inline Index operator*(const Index& a, const Index& b) {
  return Index::make(IndexOp::mul, a, b);
}

inline Index operator/(const Index& a, const Index& b) {
  return Index::make(IndexOp::div, a, b);
}

inline Index operator%(const Index& a, const Index& b) {
  return Index::make(IndexOp::mod, a, b);
}

inline Index min(const Index& a, const Index& b) {
  return Index::make(IndexOp::min, a, b);
}

inline Index max(const Index& a, const Index& b) {
  return Index::make(IndexOp::max, a, b);
}

// The index of this block along grid dimension 0, 1 or 2, and this block's rank in its cluster:
// variables that every program has.
inline constexpr std::array<std::string_view, 4> kGridVariables = {"block_x", "block_y", "block_z",
                                                                   "cluster_rank"};
Index block(int dimension);
Index cluster_rank();
}  // namespace warploom::tile
