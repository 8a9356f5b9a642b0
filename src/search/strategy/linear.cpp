#include "search/strategy/linear.h"
#include <cstddef>
#include <optional>
#include <vector>
#include "base/casts.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
LinearStrategy::LinearStrategy(const StrategySetup& setup)
    : seen_(setup), random_(setup.seed, "linear") {
  seen_.queue_starts();
}

std::optional<Proposal> LinearStrategy::ask() {
  if (auto next = seen_.next_start()) return next;
  // A step follows from what the one before it came to.
  if (seen_.out() > 0 || seen_.best() == nullptr) return std::nullopt;
  std::vector<Choice> choices = seen_.choices(*seen_.best());
  while (!choices.empty()) {
    const size_t drawn = Explored::draw(choices, random_);
    if (auto next = seen_.step(*seen_.best(), choices[drawn])) return next;
    choices.erase(choices.begin() + as_int64(drawn));
  }
  return std::nullopt;
}
}  // namespace warploom::search
