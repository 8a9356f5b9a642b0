#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include "base/rendered.h"
#include "export/bundle.h"

namespace warploom::export_ {
namespace {
TEST(ExportText, PlacesInATextAreFilledFromARecord) {
  const nlohmann::json record = {{"f", "run"},
                                 {"rows", {{{"n", 1}}, {{"n", 2}}}},
                                 {"none", nlohmann::json::array()},
                                 {"yes", true}};
  EXPECT_EQ(rendered("int {{f}}(); // a@b {{g}}<", record), "int run(); // a@b <");
  EXPECT_EQ(rendered("{{#rows}}{{f}} {{n}}, {{/rows}}{{#yes}}y{{/yes}}{{^yes}}n{{/yes}}", record),
            "run 1, run 2, y");
  EXPECT_EQ(rendered("a{{#none}}\nb{{/none}}\nc\n", record), "a\nc\n");
}

TEST(ExportText, AsHtmlValuesAreEscapedAndFormsApplied) {
  const nlohmann::json record = {{"t", "<a>"}, {"us", 12345.678}, {"nothing", nullptr}};
  const Forms forms = {{"twice", [](const std::string& text) { return text + text; }}};
  EXPECT_EQ(
      rendered_html("{{t}}{{{t}}} {{us}} {{nothing}} {{#twice}}{{us}};{{/twice}}", record, forms),
      "&lt;a&gt;<a> 12346 – 12346;12346;");
}

TEST(ExportText, CommentsBreakBetweenWords) {
  const std::string text = comment(std::string(60, 'a') + " " + std::string(60, 'b'));
  EXPECT_EQ(text, "// " + std::string(60, 'a') + "\n// " + std::string(60, 'b') + "\n");
}

TEST(ExportText, CommentsOfAnyTextEndWithTheirLines) {
  EXPECT_EQ(comment("a\nint b;\\"), "// a\\nint b;\\.\n");
  EXPECT_EQ(comment("what?\?/"), "// what?\?/.\n");
}
}  // namespace
}  // namespace warploom::export_
