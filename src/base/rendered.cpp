#include "base/rendered.h"
#include <fmt/format.h>
#include <cstdlib>
#include <kainjow/mustache.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include "base/quoted.h"

namespace warploom {
namespace {
using nlohmann::json;

namespace mustache = kainjow::mustache;

mustache::data data_of(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_object()) {
    mustache::object object;
    for (const auto& [key, inside] : value.items())
      object.emplace(key, data_of(inside));
    return object;
  }
  if (value == "") return false;
  if (!value.is_array()) return words(value);
  mustache::list list;
  for (const auto& element : value)
    list.push_back(data_of(element));
  return list;
}

mustache::data data_of(const json& record, const Forms& forms) {
  mustache::data data = data_of(record);
  for (const auto& [name, form] : forms) {
    const auto written = [form = form](const std::string& inside,
                                       const mustache::renderer& render) {
      return form(render(inside, false));
    };
    data.set(name, mustache::lambda2(written));
  }
  return data;
}
}  // namespace

std::string rendered(const std::string& text, const json& record, const Forms& forms) {
  mustache::mustache form(text);
  form.set_custom_escape([](const std::string& value) { return value; });
  return form.render(data_of(record, forms));
}

std::string rendered_html(const std::string& text, const json& record, const Forms& forms) {
  mustache::mustache form(text);
  form.set_custom_escape([](const std::string& value) { return html_text(value); });
  return form.render(data_of(record, forms));
}

std::string escaped(const std::string& text) {
  return html_text(text);
}

std::string time_text(double us) {
  if (us <= 0) return "–";
  if (us < 1000) return fmt::format("{:.{}f} us", us, us < 100 ? 2 : 1);
  if (us < 1e6) return fmt::format("{:.2f} ms", us / 1e3);
  return fmt::format("{:.2f} s", us / 1e6);
}

std::string words(const json& value) {
  if (value.is_null()) return "–";
  if (!value.is_number_float()) return value.is_string() ? value.get<std::string>() : value.dump();
  const double number = value.get<double>();
  const bool is_whole = std::abs(number) >= 1000 && std::abs(number) < 1e10;
  return is_whole ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}
}  // namespace warploom
