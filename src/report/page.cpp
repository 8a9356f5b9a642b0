#include "report/page.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include "base/rendered.h"
#include "base/units.h"
#include "report/advice.h"
#include "report/figures.h"
#include "report/plot.h"
#include "report/table.h"

namespace warploom::report {
namespace {
using nlohmann::json;

constexpr double kWide = 0.2;  // of an interval's half against its middle

// A figure at the head of the page: what it is of, the figure or a dash, and a word beneath.
json tile(const std::string& name, const std::optional<std::string>& figure,
          const std::string& beneath, const std::string& unknown) {
  json out = {{"name", name}, {"beneath", beneath}};
  if (figure)
    out["figures"] = json::array({*figure});
  else
    out["unknowns"] = json::array({unknown});
  return out;
}

std::optional<std::string> written(const std::optional<double>& figure,
                                   std::string (*text)(double)) {
  return figure ? std::optional(text(*figure)) : std::nullopt;
}

std::string times_text(double ratio) {
  return fmt::format("{:.2f}×", ratio);
}

// The ends of an interval: of this version's plans one list, of older ones' two keys.
std::optional<double> end_of(const json& plan, const std::string& figure, int end) {
  const auto listed = positive_at(plan, fmt::format("/{}_interval_us/{}", figure, end));
  if (listed) return listed;
  const char* const name = end == 0 ? "low" : "high";
  return positive_at(plan, fmt::format("/{}_{}_us", figure, name));
}

// "±4 %, with 95 % confidence"; of a wide interval its ends, since it is seldom even.
std::string interval_text(const json& plan, const std::string& figure) {
  const auto low = end_of(plan, figure, 0);
  const auto high = end_of(plan, figure, 1);
  const auto spread = spread_of(positive_at(plan, "/" + figure + "_us"), low, high);
  if (!spread) return "";
  if (*spread > kWide)
    return fmt::format("{} to {}, with 95 % confidence", time_text(*low), time_text(*high));
  return spread_text(*spread) + ", with 95 % confidence";
}

json bound_tile(const json& plan) {
  const auto share = share_at(plan, "/roofline_fraction");
  const bool above = positive_at(plan, "/roofline_fraction") && !share;
  std::string bound = text_at(plan, "/bound");
  if (bound.empty()) bound = "the tighter of DRAM and arithmetic";
  std::string beneath = share ? bound + ", by datasheet rates" : text_at(plan, "/bound_text");
  if (const auto measured = share_at(plan, "/measured_fraction"); share && measured)
    beneath += fmt::format("; {} by rates measured on the card", percent_text(*measured));
  const char* const unknown =
      above ? "faster than DRAM would allow: the data stay in a cache, whose rate is not measured"
            : "no bound is known that holds here";
  return tile("of the machine's bound", written(share, percent_text), beneath, unknown);
}

json best_tile(const json& plan) {
  const auto best = written(positive_at(plan, "/best_us"), time_text);
  return tile("best", best, interval_text(plan, "best"), "the plan holds no time");
}

json reference_tile(const json& plan) {
  const auto us = written(positive_at(plan, "/reference_us"), time_text);
  std::string name = text_at(plan, "/reference");
  if (name == "none") name = "";
  return tile("reference", us, name, "nothing to compare with was measured");
}

json speed_tile(const json& plan) {
  const auto speedup = written(positive_at(plan, "/speedup"), times_text);
  const auto low = positive_at(plan, "/speedup_interval/0");
  const auto high = positive_at(plan, "/speedup_interval/1");
  std::string beneath = "of the reference's speed";
  if (low && high) beneath = fmt::format("{:.2f}× to {:.2f}×, with 95 % confidence", *low, *high);
  return tile("speed", speedup, beneath, "without a reference there is no ratio");
}

json error_tile(const json& plan) {
  const auto error = written(figure_at(plan, "/error"), error_text);
  // Older plans say 0 where no reference was there to be wrong.
  const bool has_reference = positive_at(plan, "/reference_us").has_value();
  const auto reference = figure_at(plan, "/reference_error");
  std::string beneath = "relative, against FP64";
  if (has_reference && reference) beneath = "the reference's: " + error_text(*reference);
  return tile("error", error, beneath, "the plan holds no error");
}

json candidates_tile(const json& plan) {
  const auto candidates = written(figure_at(plan, "/candidates"), number_text);
  const auto seconds = positive_at(plan, "/seconds");
  const std::string beneath = seconds ? "in " + seconds_text(*seconds) : "";
  return tile("candidates", candidates, beneath, "the plan does not say");
}

json tiles_of(const json& plan) {
  json tiles = json::array();
  tiles.push_back(best_tile(plan));
  tiles.push_back(reference_tile(plan));
  tiles.push_back(speed_tile(plan));
  tiles.push_back(bound_tile(plan));
  tiles.push_back(error_tile(plan));
  tiles.push_back(candidates_tile(plan));
  return tiles;
}

json plan_of(const json& plan) {
  json out = {{"tiles", tiles_of(plan)}};
  for (const char* key : {"device", "target", "track", "reference", "seed", "warploom"}) {
    const json& value = at(plan, std::string("/") + key);
    out[key] = value.is_string() || value.is_number() ? value : json("–");
  }
  out["arch"] = text_at(plan, "/launch_list/arch");
  if (out["reference"] == "none") out["reference"] = "–";
  const auto tolerance = positive_at(plan, "/tolerance");
  out["tolerance"] = tolerance ? error_text(*tolerance) : "what its track allows";
  const json& busy = at(plan, "/machine/text");
  out["machine"] = busy.is_string() ? busy : json("nobody looked whether it was busy");
  return out;
}

// Each text once, however often it is launched.
json kernels_of(const json& plan) {
  std::map<std::string, int> launches;
  for (const json& kernel : list_at(plan, "/launch_list/kernels"))
    ++launches[text_at(kernel, "/source")];
  json out = json::array();
  for (const json& kernel : list_at(plan, "/launch_list/kernels")) {
    const auto known = launches.extract(text_at(kernel, "/source"));
    if (!known || !kernel.is_object()) continue;
    std::string grid;
    for (const json& size : list_at(kernel, "/grid"))
      if (size.is_number()) grid += (grid.empty() ? "" : " × ") + words(size);
    const double threads = figure_at(kernel, "/threads").value_or(1);
    const double shared = figure_at(kernel, "/shared_bytes").value_or(0);
    json row;
    row["name"] = text_at(kernel, "/name");
    row["grid"] = grid;
    row["threads"] = number_text(threads);
    row["shared"] = bytes_text(shared);
    row["launches"] = known.mapped();
    row["source"] = text_at(kernel, "/source");
    out.push_back(std::move(row));
  }
  return out;
}

std::string roofline_of(const json& regions, const json& roofs) {
  const auto gbs = positive_at(roofs, "/gbs");
  const auto peak = positive_at(roofs, "/tflops");
  if (regions.empty() || !gbs || !peak) return "";
  Plot plot;
  plot.css = "roofline";
  plot.title = "Roofline";
  plot.note =
      "Full: the best of each region. Hollow: its reference. The slope is what DRAM "
      "serves; what lies in a cache may stand above it.";
  plot.x = "operations a byte of DRAM traffic";
  plot.y = "TFLOP/s";
  plot.log_x = true;
  const double ridge = *peak * 1e3 / *gbs;
  double low = ridge;
  double high = ridge;
  for (const json& row : regions) {
    const auto intensity = positive_at(row, "/intensity");
    if (!intensity) continue;
    low = std::min(low, *intensity);
    high = std::max(high, *intensity);
    if (const auto rate = positive_at(row, "/tflops"))
      plot.marks.push_back({*intensity, *rate, "promoted", text_at(row, "/name")});
    const auto us = positive_at(row, "/reference_us");
    const auto operations = positive_at(row, "/operations");
    if (!us || !operations) continue;
    const double rate = *operations / *us / 1e6;
    plot.marks.push_back({*intensity, rate, "hollow", text_at(row, "/reference")});
  }
  const double left = low / 2;
  const double right = high * 2;
  const double left_rate = left * *gbs / 1e3;  // what DRAM serves
  Plot::Line roof{"roof", {}};
  roof.corners = {{left, left_rate}, {ridge, *peak}, {right, *peak}};
  plot.lines.push_back(std::move(roof));
  return drawn(plot);
}

std::string style() {
  std::string text;
  for (const char* part : {"page", "parts", "pictures"})
    text += resource(fmt::format("report/style/{}.css", part));
  return text;
}

// What the script reads, as text between tags: no </script>, no <!--.
std::string data_of(const Facts& facts) {
  json seen;
  seen["problems"] = facts.histories;
  seen["regions"] = facts.regions;
  seen["roofs"] = facts.roofs;
  for (json& one : seen["problems"]) {
    for (const char* key : {"picture", "rounds", "tables", "exchanges"})
      one.erase(key);
  }
  std::string data = seen.dump(-1, ' ', false, json::error_handler_t::replace);
  size_t bracket = data.find('<');
  while (bracket != data.npos) {
    data.replace(bracket, 1, "\\u003c");
    bracket = data.find('<', bracket);
  }
  return data;
}

// A problem's history as the template reads it.
json problem_of(const json& history, size_t index) {
  const auto best = positive_at(history, "/best/median_us");
  json out;
  out["index"] = index;
  out["open"] = index == 0 ? "open" : "";
  for (const std::string key : {"name", "track", "target", "device", "key"})
    out[key] = text_at(history, "/problem/" + key);
  out["graph"] = text_at(history, "/problem/text");
  out["judged"] = number_text(figure_at(history, "/judged").value_or(0));
  out["best"] = best ? "best " + time_text(*best) : "none of them right";
  out["picture"] = text_at(history, "/picture");
  const std::string environment = text_at(history, "/best/environment");
  const std::string sandbox = text_at(history, "/best/verdict/sandbox");
  if (!environment.empty()) {
    std::string made_by = "The best was made and measured by: " + environment;
    if (!sandbox.empty()) made_by += "; its process was held by: " + sandbox;
    out["made_by"] = made_by;
  }
  out["rounds"] = text_at(history, "/rounds");
  out["model_cost"] = text_at(history, "/model_cost");
  const double left_out = figure_at(history, "/left_out").value_or(0);
  if (left_out > 0) out["left_out"] = number_text(left_out);
  for (const char* name :
       {"errors", "refusals", "candidates", "runs", "steps", "paid", "near", "exchanges"})
    out["tables"][name] = text_at(history, std::string("/tables/") + name);
  return out;
}
}  // namespace

std::string page_of(Facts facts) {
  json record;
  record["title"] = facts.title;
  record["headline"] = facts.headline;
  record["summary"] = text_at(facts.plan, "/summary");
  record["version"] = facts.version;
  record["notes"] = facts.notes;
  record["programs"] = facts.programs;
  record["kernels"] = kernels_of(facts.plan);
  record["advice"] = advice_of(facts.plan, facts.histories, facts.regions);
  record["roofline"] = roofline_of(facts.regions, facts.roofs);
  record["plans"] = json::array();
  record["problems"] = json::array();
  if (facts.plan.is_object()) record["plans"].push_back(plan_of(facts.plan));
  for (size_t i = 0; i < facts.histories.size(); ++i)
    record["problems"].push_back(problem_of(facts.histories[i], i));
  record["regions"] = table("regions", facts.regions);
  record["data"] = data_of(facts);
  record["style"] = style();
  record["script"] = resource("report/report.js");
  return rendered_html(resource("report/report.html"), record, {});
}
}  // namespace warploom::report
