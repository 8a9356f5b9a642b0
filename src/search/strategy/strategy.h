// Search strategy: which candidate to try next, by ask and tell.
//
//   enumerate   every legal config, families in turn, best guess first
//   random      the same in random order
//   beam        breadth, then depth, then changes of one field of the best few (beam.h)
//   automatic   small spaces are enumerated, breadth first; others are the beam's
//   linear      one action a step, as MTMC (linear.h)
//   branch      rounds of ideas and variants, with a bank, as CRFM (branch.h)
//   tree        best first, with the policy as prior (tree.h)
//   evolution   regularized evolution (evolution.h)
//   lfbo        100 at random, then rounds of 20 that a random forest chooses (lfbo.h)
//
//   Result<StrategyPtr> strategy = make_strategy(Strategy::beam, {.space = &space, .seed = 1});
//   while (std::optional<Proposal> next = (*strategy)->ask())
//     (*strategy)->tell(judge(next->config));
//
// A caller may ask several times before it tells, and tell in another order. A strategy that has
// nothing to propose until it is told of what is out says so by none; ask again after the next
// verdict. The same seed, and the same times told in the same places, give the same proposals.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "plan/limits.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/coder/coder.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/search_space.h"

namespace warploom::search {
enum class Strategy : uint8_t {
  automatic,
  enumerate,
  random,
  beam,
  linear,
  branch,
  tree,
  evolution,
  lfbo
};
inline constexpr const char* kStrategyNames[] = {
    "automatic", "enumerate", "random", "beam", "linear", "branch", "tree", "evolution", "lfbo"};

// How a candidate came to be proposed.
struct Origins {
  int round = 0;      // of the search: 0 is where it begins
  double chance = 0;  // the weight that the policy gave its action, among those not tried; 0: none
};

// A candidate with where it comes from: its lineage, a step.
struct Proposal {
  kernels::KernelConfig config;
  std::string source = {};                // where a model wrote it; empty: the config's family does
  std::vector<std::string> parents = {};  // texts of the configs that it was made from
  std::optional<Action> action = {};      // from the first of them
  Origins origins = {};
};

class SearchStrategy {
 public:
  virtual ~SearchStrategy() = default;

  // A config not proposed before; none where nothing is left, or nothing until the next verdict.
  virtual std::optional<Proposal> ask() = 0;

  // The verdict of a proposal, or of a config that an earlier search knows.
  virtual void tell(const Judged& judged) = 0;

  // Puts a config first, if it is new.
  virtual void suggest(const kernels::KernelConfig& config) = 0;

  // Never to be proposed: the archive knows it already.
  virtual void skip(const kernels::KernelConfig& config) = 0;
};

using StrategyPtr = std::unique_ptr<SearchStrategy>;

// Where a strategy that takes actions begins: at the fallback and each family's best guess; or, to
// see what strategies and policies are worth without guesses, at one config drawn by the seed.
enum class Start : uint8_t { guessed, drawn };
inline constexpr const char* kStartNames[] = {"guessed", "drawn"};

// What a strategy is made of.
struct StrategySetup {
  const SearchSpace* space = nullptr;  // which must outlive it
  uint64_t seed = 1;
  plan::Limits limits = {};  // of ranking; the time of later rounds is the search's to keep
  PolicyPtr policy = {};     // none: analytic
  CoderPtr coder = {};       // none: rule
  // Of the space; none: the strategy makes its own. Several searches of one space may share it.
  std::shared_ptr<const ActionSpace> actions = {};
  Start start = Start::guessed;
  double unlikely = 0;  // actions whose result the policy gives lower odds are taken last
};

StrategyPtr make_strategy(Strategy strategy, const StrategySetup& setup);
}  // namespace warploom::search
