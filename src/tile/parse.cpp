#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <variant>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/value_op.h"
#include "tile/index.h"
#include "tile/lexer.h"
#include "tile/print.h"
#include "tile/program.h"
#include "tile/syntax.h"

namespace warploom::tile {
namespace {
constexpr int kDeepest = 64;                   // statements inside each other
constexpr int kDeepestTerm = 100;              // parentheses and calls inside each other
constexpr int kMostTerms = 1000;               // operators in one index
constexpr size_t kMostDeclarations = 1 << 12;  // tensors; pipelines

// The operation that a sign, or with precedence 3 a function, stands for.
std::optional<IndexOp> find(std::string_view sign, int precedence) {
  if (precedence == 3 && sign.starts_with("wl::")) sign.remove_prefix(4);
  for (auto i = as_size(IndexOp::add); i < kIndexWords.size(); ++i)
    if (kIndexWords[i].text == sign && kIndexWords[i].precedence == precedence)
      return static_cast<IndexOp>(i);
  return std::nullopt;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

// Reads what the lines of syntax.h are made of from the tokens of a line; docs/tile.md has the
// grammar.
class Reader : public Cursor {
 public:
  Reader(const Line& line, std::string_view file, const Program& program)
      : Cursor(line, file), program_(program) {}

  // Blanks round a sign do not count.
  void item(const char* sign) {
    if (!trimmed(sign).empty()) expect(trimmed(sign));
  }

  void item(std::string& name) { name = word("a name"); }

  void item(int& to) { to = small("a number of 0 to 2^20"); }

  void item(double& to) { to = real(); }

  void item(std::vector<int64_t>& shape) { shape = integers("[", "]"); }

  template <class T> void item(std::optional<T>& to) { item(to.emplace()); }

  void item(Value& to) { to = value(0); }

  void item(Flag<bool> flag) { flag.on = option(flag.word); }

  template <class T> void item(Optional<T> optional) {
    if (option(optional.word)) item(optional.value);
  }

  void item(std::vector<TensorId>& tensors) {
    do
      item(Named<int>{tensors.emplace_back()});
    while (accept(","));
  }

  void item(Dtype& to) {
    take_named(dtype_named(peek().text), to, "element type", "an element type");
  }

  void item(ReduceOp& to) {
    take_named(reduce_op_named(peek().text), to, "reduction", "sum, max or min");
  }

  void keyword(Tensor& tensor) {
    for (const TensorWord& row : kTensorWords)
      if (is(row.word)) {
        tensor.scope = row.scope;
        tensor.writable = row.writable;
      }
    take();
  }

  void item(Named<int> to) {
    const auto look = [&](const auto& list, std::string_view kind) {
      for (size_t i = 0; i < list.size(); ++i)
        if (accept(list[i].name)) return as_int(i);
      fail(fmt::format("no {} has this name", kind),
           fmt::format("the name of a {} declared above", kind));
      return -1;
    };
    to.id =
        to.is_pipeline ? look(program_.pipelines, "pipeline") : look(program_.tensors, "tensor");
  }

  void item(Extents<std::vector<int64_t>> to) {
    to.list = integers("(", ")");
    if (to.list.size() > 3) fail("a grid has at most three extents");
    to.list.resize(3, 1);
  }

  void item(Tile& to) {
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
        to.lookup_dim = as_int(to.offset.size());
        take();
        expect("(");
        item(Named<int>{to.lookup});
        expect(",");
      }
      item(to.offset.emplace_back());
      if (gathered) expect(")");
      expect("+");
      to.extent.push_back(integer());
      if (accept("by")) {
        to.step.resize(to.extent.size(), 1);
        to.step.back() = integer();
      }
    } while (accept(","));
    in_tile_ = false;
    if (!to.step.empty()) to.step.resize(to.extent.size(), 1);
    expect("]");
  }

  // Precedence climbing: sums of products of primaries.
  void item(Index& to) {
    depth_ = terms_ = 0;
    to = binary(1);
  }

 private:
  void take_named(const auto& found, auto& to, std::string_view kind, const std::string& expected) {
    if (found)
      to = *found;
    else
      fail(fmt::format("no {} has this name", kind), expected);
    take();
  }

  bool option(std::string_view word) { return accept(trimmed(word)); }

  bool extent_follows() const {
    const bool outermost = in_tile_ && depth_ == 0;
    if (!outermost || !is("+") || peek(1).kind != TokenKind::integer) return false;
    return is(",", 2) || is("]", 2) || is("by", 2);
  }

  Index binary(int precedence) {
    if (precedence > 2) return primary();
    Index left = binary(precedence + 1);
    for (std::optional<IndexOp> op; !extent_follows() && (op = find(peek().text, precedence));) {
      if (++terms_ > kMostTerms) fail("the expression is too long");
      take();
      left = Index::make(*op, left, binary(precedence + 1));
    }
    return left;
  }

