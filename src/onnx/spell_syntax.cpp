#include "onnx/spell_syntax.h"
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"

namespace warploom::spell {
namespace {
constexpr int kDeepest = 200;
constexpr size_t kLongestText = 1 << 20;
constexpr size_t kShownBefore = 50;  // characters of a long line, before the place and
constexpr size_t kShownBehind = 50;  // behind it

enum class TokenKind { number, word, text, symbol, separator, end };

struct Token {
  TokenKind kind;
  std::string text;
  Place place;
};

bool is_space(char letter) {
  return letter == ' ' || letter == '\t' || letter == '\r';
}

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size()) {
      const char letter = text_[at_];
      if (is_space(letter)) {
        ++at_;
      } else if (letter == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (letter == '\n' || letter == ';') {
        separator(letter);
      } else if (letter == '"' || letter == '\'') {
        WARPLOOM_CHECK(quoted(letter));
      } else if (is_digit(letter) || (letter == '.' && is_digit(next()))) {
        number();
      } else if (is_word(letter)) {
        take(TokenKind::word, length_of(is_word));
      } else {
        take(TokenKind::symbol, symbol_length());
      }
    }
    tokens_.push_back({TokenKind::end, "the end", {text_.size(), 1}});
    return std::move(tokens_);
  }

 private:
  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  size_t length_of(bool (*belongs)(char)) const {
    size_t length = 0;
    while (at_ + length < text_.size() && belongs(text_[at_ + length]))
      ++length;
    return length;
  }

  void take(TokenKind kind, size_t length) {
    std::string taken(text_.substr(at_, length));
    tokens_.push_back({kind, std::move(taken), {at_, length}});
    at_ += length;
    const std::string& text = tokens_.back().text;
    if (text == "(" || text == "[") ++depth_;
    if (text == ")" || text == "]") --depth_;
  }

  // Within brackets a line's end is a space.
  void separator(char letter) {
    if (letter == ';' || depth_ <= 0)
      take(TokenKind::separator, 1);
    else
      ++at_;
  }

  void number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto read = std::from_chars(begin, text_.data() + text_.size(), value);
    take(TokenKind::number, as_size(read.ptr - begin));
  }

  Status quoted(char quote) {
    const size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) {
      Error error{ErrorCode::kUsage, "a quoted text does not end"};
      error.expected = fmt::format("{} behind it", quote);
      error.found = "the end";
      return fail(error_at(text_, {at_, 1}, std::move(error)));
    }
    std::string inside(text_.substr(at_ + 1, end - at_ - 1));
    const Place place{at_, end + 1 - at_};
    tokens_.push_back({TokenKind::text, std::move(inside), place});
    at_ = end + 1;
    return ok();
  }

  size_t symbol_length() const {
    for (const std::string_view symbol : {"->", "**", "<=", ">=", "=="})
      if (text_.substr(at_).starts_with(symbol)) return symbol.size();
    size_t length = 1;  // a character of several bytes is one symbol
    while (at_ + length < text_.size() && (text_[at_ + length] & 0xc0) == 0x80)
      ++length;
    return length;
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;  // of brackets
  std::vector<Token> tokens_;
};

// What stands between two operands: the weakest first. Powers group from the right.
struct Infix {
  std::string_view symbol;
  std::string_view function;
  int strength;
};

constexpr int kPowerStrength = 5;
constexpr int kSignStrength = 4;  // -x ** 2 is -(x ** 2)
constexpr Infix kInfixes[] = {
    {"<", "less", 1},
    {"<=", "lessorequal", 1},
    {">", "greater", 1},
    {">=", "greaterorequal", 1},
    {"==", "equal", 1},
    {"+", "add", 2},
    {"-", "sub", 2},
    {"*", "mul", 3},
    {"/", "div", 3},
    {"@", "matmul", 3},
    {"**", "pow", kPowerStrength},
};

class Parser {
 public:
  Parser(std::string_view text, std::vector<Token> tokens)
      : text_(text), tokens_(std::move(tokens)) {}

