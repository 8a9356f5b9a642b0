#include "llm/key.h"
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include "base/error.h"
#include "base/file.h"

namespace warploom::llm {
namespace {
constexpr size_t kLeast = 4;  // shorter ones would be found in ordinary words
constexpr size_t kMost = 4096;

Error no_key(const std::string& place, const char* found) {
  Error error{ErrorCode::kModelKey, "the key of a model's endpoint cannot be used", place};
  error.expected = "a line of 4 to 4096 printable ASCII characters without spaces";
  error.found = found;
  error.remedy = "write the key, and nothing else, there";
  return error;
}
}  // namespace

std::string Key::scrubbed(std::string words) const {
  constexpr std::string_view kInstead = "[key]";
  if (!is_set()) return words;
  size_t at = words.find(text_);
  while (at != words.npos) {
    words.replace(at, text_.size(), kInstead);
    at = words.find(text_, at + kInstead.size());
  }
  return words;
}

Result<Key> Key::of(const std::string& text, const std::string& place) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return fail(no_key(place, "nothing"));
  const size_t end = text.find_last_not_of(kBlanks) + 1;
  Key key;
  key.text_ = text.substr(begin, end - begin);
  const auto is_printable = [](char c) { return c > ' ' && c <= '~'; };
  if (!std::ranges::all_of(key.text_, is_printable))
    return fail(no_key(place, "spaces, control characters or other characters"));
  if (key.text_.size() < kLeast || key.text_.size() > kMost)
    return fail(no_key(place, "another length"));
  return key;
}

Result<Key> key_from_file(const std::filesystem::path& file) {
  const Result<std::string> text = read_file(file);
  if (!text) {
    Error error = no_key(file.string(), "");
    error.found = std::string(code_text(text.error().code));
    return fail(error);
  }
  return Key::of(*text, file.string());
}

Result<Key> key_from_environment() {
  const char* const text = std::getenv(kKeyVariable);
  if (!text || *text == '\0') return Key();
  return Key::of(text, kKeyVariable);
}
}  // namespace warploom::llm
