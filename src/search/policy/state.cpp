#include "search/policy/state.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/search_space.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
constexpr double kNear = 0.5;     // of the bound: its resource binds
constexpr double kHalfway = 0.2;  // of the bound: what lies between memory and arithmetic does
}  // namespace

RegionFacts facts_of(const SearchSpace& space) {
  RegionFacts out;
  out.work = kernels::work_of(space.region);
  out.bound =
      verify::bound_of(space.capabilities, space.region.track, out.work.flops, out.work.bytes);
  return out;
}

Bottleneck bottleneck_of(const State& state) {
  const verify::Bound& bound = state.facts->bound;
  if (state.us <= 0 || bound.us <= 0) return Bottleneck::unknown;
  const double fraction = bound.us / state.us;
  const bool is_memory = bound.of == "DRAM";
  if (fraction >= kNear) return is_memory ? Bottleneck::memory : Bottleneck::arithmetic;
  if (fraction >= kHalfway) return is_memory ? Bottleneck::latency : Bottleneck::cache;
  return is_memory ? Bottleneck::parallelism : Bottleneck::latency;
}
}  // namespace warploom::search
