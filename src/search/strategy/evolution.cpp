#include "search/strategy/evolution.h"
#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/policy/state.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

constexpr size_t kFirst = 16;       // random configs at the start
constexpr size_t kPopulation = 32;  // at most
constexpr size_t kTournament = 4;   // of which the fastest is a parent
constexpr size_t kCrossed = 3;      // one child in so many has two parents
constexpr int kTries = 8;           // to make a child that is new
}  // namespace

EvolutionStrategy::EvolutionStrategy(const StrategySetup& setup)
    : seen_(setup), random_(setup.seed, "evolution") {
  seen_.queue_starts();
}

void EvolutionStrategy::tell(const Judged& judged) {
  const Node* const node = seen_.tell(judged);
  if (!judged.accepted) return;
  population_.push_back(node);
  if (population_.size() > kPopulation) population_.pop_front();
}

const Node* EvolutionStrategy::parent() {
  const Node* best = nullptr;
  for (size_t i = 0; i < kTournament; ++i) {
    const Node* const drawn = population_[random_.below(population_.size())];
    if (best == nullptr || drawn->us < best->us) best = drawn;
  }
  return best;
}

std::optional<Proposal> EvolutionStrategy::crossed(const Node& one, const Node& other) {
  if (one.config.type() != other.config.type()) return std::nullopt;
  KernelConfig child = one.config;
  for (size_t i = 0; i < child.size(); ++i)
    if (random_.below(2) == 1) child.set(i, other.config.get(i));
  const auto& families = seen_.space().families;
  const auto family = std::ranges::find(families, child.family(), &kernels::Family::name);
  const bool is_legal = family != families.end() && (*family)->legal(child).has_value();
  if (!is_legal) return std::nullopt;
  return seen_.jump(one, child, {one.config.text(), other.config.text()});
}

std::optional<Proposal> EvolutionStrategy::mutated(const Node& from) {
  const std::vector<Choice> choices = seen_.choices(from);
  if (choices.empty()) return std::nullopt;
  return seen_.step(from, choices[Explored::draw(choices, random_)]);
}

std::optional<Proposal> EvolutionStrategy::ask() {
  if (auto next = seen_.next_start()) return next;
  if (begun_ < kFirst) {
    ++begun_;
    return seen_.at_random(random_);
  }
  for (int i = 0; i < kTries && !population_.empty(); ++i) {
    const Node& one = *parent();
    std::optional<Proposal> child =
        random_.below(kCrossed) == 0 ? crossed(one, *parent()) : mutated(one);
    if (child) return child;
  }
  return seen_.at_random(random_);
}
}  // namespace warploom::search
