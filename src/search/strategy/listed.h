// The strategies that go through a list: enumeration, best guess first, and random search.
#pragma once
#include <optional>
#include <utility>
#include "kernels/config/kernel_config.h"
#include "search/policy/state.h"
#include "search/strategy/queue.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
class ListedStrategy final : public SearchStrategy {
 public:
  // The queue has the order; and leads, where breadth comes first.
  explicit ListedStrategy(CandidateQueue queue) : queue_(std::move(queue)) {}

  std::optional<Proposal> ask() override { return queue_.take(); }

  void tell(const Judged& judged) override { queue_.tell(judged); }

  void suggest(const kernels::KernelConfig& config) override { queue_.suggest(config); }

  void skip(const kernels::KernelConfig& config) override { queue_.skip(config); }

 private:
  CandidateQueue queue_;
};
}  // namespace warploom::search