  Result<Text> run() {
    Text out;
    while (true) {
      while (now().kind == TokenKind::separator)
        ++at_;
      if (now().kind == TokenKind::end || is("->")) break;
      WARPLOOM_TRY(Statement read, statement());
      out.statements.push_back(std::move(read));
      if (now().kind != TokenKind::separator && now().kind != TokenKind::end && !is("->"))
        return wrong("an operation, a new line or ; and another statement, or the end");
    }
    if (out.statements.empty()) return wrong("an expression, as relu(x[64,512])");
    if (accept("->")) {
      WARPLOOM_TRY(out.outputs, names());
      while (now().kind == TokenKind::separator)
        ++at_;
      if (now().kind != TokenKind::end) return wrong("a comma and another name, or the end");
    }
    return out;
  }

 private:
  const Token& now() const { return tokens_[at_]; }

  const Token& ahead(size_t by) const { return tokens_[std::min(at_ + by, tokens_.size() - 1)]; }

  bool is(std::string_view symbol) const {
    return now().kind == TokenKind::symbol && now().text == symbol;
  }

  bool accept(std::string_view symbol) {
    if (!is(symbol)) return false;
    ++at_;
    return true;
  }

  tl::unexpected<Error> wrong(const std::string& expected) const {
    Error error{ErrorCode::kUsage, "the text cannot be read", "", expected};
    error.found = now().kind == TokenKind::separator ? "the statement's end" : now().text;
    error.remedy = "see `warploom new --list` for what can be written";
    return fail(error_at(text_, now().place, std::move(error)));
  }

  bool assigns(size_t equals) const {
    return ahead(equals).kind == TokenKind::symbol && ahead(equals).text == "=";
  }

  Result<std::vector<Name>> names() {
    std::vector<Name> out;
    do {
      if (now().kind != TokenKind::word) return wrong("a name");
      out.push_back({now().text, now().place});
      ++at_;
    } while (accept(","));
    return out;
  }

  Result<Statement> statement() {
    Statement out;
    size_t behind = 1;  // of the names
    while (ahead(behind).text == "," && ahead(behind + 1).kind == TokenKind::word)
      behind += 2;
    if (now().kind == TokenKind::word && assigns(behind)) {
      WARPLOOM_TRY(out.names, names());
      accept("=");
    }
    WARPLOOM_TRY(out.value, expression(0));
    return out;
  }

  const Infix* infix() const {
    if (now().kind != TokenKind::symbol) return nullptr;
    const auto* const row = std::ranges::find(kInfixes, now().text, &Infix::symbol);
    return row == std::end(kInfixes) ? nullptr : row;
  }

  // Operands and what stands between them, as far as it binds more strongly than `above`.
  Result<Expression> expression(int above) {
    if (++depth_ > kDeepest) return wrong("fewer operations in each other");
    WARPLOOM_TRY(Expression left, operand());
    for (const Infix* row = infix(); row != nullptr && row->strength > above; row = infix()) {
      const Place place = now().place;
      ++at_;
      const bool from_right = row->strength == kPowerStrength;
      const int least = from_right ? row->strength - 1 : row->strength;
      WARPLOOM_TRY(Expression right, expression(least));
      Expression both{.kind = Expression::Kind::call, .place = place};
      both.name = row->function;
      both.arguments.push_back({"", left.place, {std::move(left)}});
      both.arguments.push_back({"", right.place, {std::move(right)}});
      left = std::move(both);
    }
    --depth_;
    return left;
  }

  Result<Expression> operand() {
    using Kind = Expression::Kind;
    Expression out{.place = now().place, .name = now().text};
    if (accept("-")) {
      WARPLOOM_TRY(Expression of, expression(kSignStrength));
      out.kind = Kind::call;
      out.name = "neg";
      out.arguments.push_back({"", of.place, {std::move(of)}});
      return out;
    }
    if (accept("(")) {
      WARPLOOM_TRY(out, expression(0));
      if (!accept(")")) return wrong("an operation or )");
      return out;
    }
    if (is("[")) {
      out.kind = Kind::list;
      WARPLOOM_TRY(out.items, items());
      return out;
    }
    switch (now().kind) {
      case TokenKind::number: {
        out.kind = Kind::number;
        const char* const digits = out.name.data();
        std::from_chars(digits, digits + out.name.size(), out.number);
        ++at_;
        return out;
      }
      case TokenKind::text:
        out.kind = Kind::text;
        ++at_;
        return out;
      case TokenKind::word: return word();
      default: return wrong("a function, an input, a number or a list");
    }
  }

