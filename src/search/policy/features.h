// Features: what the learned policy sees of an action in a state, as numbers.
//
// They are one list, features.def, the same for all families and targets: the region, the target,
// what the plan that the action makes does and how that differs from the plan at hand, the action,
// the bound, and the history. A policy so carries over to families that it never saw.
//
//   Features features(space);
//   const FeatureVector seen = features.of(state, action, then);   // `then`: what it makes
//   seen[as_size(Feature::over_best)]                              // 0 at the best plan
//
// What does not depend on times can be asked for alone, once for an edge of a recorded tree.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/policy/plan_facts.h"
#include "search/policy/state.h"
#include "search/search_space.h"

namespace warploom::search {
enum class Feature : uint8_t {
#define WARPLOOM_FEATURE(group, name, meaning) name,
#include "search/policy/features.def"
  kCount
};

inline constexpr size_t kFeatures = static_cast<size_t>(Feature::kCount);

struct FeatureRow {
  std::string_view group;
  std::string_view name;
  std::string_view meaning;
};

inline constexpr std::array<FeatureRow, kFeatures> kFeatureRows = {{
#define WARPLOOM_FEATURE(group, name, meaning) {#group, #name, meaning},
#include "search/policy/features.def"
}};

// Each within -2 to 2.
using FeatureVector = std::array<double, kFeatures>;

class Features {
 public:
  // The space must outlive it.
  explicit Features(const SearchSpace& space);

  FeatureVector of(const State& state, const Action& action, const kernels::KernelConfig& then);

  // The region's and the target's alone; all others are 0.
  const FeatureVector& of_problem() const { return fixed_; }

  // Without the bound and the history, of which `add_times` says the rest.
  FeatureVector timeless(const kernels::KernelConfig& now, const Action& action,
                         const kernels::KernelConfig& then);
  static void add_times(FeatureVector& out, const State& state, const Action& action);

 private:
  static constexpr size_t kPlanFeatures = 13;
  using PlanFeatures = std::array<double, kPlanFeatures>;

  struct Plan {
    PlanFeatures features = {};
    double guess = 0;  // of its family; 0: it has none
    double model_us = 0;
  };

  const Plan& plan_of(const kernels::KernelConfig& config);
  PlanFeatures features_of(const PlanFacts& facts, bool is_general) const;
  void add_region();
  void add_target();
  void add_action(FeatureVector& out, const kernels::KernelConfig& now, const Action& action);

  const SearchSpace* space_;
  kernels::Work work_;
  double outputs_ = 1;  // elements
  FeatureVector fixed_ = {};
  std::map<std::string, kernels::Space> fields_;  // by family
  std::map<std::string, Plan> plans_;             // by the configs' texts
};
}  // namespace warploom::search
