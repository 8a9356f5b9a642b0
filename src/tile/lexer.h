// Text into lines, and a cursor that reads the tokens of one line.
//
//   "  fill acc 0   # start"  →  Line{number, level 1, "fill acc 0   # start"}: tokens fill, acc, 0
//
// A level is two spaces of indentation. Blank lines vanish; # and // begin comments. Errors are
// kTileSyntax with "file:line".
#pragma once
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/error.h"

namespace warploom::tile {
inline constexpr size_t kMostBytes = size_t{8} << 20;
inline constexpr size_t kMostNumbers = 16;  // a list of extents
inline constexpr std::array<std::string_view, 5> kPairs = {"->", "..", "+=", "^T", ">="};
inline constexpr std::string_view kSigns = "[](){},:+-*/%<=";

enum class TokenKind : uint8_t {
  word,
  integer,
  real,
  sign,
  other,
  end
};  // other: nothing of the language begins so

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // "" at the end of the line
};

struct Line {
  int number = 0;  // in the file, from 1
  int level = 0;
  std::string_view text;  // from its first token on
};

inline bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}

inline bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Its first character is a digit. A point counts where a digit follows: "0..4" begins with an
// integer.
inline Token number_token(std::string_view text) {
  double value = 0;
  const char* const begin = text.data();
  const char* const end = std::from_chars(begin, begin + text.size(), value).ptr;
  text = text.substr(0, end - begin);
  if (text.ends_with('.')) text.remove_suffix(1);
  const bool whole = text.find_first_of(".eE") == std::string_view::npos;
  return {whole ? TokenKind::integer : TokenKind::real, text};
}

inline Token word_token(std::string_view text) {
  size_t end = text.substr(0, 4) == "wl::" ? 4 : 0;  // as emitted source spells min and max
  while (end < text.size() && (is_letter(text[end]) || is_digit(text[end])))
    ++end;
  return {TokenKind::word, text.substr(0, end)};
}

// The first token of `text`.
inline Token token_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \r"), text.size()));
  if (text.empty() || text[0] == '#' || text.starts_with("//")) return {};
  if (is_digit(text[0])) return number_token(text);
  if (is_letter(text[0])) return word_token(text);
  for (const std::string_view pair : kPairs)
    if (text.starts_with(pair)) return {TokenKind::sign, text.substr(0, 2)};
  const bool known = kSigns.find(text[0]) != std::string_view::npos;
  return {known ? TokenKind::sign : TokenKind::other, text.substr(0, 1)};
}

inline tl::unexpected<Error> syntax(std::string_view file, int line, const std::string& message,
                                    const std::string& expected = {},
                                    const std::string& found = {}) {
  const std::string place = fmt::format("{}:{}", file, line);
  return fail(
      {ErrorCode::kTileSyntax, message, place, expected, found, "docs/tile.md has the grammar"});
}

// What of a byte can be shown to a person.
inline std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (std::isprint(byte)) return {c};
  return fmt::format("byte 0x{:02x}", byte);
}

inline Result<std::vector<Line>> split_lines(std::string_view text, std::string_view file) {
  if (text.size() > kMostBytes) {
    const std::string expected = fmt::format("at most {} bytes", kMostBytes);
    return syntax(file, 1, "the text is too large", expected, std::to_string(text.size()));
  }
  std::vector<Line> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (token_at(line).kind == TokenKind::end) continue;
    const size_t blanks = line.find_first_not_of(' ');
    if (blanks % 2 != 0)
      return syntax(file, number, "the indentation is odd", "two spaces a level");
    lines.push_back({number, static_cast<int>(blanks / 2), line.substr(blanks)});
  }
  return lines;
}

// Reads the tokens of one line. The first error is kept and ends the line: from then on nothing
// more is read, so that callers ask for the status once, after all they wanted.
class Cursor {
 public:
  Cursor(const Line& line, std::string_view file) : line_(line), rest_(line.text), file_(file) {}

  const Line& line() const { return line_; }

  bool is(std::string_view text, size_t ahead = 0) const { return peek(ahead).text == text; }

  const Status& status() const { return status_; }

  Token peek(size_t ahead = 0) const {
    std::string_view rest = rest_;
    for (; ahead > 0; --ahead)
      rest = behind(rest);
    return status_ ? token_at(rest) : Token();
  }

  Token take() {
    const Token token = peek();
    rest_ = behind(rest_);
    return token;
  }

  // Takes the token if it is this one.
  bool accept(std::string_view text) {
    const bool found = is(text) && !text.empty();
    if (found) take();
    return found;
  }

  void expect(std::string_view text) {
    if (!accept(text)) fail("something is missing", fmt::format("'{}'", text));
  }

  void expect_end() {
    if (peek().kind != TokenKind::end)
      fail("the line goes on where it should end", "the end of the line");
  }

  std::string word(std::string_view meaning) {
    if (peek().kind != TokenKind::word) fail("a name is missing", std::string(meaning));
    return std::string(take().text);
  }

  // With an optional minus.
  int64_t integer() {
    const bool negative = accept("-");
    if (peek().kind != TokenKind::integer) fail("a number is missing", "an integer");
    const auto value = number<int64_t>("the number does not fit in 64 bits");
    return negative ? -value : value;
  }

  // 0 to 2^20.
  int small(std::string_view meaning) {
    const int64_t value = integer();
    if (value < 0 || value > 1 << 20) fail("the number is out of range", std::string(meaning));
    return static_cast<int>(std::clamp<int64_t>(value, 0, 1 << 20));
  }

  // Also inf and nan, with an optional minus.
  double real() {
    const double sign = accept("-") ? -1.0 : 1.0;
    if (accept("inf")) return sign * std::numeric_limits<double>::infinity();
    if (accept("nan")) return std::numeric_limits<double>::quiet_NaN();
    if (peek().kind != TokenKind::integer && peek().kind != TokenKind::real)
      fail("a number is missing", "a number, inf or nan");
    return sign * number<double>("the number is out of the range of a double");
  }

  // "[1, 2]"
  std::vector<int64_t> integers(std::string_view open, std::string_view close) {
    expect(open);
    std::vector<int64_t> values;
    do {
      values.push_back(integer());
      if (values.size() > kMostNumbers) fail("the list is too long");
    } while (accept(","));
    expect(close);
    return values;
  }

  void fail(const std::string& message, const std::string& expected = {}) {
    if (!status_) return;
    const Token at = peek();
    if (at.kind == TokenKind::other) {
      status_ = syntax(file_, line_.number, "a character that begins nothing of the language", {},
                       shown(at.text[0]));
      return;
    }
    std::string found(at.text.substr(0, 40));
    if (at.kind == TokenKind::end) found = "the end of the line";
    status_ = syntax(file_, line_.number, message, expected, found);
  }

 private:
  // What follows the first token.
  static std::string_view behind(std::string_view text) {
    const std::string_view token = token_at(text).text;
    if (token.empty()) return token;
    const char* const end = token.data() + token.size();
    return text.substr(end - text.data());
  }

  template <class T> T number(std::string_view message) {
    T value = 0;
    const std::string_view text = peek().text;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
      fail(std::string(message));
    take();
    return value;
  }

  const Line& line_;
  std::string_view rest_;
  std::string_view file_;
  Status status_ = ok();
};
}  // namespace warploom::tile
