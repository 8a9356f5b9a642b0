#include "cli/html.h"
#include "base/rendered.h"
#include "cli/text.h"
namespace warploom::cli {
namespace {
using nlohmann::ordered_json;
using Path = nlohmann::json::json_pointer;
const nlohmann::json kNone;

const nlohmann::json& at(const nlohmann::json& record, const std::string& path) {
  return record.contains(Path(path)) ? record[Path(path)] : kNone;
}
double number(const nlohmann::json& value) { return value.is_number() ? value.get<double>() : 0; }

std::string cell(const nlohmann::json& value, bool share) {
  if (!value.is_number() && !value.is_null()) return "<td>" + escaped(words(value)) + "</td>";
  if (!share) return fmt::format("<td class=\"n\" data-v=\"{}\">{}</td>", number(value), words(value));
  return fmt::format("<td class=\"n bar\" data-v=\"{0}\" style=\"--part:{0:.1f}%\">{0:.0f} %</td>", 100 * number(value));
}

// Values between two ends of a picture.
struct Scale {
  bool log;
  double from, to, low = 1e300, high = -1e300;
  double in(double value) const { return log ? std::log10(std::max(value, 1e-12)) : value; }
  void take(double value) { low = std::min(low, in(value)), high = std::max(high, in(value)); }
  void widen() {
    const double room = std::max(0.05 * (high - low), log ? 0.02 : 0.5);
    low -= room, high += room;
  }
  double at(double value) const { return from + (to - from) * (in(value)-low) / (high - low); }
  double tick(int of_4) const {
    const double value = low + (high - low) * of_4 / 4;
    return log ? std::pow(10, value) : value;
  }
};
}  // namespace
std::string text_at(const nlohmann::json& record, const char* path) {
  return at(record, path).is_string() ? at(record, path).get<std::string>() : "";
}
double number_at(const nlohmann::json& record, const char* path) { return number(at(record, path)); }
const nlohmann::json& list_at(const nlohmann::json& record, const char* path) {
  static const nlohmann::json none = nlohmann::json::array();
  return at(record, path).is_array() ? at(record, path) : none;
}

std::string table(const std::string& name, const nlohmann::json& records) {
  if (!records.is_array() || records.empty()) return "";
  static const ordered_json tables = ordered_json::parse(resource("report/tables.json"));
  const ordered_json& chosen = tables[name];
  nlohmann::json shown = {{"name", name}, {"caption", chosen[0].get<std::string>()}};
  for (const auto& column : chosen[1].items()) shown["headings"].push_back(column.key());
  for (const auto& record : records) {
    nlohmann::json cells;
    for (const auto& column : chosen[1].items())
      cells.push_back(cell(at(record, column.value().get<std::string>()), column.key().ends_with('%')));
    shown["rows"].push_back({{"cells", cells}});
  }
  return rendered_html(resource("report/table.html"), shown, {});
}

std::string report_page(const nlohmann::json& record) {
  const auto form = [](auto write) {
    return [write](const std::string& text) -> std::string { return write(std::strtod(text.c_str(), nullptr)); };
  };
  const Forms forms = {{"time", form([](double us) {
                          const std::string text = time_text(us);
                          return text.ends_with(" us") ? text.substr(0, text.size() - 2) + "µs" : text;
                        })},
                       {"ratio", form([](double times) { return times > 0 ? fmt::format("{:.2f}×", times) : "–"; })},
                       {"percent", form([](double share) { return fmt::format("{:.0f} %", 100 * share); })}};
  return rendered_html(resource("report/report.html"), record, forms);
}

std::string scatter(const Plot& plot) {
  constexpr double kLeft = 80, kRight = 880, kTop = 14, kBottom = 280;  // of the frame in resources/report/plot.html
  Scale x{plot.log_x, kLeft, kRight}, y{true, kBottom, kTop};
  for (const auto& mark : plot.marks) x.take(mark.x), y.take(mark.y);
  for (const auto& line : plot.lines)
    for (const auto& corner : line.second) x.take(corner.first), y.take(corner.second);
  if (x.low > x.high) return "";  // nothing to show
  x.widen(), y.widen();
  nlohmann::json record = {{"css", plot.css}, {"title", plot.title}};
  const auto label = [&](double at_x, double at_y, const char* anchor, const std::string& text) {
    record["labels"].push_back({{"x", at_x}, {"y", at_y}, {"anchor", anchor}, {"text", text}});
  };
  for (int i = 0; i <= 4; ++i) {
    label(x.at(x.tick(i)), kBottom + 20, "middle", words(x.tick(i)));
    label(kLeft - 8, y.at(y.tick(i)) + 4, "end", words(y.tick(i)));
  }
  label((kLeft + kRight) / 2, kBottom + 42, "middle", plot.x);
  label(kLeft + 8, kTop + 16, "start", plot.y);
  for (const auto& [css, corners] : plot.lines) {
    std::string points;
    for (const auto& corner : corners) points += fmt::format("{:.1f},{:.1f} ", x.at(corner.first), y.at(corner.second));
    record["lines"].push_back({{"css", css}, {"points", points}});
  }
  for (const auto& mark : plot.marks)
    record["marks"].push_back({{"css", mark.css}, {"x", x.at(mark.x)}, {"y", y.at(mark.y)}, {"text", mark.text}});
  return rendered_html(resource("report/plot.html"), record, {});
}
}  // namespace warploom::cli
