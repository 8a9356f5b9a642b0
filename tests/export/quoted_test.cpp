// Text in other languages, read back by those languages themselves.
#include "base/quoted.h"
#include <gtest/gtest.h>
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
                                         std::string("\xff\xfe", 2)};

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
