// Escaping of untrusted text (a tensor's name, a path, a compiler's output) for the language it is
// printed in: one function a language, used wherever such text is printed.
//
// A model may name a tensor `$(reboot)`, `"); import os #` or "\033[2J": ONNX forbids none of them.
// Whoever prints a name escapes it for its destination:
//
//   shell_word("my model/$(x)")      'my model/$(x)'
//   c_string("a\"b")                 "a\"b"
//   python_string("a'b")             'a\'b'
//   html_text("a<b")                 a&lt;b
//   markdown_text("a*b|c")           a\*b\|c
//   printable("x\033[1m")            x\x1b[1m
//
// Text is UTF-8. Invalid bytes and invisible characters (control characters, bidirectional marks,
// zero-width characters) are written as their numbers.
#pragma once
#include <string>
#include <string_view>

namespace warploom {
bool is_utf8(std::string_view text);

// For a terminal or a log, as one line.
std::string printable(std::string_view text);
// The same for several lines: line ends and tabs are kept.
std::string printable_lines(std::string_view text);

// A string literal of C and C++, with its quotes.
std::string c_string(std::string_view text);
// For a `//` comment: one line, without a backslash at its end that would continue it.
std::string c_comment(std::string_view text);

// One word of a POSIX shell; with invisible characters one of bash, zsh and ksh ($'\x1b').
std::string shell_word(std::string_view text);

// A literal of Python, with its quotes.
std::string python_string(std::string_view text);

// One word in a Makefile's recipe: shell_word() with make's own `$` doubled. What is not shown
// stands there by its number, which is another text: /bin/sh has no way to write it on one line.
std::string make_word(std::string_view text);

// As text of an HTML page, or within its quotes.
std::string html_text(std::string_view text);

// One line of Markdown that shows the text and formats nothing.
std::string markdown_text(std::string_view text);
}  // namespace warploom
