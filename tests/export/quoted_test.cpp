// Text in other languages, read back by those languages themselves.
#include "base/quoted.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"

namespace warploom {
namespace {
const std::vector<std::string> kTexts = {"x",
                                         "my model",
                                         "$(touch pwned)",
                                         "`id`",
                                         "a'b",
                                         "a\"b",
                                         "a\\b",
                                         "a\nb\r\tc",
                                         "\033[2J\033[1m",
                                         "é模型",
                                         "",
                                         "-rf",
                                         "~root",
                                         "a;b|c&d>e<f(g)",
                                         "\"); import os #",
                                         "a?\?/b",
                                         "!x",
                                         "\x01"
                                         "1",
                                         "*[a](b)_c_*",
                                         "\u202ereversed",
                                         std::string("\xff\xfe", 2),
                                         "'''",
                                         "\"\"\"",
                                         "%s%n%d",
                                         "{{name}}",
                                         "{% x %}",
                                         "]](x)",
                                         "<script>alert(1)</script>",
                                         "<!-- & -->",
                                         "&lt;",
                                         "*/ #error",
                                         "/* x",
                                         "// x \\",
                                         "None",
                                         "__import__('os')",
                                         "--help",
                                         "$$",
                                         "${HOME}",
                                         "$(shell id)",
                                         "#comment",
                                         "a\vb\fc",
                                         "\x7f\u0085\u2028",
                                         "# heading",
                                         "- item",
                                         "| cell |",
                                         std::string(300, 'n'),
                                         "trailing ",
                                         "\\",
                                         "\n"};

std::string printed_by(const std::vector<std::string>& argv) {
  const auto result = run_process(argv);
  EXPECT_TRUE(result && result->succeeded()) << result->err;
  return result->out;
}

TEST(Quoted, WordsOfAShellAreReadBack) {
  std::string line = "printf '%s\\0'";
  std::string expected;
  for (const std::string& text : kTexts) {
    line += " " + shell_word(text);
    expected += text + '\0';
  }
  EXPECT_EQ(printed_by({"bash", "-c", line}), expected);
  EXPECT_EQ(shell_word("out/conv_small"), "out/conv_small");
}

TEST(Quoted, LiteralsOfCAreReadBack) {
  const ScratchFolder scratch("quoted");
  std::string source = "#include <stdio.h>\nint main(void) {\n";
  std::string expected;
  for (const std::string& text : kTexts) {
    source +=
        "  // " + c_comment(text) + "\n  fputs(" + c_string(text) + ", stdout), putchar(0);\n";
    expected += text + '\0';
  }
  const std::string file = (scratch.path() / "t.c").string();
  ASSERT_TRUE(write_file(file, source + "}\n"));
  const std::string program = (scratch.path() / "t").string();
  printed_by({"gcc", "-std=c99", "-o", program, file});
  EXPECT_EQ(printed_by({program}), expected);
}

std::vector<std::string> texts_in_utf8() {
  std::vector<std::string> texts;
  std::ranges::copy_if(kTexts, std::back_inserter(texts), is_utf8);
  return texts;
}

TEST(Quoted, LiteralsOfPythonAreReadBack) {
  std::vector<std::string> texts = texts_in_utf8();
  texts.emplace_back("a\0b", 3);
  const std::string source =
      "import ast, sys\nfor text in ast.literal_eval(sys.argv[1]): "
      "sys.stdout.buffer.write(text.encode() + b'|')";
  std::string list = "[";
  std::string expected;
  for (const std::string& text : texts) {
    const std::string literal = python_string(text);
    EXPECT_EQ(literal.find('\n'), literal.npos);
    list += literal + ", ";
    expected += text + "|";
  }
  EXPECT_EQ(printed_by({"python3", "-c", source, list + "]"}), expected);
}

TEST(Quoted, WordsOfAPosixShellAreReadBackWhereTheyAreShown) {
  std::string line = "printf '%s\\n'";
  std::string expected;
  for (const std::string& text : kTexts) {
    const std::string shown = printable(text);
    line += " " + shell_word(shown);
    expected += shown + '\n';
  }
  EXPECT_EQ(printed_by({"sh", "-c", line}), expected);
}

TEST(Quoted, WordsOfAMakefileAreReadBackAsTheyAreShown) {
  const ScratchFolder scratch("quoted");
  std::string text = "all:\n\t@printf '%s\\n'";
  std::string expected;
  for (const std::string& one : kTexts) {
    text += " " + make_word(one);
    expected += printable(one) + '\n';
  }
  const std::string file = (scratch.path() / "Makefile").string();
  ASSERT_TRUE(write_file(file, text + "\n"));
  EXPECT_EQ(printed_by({"make", "-s", "-f", file}), expected);
}

// As an element's text and as an attribute's, by Python's own reader of HTML.
TEST(Quoted, TextOfAPageIsTextAlone) {
  const ScratchFolder scratch("quoted");
  std::string page;
  std::string expected;
  for (const std::string& text : kTexts) {
    page += "<p title=\"" + html_text(text) + "\">" + html_text(text) + "</p>";
    expected += printable_lines(text) + "|" + printable_lines(text) + "|";
  }
  const std::string file = (scratch.path() / "page.html").string();
  ASSERT_TRUE(write_file(file, page));
  const std::string reader = R"(
import html.parser, sys
class Reader(html.parser.HTMLParser):
    def handle_starttag(self, tag, attrs):
        assert tag == "p" and [name for name, _ in attrs] == ["title"], (tag, attrs)
        self.text = ""
        sys.stdout.buffer.write(attrs[0][1].encode() + b"|")
    def handle_data(self, data):
        self.text += data
    def handle_endtag(self, tag):
        sys.stdout.buffer.write(self.text.encode() + b"|")
    def handle_comment(self, data):
        raise SystemExit("a comment")
Reader().feed(open(sys.argv[1], encoding="utf-8", newline="").read())
)";
  EXPECT_EQ(printed_by({"python3", "-c", reader, file}), expected);
}

TEST(Quoted, NoTextMovesATerminal) {
  std::vector<std::string> texts = kTexts;
  for (int byte = 0; byte < 256; ++byte)
    texts.emplace_back(1, static_cast<char>(byte));
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  for (const std::string& text : texts) {
    const std::string shown = printable(text);
    EXPECT_TRUE(is_utf8(shown));
    EXPECT_TRUE(std::ranges::none_of(shown, is_control)) << shown;
    EXPECT_EQ(shown.find("\u202e"), shown.npos);
    EXPECT_EQ(shown.find("\u009b"), shown.npos);
  }
}

TEST(Quoted, WhatATerminalObeysIsWrittenByItsNumber) {
  EXPECT_EQ(printable("a\033[2J\nb\x7f"), "a\\x1b[2J\\nb\\x7f");
  EXPECT_EQ(printable("\u202e\u200b\u009b"), "\\u202e\\u200b\\x9b");
  EXPECT_EQ(printable("é模型 ×"), "é模型 ×");
  EXPECT_EQ(printable(std::string("\xff", 1)), "\\xff");
  EXPECT_EQ(printable_lines("a\n\tb\r"), "a\n\tb\\r");
}

TEST(Quoted, MarkdownFormatsNothing) {
  EXPECT_EQ(markdown_text("MatMul of f32 x_1[64,64]"), "MatMul of f32 x_1[64,64]");
  EXPECT_EQ(markdown_text("[a](b) *c* <d> `e`|f"), "[a\\](b) \\*c\\* \\<d\\> \\`e\\`\\|f");
  EXPECT_EQ(markdown_text("# a\n_b_"), "\\# a\\\\n_b\\_");
}

TEST(Quoted, APartOfAnErrorCannotPassForAnother) {
  const std::string text =
      describe({ErrorCode::kUsage, "m", "a\nerror[usage]: forged\033[2J", "e", "f", "r"});
  EXPECT_EQ(text.find("\nerror["), text.npos);
  EXPECT_EQ(text.find('\033'), text.npos);
}
}  // namespace
}  // namespace warploom
