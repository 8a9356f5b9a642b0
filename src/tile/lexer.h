// Text into lines, lines into tokens, and a cursor that reads the tokens of one line.
//
//   "  fill acc 0   # start"  →  Line{number, level 1, tokens: fill, acc, 0}
//
// A level is two spaces of indentation. Blank lines vanish; # and // begin comments. Errors are kTileSyntax with "file:line".
#pragma once
#include <vector>
#include "base/error.h"
namespace warploom::tile {
enum class TokenKind : std::uint8_t { word, integer, real, sign, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // "" at the end of the line
};

struct Line {
  int number = 0;  // in the file, from 1
  int level = 0;
  std::vector<Token> tokens;
};

Result<std::vector<Line>> split_lines(std::string_view text, std::string_view file);

// Reads the tokens of one line. The first error is kept and ends the line: from then on nothing more is read, so that callers
// ask for the status once, after all they wanted.
class Cursor {
 public:
  Cursor(const Line& line, std::string_view file) : line_(line), file_(file) {}

  const Line& line() const { return line_; }
  const Token& peek(std::size_t ahead = 0) const;
  bool is(std::string_view text, std::size_t ahead = 0) const { return peek(ahead).text == text; }
  Token take();
  bool accept(std::string_view text);  // takes the token if it is this one

  void expect(std::string_view text);
  void expect_end();
  std::string word(std::string_view meaning);
  std::int64_t integer();                                                             // with an optional minus
  int small(std::string_view meaning);                                                // 0 to 2^20
  double real();                                                                      // also inf and nan, with an optional minus
  std::vector<std::int64_t> integers(std::string_view open, std::string_view close);  // "[1, 2]"

  void fail(std::string message, std::string expected = {});
  const Status& status() const { return status_; }

 private:
  template <class T>
  T number(std::string_view message);

  const Line& line_;
  std::string_view file_;
  std::size_t next_ = 0;
  Status status_ = ok();
};
}  // namespace warploom::tile
