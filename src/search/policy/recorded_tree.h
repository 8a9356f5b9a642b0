// RecordedTree: a recorded problem as policies walk it: plans, and the actions between them.
//
//   const RecordedTree tree(outcomes.capabilities, problem);
//   tree.edges(3)[0].action.sentence   // an action at plan 3 whose outcome is known
//   tree.plan(tree.edges(3)[0].to).us  // and that outcome
//
// An edge is an action of the whole space (action/actions_of.h) that leads to a recorded plan;
// where it leads elsewhere nothing is known of it. Edges begin at plans that are right.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include "base/casts.h"
#include "kernels/config/kernel_config.h"
#include "search/action/action.h"
#include "search/policy/features.h"
#include "search/policy/outcomes.h"
#include "search/policy/state.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
struct RecordedEdge {
  int to = 0;
  Action action;
  FeatureVector seen = {};  // Features::timeless()
};

class RecordedTree {
 public:
  // The problem must outlive it. Plans of families that do not cover it here have no edges.
  RecordedTree(const target::Capabilities& capabilities, const RecordedProblem& problem);
  RecordedTree(const RecordedTree&) = delete;
  RecordedTree& operator=(const RecordedTree&) = delete;

  const RecordedProblem& problem() const { return *problem_; }

  const SearchSpace& space() const { return space_; }

  const RegionFacts& facts() const { return facts_; }

  const RecordedPlan& plan(int number) const { return problem_->plans[as_size(number)]; }

  const kernels::KernelConfig& config(int number) const { return configs_[as_size(number)]; }

  std::span<const RecordedEdge> edges(int number) const { return edges_[as_size(number)]; }

  // Plans that are right, ascending; and those of them that actions lead on from.
  const std::vector<int>& right() const { return right_; }

  const std::vector<int>& inner() const { return inner_; }

  double best_us() const { return best_us_; }  // 0: none is right

  // Whether a plan is right and among the fastest tenth of those that are known.
  bool is_top(int number) const { return plan(number).is_right() && plan(number).us <= top_us_; }

  size_t edge_count() const;

 private:
  void add_edges(const std::map<std::string, int>& numbers);

  const RecordedProblem* problem_;
  SearchSpace space_;
  RegionFacts facts_;
  std::vector<kernels::KernelConfig> configs_;
  std::vector<std::vector<RecordedEdge>> edges_;
  std::vector<int> right_;
  std::vector<int> inner_;
  double best_us_ = 0;
  double top_us_ = 0;
};

// The trees of the problems of a use that have plans to walk between.
std::vector<std::unique_ptr<RecordedTree>> trees_of(const Outcomes& outcomes, Use use);
}  // namespace warploom::search
