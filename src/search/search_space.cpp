#include "search/search_space.h"
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/bound_task.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "plan/prepare.h"
#include "target/capabilities.h"

namespace warploom::search {
using kernels::FamilyPtr;
using kernels::KernelConfig;

SearchSpace search_space_of(const kernels::Region& region, const target::Capabilities& capabilities,
                            const std::set<std::string>& constants, bool exact) {
  const auto task = std::make_shared<const kernels::BoundTask>(region, capabilities);
  const auto build = [=](const KernelConfig& config) -> Result<LaunchList> {
    WARPLOOM_TRY(LaunchList list, task->build(config));
    plan::add_prepare(list, region.graph, constants);
    if (exact && list.special == SpecialValues::finite)
      return fail({ErrorCode::kScheduleIllegal, "the kernels take finite inputs alone",
                   config.text(), "special values: exact", "finite", "leave --exact out"});
    return list;
  };
  const auto predict = [=](const KernelConfig& config) { return task->predicted_us(config); };
  auto families = task->families();
  const auto is_finite = [](const FamilyPtr& family) {
    return family->special_values(KernelConfig(family->type())) == SpecialValues::finite;
  };
  if (exact) std::erase_if(families, is_finite);
  return {region, capabilities, std::move(families), build, predict};
}
}  // namespace warploom::search
