#include "kernels/config/kernel_config.h"
#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>
#include "base/casts.h"
#include "base/hash.h"

namespace warploom::kernels {
namespace {
using nlohmann::json;

bool lists(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}
}  // namespace

std::string FieldInfo::text_of(int64_t value) const {
  const bool is_word = value >= 0 && value < std::ssize(words);
  return is_word ? std::string(words[as_size(value)]) : std::to_string(value);
}

json FieldInfo::json_of(int64_t value) const {
  return words.empty() ? json(value) : json(text_of(value));
}

std::optional<int64_t> FieldInfo::value_of(std::string_view text) const {
  if (const auto word = std::ranges::find(words, text); word != words.end())
    return word - words.begin();
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  const bool known = words.empty() || (value >= 0 && value < std::ssize(words));
  return is_number && known ? std::optional(value) : std::nullopt;
}

std::optional<size_t> ConfigType::find(std::string_view name) const {
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == name) return i;
  for (size_t i = 0; i < fields.size(); ++i)
    if (lists(fields[i].aliases, name)) return i;
  return std::nullopt;
}

std::vector<std::string> ConfigType::names() const {
  std::vector<std::string> out;
  for (const FieldInfo& field : fields)
    out.emplace_back(field.name);
  return out;
}

std::optional<int64_t> KernelConfig::get(std::string_view name) const {
  const auto index = type_ ? type_->find(name) : std::nullopt;
  return index ? std::optional(get(*index)) : std::nullopt;
}

bool KernelConfig::set(std::string_view name, int64_t value) {
  const auto index = type_ ? type_->find(name) : std::nullopt;
  if (index) set(*index, value);
  return index.has_value();
}

std::string KernelConfig::text() const {
  std::string out = family();
  for (size_t i = 0; i < size(); ++i) {
    const FieldInfo& info = field(i);
    out += fmt::format(" {}={}", info.name, info.text_of(get(i)));
  }
  return out;
}

uint64_t KernelConfig::hash() const {
  return hash64(text());
}

bool operator==(const KernelConfig& a, const KernelConfig& b) {
  if (a.type_ != b.type_) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a.get(i) != b.get(i)) return false;
  return true;
}

json to_json(const KernelConfig& config) {
  json fields = json::object();
  for (size_t i = 0; i < config.size(); ++i) {
    const FieldInfo& info = config.field(i);
    fields[std::string(info.name)] = info.json_of(config.get(i));
  }
  return {{"family", config.family()}, {"fields", fields}};
}
}  // namespace warploom::kernels
