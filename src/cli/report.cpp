// One page of what a search did, from a bundle's plan and the archive (docs/report.md): its
// template, tables, plain pictures, all of it readable without scripts. resources/report/report.js
// makes the tables sort and puts pictures that answer to pointer and keyboard in the place of the
// plain ones.
#include "base/file.h"
#include "base/rendered.h"
#include "cli/command.h"
#include "onnx/load.h"
#include "tile/print.h"

namespace warploom::cli {
namespace {
using nlohmann::json, nlohmann::ordered_json;
const json kNone;

const json& at(const json& record, const std::string& path) {
  return record.contains(json::json_pointer(path)) ? record[json::json_pointer(path)] : kNone;
}

double number(const json& value) {
  return value.is_number() ? value.get<double>() : 0;
}

std::string cell(const json& value, bool share) {
  if (!value.is_number() && !value.is_null()) return "<td>" + escaped(words(value)) + "</td>";
  if (!share)
    return fmt::format("<td class=\"n\" data-v=\"{}\">{}</td>", number(value), words(value));
  return fmt::format("<td class=\"n bar\" data-v=\"{0}\" style=\"--part:{0:.1f}%\">{0:.0f} %</td>",
                     100 * number(value));
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

// What lies at `path` ("/verdict/error") of a record that may lack it, or hold something of another
// kind there.
std::string text_at(const json& record, const char* path) {
  return at(record, path).is_string() ? at(record, path).get<std::string>() : "";
}

double number_at(const json& record, const char* path) {
  return number(at(record, path));
}

const json& list_at(const json& record, const char* path) {
  static const json none = json::array();
  return at(record, path).is_array() ? at(record, path) : none;
}

// A table of resources/report/tables.json, a record a row; "" where there are none. A heading that
// ends in % has bars.
std::string table(const std::string& name, const json& records) {
  if (!records.is_array() || records.empty()) return "";
  static const ordered_json tables = ordered_json::parse(resource("report/tables.json"));
  const ordered_json& chosen = tables[name];
  json shown = {{"name", name}, {"caption", chosen[0].get<std::string>()}};
  for (const auto& column : chosen[1].items()) shown["headings"].push_back(column.key());
  for (const auto& record : records) {
    json cells;
    for (const auto& column : chosen[1].items())
      cells.push_back(
          cell(at(record, column.value().get<std::string>()), column.key().ends_with('%')));
    shown["rows"].push_back({{"cells", cells}});
  }
  return rendered_html(resource("report/table.html"), shown, {});
}

// resources/report/report.html filled in (base/rendered.h). {{#time}}, {{#percent}} and {{#ratio}}
// write a number of microseconds, a share and a number of times (– for none) as people read them.
std::string report_page(const json& record) {
  const auto form = [](auto write) {
    return [write](const std::string& text) -> std::string {
      return write(std::strtod(text.c_str(), nullptr));
    };
  };
  const Forms forms = {
      {"time", form([](double us) {
         const std::string text = time_text(us);
         return text.ends_with(" us") ? text.substr(0, text.size() - 2) + "µs" : text;
       })},
      {"ratio", form([](double times) { return times > 0 ? fmt::format("{:.2f}×", times) : "–"; })},
      {"percent", form([](double share) { return fmt::format("{:.0f} %", 100 * share); })}};
  return rendered_html(resource("report/report.html"), record, forms);
}

// Marks and lines over two axes, y logarithmic. Classes are those of report.css; a mark's text
// shows where the pointer rests.
struct Plot {
  struct Mark {
    double x, y;
    std::string css, text;
  };

  using Line = std::vector<std::pair<double, double>>;
  std::string title, x, y, css;
  bool log_x = false;
  std::vector<Mark> marks = {};
  std::vector<std::pair<std::string, Line>> lines = {};  // class, corners
};

std::string scatter(const Plot& plot) {
  constexpr double kLeft = 80, kRight = 880, kTop = 14,
                   kBottom = 280;  // of the frame in resources/report/plot.html
  Scale x{plot.log_x, kLeft, kRight}, y{true, kBottom, kTop};
  for (const auto& mark : plot.marks) x.take(mark.x), y.take(mark.y);
  for (const auto& line : plot.lines)
    for (const auto& corner : line.second) x.take(corner.first), y.take(corner.second);
  if (x.low > x.high) return "";  // nothing to show
  x.widen(), y.widen();
  json record = {{"css", plot.css}, {"title", plot.title}};
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
    for (const auto& corner : corners)
      points += fmt::format("{:.1f},{:.1f} ", x.at(corner.first), y.at(corner.second));
    record["lines"].push_back({{"css", css}, {"points", points}});
  }
  for (const auto& mark : plot.marks)
    record["marks"].push_back(
        {{"css", mark.css}, {"x", x.at(mark.x)}, {"y", y.at(mark.y)}, {"text", mark.text}});
  return rendered_html(resource("report/plot.html"), record, {});
}

struct Flags {
  std::optional<std::string> bundle;
  std::string archive, out = "report.html";
};

// What the templates and the script read; `plans` holds the plan, if there is one.
struct Page {
  json plan;
  json record = {{"plans", json::array()},
                 {"problems", json::array()},
                 {"regions", json::array()},
                 {"notes", json::array()}};

