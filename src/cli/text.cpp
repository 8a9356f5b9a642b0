#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/rendered.h"
#include "base/rows.h"
#include "cli/command.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "search/optimize.h"

namespace warploom::cli {
namespace {
using nlohmann::json;

bool coloured() {
  const char* const terminal = std::getenv("TERM");
  const bool able = terminal != nullptr && std::string_view(terminal) != "dumb";
  const char* const no = std::getenv("NO_COLOR");
  const bool unwanted = no != nullptr && *no != '\0';
  return ::isatty(STDOUT_FILENO) == 1 && able && !unwanted;
}

// Forms of text_of(): in a colour, and a number as fmt writes it.
Forms::mapped_type colour(const char* code) {
  return [code](const std::string& text) {
    return coloured() ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
  };
}

// What `write` makes of a number; any other text, such as the dash of what is not known, stays.
Forms::mapped_type of_number(std::function<std::string(double)> write) {
  return [write = std::move(write)](const std::string& text) {
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    return end == text.c_str() ? text : write(number);
  };
}

Forms::mapped_type number(const char* format) {
  return of_number([format](double number) { return fmt::format(fmt::runtime(format), number); });
}

// A record's texts as a terminal may show them: names, paths and compilers' words may hold
// anything. What has several lines keeps them.
json shown(const json& value, bool lines = false) {
  static const std::set<std::string> kOfSeveralLines = {"text", "schedule", "why", "detail"};
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return lines ? printable_lines(text) : printable(text);
  }
  json out = value;
  if (value.is_array())
    for (json& inside : out)
      inside = shown(inside, lines);
  if (value.is_object())
    for (const auto& [key, inside] : value.items())
      out[key] = shown(inside, kOfSeveralLines.contains(key));
  return out;
}

// Of what a terminal shows of it.
size_t width_of(const std::string& text) {
  return std::regex_replace(text, std::regex("\033\\[\\d*m"), "").size();
}

bool has_tab(const std::string& line) {
  return line.find('\t') != std::string::npos;
}

std::string before_tab(const std::string& line) {
  return line.substr(0, line.find('\t'));
}

// Lines of a table: spaces take the place of each one's first tab.
void align_first_tabs(std::span<std::string> lines) {
  size_t widest = 0;
  for (const std::string& line : lines)
    widest = std::max(widest, width_of(before_tab(line)));
  for (std::string& line : lines) {
    const size_t spaces = widest - width_of(before_tab(line));
    line.replace(line.find('\t'), 1, spaces, ' ');
  }
}
}  // namespace

Result<Track> track_for(const graph::Graph& graph, const std::string& name) {
  const Track own = search::default_track(graph);
  if (name.empty()) return own;
  std::vector<Track> possible = {own, Track::tolerance};
  if (own == Track::fp32) possible = {Track::fp32, Track::tf32, Track::tolerance};
  const auto wanted = track_named(name);
  if (wanted && contains(possible, *wanted)) return *wanted;
  std::vector<std::string> names;
  for (const Track track : possible)
    names.emplace_back(name_of(track));
  const char* const message =
      wanted ? "the track cannot hold for the model's types" : "the track is unknown";
  const std::string remedy =
      did_you_mean(name, names, "name one of those, or none for the model's own");
  return fail({ErrorCode::kUnknownTrack, message, "--track", listed(names), name, remedy});
}

std::string text_of(const std::string& name, const json& record) {
  const auto share = [](double part) { return fmt::format("{:.0f} %", 100 * part); };
  const auto first_digits = [](const std::string& text) { return text.substr(0, 8); };
  const auto beneath = [](const std::string& text) {
    return std::regex_replace(text, std::regex("\n"), "\n\t");
  };
  Forms forms;
  forms["time"] = of_number(time_text);
  forms["percent"] = of_number(share);
  forms["ratio"] = number("{:.2f}x");
  forms["e1"] = number("{:.1e}");
  forms["e2"] = number("{:.2e}");
  forms["f1"] = number("{:.1f}");
  forms["digits"] = first_digits;
  forms["below"] = beneath;
  forms["bold"] = colour("1");
  forms["green"] = colour("32");
  return aligned(rendered(resource("text/" + name + ".txt"), shown(record), forms));
}

std::string without_controls(const std::string& text) {
  static const std::regex kColour("\033\\[(0|1|32)m");
  std::string out;
  std::string rest = text;
  std::smatch found;
  while (std::regex_search(rest, found, kColour)) {
    out += printable_lines(found.prefix().str()) + found.str();
    rest = found.suffix().str();
  }
  return out + printable_lines(rest);
}

std::string aligned(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line + "\n");
  auto line = lines.begin();
  while (line != lines.end()) {
    const auto end = std::find_if_not(line, lines.end(), has_tab);
    align_first_tabs({line, end});
    // What was aligned may have further tabs: the same lines again.
    line = line == end ? std::next(end) : line;
  }
  return listed(lines, {}, "");
}
}  // namespace warploom::cli
