#include "search/policy/replay.h"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/random.h"
#include "search/action/action.h"
#include "search/policy/outcomes.h"
#include "search/policy/policy.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/state.h"

namespace warploom::search {
namespace {
constexpr double kSlowStart = 0.8;  // of the best's speed: starts are slower, where some are
constexpr double kUnlikely = 0.02;  // a promise below it is tried last
constexpr double kPostponed = -50;  // on a logarithm of weights

class Search {
 public:
  Search(const RecordedTree& tree, Policy& policy, const ReplayOptions& options)
      : tree_(tree), policy_(policy), options_(options), random_(options.seed, "replay") {}

  Replayed run() {
    const int most = as_int(tree_.right().size());
    out_.to_095 = out_.to_098 = as_int(tree_.problem().plans.size()) + 1;
    see(start(), nullptr, nullptr);
    while (seen_.size() < tree_.problem().plans.size() && out_.to_098 > most) {
      const std::optional<Waiting> next = take();
      if (!next) break;
      see(next->edge->to, &next->history, next->edge);
    }
    return std::move(out_);
  }

 private:
  using History = std::vector<Moment>;

  struct Waiting {
    double priority = 0;
    const RecordedEdge* edge = nullptr;
    double from_us = 0;
    History history = {};
  };

  int start() {
    const auto is_slow = [&](int plan) {
      return tree_.best_us() < kSlowStart * tree_.plan(plan).us;
    };
    std::vector<int> slow;
    std::ranges::copy_if(tree_.inner(), std::back_inserter(slow), is_slow);
    const auto& among = slow.empty() ? tree_.inner() : slow;
    return among[random_.below(among.size())];
  }

  void see(int plan, const History* history, const RecordedEdge* edge) {
    seen_.insert(plan);
    const RecordedPlan& found = tree_.plan(plan);
    if (found.is_right() && (best_us_ == 0 || found.us < best_us_)) best_us_ = found.us;
    const double fraction = best_us_ > 0 ? tree_.best_us() / best_us_ : 0;
    const int tried = as_int(out_.best_at.size());
    out_.best_at.push_back(fraction);
    if (fraction >= 0.95) out_.to_095 = std::min(out_.to_095, tried);
    if (fraction >= 0.98) out_.to_098 = std::min(out_.to_098, tried);
    if (!found.is_right()) return;
    State state = {&tree_.space(), &tree_.facts(), tree_.config(plan), found.us, best_us_, {}};
    if (history) state.history = *history;
    if (edge) state.history.back() = {edge->action, true, state.history.back().before_us, found.us};
    expand(plan, state);
  }

  void expand(int plan, const State& state) {
    std::vector<Action> actions;
    std::vector<const RecordedEdge*> edges;
    for (const RecordedEdge& edge : tree_.edges(plan)) {
      if (seen_.contains(edge.to)) continue;
      actions.push_back(edge.action);
      edges.push_back(&edge);
    }
    const auto weights = policy_.weights(state, actions);
    for (size_t i = 0; i < edges.size(); ++i) {
      const double gumbel = -std::log(-std::log(std::max(1e-12, random_.uniform())));
      double priority = std::log(std::max(1e-12, weights[i])) + options_.chance * gumbel;
      if (options_.filters) {
        const auto promise = policy_.promise(state, tree_.config(edges[i]->to));
        if (promise && *promise < kUnlikely) priority += kPostponed;
      }
      History history = state.history;
      history.push_back({edges[i]->action, false, state.us, 0});
      waiting_.push_back({priority, edges[i], state.us, std::move(history)});
    }
  }

  // The one with the most promise, which depends on how good the best is by now.
  std::optional<Waiting> take() {
    std::erase_if(waiting_, [&](const Waiting& one) { return seen_.contains(one.edge->to); });
    if (waiting_.empty()) return std::nullopt;
    const auto promise = [&](const Waiting& one) {
      return one.priority - options_.steepness * std::log2(one.from_us / best_us_);
    };
    const auto most = std::ranges::max_element(waiting_, {}, promise);
    Waiting out = std::move(*most);
    waiting_.erase(most);
    return out;
  }

  const RecordedTree& tree_;
  Policy& policy_;
  const ReplayOptions options_;
  Random random_;
  Replayed out_;
  std::set<int> seen_;
  std::vector<Waiting> waiting_;
  double best_us_ = 0;
};
}  // namespace

Replayed replayed(const RecordedTree& tree, Policy& policy, const ReplayOptions& options) {
  return Search(tree, policy, options).run();
}
}  // namespace warploom::search
