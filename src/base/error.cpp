#include "base/error.h"
#include <fmt/format.h>
#include <array>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/quoted.h"
#include "base/rows.h"

namespace warploom {
namespace {
struct Row {
  std::string_view text;
  int exit_status;
  std::string_view meaning;
};

constexpr std::array kRows = {
#define WARPLOOM_ERROR(name, text, exit_status, meaning) Row{text, exit_status, meaning},
#include "base/error_codes.def"
};

const Row& row(ErrorCode code) {
  return kRows[as_size(code)];
}
}  // namespace

std::string_view code_text(ErrorCode code) {
  return row(code).text;
}

std::string_view code_meaning(ErrorCode code) {
  return row(code).meaning;
}

int exit_status(ErrorCode code) {
  return row(code).exit_status;
}

std::string describe(const Error& error) {
  // Further lines of a part stand below its first, so that no text can pass for another part.
  static const std::regex kLineEnd("\n(?=.)");
  const auto shown = [](const std::string& text) {
    return std::regex_replace(printable_lines(text), kLineEnd, "\n            ");
  };
  const std::string message = shown(error.message);
  std::string text = fmt::format("error[{}]: {}", code_text(error.code), message);
  const auto add = [&](std::string_view label, const std::string& part) {
    if (!part.empty()) text += fmt::format("\n  {:<10}{}", label, shown(part));
  };
  add("at:", error.place);
  add("expected:", error.expected);
  add("found:", error.found);
  add("remedy:", error.remedy);
  return text;
}

nlohmann::json to_json(const Error& error) {
  nlohmann::json out;
  out["code"] = code_text(error.code);
  out["message"] = error.message;
  out["place"] = error.place;
  out["expected"] = error.expected;
  out["found"] = error.found;
  out["remedy"] = error.remedy;
  return out;
}

Error error_from_json(const nlohmann::json& json) {
  const auto part = [&](const char* key) {
    const bool has_text = json.contains(key) && json[key].is_string();
    return has_text ? json[key].get<std::string>() : std::string();
  };
  const auto code = row_where<ErrorCode>(kRows, part("code"), &Row::text);
  Error error{code.value_or(ErrorCode::kInternal), part("message")};
  error.place = part("place");
  error.expected = part("expected");
  error.found = part("found");
  error.remedy = part("remedy");
  return error;
}
}  // namespace warploom
