// Text that somebody else chose (a tensor's name, a path, a compiler's words), put into another
// language so that it stays text: one function a language, used wherever such text is printed.
//
// A model may call a tensor `$(reboot)`, `"); import os #` or "\033[2J". In a name nothing is
// forbidden but what its own format forbids, so whoever prints one escapes it for the place where
// it goes:
//
//   shell_word("my model/$(x)")      'my model/$(x)'
//   c_string("a\"b")                 "a\"b"
//   python_string("a'b")             'a\'b'
//   html_text("a<b")                 a&lt;b
//   markdown_text("a*b|c")           a\*b\|c
//   printable("x\033[1m")            x\x1b[1m
//
// Text is UTF-8; what is none, and what no terminal shows (control characters, marks that turn the
// direction of writing, characters without width), is written by its number.
#pragma once
#include <string>
#include <string_view>

namespace warploom {
bool is_utf8(std::string_view text);

// On a terminal or in a file for people, as one line.
std::string printable(std::string_view text);
// The same of several lines: ends of lines and tabs stay.
std::string printable_lines(std::string_view text);

// A literal of C and C++, with its quotes.
std::string c_string(std::string_view text);
// As part of a `//` comment: one line, which the next one does not continue.
std::string c_comment(std::string_view text);

// One word of a POSIX shell; where a character has no picture, of bash, zsh and ksh.
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
