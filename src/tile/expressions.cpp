#include "tile/expressions.h"

#include <fmt/format.h>

#include <array>

namespace warploom::tile {
namespace {

constexpr int kDeepest = 100;     // parentheses and calls inside each other
constexpr int kMostTerms = 1000;  // operators in one index

struct Operator {
  std::string_view sign;
  IndexOp op;
};
constexpr std::array<Operator, 2> kSums = {{{"+", IndexOp::add}, {"-", IndexOp::sub}}};
constexpr std::array<Operator, 3> kProducts = {{{"*", IndexOp::mul}, {"/", IndexOp::div}, {"%", IndexOp::mod}}};
constexpr std::array<Operator, 4> kFunctions = {
    {{"wl::min", IndexOp::min}, {"wl::max", IndexOp::max}, {"min", IndexOp::min}, {"max", IndexOp::max}}};

template <std::size_t N>
const Operator* find(const std::array<Operator, N>& operators, std::string_view sign) {
  for (const Operator& candidate : operators)
    if (candidate.sign == sign) return &candidate;
  return nullptr;
}

// Precedence climbing by hand: sum, product, primary. In a tile's offset the last "+ integer" is the extent, not a term.
struct IndexReader {
  Cursor& cursor;
  bool in_tile = false;
  int depth = 0, terms = 0;

  bool extent_follows() const {
    return in_tile && depth == 0 && cursor.is("+") && cursor.peek(1).kind == TokenKind::integer &&
           (cursor.is(",", 2) || cursor.is("]", 2));
  }
  Status count() {
    if (++terms > kMostTerms) return cursor.error("the expression is too long");
    return ok();
  }
  Status deeper() {
    if (++depth > kDeepest) return cursor.error("the expression is nested too deeply");
    return ok();
  }

  Result<Index> sum() {
    WARPLOOM_TRY(Index left, product());
    for (const Operator* op; !extent_follows() && (op = find(kSums, cursor.peek().text));) {
      WARPLOOM_CHECK(count());
      cursor.take();
      WARPLOOM_TRY(const Index right, product());
      left = Index::make(op->op, left, right);
    }
    return left;
  }
  Result<Index> product() {
    WARPLOOM_TRY(Index left, primary());
    while (const Operator* op = find(kProducts, cursor.peek().text)) {
      WARPLOOM_CHECK(count());
      cursor.take();
      WARPLOOM_TRY(const Index right, primary());
      left = Index::make(op->op, left, right);
    }
    return left;
  }
  Result<Index> primary() {
    if (cursor.peek().kind == TokenKind::integer) {
      WARPLOOM_TRY(const std::int64_t value, cursor.integer());
      return Index(value);
    }
    if (cursor.peek().kind == TokenKind::word)
      return cursor.is("(", 1) ? call() : Index::variable(std::string(cursor.take().text));
    WARPLOOM_CHECK(deeper());
    if (cursor.accept("-")) {
      WARPLOOM_TRY(const Index operand, primary());
      --depth;
      return Index(0) - operand;
    }
    if (!cursor.accept("(")) return cursor.error("an index is missing", "a number, a variable or (");
    WARPLOOM_TRY(Index inner, sum());
    WARPLOOM_CHECK(cursor.expect(")"));
    --depth;
    return inner;
  }
  Result<Index> call() {
    const Operator* function = find(kFunctions, cursor.peek().text);
    if (!function) return cursor.error("no function of indices has this name", "wl::min or wl::max");
    WARPLOOM_CHECK(deeper());
    WARPLOOM_CHECK(count());
    cursor.take();
    cursor.take();
    WARPLOOM_TRY(const Index left, sum());
    WARPLOOM_CHECK(cursor.expect(","));
    WARPLOOM_TRY(const Index right, sum());
    WARPLOOM_CHECK(cursor.expect(")"));
    --depth;
    return Index::make(function->op, left, right);
  }
};

Result<Value> value_at(Cursor& cursor, const Program& program, int depth) {
  if (depth > kDeepest) return cursor.error("the expression is nested too deeply");
  Value value;
  const bool word = cursor.peek().kind == TokenKind::word;
  if (!word || cursor.is("inf") || cursor.is("nan")) {
    WARPLOOM_TRY(value.constant, cursor.real());
    return value;
  }
  if (!cursor.is("(", 1)) {
    value.kind = Value::Kind::tensor;
    WARPLOOM_TRY(value.tensor, read_tensor(cursor, program));
    return value;
  }
  const auto op = value_op_named(cursor.peek().text);
  if (!op) return cursor.error("no operation has this name", "an operation of docs/tile.md");
  cursor.take();
  cursor.take();
  value.kind = Value::Kind::op;
  value.op = *op;
  for (int i = 0; i < arity_of(*op); ++i) {
    if (i) WARPLOOM_CHECK(cursor.expect(","));
    WARPLOOM_TRY(Value operand, value_at(cursor, program, depth + 1));
    value.operands.push_back(std::move(operand));
  }
  WARPLOOM_CHECK(cursor.expect(")"));
  return value;
}

}  // namespace

Result<Index> read_index(Cursor& cursor) { return IndexReader{cursor}.sum(); }

Result<TensorId> read_tensor(Cursor& cursor, const Program& program) {
  for (std::size_t i = 0; i < program.tensors.size(); ++i)
    if (cursor.is(program.tensors[i].name)) {
      cursor.take();
      return static_cast<TensorId>(i);
    }
  return cursor.error("no tensor has this name", "the name of a tensor declared above");
}

Result<Tile> read_tile(Cursor& cursor, const Program& program) {
  WARPLOOM_TRY(const TensorId tensor, read_tensor(cursor, program));
  if (!cursor.accept("[")) return whole(program, tensor);
  Tile tile{tensor, {}, {}};
  do {
    WARPLOOM_TRY(Index offset, IndexReader{cursor, true}.sum());
    WARPLOOM_CHECK(cursor.expect("+"));
    WARPLOOM_TRY(const std::int64_t extent, cursor.integer());
    tile.offset.push_back(std::move(offset));
    tile.extent.push_back(extent);
  } while (cursor.accept(","));
  WARPLOOM_CHECK(cursor.expect("]"));
  return tile;
}

Result<Value> read_value(Cursor& cursor, const Program& program) { return value_at(cursor, program, 0); }

}  // namespace warploom::tile
