#include <gtest/gtest.h>
#include "export/parts.h"
namespace warploom::export_ {
namespace {
TEST(ExportText, FillInReplacesNamesAndKeepsOtherSigns) {
  EXPECT_EQ(fill_in("int @F@(); // a@b @G@", {{"F", "run"}}), "int run(); // a@b @G@");
}

TEST(ExportText, FillInLeavesNoLineBehindForANameAloneOnIt) {
  EXPECT_EQ(fill_in("a\n@F@\nb\n", {{"F", ""}}), "a\nb\n");
  EXPECT_EQ(fill_in("a\n@F@\nb\n", {{"F", "x;\ny;\n"}}), "a\nx;\ny;\nb\n");
  EXPECT_EQ(fill_in("a @F@\nb\n", {{"F", ""}}), "a \nb\n");
}

TEST(ExportText, IdentifiersAreLegalAndDifferent) {
  std::vector<std::string> taken;
  EXPECT_EQ(identifier("/mm/MatMul_output_0", taken), "_mm_MatMul_output_0");
  EXPECT_EQ(identifier("1x", taken), "_1x");
  EXPECT_EQ(identifier("float", taken), "_float");
  EXPECT_EQ(identifier("a.b", taken), "a_b");
  EXPECT_EQ(identifier("a-b", taken), "a_b_2");
  EXPECT_EQ(identifier("", taken), "_");
}

TEST(ExportText, CommentsBreakBetweenWords) {
  const std::string text = comment(std::string(60, 'a') + " " + std::string(60, 'b'));
  EXPECT_EQ(text, "// " + std::string(60, 'a') + "\n// " + std::string(60, 'b') + "\n");
}
}  // namespace
}  // namespace warploom::export_
