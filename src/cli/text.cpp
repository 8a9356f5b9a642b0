#include <unistd.h>
#include <cstdlib>
#include <regex>
#include <set>
#include <sstream>
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/rendered.h"
#include "cli/command.h"

namespace warploom::cli {
namespace {
bool coloured() {
  const char* no = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && !(no && *no) && terminal &&
         std::string(terminal) != "dumb";
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
nlohmann::json shown(const nlohmann::json& value, bool lines = false) {
  static const std::set<std::string> kOfSeveralLines = {"text", "schedule", "why", "detail"};
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return lines ? printable_lines(text) : printable(text);
  }
  nlohmann::json out = value;
  if (value.is_array())
    for (nlohmann::json& inside : out) inside = shown(inside, lines);
  if (value.is_object())
    for (const auto& [key, inside] : value.items())
      out[key] = shown(inside, kOfSeveralLines.contains(key));
  return out;
}

size_t width_of(const std::string& text) {
  return std::regex_replace(text, std::regex("\033\\[\\d*m"), "").size();
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
  for (const Track track : possible) names.emplace_back(name_of(track));
  return fail({ErrorCode::kUnknownTrack,
               wanted ? "the track cannot hold for the model's types" : "the track is unknown",
               "--track", listed(names), name,
               did_you_mean(name, names, "name one of those, or none for the model's own")});
}

std::string text_of(const std::string& name, const nlohmann::json& record) {
  const auto share = [](double part) { return fmt::format("{:.0f} %", 100 * part); };
  const Forms forms = {
      {"time", of_number(time_text)},
      {"percent", of_number(share)},
      {"ratio", number("{:.2f}x")},
      {"e1", number("{:.1e}")},
      {"e2", number("{:.2e}")},
      {"f1", number("{:.1f}")},
      {"digits", [](const std::string& text) { return text.substr(0, 8); }},
      {"below",
       [](const std::string& text) { return std::regex_replace(text, std::regex("\n"), "\n\t"); }},
      {"bold", colour("1")},
      {"green", colour("32")}};
  return aligned(rendered(resource("text/" + name + ".txt"), shown(record), forms));
}

std::string without_controls(const std::string& text) {
  static const std::regex kColour("\033\\[(0|1|32)m");
  std::string out;
  auto rest = text.begin();
  for (std::sregex_iterator found(text.begin(), text.end(), kColour), end; found != end; ++found) {
    out += printable_lines(std::string(rest, (*found)[0].first)) + found->str();
    rest = (*found)[0].second;
  }
  return out + printable_lines(std::string(rest, text.end()));
}

std::string aligned(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line + "\n");
  for (auto begin = lines.begin(), end = begin; begin != lines.end(); begin = end) {
    size_t widest = 0;  // before the first tab that is left of each line of a table
    for (end = begin; end != lines.end() && end->find('\t') != end->npos; ++end)
      widest = std::max(widest, width_of(end->substr(0, end->find('\t'))));
    for (auto line = begin; line != end; ++line) {
      const size_t tab = line->find('\t');
      line->replace(tab, 1, widest - width_of(line->substr(0, tab)), ' ');
    }
    if (begin == end)
      ++end;
    else
      end = begin;
  }
  return listed(lines, {}, "");
}
}  // namespace warploom::cli