  void note(std::string text) { record["notes"].push_back(std::move(text)); }
};

// A problem of the archive: its candidates over time, and why some were refused.
json problem_record(json data) {
  Plot plot{"Time over search", "candidate, in the order recorded", "time, µs", "search"};
  Plot::Line best;
  std::map<std::string, int> refused;
  double n = 0;
  for (json& one : data["candidates"]) {
    const std::string code = text_at(one, "/error_code");
    one["n"] = static_cast<int>(++n);
    one["why"] = code.empty() ? "" : code + ": " + text_at(one, "/verdict/refused/message");
    for (const char* key : {"median_us", "low_us", "high_us", "error"})
      if (!code.empty()) one[key] = nullptr;
    const double us = number_at(one, "/median_us");
    if (!code.empty())
      ++refused[code];
    else if (us > 0) {
      plot.marks.push_back({n, us, "",
                            fmt::format("{}\n{}, error {:.2e}", text_at(one, "/schedule"),
                                        time_text(us), number_at(one, "/error"))});
      best.emplace_back(n, best.empty() ? us : best.back().second);
      if (us < best.back().second) best.emplace_back(n, us);
    }
  }
  const double reference_us = number_at(data, "/reference_us");
  plot.lines = {{"so-far", best}};
  if (reference_us > 0) plot.lines.push_back({"reference", {{1, reference_us}, {n, reference_us}}});
  for (const auto& [code, count] : refused)
    data["refusals"].push_back({{"code", code}, {"count", count}});
  data["picture"] = scatter(plot);
  data["tables"] = {{"errors", table("errors", list_at(data, "/best/verdict/evidence"))}};
  for (const std::string name : {"refusals", "candidates", "runs"})
    if (data.contains(name)) data["tables"][name] = table(name, data[name]);
  return data;
}

Status add_history(Page& page, const Flags& flags) {
  auto from = archive_at(flags.archive);
  const std::string remedy = "Name the archive that the search wrote with --archive.";
  if (!from && flags.bundle && flags.archive.empty() &&
      from.error().code == ErrorCode::kFileMissing)
    return page.note("The history of the search is missing: the cache folder has no archive. " +
                     remedy),
           ok();
  if (!from) return fail(from.error());
  WARPLOOM_TRY(const auto problems, from->problems());
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < problems.size() && !flags.bundle; ++i)
    keys.push_back(problems[i].key);
  for (const json& region : list_at(page.plan, "/regions")) keys.push_back(text_at(region, "/key"));
  if (keys.empty())
    page.note(flags.bundle ? "The plan lists no regions." : "The archive holds no problem yet.");
  for (const std::string& key : keys) {
    const auto problem = std::ranges::find(problems, key, &archive::Problem::key);
    if (problem == problems.end()) {
      page.note(key.empty() ? "The plan does not say which problems of the archive its regions "
                              "are: make it again."
                            : "The archive has no problem " + key + ". " + remedy);
      continue;
    }
    WARPLOOM_TRY(const auto candidates, from->candidates(key));
    WARPLOOM_TRY(const auto runs, from->runs(key));
    WARPLOOM_TRY(const auto best, from->best(key));
    json& all = page.record["problems"];
    json data = {{"problem", *problem},
                 {"candidates", candidates},
                 {"runs", runs},
                 {"best", best ? json(*best) : json()}};
    data["reference_us"] = runs.empty() ? 0.0 : runs.back().reference_us;
    data["index"] = all.size(), data["count"] = candidates.size(),
    data["open"] = all.empty() ? "open" : "";
    all.push_back(problem_record(std::move(data)));
  }
  return ok();
}

// The tile programs behind a region's kernels, and what synthesis chose for them.
Status add_layouts(Page& page, const kernels::Region& region, const kernels::Schedule& schedule,
                   const target::Capabilities& capabilities) {
  for (const kernels::FamilyPtr& family : kernels::families_for(region, capabilities)) {
    if (family->name() != schedule.family) continue;
    WARPLOOM_CHECK(family->admits(schedule));
    WARPLOOM_TRY(const auto made, family->programs(schedule));
    for (const tile::Program& written : made.programs) {
      const std::string text = tile::print(written);
      const tile::Program program =
          tile::parse(text).value_or(written);  // whose statements know their lines
      const auto which = static_cast<std::size_t>(kernels::field(schedule, "solution"));
      WARPLOOM_TRY(const kernels::Lowered lowered, kernels::lower(program, capabilities, which));
      json row = {{"name", written.name},
                  {"region", region.graph.name},
                  {"text", text},
                  {"notes", json::array()}};
      if (lowered.solutions.empty())
        row["notes"].push_back("On the CPU synthesis has no layouts to choose.");
      else {
        const synth::Solution& chosen = lowered.solutions[lowered.which];
        row["tables"]["instructions"] = table("instructions", instructions(program, chosen));
        row["layouts"] = drawn(program, chosen, 16);
      }
      page.record["programs"].push_back(row);
    }
  }
  return ok();
}

// What the plan's model gives: operations and bytes of each region, programs and layouts.
Status add_regions(Page& page) {
  const std::string model = text_at(page.plan, "/model"),
                    arch = text_at(page.plan, "/launch_list/arch");
  if (model.empty()) return fail({ErrorCode::kPlanInvalid, "the plan does not hold its model"});
  WARPLOOM_TRY(graph::Graph graph, parse_onnx(model, "the plan's model"));
  WARPLOOM_TRY(const auto capabilities,
               target::capabilities_of(arch.starts_with("sm_") ? arch : "cpu"));
  WARPLOOM_TRY(graph, search::planned(std::move(graph), capabilities));
  const Track track = *track_named(text_at(page.plan, "/track"));
  WARPLOOM_TRY(const search::Partition partition, search::regions_of(graph, track, capabilities));
  page.record["roofs"] = {{"gbs", capabilities.dram_gbs},
                          {"tflops", 1 / verify::roofline_us(capabilities, track, 1e6, 0)}};
  const json& planned = list_at(page.plan, "/regions");
  std::set<std::string> seen;
  for (const search::Region& one : partition.regions) {
    if (one.alias || !seen.insert(one.identity).second) continue;
    json row = seen.size() > planned.size() ? json() : planned[seen.size() - 1];
    if (text_at(row, "/name") !=
        one.graph.name) {  // made where there are more processors, or by another program
      page.note("The plan has no figures of " + one.graph.name +
                ", which this machine would make of its model.");
      continue;
    }
    const kernels::Region region{one.graph, track};
    const kernels::Work work = kernels::work_of(region);
    double operations =
        work.flops;  // where there is no product to count, one an element that is made
    for (std::size_t i = 0; i < one.graph.nodes.size() && work.flops <= 0; ++i)
      operations += static_cast<double>(
          graph::element_count(one.graph.tensor(one.graph.nodes[i].outputs[0]).shape));
    const double us = number_at(row, "/best_us"),
                 least = verify::roofline_us(capabilities, track, work.flops, work.bytes);
    row.update({{"operations", operations},
                {"bytes", work.bytes},
                {"intensity", operations / work.bytes}});
    if (us > 0)
      row.update({{"tflops", operations / us / 1e6},
                  {"gbs", work.bytes / us / 1e3},
                  {"part", least / us}});
    page.record["regions"].push_back(row);
    const auto schedule = kernels::schedule_from_json(row.value("schedule", json()));
    const Status done = schedule ? add_layouts(page, region, *schedule, capabilities)
                                 : Status(fail(schedule.error()));
    if (!done)
      page.note("The layouts of " + one.graph.name + " are missing. " + describe(done.error()));
  }
  return ok();
}

void add_roofline(Page& page) {
  const json& regions = page.record["regions"];
  if (regions.empty()) return;
  Plot plot{"Roofline", "operations a byte", "TFLOP/s", "roofline", true};
  const double gbs = number_at(page.record, "/roofs/gbs"),
               peak = number_at(page.record, "/roofs/tflops"), ridge = peak * 1e3 / gbs;
  double low = ridge, high = ridge;
  for (const json& row : regions) {
    const double at = number_at(row, "/intensity"), us = number_at(row, "/reference_us"),
                 done = number_at(row, "/tflops");
    low = std::min(low, at), high = std::max(high, at);
    if (done > 0) plot.marks.push_back({at, done, "promoted", text_at(row, "/name")});
    if (us > 0)
      plot.marks.push_back(
          {at, number_at(row, "/operations") / us / 1e6, "hollow", text_at(row, "/reference")});
  }
  page.record["tables"]["regions"] = table("regions", regions);
  plot.lines = {{"roof", {{low / 2, low / 2 * gbs / 1e3}, {ridge, peak}, {high * 2, peak}}}};
  page.record["roofline"] = scatter(plot);
}

// Each text once, however often it is launched.
void add_kernels(Page& page) {
  std::map<std::string, int> launches;
  for (const json& kernel : list_at(page.plan, "/launch_list/kernels"))
    ++launches[text_at(kernel, "/source")];
  for (json kernel : list_at(page.plan, "/launch_list/kernels"))
    if (const auto known = launches.extract(text_at(kernel, "/source"));
        known && kernel.is_object()) {
      kernel["launches"] = known.mapped(), kernel["grid"] = kernel.value("grid", json()).dump();
      page.record["kernels"].push_back(kernel);
    }
}

Result<Answer> report(const Flags& flags) {
  Page page;
  std::filesystem::path path = flags.bundle.value_or("");
  if (flags.bundle) {
    WARPLOOM_TRY(page.plan, read_plan(path));
  }
  WARPLOOM_CHECK(add_history(page, flags));
  json& record = page.record;
  record["summary"] = text_at(page.plan, "/summary");
  record["title"] = flags.bundle ? page.plan.value("problem", json(path.string()))
                                 : json("All problems of the archive");
  if (flags.bundle) {
    if (const Status done = add_regions(page); !done)
      page.note("Roofline, programs and layouts are missing. " + describe(done.error()));
    add_roofline(page), add_kernels(page);
    page.plan.update({{"best_low_us", number_at(page.plan, "/best_interval_us/0")},
                      {"best_high_us", number_at(page.plan, "/best_interval_us/1")}});
    record["plans"].push_back(page.plan);
  } else {
    page.note("Roofline, kernels and layouts are of a bundle: name one to see them.");
  }
  json seen_by_script = {
      {"problems", record["problems"]}, {"regions", record["regions"]}, {"roofs", record["roofs"]}};
  for (json& one : seen_by_script["problems"]) one.erase("picture"), one.erase("tables");
  std::string data = seen_by_script.dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = data.find('<', at)) != data.npos;)
    data.replace(at, 1, "\\u003c");  // no </script>, no <!--
  record["data"] = data;
  record["style"] = resource("report/report.css"), record["script"] = resource("report/report.js"),
  record["version"] = kVersion;
  WARPLOOM_CHECK(write_file(flags.out, report_page(record)));
  return Answer{{{"file", flags.out}, {"problems", record["problems"].size()}}, flags.out + "\n"};
}
}  // namespace

Command report_command() {
  const auto flags = std::make_shared<Flags>();
  return {"report",
          "one offline HTML page of what a search did: times, lineage, refusals, roofline, "
          "kernels, layouts",
          {{"BUNDLE", &flags->bundle,
            "a bundle's folder or its plan.json; without one, all that the archive knows"},
           {"--archive", &flags->archive,
            "the archive that the search wrote; default: in the cache folder"},
           {"--out", &flags->out, "the page; default: report.html"}},
          [flags](const Session&) { return report(*flags); }};
}
}  // namespace warploom::cli
