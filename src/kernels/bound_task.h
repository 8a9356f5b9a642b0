// BoundTask: a region on a target, analysed once.
//
// The families that cover the region are bound when the task is made. Asking what a config is
// predicted to take synthesizes its programs; what was found is kept for those with the lowest
// predictions, so that building one of them, which a search does next, does not synthesize again.
//
//   const BoundTask task(region, capabilities);
//   task.families();                    // those of families_for(region, capabilities)
//   task.predicted_us(config);          // programs, verified and synthesized
//   task.build(config);                 // and emitted: the same launch list as kernels::build()
//
// Several threads may ask one task at once. Errors: no-schedule where the config's family does not
// cover the region; those of the family's constraints, of verification, synthesis and emission.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include "kernels/family.h"

namespace warploom::kernels {
class BoundTask {
 public:
  BoundTask(Region region, const Capabilities& capabilities);
  ~BoundTask();
  BoundTask(const BoundTask&) = delete;
  BoundTask& operator=(const BoundTask&) = delete;

  const std::vector<FamilyPtr>& families() const { return families_; }

  Result<double> predicted_us(const KernelConfig& config) const;
  Result<LaunchList> build(const KernelConfig& config) const;

 private:
  struct Synthesized;  // programs and what synthesis found for them
  using SynthesizedPtr = std::shared_ptr<const Synthesized>;

  Result<SynthesizedPtr> synthesized(const KernelConfig& config) const;
  void keep(const std::string& config, SynthesizedPtr made) const;
  SynthesizedPtr take(const std::string& config) const;
  Result<Kernel> kernel_of(const Synthesized& made, size_t number) const;

  Region region_;
  Capabilities capabilities_;
  std::vector<FamilyPtr> families_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, SynthesizedPtr> kept_;  // by the configs' texts
};
}  // namespace warploom::kernels
