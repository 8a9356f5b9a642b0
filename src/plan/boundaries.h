// Boundaries: where a graph's regions begin and end, as a choice.
//
// Fusion decides it by what families cover and what moves fewer bytes (fusion.h). That is where a
// search begins. From there each boundary may be changed (boundary_change.h), within rules that are
// rows of boundary_rules.def:
//
//   WARPLOOM_TRY(Boundaries boundaries, boundaries_of(graph, track, capabilities));
//   WARPLOOM_TRY(Partition as_fused, boundaries.under({}));
//   for (const BoundaryOption& option : boundaries.options({}))
//     option.changes      // {{cut_region, "t3"}}: one in each of equal blocks
//     option.refusal      // {covered, "MatMul+Softmax"}: the rule that forbids it
//   WARPLOOM_TRY(Partition cut, boundaries.under({{BoundaryKind::cut_region, "t3"}}));
//
// A union that fusion would not make may be made here: its family need only be as good as that of
// one of the two, and nobody asks whether fewer bytes move. What it gains is for a search to find
// out.
//
// Errors: schedule-illegal for a change that a rule forbids, with the rule; those of partition().
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/region.h"
#include "target/capabilities.h"

namespace warploom::plan {
// What a change must keep.
enum class BoundaryRule : uint8_t {
#define WARPLOOM_BOUNDARY_RULE(name, words) name,
#include "plan/boundary_rules.def"
};

std::string_view name_of(BoundaryRule rule);   // "computed_once"
std::string_view words_of(BoundaryRule rule);  // "no reduction, product or window is computed …"

// The rule that a change would break, and what would break it.
struct BoundaryRefusal {
  BoundaryRule rule = BoundaryRule::covered;
  std::string found;

  friend bool operator==(const BoundaryRefusal&, const BoundaryRefusal&) = default;
};

Error error_of(const BoundaryChange& change, const BoundaryRefusal& refusal);

// A change, made alike wherever equal regions meet alike; or why it cannot be made.
struct BoundaryOption {
  BoundaryChanges changes;                 // of all places; where it is refused, of the first
  std::optional<BoundaryRefusal> refusal;  // nothing: it can be made
  std::string first;                       // the operators of the two regions, in their order:
  std::string second;                      // those that are joined, or that a cut makes
  int64_t bytes = 0;                       // of the tensor between the two, in all places together
  std::vector<size_t> gone;  // in one place: numbers of the partition's regions that go,
  std::vector<Region> made;  // and the regions that come, as they would be alone
};

class Boundaries {
 public:
  // By the families of a rank; `graph` must outlive it. See partition().
  Boundaries(const graph::Graph& graph, const Rank& rank, const Limits& limits = {},
             const std::set<std::string>& constants = {}, const LoopWorkOf& loop_work = {});
  Boundaries(Boundaries&&) noexcept;
  Boundaries& operator=(Boundaries&&) noexcept;
  ~Boundaries();

  // The partition under some changes of what fusion makes.
  Result<Partition> under(const BoundaryChanges& changes);

  // Which changes can be made from there, and which cannot: of every tensor that a region makes on
  // its way, and of every tensor that one region passes to another. At most so many are looked at,
  // those of the earliest regions, and as many as the limits leave time for.
  std::vector<BoundaryOption> options(const BoundaryChanges& changes, const Limits& limits = {},
                                      size_t most = 256);

 private:
  class Fused;
  std::unique_ptr<Fused> fused_;
};

// Of a graph for a target, as regions_of() has them; `graph` must outlive it.
Result<Boundaries> boundaries_of(const graph::Graph& graph, Track track,
                                 const target::Capabilities& capabilities,
                                 const Limits& limits = {},
                                 const std::set<std::string>& constants = {});
}  // namespace warploom::plan
