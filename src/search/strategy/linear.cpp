#include "search/strategy/linear.h"
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "kernels/config/kernel_config.h"
#include "search/strategy/explored.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
LinearStrategy::LinearStrategy(const StrategySetup& setup)
    : seen_(setup), random_(setup.seed, "linear") {
  for (kernels::KernelConfig& start : seen_.starts())
    starts_.push_back(std::move(start));
}

std::optional<Proposal> LinearStrategy::ask() {
  while (!starts_.empty()) {
    const kernels::KernelConfig start = std::move(starts_.front());
    starts_.pop_front();
    if (auto next = seen_.start(start)) return next;
  }
  // A step follows from what the one before it came to.
  if (seen_.out() > 0 || seen_.best() == nullptr) return std::nullopt;
  std::vector<Choice> choices = seen_.choices(*seen_.best());
  while (!choices.empty()) {
    const size_t drawn = Explored::draw(choices, random_);
    if (auto next = seen_.step(*seen_.best(), choices[drawn].action)) return next;
    choices.erase(choices.begin() + as_int64(drawn));
  }
  return std::nullopt;
}
}  // namespace warploom::search
