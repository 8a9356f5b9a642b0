#include "cli/inputs.h"
#include <charconv>
#include <sstream>
#include "search/catalogue.h"
#include "search/optimize.h"

namespace warploom::cli {

Result<double> parse_seconds(const std::string& text, const std::string& place) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  constexpr Unit kUnits[] = {{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}, {"", 1}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, text.data() + text.size());
  for (const Unit& unit : kUnits)
    if (error == std::errc() && rest == unit.name && number > 0 && std::isfinite(number)) return number * unit.seconds;
  return fail({ErrorCode::kUsage, "a duration cannot be read", place, "a number above zero with ms, s, m or h: 60s",
               text, "write it like 500ms, 60s or 2m"});
}

Result<Track> track_for(const graph::Graph& graph, const std::string& name) {
  const Track own = search::default_track(graph);
  if (name.empty()) return own;
  std::vector<Track> possible = {own, Track::tolerance};
  if (own == Track::fp32) possible = {Track::fp32, Track::tf32, Track::tolerance};
  const auto wanted = track_named(name);
  if (wanted && std::ranges::find(possible, *wanted) != possible.end()) return *wanted;
  std::string names;
  for (const Track track : possible) names += (names.empty() ? "" : ", ") + std::string(name_of(track));
  return fail({ErrorCode::kUnknownTrack,
               wanted ? "the track cannot hold for the model's types" : "the track is unknown", "--track", names, name,
               "name one of those, or none for the model's own"});
}

Result<kernels::Schedule> parse_schedule(const std::string& text) {
  kernels::Schedule schedule;
  std::istringstream words(text);
  words >> schedule.family;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    std::int64_t value = 0;
    const char* const end = word.data() + word.size();
    if (equals != std::string::npos && equals > 0) {
      const auto [stop, error] = std::from_chars(word.data() + equals + 1, end, value);
      if (error == std::errc() && stop == end && schedule.fields.emplace(word.substr(0, equals), value).second)
        continue;
    }
    return fail({ErrorCode::kPlanInvalid, "a schedule cannot be read", "--schedule",
                 "a family, then FIELD=INTEGER, each once", word,
                 "see the fields with `warploom show FILE --what space`"});
  }
  return schedule;
}

Result<kernels::Schedule> default_schedule(const kernels::Region& region, const target::Capabilities& capabilities) {
  const search::Catalogue catalogue{region, capabilities, kernels::families_for(region, capabilities), {}};
  std::optional<kernels::Schedule> best;
  double best_guess = 0;
  for (const kernels::Family* family : catalogue.families) {
    Random random(1, "default schedule");
    const auto schedules = search::ranked(catalogue, *family, random);
    if (schedules.empty()) continue;
    const double guess = family->guess(region, schedules[0], capabilities);
    if (!best || guess < best_guess) best = schedules[0], best_guess = guess;
  }
  if (best) return *best;
  return fail({ErrorCode::kNoSchedule, "no family of schedules covers the model on this target", region.graph.name,
               "one matmul or softmax with pointwise operators", graph::to_text(region.graph),
               "take a model of that form"});
}

}  // namespace warploom::cli