  // A name, an input or a call.
  Result<Expression> word() {
    using Kind = Expression::Kind;
    const Token& first = now();
    Expression out{.kind = Kind::name, .place = first.place, .name = first.text};
    ++at_;
    if (out.name == "_") {
      out.kind = Kind::absent;
    } else if (is("[")) {
      out.kind = Kind::input;
      WARPLOOM_TRY(out.items, items());
      if (!accept(":")) return out;
      if (now().kind != TokenKind::word) return wrong("an element type, as f32");
      out.dtype = now().text;
      out.dtype_place = now().place;
      ++at_;
    } else if (accept("(")) {
      out.kind = Kind::call;
      WARPLOOM_TRY(out.arguments, arguments());
    }
    return out;
  }

  Result<std::vector<Expression>> items() {
    std::vector<Expression> out;
    for (accept("["); !accept("]");) {
      if (!out.empty() && !accept(",")) return wrong("a comma or ]");
      WARPLOOM_TRY(Expression item, expression(0));
      out.push_back(std::move(item));
    }
    return out;
  }

  Result<std::vector<Argument>> arguments() {
    std::vector<Argument> out;
    while (!accept(")")) {
      if (!out.empty() && !accept(",")) return wrong("an operation, a comma or )");
      Argument one{"", now().place, {}};
      if (now().kind == TokenKind::word && assigns(1)) {
        one.name = now().text;
        at_ += 2;
      }
      WARPLOOM_TRY(Expression value, expression(0));
      one.value.push_back(std::move(value));
      out.push_back(std::move(one));
    }
    return out;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

// Characters, not bytes: UTF-8's further bytes do not count.
size_t columns(std::string_view text) {
  const auto begins = [](char byte) { return (byte & 0xc0) != 0x80; };
  return as_size(std::ranges::count_if(text, begins));
}
}  // namespace

Result<Text> parse(std::string_view text) {
  if (text.size() > kLongestText) {
    Error error{ErrorCode::kUsage, "the text is too long", "EXPRESSION"};
    error.expected = fmt::format("at most {} bytes", kLongestText);
    error.found = std::to_string(text.size());
    error.remedy = "write the model with the onnx package";
    return fail(error);
  }
  WARPLOOM_TRY(std::vector<Token> tokens, Lexer(text).run());
  return Parser(text, std::move(tokens)).run();
}

Error error_at(std::string_view text, Place place, Error error) {
  place.at = std::min(place.at, text.size());
  size_t begin = 0;                                              // of the line
  if (place.at > 0) begin = text.rfind('\n', place.at - 1) + 1;  // npos + 1 is 0
  const size_t end = std::min(text.find('\n', place.at), text.size());
  const bool is_far = place.at - begin > kShownBefore;
  size_t from = is_far ? place.at - kShownBefore : begin;
  size_t to = std::min(end, place.at + std::max(place.length, kShownBehind));
  while (from > begin && (text[from] & 0xc0) == 0x80)
    --from;
  while (to < end && (text[to] & 0xc0) == 0x80)
    ++to;
  std::string shown(text.substr(from, to - from));
  std::ranges::replace(shown, '\t', ' ');
  const std::string ahead = from > begin ? "… " : "";
  const size_t indent = columns(ahead) + columns(text.substr(from, place.at - from));
  const size_t meant_bytes = std::min(place.length, to - place.at);
  const std::string_view meant = text.substr(place.at, meant_bytes);
  const size_t marked = std::clamp<size_t>(columns(meant), 1, kShownBehind);
  const bool several = text.find('\n') != text.npos;
  const auto line = std::ranges::count(text.substr(0, begin), '\n') + 1;
  const std::string line_text = several ? fmt::format("line {}, ", line) : "";
  const size_t column = columns(text.substr(begin, place.at - begin)) + 1;
  const std::string behind = to < end ? " …" : "";
  error.place = fmt::format("EXPRESSION, {}column {}\n", line_text, column);
  error.place += ahead + shown + behind + "\n";
  error.place += std::string(indent, ' ') + std::string(marked, '^');
  return error;
}

std::string folded(std::string_view name) {
  std::string out;
  for (const char letter : name)
    if (letter != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}
}  // namespace warploom::spell
