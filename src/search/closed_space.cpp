#include "search/closed_space.h"
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using kernels::FamilyPtr;
using kernels::KernelConfig;
using Ranges = std::map<std::string, std::vector<int64_t>>;

class ClosedFamily final : public kernels::Family {
 public:
  ClosedFamily(FamilyPtr whole, const target::Capabilities& capabilities, Ranges ranges)
      : Family(whole->type(), capabilities, whole->suit()),
        whole_(std::move(whole)),
        ranges_(std::move(ranges)) {}

  kernels::Space space() const override {
    kernels::Space out = whole_->space();
    for (kernels::Field& field : out.fields) {
      const auto range = ranges_.find(field.name);
      if (range == ranges_.end()) continue;
      std::erase_if(field.values, [&](int64_t value) { return !contains(range->second, value); });
    }
    return out;
  }

  kernels::FailedConstraints constraints(const KernelConfig& config) const override {
    return whole_->constraints(config);
  }

  SpecialValues special_values(const KernelConfig& config) const override {
    return whole_->special_values(config);
  }

  size_t layout_candidate(const KernelConfig& config) const override {
    return whole_->layout_candidate(config);
  }

  double guess(const KernelConfig& config) const override { return whole_->guess(config); }

  Result<Programs> programs(const KernelConfig& config) const override {
    return whole_->programs(config);
  }

 private:
  FamilyPtr whole_;
  Ranges ranges_;
};
}  // namespace

SearchSpace closed_space(SearchSpace space, const ValueRanges& ranges) {
  std::vector<FamilyPtr> families;
  for (const FamilyPtr& family : space.families)
    if (const auto range = ranges.find(family->name()); range != ranges.end())
      families.push_back(std::make_shared<ClosedFamily>(family, space.capabilities, range->second));
  space.families = std::move(families);
  return space;
}
}  // namespace warploom::search
