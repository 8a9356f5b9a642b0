#include "report/lineage.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/rendered.h"
#include "report/figures.h"

namespace warploom::report {
namespace {
using nlohmann::json;

constexpr size_t kMostRows = 300;
constexpr size_t kFastest = 100;  // of more rows than that these, and what led to them
constexpr int kDeepest = 40;      // levels that are shown as such

// Candidates by their schedules, and whose child each is.
class Tree {
 public:
  explicit Tree(const json& candidates) {
    for (const json& one : candidates)
      by_schedule_.emplace(text_at(one, "/schedule"), &one);
    for (const json& one : candidates) {
      const json* const parent = parent_of(one);
      (parent == nullptr ? roots_ : children_[parent]).push_back(&one);
    }
  }

  // The first of its parents, if that is there and was recorded before it: no ring can be.
  const json* parent_of(const json& one) const {
    const std::string schedule = text_at(one, "/parents/0");
    const auto found = by_schedule_.find(schedule);
    if (found == by_schedule_.end()) return nullptr;
    const bool is_before = number_of(*found->second) < number_of(one);
    return is_before ? found->second : nullptr;
  }

  const std::vector<const json*>& roots() const { return roots_; }

  std::vector<const json*> children(const json* of) const {
    const auto found = children_.find(of);
    if (found == children_.end()) return {};
    auto out = found->second;
    sort_by_time(out);
    return out;
  }

  static void sort_by_time(std::vector<const json*>& all) {
    std::ranges::stable_sort(all, {}, [](const json* one) {
      const auto us = positive_at(*one, "/median_us");
      return std::pair(!us, us);
    });
  }

 private:
  static double number_of(const json& one) { return figure_at(one, "/n").value_or(0); }

  std::map<std::string, const json*> by_schedule_;
  std::map<const json*, std::vector<const json*>> children_;
  std::vector<const json*> roots_;
};

// Whom to show of many: the fastest, with their ancestors.
std::set<const json*> shown_of(const json& candidates, const Tree& tree) {
  std::vector<const json*> all;
  for (const json& one : candidates)
    all.push_back(&one);
  if (all.size() <= kMostRows) return {all.begin(), all.end()};
  Tree::sort_by_time(all);
  all.resize(kFastest);
  std::set<const json*> out;
  for (const json* one : all)
    for (; one != nullptr && out.insert(one).second; one = tree.parent_of(*one)) {}
  return out;
}

std::string idea_of(const json& one) {
  const std::string sentence = text_at(one, "/action/sentence");
  return sentence.empty() ? "began with " + text_at(one, "/schedule") : sentence;
}

json row_of(const json& one, const json* parent, int depth, const json& bound_us) {
  std::string indent;
  for (int i = 0; i < std::min(depth, kDeepest); ++i)
    indent += "· ";
  const auto us = positive_at(one, "/median_us");
  const auto before = parent != nullptr ? positive_at(*parent, "/median_us") : std::nullopt;
  const std::string code = text_at(one, "/error_code");
  json row;
  row["step"] = fmt::format("{}#{:.0f}", indent, figure_at(one, "/n").value_or(0));
  row["idea"] = idea_of(one);
  row["difference"] = difference_of(at(one, "/action"));
  row["verdict"] = code.empty() ? text_at(one, "/stage") : code;
  row["median_us"] = json_of(us);
  row["of_parent"] = nullptr;
  if (us && before) row["of_parent"] = *us / *before;
  row["part"] = nullptr;
  if (us && bound_us.is_number()) row["part"] = bound_us.get<double>() / *us;
  row["round"] = json_of(figure_at(one, "/proposed/round"));
  row["chance"] = json_of(share_at(one, "/proposed/chance"));
  return row;
}

// What one kind of actions came to.
struct Paid {
  int tried = 0;
  int refused = 0;
  int faster = 0;
  std::vector<double> gains = {};
  double best_gain = 0;
  std::string best = {};
};

std::optional<double> median_of(std::vector<double> numbers) {
  if (numbers.empty()) return std::nullopt;
  std::ranges::sort(numbers);
  const size_t middle = numbers.size() / 2;
  if (numbers.size() % 2 == 1) return numbers[middle];
  return (numbers[middle - 1] + numbers[middle]) / 2;
}

void count(Paid& of, const json& child, const json& parent) {
  ++of.tried;
  const auto before = positive_at(parent, "/median_us");
  const auto after = positive_at(child, "/median_us");
  if (!after) ++of.refused;
  if (!before || !after) return;
  const double gain = *before / *after;
  of.gains.push_back(gain);
  if (gain > 1) ++of.faster;
  if (gain <= of.best_gain) return;
  of.best_gain = gain;
  of.best = text_at(child, "/action/sentence");
}
}  // namespace

std::string difference_of(const json& action) {
  if (at(action, "/changes_family") == json(true)) return "";
  std::string out;
  for (const json& one : list_at(action, "/settings")) {
    const json& from = at(one, "/from");
    const json& to = at(one, "/to");
    if (!one.is_object() || from.is_structured() || to.is_structured()) continue;
    const std::string change =
        fmt::format("{} {} → {}", text_at(one, "/field"), words(from), words(to));
    out += (out.empty() ? "" : ", ") + change;
  }
  for (const json& step : list_at(action, "/plan_steps"))
    if (step.is_string()) out += (out.empty() ? "" : ", ") + step.get<std::string>();
  return out;
}

LineageTable lineage_of(const json& candidates, const json& bound_us) {
  struct Place {
    const json* one;
    int depth;
  };

  LineageTable out;
  if (!candidates.is_array()) return out;
  const Tree tree(candidates);
  const auto shown = shown_of(candidates, tree);
  std::vector<Place> waiting;  // the next one last
  const auto add = [&](std::vector<const json*> all, int depth) {
    std::ranges::reverse(all);
    for (const json* one : all)
      if (shown.contains(one)) waiting.push_back({one, depth});
  };
  add(tree.roots(), 0);
  while (!waiting.empty()) {
    const Place next = waiting.back();
    waiting.pop_back();
    out.rows.push_back(row_of(*next.one, tree.parent_of(*next.one), next.depth, bound_us));
    add(tree.children(next.one), next.depth + 1);
  }
  out.left_out = candidates.size() - out.rows.size();
  return out;
}

json paid_by(const json& candidates) {
  std::map<std::string, Paid> kinds;
  if (!candidates.is_array()) return json::array();
  const Tree tree(candidates);
  for (const json& one : candidates) {
    const std::string kind = text_at(one, "/action/kind");
    const json* const parent = tree.parent_of(one);
    if (!kind.empty() && parent != nullptr) count(kinds[kind], one, *parent);
  }
  json out = json::array();
  for (const auto& [kind, paid] : kinds) {
    json row = {{"kind", kind}, {"tried", paid.tried}, {"refused", paid.refused}};
    row["faster"] = paid.faster;
    row["median_gain"] = json_of(median_of(paid.gains));
    row["best_gain"] = nullptr;
    if (paid.best_gain > 0) row["best_gain"] = paid.best_gain;
    row["best"] = paid.best;
    out.push_back(std::move(row));
  }
  const auto gained = [](const json& row) { return -positive_at(row, "/best_gain").value_or(0); };
  std::stable_sort(out.begin(), out.end(),
                   [&](const json& a, const json& b) { return gained(a) < gained(b); });
  return out;
}
}  // namespace warploom::report
