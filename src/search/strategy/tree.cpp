#include "search/strategy/tree.h"
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

constexpr double kExplore = 0.5;  // c of PUCT; values are at most 1
}  // namespace

TreeStrategy::TreeStrategy(const StrategySetup& setup) : seen_(setup), random_(setup.seed, "tree") {
  seen_.queue_starts();
  root_.is_expanded = true;
}

void TreeStrategy::add_child(Branch& parent, const KernelConfig& config, double prior) {
  auto child = std::make_unique<Branch>();
  child->parent = &parent;
  child->prior = prior;
  branches_[config.text()] = child.get();
  visit(child.get());
  parent.children.push_back(std::move(child));
}

void TreeStrategy::visit(Branch* branch) {
  for (; branch != nullptr; branch = branch->parent)
    ++branch->visits;
}

std::optional<Proposal> TreeStrategy::add_start(const KernelConfig& config) {
  std::optional<Proposal> next = seen_.start(config);
  const bool is_new = next && !branches_.contains(config.text());
  if (is_new) add_child(root_, config, 1);
  return next;
}

// What was told of a config that the tree did not propose is a start.
void TreeStrategy::tell(const Judged& judged) {
  const Node* const node = seen_.tell(judged);
  const auto known = branches_.find(judged.config.text());
  if (known == branches_.end()) add_child(root_, judged.config, 1);
  Branch* branch = branches_.at(judged.config.text());
  branch->node = node;
  branch->is_dead = !judged.accepted;
  for (; judged.accepted && branch != nullptr; branch = branch->parent)
    if (branch->best_us <= 0 || judged.us < branch->best_us) branch->best_us = judged.us;
}

double TreeStrategy::value_of(const Branch& branch) const {
  return branch.best_us > 0 ? root_.best_us / branch.best_us : 0;
}

// Null where no child may be entered: dead ends, and those that nothing is known of yet.
TreeStrategy::Branch* TreeStrategy::next_child(const Branch& branch) const {
  Branch* best = nullptr;
  double most = 0;
  for (const auto& child : branch.children) {
    if (child->is_dead || child->node == nullptr) continue;
    const double explore = kExplore * child->prior * std::sqrt(branch.visits) / (1 + child->visits);
    const double score = value_of(*child) + explore;
    if (best != nullptr && score <= most) continue;
    best = child.get();
    most = score;
  }
  return best;
}

// The next of its actions that leads to something new.
std::optional<Proposal> TreeStrategy::widen(Branch& branch) {
  if (!branch.is_expanded) {
    branch.choices = seen_.choices(*branch.node);
    std::ranges::reverse(branch.choices);
    branch.is_expanded = true;
  }
  while (!branch.choices.empty()) {
    const Choice choice = std::move(branch.choices.back());
    branch.choices.pop_back();
    auto next = seen_.step(*branch.node, choice);
    if (!next) continue;
    add_child(branch, next->config, choice.weight);
    return next;
  }
  return std::nullopt;
}

// Down to a node that may have a child more, which it gets. Where there is none on the way, its
// last node is a dead end, and the way down begins anew.
std::optional<Proposal> TreeStrategy::descend() {
  while (true) {
    Branch* branch = &root_;
    while (Branch* const child = next_child(*branch)) {
      branch = child;
      const bool is_narrow = as_double(branch->children.size()) < 1 + std::sqrt(branch->visits);
      if (!is_narrow && next_child(*branch) != nullptr) continue;
      if (auto next = widen(*branch)) return next;
    }
    if (branch == &root_) return std::nullopt;
    const auto is_open = [](const auto& child) { return !child->is_dead; };
    const bool waits = std::ranges::any_of(branch->children, is_open);
    if (waits) return std::nullopt;  // for what is out
    branch->is_dead = true;
  }
}

std::optional<Proposal> TreeStrategy::ask() {
  while (const auto start = seen_.take_start())
    if (auto next = add_start(*start)) return next;
  if (root_.best_us <= 0 && seen_.out() > 0) return std::nullopt;
  if (auto next = descend()) return next;
  // Nothing is left below the starts, but for what is out: a start more.
  if (seen_.out() > 0) return std::nullopt;
  const std::optional<KernelConfig> config = seen_.unseen(random_);
  return config ? add_start(*config) : std::nullopt;
}
}  // namespace warploom::search
