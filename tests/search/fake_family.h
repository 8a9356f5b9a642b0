// A space of hand-written kernels, to search among without synthesis.
#pragma once
#include <fmt/format.h>
#include <cstdlib>
#include "../verify/fake_kernels.h"
#include "search/tuning_session.h"

namespace warploom::search {
using kernels::ConfigType;
using kernels::FieldInfo;
using kernels::kWords;

#define CONFIG_NAME FakeConfig
#define CONFIG_TABLE "../tests/search/fake_config.def"
#include "kernels/config/define_struct.inc"

#define CONFIG_NAME FakeConfig
#define CONFIG_FAMILY "fake"
#define CONFIG_TABLE "../tests/search/fake_config.def"

inline
#include "kernels/config/define_type.inc"

    // A family whose one field picks among hand-written kernels.
    class FakeFamily : public kernels::Family {
 public:
  explicit FakeFamily(std::vector<std::string> bodies, int64_t variants = 1)
      : Family(FakeConfig::type(), *target::capabilities_of("cpu"), kernels::Specialization::made),
        bodies_(std::move(bodies)),
        variants_(variants) {}

  kernels::Space space() const override {
    using F = FakeConfig::Field;
    kernels::Values bodies;
    kernels::Values variants;
    for (size_t i = 0; i < bodies_.size(); ++i)
      bodies.push_back(static_cast<int64_t>(i));
    for (int64_t i = 0; i < variants_; ++i)
      variants.push_back(i);
    return {"fake",
            {kernels::offered<FakeConfig>(F::body, bodies),
             kernels::offered<FakeConfig>(F::variant, variants)}};
  }

  kernels::FailedConstraints constraints(const kernels::KernelConfig&) const override { return {}; }

  double guess(const kernels::KernelConfig& config) const override {
    const auto& s = config.as<FakeConfig>();
    return static_cast<double>(s.body + 100 * std::abs(s.variant - best_variant));
  }

  Result<Programs> programs(const kernels::KernelConfig&) const override {
    return fail({ErrorCode::kInternal, "a fake family has no programs", "", "", "", ""});
  }

  int64_t best_variant = 0;  // by guess

  Result<LaunchList> build(const kernels::KernelConfig& config) const {
    const auto& s = config.as<FakeConfig>();
    LaunchList list = fake::matmul_list(bodies_[static_cast<size_t>(s.body)]);
    list.kernels[0].source += fmt::format("// variant {}\n", s.variant);
    return list;
  }

 private:
  std::vector<std::string> bodies_;
  int64_t variants_;
};

inline Task task_of(const FakeFamily& family) {
  Task task;
  task.space.region = {fake::matmul_graph(), Track::fp32};
  task.space.capabilities = *target::capabilities_of("cpu");
  task.space.families = {kernels::FamilyPtr(kernels::FamilyPtr(), &family)};
  task.space.build = [&family](const kernels::KernelConfig& schedule) {
    return family.build(schedule);
  };
  task.setup.graph = task.space.region.graph;
  task.setup.flops = 1e5;
  return task;
}
}  // namespace warploom::search
