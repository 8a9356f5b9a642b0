#include "report/table.h"
#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include "base/rendered.h"
#include "base/units.h"
#include "report/figures.h"

namespace warploom::report {
namespace {
using nlohmann::json;

// How a column's figures are written, and which of them are figures.
struct Form {
  std::string_view name;
  std::optional<double> (*figure)(const json& record, const std::string& path);
  std::string (*text)(double);
};

constexpr Form kForms[] = {
    {"count", figure_at, number_text},  {"number", positive_at, number_text},
    {"time", positive_at, time_text},   {"seconds", figure_at, seconds_text},
    {"error", figure_at, error_text},   {"share", share_at, percent_text},
    {"spread", figure_at, spread_text}, {"bytes", positive_at, bytes_text},
};

std::string unknown_cell(const json& column, bool figure) {
  const std::string why = column.value("unknown", "not known");
  const std::string css = figure ? "n unknown" : "unknown";
  return fmt::format("<td class=\"{}\" title=\"{}\">–</td>", css, escaped(why));
}

// A cell's own word on why it is unknown: record["why_unknown"]["part"].
json with_reason(const json& column, const json& record, const std::string& path) {
  json out = column;
  const std::string why = text_at(record, "/why_unknown" + path);
  if (!why.empty()) out["unknown"] = why;
  return out;
}

std::string cell(const json& column, const json& record) {
  const std::string path = column.at("at");
  const std::string as = column.value("as", "text");
  const auto* const form = std::ranges::find(kForms, as, &Form::name);
  const json said = with_reason(column, record, path);
  if (form == std::end(kForms)) {
    const json& value = at(record, path);
    const std::string text = value.is_string() || value.is_number() ? words(value) : "";
    if (text.empty() && column.contains("unknown")) return unknown_cell(said, false);
    return fmt::format("<td>{}</td>", escaped(text));
  }
  const auto figure = form->figure(record, path);
  if (!figure) return unknown_cell(said, true);
  const std::string bar =
      as == "share" ? fmt::format(" bar\" style=\"--part:{:.1f}%", 100 * *figure) : "";
  return fmt::format("<td class=\"n{}\" data-v=\"{}\">{}</td>", bar, *figure,
                     escaped(form->text(*figure)));
}
}  // namespace

std::string table(const std::string& name, const json& records) {
  if (!records.is_array() || records.empty()) return "";
  static const json tables = json::parse(resource("report/tables.json"));
  const json& chosen = tables.at(name);
  json shown = {{"name", name}, {"caption", chosen.at("caption")}};
  for (const json& column : chosen.at("columns")) {
    const bool figure = column.value("as", "text") != "text";
    json heading;
    heading["text"] = column.at("heading");
    heading["css"] = figure ? "n" : "";
    shown["headings"].push_back(std::move(heading));
  }
  for (const json& record : records) {
    json cells;
    for (const json& column : chosen.at("columns"))
      cells.push_back(cell(column, record));
    shown["rows"].push_back({{"cells", cells}});
  }
  return rendered_html(resource("report/table.html"), shown, {});
}
}  // namespace warploom::report
