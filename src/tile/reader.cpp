#include "tile/reader.h"
namespace warploom::tile {
namespace {
constexpr int kDeepest = 100;     // parentheses and calls inside each other
constexpr int kMostTerms = 1000;  // operators in one index

struct Operator {
  std::string_view sign;
  IndexOp op;
  int precedence;  // sums 1, products 2; 0: a function
};
constexpr std::array<Operator, 9> kOperators = {{{"+", IndexOp::add, 1},
                                                 {"-", IndexOp::sub, 1},
                                                 {"*", IndexOp::mul, 2},
                                                 {"/", IndexOp::div, 2},
                                                 {"%", IndexOp::mod, 2},
                                                 {"wl::min", IndexOp::min, 0},
                                                 {"wl::max", IndexOp::max, 0},
                                                 {"min", IndexOp::min, 0},
                                                 {"max", IndexOp::max, 0}}};
const Operator* find(std::string_view sign, int precedence) {
  for (const Operator& candidate : kOperators)
    if (candidate.sign == sign && candidate.precedence == precedence) return &candidate;
  return nullptr;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}
}  // namespace
void Reader::item(const char* sign) {
  if (!trimmed(sign).empty()) expect(trimmed(sign));
}
bool Reader::option(std::string_view word) { return accept(trimmed(word)); }

void Reader::item(std::vector<TensorId>& tensors) {
  do item(Named<int>{tensors.emplace_back()});
  while (accept(","));
}

void Reader::item(Dtype& to) {
  if (const auto found = dtype_named(peek().text)) to = *found;
  else fail("no element type has this name", "an element type");
  take();
}

void Reader::item(ReduceOp& to) {
  if (const auto found = reduce_op_named(peek().text)) to = *found;
  else fail("no reduction has this name", "sum, max or min");
  take();
}

void Reader::item(Keyword<Tensor> to) {
  for (const TensorWord& row : kTensorWords)
    if (is(row.word)) {
      to.tensor.scope = row.scope;
      to.tensor.writable = row.writable;
    }
  take();
}

void Reader::item(Named<int> to) {
  const auto look = [&](const auto& list, std::string_view kind) {
    for (std::size_t i = 0; i < list.size(); ++i)
      if (accept(list[i].name)) return static_cast<int>(i);
    fail(fmt::format("no {} has this name", kind), fmt::format("the name of a {} declared above", kind));
    return -1;
  };
  to.id = to.is_pipeline ? look(program_.pipelines, "pipeline") : look(program_.tensors, "tensor");
}

void Reader::item(Extents<std::vector<std::int64_t>> to) {
  to.list = integers("(", ")");
  if (to.list.size() > 3) fail("a grid has at most three extents");
  to.list.resize(3, 1);
}

void Reader::item(Tile& to) {
  item(Named<int>{to.tensor});
  if (!status()) return;
  if (!accept("[")) {
    to = whole(program_, to.tensor);
    return;
  }
  in_tile_ = true;
  do {
    const bool gathered = is("gather") && is("(", 1);
    if (gathered && to.lookup >= 0) fail("a tile is gathered along one dimension at most");
    if (gathered) {
      to.lookup_dim = static_cast<int>(to.offset.size());
      take(), expect("(");
      item(Named<int>{to.lookup});
      expect(",");
    }
    item(to.offset.emplace_back());
    if (gathered) expect(")");
    expect("+");
    to.extent.push_back(integer());
    if (accept("by")) to.step.resize(to.extent.size(), 1), to.step.back() = integer();
  } while (accept(","));
  in_tile_ = false;
  if (!to.step.empty()) to.step.resize(to.extent.size(), 1);
  expect("]");
}

// Precedence climbing: sums of products of primaries.
void Reader::item(Index& to) {
  depth_ = terms_ = 0;
  to = binary(1);
}

bool Reader::extent_follows() const {
  return in_tile_ && depth_ == 0 && is("+") && peek(1).kind == TokenKind::integer && (is(",", 2) || is("]", 2) || is("by", 2));
}

bool Reader::deeper() {
  if (++depth_ > kDeepest) fail("the expression is nested too deeply");
  return depth_ <= kDeepest;
}

Index Reader::binary(int precedence) {
  if (precedence > 2) return primary();
  Index left = binary(precedence + 1);
  for (const Operator* op; !extent_follows() && (op = find(peek().text, precedence));) {
    if (++terms_ > kMostTerms) fail("the expression is too long");
    take();
    left = Index::make(op->op, left, binary(precedence + 1));
  }
  return left;
}

Index Reader::primary() {
  if (peek().kind == TokenKind::integer) return Index(integer());
  if (peek().kind == TokenKind::word) return is("(", 1) ? call() : Index::variable(std::string(take().text));
  if (!deeper()) return {};
  Index inner;
  if (accept("-")) {
    inner = Index(0) - primary();
  } else if (accept("(")) {
    inner = binary(1);
    expect(")");
  } else {
    fail("an index is missing", "a number, a variable or (");
  }
  --depth_;
  return inner;
}

Index Reader::call() {
  const Operator* function = find(take().text, 0);
  if (!function) fail("no function of indices has this name", "wl::min or wl::max");
  if (++terms_ > kMostTerms) fail("the expression is too long");
  if (!deeper() || !function) return {};
  expect("(");
  const Index left = binary(1);
  expect(",");
  const Index right = binary(1);
  expect(")");
  --depth_;
  return Index::make(function->op, left, right);
}

Value Reader::value(int depth) {
  Value value;
  if (depth > kDeepest) fail("the expression is nested too deeply");
  if (peek().kind != TokenKind::word || is("inf") || is("nan")) {
    value.constant = real();
  } else if (!is("(", 1)) {
    value.kind = Value::Kind::tensor;
    item(Named<int>{value.tensor});
  } else if (accept("index")) {
    value.kind = Value::Kind::coordinate;
    expect("(");
    value.axis = small("an axis");
    if (accept(",")) item(value.shift);
    expect(")");
  } else if (const auto op = value_op_named(peek().text)) {
    take();
    value.kind = Value::Kind::op;
    value.op = *op;
    for (int i = 0; i < arity_of(*op); ++i) {
      expect(i ? "," : "(");
      if (status()) value.operands.push_back(this->value(depth + 1));
    }
    expect(")");
  } else {
    fail("no operation has this name", "an operation of docs/tile.md");
  }
  return value;
}
}  // namespace warploom::tile