  Index primary() {
    if (peek().kind == TokenKind::integer) return Index(integer());
    const bool word = peek().kind == TokenKind::word;
    if (word && !is("(", 1)) return Index::variable(std::string(take().text));
    if (++depth_ > kDeepestTerm) {
      fail("the expression is nested too deeply");
      return Index();
    }
    Index inner;
    if (word) {
      inner = call();
    } else if (accept("-")) {
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

  Index call() {
    const auto function = find(take().text, 3);
    if (!function) fail("no function of indices has this name", "wl::min or wl::max");
    if (++terms_ > kMostTerms) fail("the expression is too long");
    expect("(");
    const Index left = binary(1);
    expect(",");
    const Index right = binary(1);
    expect(")");
    return function ? Index::make(*function, left, right) : Index();
  }

  Value value(int depth) {
    Value value;
    if (depth > kDeepestTerm) fail("the expression is nested too deeply");
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

  const Program& program_;
  bool in_tile_ = false;  // the last "+ integer" of an offset is the extent, not a term
  int depth_ = 0;
  int terms_ = 0;
};

using Node = decltype(Statement::node);

template <size_t... I> Node node_of(size_t index, std::index_sequence<I...>) {
  return std::array<Node, sizeof...(I)>{Node(std::in_place_index<I>)...}[index];
}

constexpr std::make_index_sequence<std::variant_size_v<Node>> kNodeKinds;

class Parser {
 public:
  Parser(std::vector<Line> lines, std::string_view file) : lines_(std::move(lines)), file_(file) {}

  Result<Program> program() {
    if (lines_.empty())
      return fail({ErrorCode::kTileSyntax, "the text holds no program", file_ + ":1",
                   "program NAME grid(...)", "nothing"});
    program_.warps = kNotGiven;
    if (lines_[0].level != 0) return refused("the first line is indented");
    Reader header = next();
    line(header, program_);
    header.expect_end();
    WARPLOOM_CHECK(header.status());
    WARPLOOM_CHECK(body(0, program_.body));
    if (at_ < lines_.size()) return refused("the line is indented and nothing above it is a block");
    if (program_.warps == kNotGiven) {
      program_.warps = Program().warps;
      count_warps(program_);
    }
    number_statements(program_);
    return std::move(program_);
  }

 private:
  static constexpr int kNotGiven = -1;

  Reader next() { return Reader(lines_[at_++], file_, program_); }

  tl::unexpected<Error> refused(const std::string& message) {
    Reader here = next();
    here.fail(message);
    return tl::unexpected(here.status().error());
  }

  Status body(int level, Body& out) {
    while (at_ < lines_.size() && lines_[at_].level == level) {
      if (level > kDeepest) return refused("statements are nested too deeply");
      Reader io = next();
      const auto tensor = std::ranges::find_if(
          kTensorWords, [&](const TensorWord& row) { return io.is(row.word); });
      const auto word = std::ranges::find(kStatementWords, io.peek().text);
      if (tensor != kTensorWords.end()) {
        WARPLOOM_CHECK(declare(io, program_.tensors, "tensor"));
      } else if (io.is("pipeline")) {
        WARPLOOM_CHECK(declare(io, program_.pipelines, "pipeline"));
      } else if (word != kStatementWords.end()) {
        io.take();
        const auto kind = as_size(word - kStatementWords.begin());
        const Location location{file_, io.line().number};
        Statement read{node_of(kind, kNodeKinds), location, kNoStatement};
        WARPLOOM_CHECK(std::visit([&](auto& node) { return statement(io, node); }, read.node));
        out.push_back(std::move(read));
      } else {
        io.fail("no statement begins so", "a declaration or a statement");
        return io.status();
      }
    }
    return ok();
  }

  // A line and what is indented below it.
  Status statement(Reader& io, auto& node) {
    line(io, node);
    io.expect_end();
    WARPLOOM_CHECK(io.status());
    const int level = io.line().level + 1;
    if constexpr (requires { node.body; }) return body(level, node.body);
    if constexpr (requires { node.roles; })
      while (at_ < lines_.size() && lines_[at_].level == level) {
        Reader role = next();
        WARPLOOM_CHECK(statement(role, node.roles.emplace_back()));
      }
    return ok();
  }

  template <class Declared>
  Status declare(Reader& io, std::vector<Declared>& list, std::string_view what) {
    Declared declared;
    line(io, declared);
    io.expect_end();
    for (const Declared& other : list)
      if (other.name == declared.name)
        io.fail(fmt::format("{} '{}' is declared twice", what, declared.name));
    if (list.size() == kMostDeclarations)
      io.fail(fmt::format("the program has too many {}s", what));
    WARPLOOM_CHECK(io.status());
    if constexpr (Of<Declared, Tensor>)
      if (declared.scope == Scope::global && declared.strides.empty())
        declared.strides = dense_strides(declared.shape);
    list.push_back(std::move(declared));
    own_stages(program_);
    return ok();
  }

  std::vector<Line> lines_;
  std::string file_;
  size_t at_ = 0;  // the next line
  Program program_;
};
}  // namespace

Result<Program> parse(std::string_view text, std::string_view file) {
  WARPLOOM_TRY(std::vector<Line> lines, split_lines(text, file));
  return Parser(std::move(lines), file).program();
}
}  // namespace warploom::tile
