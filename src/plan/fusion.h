// Fusion: a graph as regions, each of which one family computes.
//
// At first every node is a region. Then, along the edges and in the order of nodes, a region is
// taken into those that read what it stores, wherever
//   - one region alone reads it, or computing it again costs nothing: views, movement and pointwise
//     operators that read no more bytes than they make; and
//   - some family covers the union, and none that is made for either part is lost for one that does
//     nearly anything; nor does such a one do arithmetic anew for each of a product's uses of it.
// Products take in what reduces rows of their results when that has become one region: part of a
// softmax would gain nothing. Nobody else reads a tensor that goes, so no cycle can come of it.
// Regions of views alone go last: where none takes them in, their tensor is another's memory under
// another shape, and nothing is computed at all.
//
// Then regions are joined that share what they read, or of which one reads what the other stores
// for others as well: such a region stores several tensors (joins.h). The union is one loop nest
// that computes nothing twice, of fewer values and bytes than the two, and a family covers it that
// is no worse than that of either. Families that store one tensor alone refuse it, and the two stay
// apart.
//
//   x·w1 → Add → Gelu → ·w2 → Add → Softmax     {MatMul Add Gelu}  {MatMul Add}  {Softmax}
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "plan/boundary_change.h"
#include "plan/limits.h"
#include "plan/region.h"
#include "target/capabilities.h"

namespace warploom::plan {
struct Partition {
  std::vector<Region> regions;  // in an order in which they can run
  // The tensor in whose memory a region's lies: its own, or what it views.
  std::map<std::string, std::string> storage;
  // Of those that are a part of another's memory: where it begins there, in bytes.
  std::map<std::string, int64_t> offsets = {};
  // Where its boundaries are elsewhere than where fusion has them (boundaries.h).
  BoundaryChanges changes = {};
  // Whether the only region is the graph itself, to the last constant.
  bool trivial(const graph::Graph& whole) const;
};

// How well the best family suits that covers a region: 0 where it keeps the target's fastest units
// busy, 1 where it is made for it, kLastRank where it does nearly anything; nothing where none
// does. Asked once for equal regions.
inline constexpr int kLastRank = 3;
using Rank = std::function<std::optional<int>(const graph::Graph& region)>;

// What the loops of a region do.
struct LoopWork {
  double bytes = 0;  // that they load and store, a tensor once for every place that it is read at
  int values = 0;    // loads, operations and reductions
};

// Nothing where there are no such loops, or where families hold them in several nests.
using LoopWorkOf = std::function<std::optional<LoopWork>(const graph::Graph& region)>;

// Fails with no-schedule and the operators that no family covers; with interrupted by its limits.
// Where planning has had its time, regions stay as they are by then. `rank` is asked a number of
// times that grows with the nodes, not with the ways through them, and never about more than 64
// nodes or 32 inputs. `constants`: inputs of the graph that hold the same in every call. Without
// `loop_work` every region stores one tensor.
Result<Partition> partition(const graph::Graph& graph, const Rank& rank, const Limits& limits = {},
                            const std::set<std::string>& constants = {},
                            const LoopWorkOf& loop_work = {});

// The graph in primitives, common ones once, as many of them as keep the target busy: what rewrites
// (graph/rewrite.h) are offered of.
Result<graph::Graph> primitives_for_target(graph::Graph graph,
                                           const target::Capabilities& capabilities);

// The graph as it is cut into regions: those primitives, rewritten as the plan has it, and equal
// products stacked. What it computes is judged by what was given. Fails with what rewrite() says of
// a rewrite that is none here, or is refused.
Result<graph::Graph> lower_for_target(graph::Graph graph, const target::Capabilities& capabilities,
                                      Track track = Track::fp32,
                                      const std::vector<graph::Rewrite>& rewrites = {});

// The regions of such a graph, by the families of kernels/ that the target has. `constants`: those
// of its inputs that hold the same in every call. `changes`: of the boundaries that fusion makes;
// schedule-illegal where a rule forbids one.
Result<Partition> regions_of(const graph::Graph& graph, Track track,
                             const target::Capabilities& capabilities, const Limits& limits = {},
                             const std::set<std::string>& constants = {},
                             const BoundaryChanges& changes = {});
}  // namespace warploom::plan
