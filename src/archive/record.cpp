#include "archive/record.h"
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include "base/hash.h"

namespace warploom::archive {
using nlohmann::json;

namespace {
std::string ending_of(std::string_view body) {
  return fmt::format(R"(,"{}":"{:016x}"}})", kSeal, hash64(body));
}
}  // namespace

std::string sealed_text(json record) {
  for (json& field : record) {
    const bool infinite = field.is_number_float() && !std::isfinite(field.get<double>());
    if (infinite) field = std::numeric_limits<double>::max();
  }
  std::string text = record.dump(-1, ' ', false, json::error_handler_t::replace);
  text.pop_back();  // the closing bracket
  return text + ending_of(text);
}

bool is_changed(std::string_view text) {
  static const size_t kEnding = ending_of("").size();
  const size_t body = text.size() - std::min(kEnding, text.size());
  const std::string_view ending = text.substr(body);
  const bool sealed = ending.starts_with(fmt::format(R"(,"{}")", kSeal));
  return sealed && ending != ending_of(text.substr(0, body));
}
}  // namespace warploom::archive
