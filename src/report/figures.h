// Figures of records as people read them. A figure that a record does not have is no figure: not
// 0, nor -1, which older records say for it, but a dash with a word on why.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace warploom::report {
// What lies at `path` ("/verdict/error"); null where there is nothing.
const nlohmann::json& at(const nlohmann::json& record, const std::string& path);
std::string text_at(const nlohmann::json& record, const std::string& path);            // or ""
const nlohmann::json& list_at(const nlohmann::json& record, const std::string& path);  // or []

// Of times, rates, ratios and sizes: a finite number above 0.
std::optional<double> positive_at(const nlohmann::json& record, const std::string& path);
// Of errors and counts, which may be 0: a finite number of 0 or more.
std::optional<double> figure_at(const nlohmann::json& record, const std::string& path);
// A share of a bound: above 0 and at most 1. What is above is no share: the bound was none.
std::optional<double> share_at(const nlohmann::json& record, const std::string& path);
// Half of the interval's width against the middle: 0.04 is "± 4 %".
std::optional<double> spread_of(std::optional<double> middle, std::optional<double> low,
                                std::optional<double> high);

std::string time_text(double us);          // "812 µs", "1.24 ms", "2.5 s"
std::string seconds_text(double seconds);  // "0.4 s", "75 s", "12 min"
std::string number_text(double number);    // four digits
std::string error_text(double error);      // "9.8e-08"
std::string spread_text(double share);     // "±4 %"; of more than all "over 100 %"
std::string percent_text(double share);    // "58 %"; "0.4 %" of what is less than 1

// A value or null, for a record.
nlohmann::json json_of(const std::optional<double>& figure);
}  // namespace warploom::report
