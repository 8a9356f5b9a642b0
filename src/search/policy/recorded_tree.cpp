#include "search/policy/recorded_tree.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "graph/parallel.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/policy/features.h"
#include "search/policy/outcomes.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
constexpr double kTop = 0.1;  // of the plans that are known
}  // namespace

RecordedTree::RecordedTree(const target::Capabilities& capabilities, const RecordedProblem& problem)
    : problem_(&problem),
      space_(search_space_of({problem.graph, problem.track}, capabilities)),
      facts_(facts_of(space_)) {
  std::map<std::string, int> numbers;
  std::vector<double> times;
  size_t known = 0;
  for (int i = 0; i < as_int(problem.plans.size()); ++i) {
    const RecordedPlan& one = plan(i);
    configs_.push_back(*kernels::config_from_text(one.config));
    if (!one.is_known()) continue;
    ++known;
    numbers.emplace(configs_.back().text(), i);
    if (!one.is_right()) continue;
    right_.push_back(i);
    times.push_back(one.us);
  }
  edges_.resize(configs_.size());
  if (times.empty()) return;
  std::ranges::sort(times);
  const auto last = static_cast<size_t>(std::ceil(kTop * as_double(known)));
  best_us_ = times[0];
  top_us_ = times[std::min(last, times.size()) - 1];
  add_edges(numbers);
}

void RecordedTree::add_edges(const std::map<std::string, int>& numbers) {
  const ActionSpace actions(space_);
  Features features(space_);
  for (const int from : right_) {
    const auto& config = configs_[as_size(from)];
    std::map<int, size_t> seen;
    for (Action& action : actions.at(config).legal) {
      const auto then = carry_out(space_, action, config);
      if (!then) continue;
      const auto found = numbers.find(then->text());
      if (found == numbers.end() || found->second == from) continue;
      if (!seen.emplace(found->second, 0).second) continue;
      const auto timeless = features.timeless(config, action, *then);
      edges_[as_size(from)].push_back({found->second, std::move(action), timeless});
    }
    if (!edges_[as_size(from)].empty()) inner_.push_back(from);
  }
}

size_t RecordedTree::edge_count() const {
  size_t out = 0;
  for (const auto& one : edges_)
    out += one.size();
  return out;
}

std::vector<std::unique_ptr<RecordedTree>> trees_of(const Outcomes& outcomes, Use use) {
  std::vector<const RecordedProblem*> problems;
  for (const RecordedProblem& problem : outcomes.problems)
    if (problem.use == use) problems.push_back(&problem);
  std::vector<std::unique_ptr<RecordedTree>> out(problems.size());
  const auto make = [&](int64_t i) {
    out[as_size(i)] = std::make_unique<RecordedTree>(outcomes.capabilities, *problems[as_size(i)]);
  };
  graph::parallel_for(std::ssize(problems), 0, make);
  std::erase_if(out, [](const auto& tree) { return tree->inner().empty(); });
  return out;
}
}  // namespace warploom::search
