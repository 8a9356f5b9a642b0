// Tree search: best first, with the policy as prior (PUCT), progressive widening, and dead ends
// remembered.
//
// Nodes are configs; the root's children are the starts. From the root down, at each node the child
// with the highest
//
//   value + c · prior · sqrt(visits of the node) / (1 + visits of the child)
//
// is taken. The value of a node is how near the fastest config below it comes to the best of all,
// best / its time: the search seeks the maximum, not the mean. A node may have at most
// 1 + sqrt(visits) children; where it may have one more, its next action by the policy is taken. A
// node without actions left and without children alive is a dead end, which is not entered again.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
class TreeStrategy final : public SearchStrategy {
 public:
  explicit TreeStrategy(const StrategySetup& setup);

  std::optional<Proposal> ask() override;
  void tell(const Judged& judged) override;

  void suggest(const kernels::KernelConfig& config) override { seen_.suggest(config); }

  void skip(const kernels::KernelConfig& config) override { seen_.skip(config); }

 private:
  struct Branch {
    const Node* node = nullptr;  // null: the root
    Branch* parent = nullptr;
    double prior = 1;
    int visits = 0;
    double best_us = 0;  // of what lies below it; 0: nothing
    bool is_dead = false;
    bool is_expanded = false;     // its choices are known
    std::vector<Choice> choices;  // not taken yet, the best last
    std::vector<std::unique_ptr<Branch>> children;
  };

  std::optional<Proposal> add_start(const kernels::KernelConfig& config);
  void add_child(Branch& parent, const kernels::KernelConfig& config, double prior);
  std::optional<Proposal> descend();
  std::optional<Proposal> widen(Branch& branch);
  Branch* next_child(const Branch& branch) const;
  double value_of(const Branch& branch) const;
  static void visit(Branch* branch);

  Explored seen_;
  Random random_;
  Branch root_;
  std::map<std::string, Branch*> branches_;  // by the configs' texts
};
}  // namespace warploom::search
