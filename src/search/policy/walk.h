// Walk: one trajectory of a policy through a recorded tree, with its rewards.
//
//   Walk walk(tree, start, Mode::climbs);
//   while (const Walk::View view = walk.look(24, random); !view.edges.empty())
//     reward = walk.take(*view.edges[chosen]);
//
// Rewards are those of QiMeng-Kernel's MTMC, of a step: not compiled -1; compiled +0.1; wrong or
// crashed -0.5, right +0.5; faster than the plan before +1. They decay with the steps, so that
// walking in circles gains little, and count a tenth: what counts is how much the best plan of the
// trajectory gained, in doublings. The sum of these gains is the logarithm of the start's time over
// the best's, so it is the maximum that is sought and not every step's gain.
#pragma once
#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>
#include "base/random.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/state.h"

namespace warploom::search {
// Where the next step begins: where the last one led, as in MTMC's linear search, or at the faster
// of the two, as in a search that goes on from its best plan.
enum class Mode : uint8_t { linear, climbs };

double mtmc_reward(const RecordedPlan& then, double before_us);

class Walk {
 public:
  // Actions at the plan whose outcome was not seen on this walk, with their features.
  struct View {
    std::vector<const RecordedEdge*> edges;
    Eigen::MatrixXd x;
  };

  // From a plan that is right.
  Walk(const RecordedTree& tree, int start, Mode mode);

  // At most so many, drawn from all.
  View look(size_t most, Random& random) const;
  double take(const RecordedEdge& edge);

  int at() const { return at_; }

  const State& state() const { return state_; }

  double best_us() const { return state_.best_us; }

 private:
  const RecordedTree& tree_;
  Mode mode_;
  int at_;
  State state_;
  std::set<int> visited_;
};

// A matrix with a row an edge.
Eigen::MatrixXd rows_of(const std::vector<const RecordedEdge*>& edges, const State& state);
}  // namespace warploom::search
