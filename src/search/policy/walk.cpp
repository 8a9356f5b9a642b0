#include "search/policy/walk.h"
#include <Eigen/Core>
#include <cmath>
#include <cstddef>
#include <vector>
#include "base/casts.h"
#include "base/random.h"
#include "search/policy/features.h"
#include "search/policy/outcomes.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/state.h"

namespace warploom::search {
namespace {
// MTMC's
constexpr double kNotCompiled = -1;
constexpr double kCompiled = 0.1;
constexpr double kWrong = -0.5;
constexpr double kRight = 0.5;
constexpr double kFaster = 1;

constexpr double kShare = 0.1;  // of those beside the best plan's gain
constexpr double kDecay = 0.9;  // of them, a step
}  // namespace

double mtmc_reward(const RecordedPlan& then, double before_us) {
  if (!then.is_right()) {
    const bool has_run = then.code.starts_with("candidate-");
    return has_run ? kCompiled + kWrong : kNotCompiled;
  }
  return kCompiled + kRight + (then.us < before_us ? kFaster : 0);
}

Eigen::MatrixXd rows_of(const std::vector<const RecordedEdge*>& edges, const State& state) {
  Eigen::MatrixXd x(std::ssize(edges), as_int64(kFeatures));
  for (size_t row = 0; row < edges.size(); ++row) {
    FeatureVector seen = edges[row]->seen;
    Features::add_times(seen, state, edges[row]->action);
    for (size_t i = 0; i < kFeatures; ++i)
      x(as_int64(row), as_int64(i)) = seen[i];
  }
  return x;
}

Walk::Walk(const RecordedTree& tree, int start, Mode mode) : tree_(tree), mode_(mode), at_(start) {
  const double us = tree.plan(start).us;
  state_ = {&tree.space(), &tree.facts(), tree.config(start), us, us, {}};
  visited_.insert(start);
}

Walk::View Walk::look(size_t most, Random& random) const {
  View out;
  for (const RecordedEdge& edge : tree_.edges(at_))
    if (!visited_.contains(edge.to)) out.edges.push_back(&edge);
  if (out.edges.size() > most) {
    random.shuffle(out.edges);
    out.edges.resize(most);
  }
  out.x = rows_of(out.edges, state_);
  return out;
}

double Walk::take(const RecordedEdge& edge) {
  const RecordedPlan& then = tree_.plan(edge.to);
  const double before = state_.us;
  const double decay = std::pow(kDecay, as_double(state_.history.size()));
  double reward = kShare * decay * mtmc_reward(then, before);
  visited_.insert(edge.to);
  state_.history.push_back({edge.action, then.is_right(), before, then.us});
  if (!then.is_right()) return reward;
  if (then.us < state_.best_us) {
    reward += std::log2(state_.best_us / then.us);
    state_.best_us = then.us;
  }
  if (mode_ == Mode::climbs && then.us >= before) return reward;
  at_ = edge.to;
  state_.us = then.us;
  state_.config = tree_.config(at_);
  return reward;
}
}  // namespace warploom::search
