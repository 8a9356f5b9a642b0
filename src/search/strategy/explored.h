// Explored: what a strategy that takes actions knows of the configs it has seen, and how it makes
// proposals. Every config is a node with the step that led to it, so that the way back to where the
// search began is its history, which policies see, and its lineage, which the archive keeps.
//
//   Explored seen(setup);
//   for (const KernelConfig& start : seen.starts()) out.push_back(*seen.start(start));
//   std::vector<Choice> choices = seen.choices(node);       // legal, new ones; by the policy
//   std::optional<Proposal> next = seen.step(node, choices[0]);
//   seen.tell(judged);
//
// A config is proposed once, whoever comes to it first.
#pragma once
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/policy/state.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
struct Node {
  kernels::KernelConfig config;
  const Node* parent = nullptr;  // null: a start
  std::optional<Action> action;  // from the parent
  int round = 0;                 // of the search; 0: a start
  bool out = false;              // proposed, and not told of
  bool judged = false;
  bool accepted = false;
  double us = 0;  // 0: not accepted
};

// A legal action at a node with the config that it makes, and the policy's weight.
struct Choice {
  Action action;
  kernels::KernelConfig config;
  double weight = 0;
};

class Explored {
 public:
  explicit Explored(StrategySetup setup);

  // Configs to begin with: the fallback, then by guess the best config of every other family; or
  // one that is drawn. What is suggested comes before them.
  void queue_starts();

  // Proposed even where the config is known from an earlier search: it is to be judged again.
  void suggest(const kernels::KernelConfig& config) {
    suggested_.insert(config.text());
    starts_.push_front(config);
  }

  // The next of them, as it is, or as a proposal; nothing where none is left.
  std::optional<kernels::KernelConfig> take_start();
  std::optional<Proposal> next_start();

  // A proposal without a parent; nothing where the config is known and was not suggested.
  std::optional<Proposal> start(const kernels::KernelConfig& config);

  // What the coder makes of an action; nothing where that is known, or cannot be made.
  std::optional<Proposal> step(const Node& from, const Choice& choice, int variant = 0);

  // A config that several steps lead to, as one step from its first parent.
  std::optional<Proposal> jump(const Node& from, const kernels::KernelConfig& config,
                               std::vector<std::string> parents = {}, double chance = 0);

  // From now on what is proposed is of the next round. Where a strategy has none, a candidate is a
  // round behind its parent.
  void begin_round() { ++round_; }

  // Some legal config that is not known, at random; nothing where none is found.
  std::optional<kernels::KernelConfig> unseen(Random& random) const;
  std::optional<Proposal> at_random(Random& random);  // the same as a proposal

  // The actions that lead to configs which are not known, best first.
  std::vector<Choice> choices(const Node& node);

  // Of two choices the one to draw: by weight, at random. The list must not be empty.
  static size_t draw(const std::vector<Choice>& choices, Random& random);

  // Null where the config was neither proposed nor skipped, but here and now.
  const Node* tell(const Judged& judged);

  void skip(const kernels::KernelConfig& config) { (void)node_of(config); }

  bool knows(const kernels::KernelConfig& config) const { return nodes_.contains(config.text()); }

  State state_of(const Node& node) const;

  const Node* best() const { return best_; }  // null: nothing was accepted

  // The accepted ones, the fastest first.
  std::vector<const Node*> by_time() const;

  size_t out() const { return out_; }  // proposed and not told of

  const SearchSpace& space() const { return *setup_.space; }

  Coder& coder() { return *setup_.coder; }

 private:
  std::vector<kernels::KernelConfig> starts() const;
  Node& node_of(const kernels::KernelConfig& config);
  Proposal proposal(Node& node, std::vector<std::string> parents, std::string source = {});

  StrategySetup setup_;
  RegionFacts facts_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;  // by the configs' texts
  std::deque<kernels::KernelConfig> starts_;
  std::set<std::string> suggested_;  // and not proposed yet
  const Node* best_ = nullptr;
  size_t out_ = 0;
  int round_ = 0;
};
}  // namespace warploom::search
