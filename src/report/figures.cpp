#include "report/figures.h"
#include <fmt/format.h>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace warploom::report {
using nlohmann::json;

namespace {
constexpr double kInfinite = 1e300;  // archives hold the largest number for infinity
const json kNone;
const json kEmpty = json::array();

std::optional<double> number_at(const json& record, const std::string& path) {
  const json& value = at(record, path);
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return std::abs(number) < kInfinite ? std::optional(number) : std::nullopt;
}
}  // namespace

const json& at(const json& record, const std::string& path) {
  const json::json_pointer pointer(path);
  return record.contains(pointer) ? record[pointer] : kNone;
}

std::string text_at(const json& record, const std::string& path) {
  const json& value = at(record, path);
  return value.is_string() ? value.get<std::string>() : "";
}

const json& list_at(const json& record, const std::string& path) {
  const json& value = at(record, path);
  return value.is_array() ? value : kEmpty;
}

std::optional<double> positive_at(const json& record, const std::string& path) {
  const auto number = number_at(record, path);
  return number && *number > 0 ? number : std::nullopt;
}

std::optional<double> figure_at(const json& record, const std::string& path) {
  const auto number = number_at(record, path);
  return number && *number >= 0 ? number : std::nullopt;
}

std::optional<double> share_at(const json& record, const std::string& path) {
  const auto number = positive_at(record, path);
  return number && *number <= 1 ? number : std::nullopt;
}

std::optional<double> spread_of(std::optional<double> middle, std::optional<double> low,
                                std::optional<double> high) {
  if (!middle || !low || !high || *high < *low) return std::nullopt;
  return (*high - *low) / 2 / *middle;
}

std::string time_text(double us) {
  if (us < 1000) return number_text(us) + " µs";
  if (us < 1e6) return number_text(us / 1e3) + " ms";
  return number_text(us / 1e6) + " s";
}

std::string seconds_text(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f} s", seconds);
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string number_text(double number) {
  if (std::abs(number) >= 1000 && std::abs(number) < 1e7) return fmt::format("{:.0f}", number);
  return fmt::format("{:.4g}", number);
}

std::string error_text(double error) {
  return error == 0 ? "0" : fmt::format("{:.1e}", error);
}

std::string percent_text(double share) {
  const double percent = 100 * share;
  return fmt::format("{:.{}f} %", percent, percent < 1 && percent > 0 ? 1 : 0);
}

std::string spread_text(double share) {
  return share > 1 ? "over 100 %" : "±" + percent_text(share);
}

json json_of(const std::optional<double>& figure) {
  return figure ? json(*figure) : json();
}
}  // namespace warploom::report
