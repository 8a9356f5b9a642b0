#include "search/strategy/explored.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "base/rows.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/coder/coder.h"
#include "search/coder/rule.h"
#include "search/policy/analytic.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/strategy/ranked.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

constexpr int kSamples = 40;              // before a small space is gone through
constexpr int64_t kMostListed = 200'000;  // combinations of a space that is gone through
constexpr double kPostponed = 1e-6;       // of the weight of what is unlikely
constexpr size_t kMostHistory = 16;       // of the last steps that a policy sees
}  // namespace

Explored::Explored(StrategySetup setup)
    : setup_(std::move(setup)), facts_(facts_of(*setup_.space)) {
  if (!setup_.policy) setup_.policy = std::make_shared<AnalyticPolicy>();
  if (!setup_.coder) setup_.coder = std::make_shared<RuleCoder>();
  if (!setup_.actions) setup_.actions = std::make_shared<ActionSpace>(*setup_.space);
}

std::vector<KernelConfig> Explored::starts() const {
  std::vector<KernelConfig> out;
  if (setup_.start == Start::drawn) {
    Random random(setup_.seed, "start");
    if (auto config = unseen(random)) out.push_back(*std::move(config));
    return out;
  }
  const std::optional<Fallback> fallback = fallback_within(space(), setup_.limits);
  if (fallback) out.push_back(fallback->config);
  for (const kernels::FamilyPtr& family : space().families) {
    const auto& entries = setup_.actions->entries(family->name());
    const bool is_new = !contains(out, family->name(), &KernelConfig::family);
    if (!entries.empty() && is_new) out.push_back(entries[0]);
  }
  return out;
}

void Explored::queue_starts() {
  for (KernelConfig& start : starts())
    starts_.push_back(std::move(start));
}

std::optional<KernelConfig> Explored::take_start() {
  if (starts_.empty()) return std::nullopt;
  KernelConfig start = std::move(starts_.front());
  starts_.pop_front();
  return start;
}

std::optional<Proposal> Explored::next_start() {
  while (const std::optional<KernelConfig> config = take_start())
    if (auto next = start(*config)) return next;
  return std::nullopt;
}

std::optional<Proposal> Explored::at_random(Random& random) {
  const std::optional<KernelConfig> config = unseen(random);
  return config ? start(*config) : std::nullopt;
}

Node& Explored::node_of(const KernelConfig& config) {
  std::unique_ptr<Node>& node = nodes_[config.text()];
  if (!node) node = std::make_unique<Node>(Node{.config = config});
  return *node;
}

Proposal Explored::proposal(Node& node, std::vector<std::string> parents, std::string source) {
  ++out_;
  node.out = true;
  if (parents.empty() && node.parent != nullptr) parents = {node.parent->config.text()};
  return {.config = node.config,
          .source = std::move(source),
          .parents = std::move(parents),
          .action = node.action,
          .origins = {.round = node.round}};
}

std::optional<Proposal> Explored::start(const KernelConfig& config) {
  const bool is_suggested = suggested_.erase(config.text()) > 0;
  if (knows(config) && !is_suggested) return std::nullopt;
  Node& node = node_of(config);
  if (node.out) return std::nullopt;
  node.round = round_;
  return proposal(node, {});
}

std::optional<Proposal> Explored::step(const Node& from, const Choice& choice, int variant) {
  Result<Draft> draft = setup_.coder->carry_out(state_of(from), choice.action, variant);
  if (!draft || knows(draft->config)) return std::nullopt;
  Node& node = node_of(draft->config);
  node.parent = &from;
  node.action = choice.action;
  node.round = round_ > 0 ? round_ : from.round + 1;
  auto out = proposal(node, {}, std::move(draft->source));
  out.origins.chance = choice.weight;
  return out;
}

std::optional<Proposal> Explored::jump(const Node& from, const KernelConfig& config,
                                       std::vector<std::string> parents, double chance) {
  if (knows(config)) return std::nullopt;
  Node& node = node_of(config);
  node.parent = &from;
  node.action = action_between(from.config, config);
  node.round = round_ > 0 ? round_ : from.round + 1;
  auto out = proposal(node, std::move(parents));
  out.origins.chance = chance;
  return out;
}

std::optional<KernelConfig> Explored::unseen(Random& random) const {
  const auto& families = space().families;
  if (families.empty()) return std::nullopt;
  for (int i = 0; i < kSamples; ++i) {
    const kernels::Family& family = *families[random.below(families.size())];
    auto config = kernels::SpaceWalk(family).sample(random);
    if (config && !knows(*config)) return config;
  }
  std::vector<KernelConfig> left;
  for (const kernels::FamilyPtr& family : families) {
    const kernels::SpaceWalk walk(*family);
    if (walk.space().size() > kMostListed) continue;
    walk.all([&](const KernelConfig& config) {
      if (!knows(config)) left.push_back(config);
      return !setup_.limits.ended();
    });
  }
  if (left.empty()) return std::nullopt;
  return left[random.below(left.size())];
}

std::vector<Choice> Explored::choices(const Node& node) {
  const ActionsPtr here = setup_.actions->shared_at(node.config);
  std::vector<Choice> out;
  std::vector<Action> actions;
  for (const Action& action : here->legal) {
    auto config = carry_out(space(), action, node.config);
    if (!config || knows(*config)) continue;
    actions.push_back(action);
    out.push_back({action, *std::move(config), 0});
  }
  const State state = state_of(node);
  const std::vector<double> weights = setup_.policy->weights(state, actions);
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].weight = weights[i];
    const auto promise =
        setup_.unlikely > 0 ? setup_.policy->promise(state, out[i].config) : std::nullopt;
    if (promise && *promise < setup_.unlikely) out[i].weight *= kPostponed;
  }
  std::ranges::stable_sort(out, std::ranges::greater(), &Choice::weight);
  return out;
}

size_t Explored::draw(const std::vector<Choice>& choices, Random& random) {
  double sum = 0;
  for (const Choice& one : choices)
    sum += one.weight;
  double left = random.uniform() * sum;
  for (size_t i = 0; i + 1 < choices.size(); ++i) {
    left -= choices[i].weight;
    if (left < 0) return i;
  }
  return choices.size() - 1;
}

const Node* Explored::tell(const Judged& judged) {
  Node& node = node_of(judged.config);
  if (std::exchange(node.out, false)) --out_;
  node.judged = true;
  node.accepted = judged.accepted;
  node.us = judged.accepted ? judged.us : 0;
  const bool is_best = node.accepted && (best_ == nullptr || node.us < best_->us);
  if (is_best) best_ = &node;
  return &node;
}

State Explored::state_of(const Node& node) const {
  State out{.space = setup_.space,
            .facts = &facts_,
            .config = node.config,
            .us = node.us,
            .best_us = best_ != nullptr ? best_->us : 0};
  for (const Node* at = &node; at->parent != nullptr && at->action; at = at->parent) {
    out.history.push_back({*at->action, at->accepted, at->parent->us, at->us});
    if (out.history.size() == kMostHistory) break;
  }
  std::ranges::reverse(out.history);
  return out;
}

std::vector<const Node*> Explored::by_time() const {
  std::vector<const Node*> out;
  for (const auto& [text, node] : nodes_)
    if (node->accepted) out.push_back(node.get());
  std::ranges::stable_sort(out, {}, [](const Node* node) { return node->us; });
  return out;
}
}  // namespace warploom::search
