#include "search/headline.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <string_view>
#include <vector>
#include "base/quoted.h"
#include "base/rendered.h"
#include "base/rows.h"
#include "base/units.h"

namespace warploom::search {
namespace {
using nlohmann::json;

double number(const json& record, const char* key) {
  const auto at = record.find(key);
  return at != record.end() && at->is_number() ? at->get<double>() : 0;
}

std::string text(const json& record, const char* key) {
  const auto at = record.find(key);
  const bool is_text = at != record.end() && at->is_string();
  return is_text ? at->get<std::string>() : "";
}

std::vector<json> list(const json& record, const char* key) {
  const auto at = record.find(key);
  if (at == record.end() || !at->is_array()) return {};
  return at->get<std::vector<json>>();
}

struct Range {
  double low = 0;
  double high = 0;
  bool known = false;
};

Range range(const json& record, const char* key) {
  const auto ends = list(record, key);
  if (ends.size() != 2) return {};
  const json& low = ends[0];
  const json& high = ends[1];
  if (!low.is_number() || !high.is_number()) return {};
  return {low.get<double>(), high.get<double>(), true};
}

std::string times(double ratio) {
  return fmt::format("{:.2f}×", ratio);
}

// "1.19 ms" or "not known".
std::string time_or_unknown(double us) {
  return us > 0 ? time_text(us) : "not known";
}

// "0.91 ms (95 % of medians 0.90 ms to 0.92 ms)".
std::string time_with_interval(double us, const Range& interval) {
  const std::string time = time_or_unknown(us);
  if (!interval.known) return time;
  const std::string low = time_text(interval.low);
  const std::string high = time_text(interval.high);
  return fmt::format("{} (95 % of medians {} to {})", time, low, high);
}

std::string because(const json& record) {
  const auto words = [](const json& reason) { return reason.get<std::string>(); };
  return listed(list(record, "undecided_because"), words, "; ");
}

bool is_network(const json& outcome) {
  return list(outcome, "regions").size() > 1;
}

// "" where there is none; older programs wrote that out.
std::string reference_of(const json& record) {
  const std::string name = text(record, "reference");
  return name == "none" ? "" : name;
}

// The libraries of a reference, each once, without what of them is called.
std::string libraries_of(const std::string& reference) {
  static const std::regex called(" \\([^)]*\\)");
  std::string rest = std::regex_replace(reference, called, "") + " + ";
  std::vector<std::string> libraries;
  for (size_t end; (end = rest.find(" + ")) != rest.npos; rest.erase(0, end + 3))
    if (!contains(libraries, rest.substr(0, end))) libraries.push_back(rest.substr(0, end));
  return listed(libraries, {}, " + ");
}

// Whether the reference computes a network's whole model, timed in turns with the whole plan.
bool covers_model(const json& outcome) {
  return text(outcome, "reference_covers") == "model";
}

// What a time is compared with, by name.
std::string rival(const json& outcome) {
  const std::string name = libraries_of(reference_of(outcome));
  if (!is_network(outcome) || covers_model(outcome))
    return name == "plain" ? "the plain kernel" : name;
  return fmt::format("its regions' references together ({})", name);
}

// The two times of a comparison; a network's are of its regions, each beside its reference, where
// none computes the whole model.
std::string both_times(const json& outcome) {
  const double compared_us = covers_model(outcome) ? 0 : number(outcome, "compared_us");
  const double ours_us = compared_us > 0 ? compared_us : number(outcome, "best_us");
  return fmt::format("{} → {}", time_text(number(outcome, "reference_us")), time_text(ours_us));
}

// "1.31× faster than oneDNN 2.6.3 (1.19 ms → 0.91 ms, ±4 %)", of a record with these keys.
std::string comparison(const json& record) {
  const double ratio = number(record, "speedup");
  const Range interval = range(record, "speedup_interval");
  const std::string standing = text(record, "standing");
  if (standing == "undecided" || !interval.known) {
    const std::string low = times(interval.known ? interval.low : ratio);
    const std::string high = times(interval.known ? interval.high : ratio);
    const std::string why = interval.known ? because(record) : "no interval was kept";
    return fmt::format("undecided against {}: {} to {} its speed ({}), because {}", rival(record),
                       low, high, both_times(record), why);
  }
  const double uncertainty = 50 * (interval.high - interval.low) / ratio;
  const std::string_view relation = standing == "faster" ? "faster than" : "the speed of";
  return fmt::format("{} {} {} ({}, ±{:.0f} %)", times(ratio), relation, rival(record),
                     both_times(record), std::max(1.0, uncertainty));
}

// The outcome as it would be if only the regions that have a reference counted.
json part_of(const json& outcome) {
  json part = outcome;
  if (outcome.contains("part") && outcome["part"].is_object()) part.update(outcome["part"]);
  return part;
}

std::string missing(const json& outcome) {
  const auto words = [](const json& name) { return name.get<std::string>(); };
  return listed(list(outcome, "references_missing"), words);
}

// How the time stands to what it is compared with, or that there is nothing.
std::string standing_words(const json& outcome) {
  const std::string dropped = text(outcome, "reference_dropped");
  const std::string time = time_or_unknown(number(outcome, "best_us"));
  if (number(outcome, "speedup") > 0) return comparison(outcome);
  const json part = part_of(outcome);
  if (number(part, "speedup") > 0)
    return fmt::format("{}; where a reference is known {}; none is for {}", time, comparison(part),
                       missing(outcome));
  if (!dropped.empty())
    return fmt::format("{}; {} could not be compared with: {}", time, rival(outcome), dropped);
  if (!reference_of(outcome).empty() && number(outcome, "reference_us") <= 0)
    return fmt::format("{}, not compared with {} yet", time, rival(outcome));
  return fmt::format("{}, nothing is known to compare with", time);
}

std::string proof_words(const json& outcome) {
  const bool proven = outcome.value("proven", true);
  return proven ? "proven right" : "right on samples, not yet judged whole";
}

// "58 % of this machine's DRAM bound"; older plans have the share alone.
std::string bound_words(const json& outcome) {
  const std::string of = text(outcome, "bound");
  const double share = number(outcome, "roofline_fraction");
  if (share > 0 && share <= 1)
    return fmt::format("{:.0f} % of this machine's {}", 100 * share,
                       of.empty() ? "bound" : of + " bound");
  return text(outcome, "bound_text");
}

// A region's name as the model has it, and what it makes.
std::string region_name(const json& region) {
  std::string name = text(region, "label");
  if (name.empty()) name = text(region, "name");
  const std::string output = text(region, "output");
  const double times_it_occurs = number(region, "times");
  if (!output.empty()) name += " -> " + output;
  if (times_it_occurs > 1) name += fmt::format(" and {} more like it", times_it_occurs - 1);
  return name;
}

std::string region_speedup(const json& region) {
  const Range interval = range(region, "speedup_interval");
  if (!interval.known) return "";
  const std::string low = times(interval.low);
  const std::string high = times(interval.high);
  if (text(region, "standing") == "undecided") return fmt::format("undecided: {} to {}", low, high);
  return fmt::format("{} ({} to {})", times(number(region, "speedup")), low, high);
}

std::string reference_words(const json& record) {
  const std::string name = reference_of(record);
  const std::string dropped = text(record, "reference_dropped");
  if (name.empty()) return "no reference is known";
  const double us = number(record, "reference_us");
  if (us > 0) {
    const Range interval = range(record, "reference_interval_us");
    return fmt::format("{}: {}", name, time_with_interval(us, interval));
  }
  return dropped.empty() ? name + ": not timed" : fmt::format("{}: dropped, {}", name, dropped);
}

std::string speedup_words(const json& outcome) {
  const json part = part_of(outcome);
  const Range interval = range(part, "speedup_interval");
  if (!interval.known) return "not known";
  const std::string low = times(interval.low);
  const std::string high = times(interval.high);
  const std::string ends = fmt::format("{} to {}", low, high);
  if (text(part, "standing") == "undecided")
    return fmt::format("undecided: {}, because {}", ends, because(part));
  return fmt::format("{} (95 % of medians {})", times(number(part, "speedup")), ends);
}

// "120 us once, before the calls and not in the time; 2.4 MiB kept": what is made of constants.
std::string prepare_words(const json& record) {
  const double us = number(record, "prepare_us");
  if (us <= 0) return "";
  const std::string kept = bytes_text(number(record, "prepare_bytes"));
  std::string words =
      fmt::format("{} once, before the calls and not in the time; {} kept", time_text(us), kept);
  if (number(record, "reference_us") > 0)
    words += "; the reference lays out its constants before its calls, too";
  return words;
}

std::string error_words(const json& outcome) {
  const auto known = [&](const char* key) {
    return outcome.contains(key) && outcome[key].is_number();
  };
  if (!known("error")) return "not known";
  std::string words = fmt::format("{:.2e} relative, {:.2e} at most", number(outcome, "error"),
                                  number(outcome, "max_error"));
  if (known("reference_error"))
    words += fmt::format("; the reference's is {:.2e}", number(outcome, "reference_error"));
  return words;
}

// "references together 1.19 ms, regions beside them 0.91 ms; none for 2 MaxPool".
std::string sum_words(const json& outcome) {
  const json part = part_of(outcome);
  double reference_us = number(part, "regions_reference_us");
  if (reference_us <= 0) reference_us = number(part, "reference_us");
  const std::string without = missing(outcome);
  if (reference_us <= 0) return "";
  const std::string here = time_text(number(part, "compared_us"));
  std::string words = fmt::format("{} by the references, {} here", time_text(reference_us), here);
  if (!without.empty()) words += "; no reference for " + without;
  return words;
}

// The best time, with its interval where that is known.
std::string best_words(const json& record) {
  return time_with_interval(number(record, "best_us"), range(record, "best_interval_us"));
}

// "at most 8.1 us (…), in calls one by one, each as if it were the first": of a verdict, how the
// time was taken.
std::string judged_time_words(const json& outcome) {
  const std::string time = best_words(outcome);
  const std::string path = text(outcome, "path");
  const bool bound = outcome.value("time_is_bound", false);
  if (path == "strict")
    return fmt::format("{}{}, in calls one by one, each as if it were the first",
                       bound ? "at most " : "", time);
  const double strict_us = number(outcome, "strict_us");
  if (path != "series" || strict_us <= 0) return time;
  const Range interval{number(outcome, "strict_low_us"), number(outcome, "strict_high_us"), true};
  return fmt::format("{} in a series; one by one {}", time,
                     time_with_interval(strict_us, interval));
}

json region_words(const json& region) {
  json words;
  words["number"] = number(region, "number");
  words["name"] = region_name(region);
  words["time"] = best_words(region);
  words["reference"] = reference_words(region);
  words["speedup"] = region_speedup(region);
  return words;
}

std::string machine_words(const json& outcome) {
  const auto machine = outcome.find("machine");
  if (machine == outcome.end() || !machine->is_object()) return "not known";
  return text(*machine, "text");
}

// What a model did in each region's search, a line each.
std::string coder_words(const json& coder) {
  const int64_t tokens = coder.value("tokens", int64_t{0});
  std::string words = fmt::format("{}: {} questions, {}{} tokens, {} texts, {} of them right",
                                  text(coder, "model"), coder.value("exchanges", 0),
                                  coder.value("tokens_estimated", false) ? "about " : "", tokens,
                                  coder.value("texts", 0), coder.value("right", 0));
  if (const std::string why = text(coder, "stopped"); !why.empty())
    words += "; ended: " + printable(why);
  return words;
}
}  // namespace

std::string headline(const json& outcome) {
  std::vector<std::string> parts = {standing_words(outcome)};
  const bool decided =
      text(outcome, "standing") == "faster" || text(outcome, "standing") == "slower";
  if (decided)
    parts[0] += ", " + proof_words(outcome);
  else
    parts.push_back(proof_words(outcome));
  if (const std::string bound = bound_words(outcome); !bound.empty()) parts.push_back(bound);
  if (const std::string folder = text(outcome, "bundle"); !folder.empty())
    parts.push_back(fmt::format("make -C {} check", shell_word(folder)));
  return listed(parts, {}, "; ");
}

json with_words(json outcome) {
  json words;
  words["headline"] = headline(outcome);
  words["faster"] = text(outcome, "standing") == "faster";
  words["time"] = judged_time_words(outcome);
  words["reference"] = reference_words(part_of(outcome));
  words["speedup"] = speedup_words(outcome);
  words["bound"] = text(outcome, "bound_text");
  words["error"] = error_words(outcome);
  words["prepare"] = prepare_words(outcome);
  words["check"] = "";
  words["coders"] = json::array();
  for (const json& coder : list(outcome, "coders"))
    words["coders"].push_back(coder_words(coder));
  words["network"] = is_network(outcome);
  words["regions"] = json::array();
  words["sum"] = "";
  words["machine"] = machine_words(outcome);
  if (const std::string folder = text(outcome, "bundle"); !folder.empty())
    words["check"] = fmt::format("make -C {} check", shell_word(folder));
  if (is_network(outcome)) {
    for (const json& region : list(outcome, "regions"))
      words["regions"].push_back(region_words(region));
    words["sum"] = sum_words(outcome);
  }
  outcome["words"] = words;
  return outcome;
}
}  // namespace warploom::search
