// A space of hand-written kernels, to search among without synthesis.
#pragma once
#include "../verify/fake_kernels.h"
#include "search/tuning_session.h"

namespace warploom::search {
// A family whose one field picks among hand-written kernels.
class FakeFamily : public kernels::Family {
 public:
  explicit FakeFamily(std::vector<std::string> bodies, int64_t variants = 1)
      : Family("fake", *target::capabilities_of("cpu"), kernels::Specialization::made),
        bodies_(std::move(bodies)),
        variants_(variants) {}

  kernels::Space space() const override {
    kernels::Field body{"body", {}, "which kernel"};
    kernels::Field variant{"variant", {}, "changes the text alone"};
    for (size_t i = 0; i < bodies_.size(); ++i) body.values.push_back(static_cast<int64_t>(i));
    for (int64_t i = 0; i < variants_; ++i) variant.values.push_back(i);
    return {"fake", {body, variant}};
  }

  Status legal(const kernels::Schedule&) const override { return ok(); }

  double guess(const kernels::Schedule& schedule) const override {
    return static_cast<double>(schedule.fields.at("body") + 100 * schedule.fields.at("variant"));
  }

  Result<Programs> programs(const kernels::Schedule&) const override {
    return fail({ErrorCode::kInternal, "a fake family has no programs", "", "", "", ""});
  }

  Result<LaunchList> build(const kernels::Schedule& schedule) const {
    LaunchList list = fake::matmul_list(bodies_[static_cast<size_t>(schedule.fields.at("body"))]);
    list.kernels[0].source += fmt::format("// variant {}\n", schedule.fields.at("variant"));
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
  task.space.build = [&family](const kernels::Schedule& schedule) {
    return family.build(schedule);
  };
  task.setup.graph = task.space.region.graph;
  task.setup.flops = 1e5;
  return task;
}
}  // namespace warploom::search
