#include "kernels/config/reader.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/nearest.h"
#include "kernels/config/configs.h"
#include "kernels/config/kernel_config.h"

namespace warploom::kernels {
namespace {
constexpr const char* kSeeFields = "see the fields with `warploom show FILE --what space`";

// An integer, or a word of small letters, digits and underscores.
bool is_value(std::string_view text) {
  if (text.empty()) return false;
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto in_word = [&](char c) { return (c >= 'a' && c <= 'z') || c == '_' || is_digit(c); };
  if (text[0] >= 'a' && text[0] <= 'z') return std::ranges::all_of(text, in_word);
  if (text[0] == '-') text.remove_prefix(1);
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

Error unreadable(std::string found) {
  return {ErrorCode::kPlanInvalid,
          "a schedule cannot be read",
          "",
          "a family, then FIELD=VALUE, each once",
          std::move(found),
          kSeeFields};
}

bool take(RawConfig& raw, const char* name, std::string& value) {
  const auto found = raw.fields.find(name);
  if (found == raw.fields.end()) return false;
  value = found->second;
  raw.fields.erase(found);
  return true;
}

void migrate_wgmma(RawConfig& raw) {
  std::string stream = "0";
  std::string split = "1";
  std::string halves;
  const bool streams = take(raw, "stream", stream);
  if (take(raw, "split", split) || streams) {
    raw.fields["split_k"] = split;
    raw.fields["scheduler"] = split != "1" ? "split_k" : "data_parallel";
    if (stream != "0") raw.fields["scheduler"] = "stream_k";
  }
  if (take(raw, "halves", halves))
    raw.fields["fp32_emulation"] = halves == "0" ? "tf32x3" : "fp16x3";
  if (!raw.fields.contains("y")) return;
  raw.family = "conv_wgmma";
  raw.fields.erase("cluster");  // always 1
}
}  // namespace

RawConfig migrated(RawConfig raw) {
  if (raw.family == "matmul_wgmma") migrate_wgmma(raw);
  if (raw.family == "matmul_simt" || raw.family == "matmul_mma") raw.fields.erase("split");
  return raw;
}

Result<RawConfig> read_raw(const std::string& text) {
  RawConfig raw;
  std::istringstream words(text);
  words >> raw.family;
  for (std::string word; words >> word;) {
    const size_t equals = std::min(word.find('='), word.size() - 1);
    const std::string value = word.substr(equals + 1);
    const bool reads = equals > 0 && is_value(value);
    if (!reads || !raw.fields.emplace(word.substr(0, equals), value).second)
      return fail(unreadable(word));
  }
  return migrated(std::move(raw));
}

Result<RawConfig> read_raw(const nlohmann::json& json) {
  try {
    RawConfig raw{json.at("family").get<std::string>(), {}};
    for (const auto& [name, value] : json.at("fields").items()) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      if (!is_value(text)) return fail(unreadable(name + "=" + text));
      raw.fields[name] = text;
    }
    return migrated(std::move(raw));
  } catch (const nlohmann::json::exception& error) {
    return fail({ErrorCode::kPlanInvalid, "a schedule cannot be read", "",
                 "{\"family\": name, \"fields\": {name: number or word}}", error.what(),
                 "make the plan again with `warploom optimize`"});
  }
}

namespace {
std::string expected_of(const FieldInfo& field) {
  if (field.words.empty()) return fmt::format("{}=INTEGER", field.name);
  return fmt::format("{}: one of {}", field.name, fmt::join(field.words, ", "));
}
}  // namespace

Result<KernelConfig> config_of(const RawConfig& raw, const ConfigType& type) {
  KernelConfig config(type);
  std::vector<bool> given(type.fields.size(), false);
  for (const auto& [name, text] : raw.fields) {
    const auto index = type.find(name);
    if (!index) {
      const auto names = type.names();
      return fail({ErrorCode::kScheduleIllegal, "the family has no field of this name", raw.family,
                   fmt::format("{}", fmt::join(names, ", ")), name,
                   did_you_mean(name, names, kSeeFields)});
    }
    const FieldInfo& field = type.fields[*index];
    const auto value = field.value_of(text);
    if (!value)
      return fail({ErrorCode::kPlanInvalid, "a field has no such value", raw.family,
                   expected_of(field), text, kSeeFields});
    given[*index] = true;
    config.set(*index, *value);
  }
  for (size_t i = 0; i < type.fields.size(); ++i) {
    const FieldInfo& field = type.fields[i];
    if (!field.required || given[i]) continue;
    return fail({ErrorCode::kScheduleIllegal, "a field of the schedule is missing", raw.family,
                 fmt::format("{}: {}", field.name, field.meaning), "none", kSeeFields});
  }
  return config;
}

namespace {
Result<KernelConfig> config_of_any(const RawConfig& raw) {
  if (const ConfigType* type = config_type(raw.family)) return config_of(raw, *type);
  std::vector<std::string> names;
  for (const ConfigType* each : config_types())
    names.emplace_back(each->family);
  return fail({ErrorCode::kNoSchedule, "there is no such family of schedules", "",
               fmt::format("one of {}", fmt::join(names, ", ")), raw.family,
               did_you_mean(raw.family, names, "make the plan again with `warploom optimize`")});
}
}  // namespace

Result<KernelConfig> config_from_text(const std::string& text) {
  WARPLOOM_TRY(const RawConfig raw, read_raw(text));
  return config_of_any(raw);
}

Result<KernelConfig> config_from_json(const nlohmann::json& json) {
  WARPLOOM_TRY(const RawConfig raw, read_raw(json));
  return config_of_any(raw);
}
}  // namespace warploom::kernels
