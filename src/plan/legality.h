// Legality: whether parts of a graph may become one region, which families decide: what they say of
// the union, beside what they say of the parts.
//
// Fusion asks it before it takes a group into others (allows) or joins two parts (gains), and
// changes of boundaries (part_changes.h) ask for the rank of what they would make. Families are
// asked once about equal regions. Within the room only.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include "graph/graph.h"
#include "plan/fusion.h"
#include "plan/groups.h"
#include "plan/joins.h"
#include "plan/limits.h"
#include "plan/region.h"

namespace warploom::plan {
// Families are not asked about regions of several nodes that are larger, or read more tensors.
inline constexpr size_t kMostNodes = 64;
inline constexpr size_t kMostReads = 32;

class Legality {
 public:
  Legality(const graph::Graph& graph, Rank rank, const Limits& limits, LoopWorkOf loop_work);

  bool joins_any() const { return loop_work_ != nullptr; }

  // Whether products take in reductions, which are to be whole by then.
  void take_reductions_behind_products(bool take) { behind_products_ = take; }

  // The best family's rank of a region.
  std::optional<int> rank_of(const Region& region);

  // Whether a family no worse than those of the parts covers the groups `from` and `into` together.
  // Arithmetic before a product is done once an element, unless a family for products does it.
  bool allows(const Groups& groups, const Groups::Nodes& from, int into);

  // Whether two parts are better as one: a family no worse than those of either covers it, and its
  // loops do less than theirs together.
  bool gains(const Groups& groups, const Part& first, const Part& second, const Part& both);

  // Unions with a convolution that are refused whatever a family says: weights that lie backwards,
  // those of transposed convolutions, are laid anew, since few families take them as they are.
  bool reads_backwards(const Groups::Nodes& both) const;

 private:
  std::optional<LoopWork> work_of(const Region& region);
  bool is_kept_apart(const Groups& groups, const Groups::Nodes& both) const;
  bool interleaves(const Groups& groups, int n) const;
  int rank_of_group(const Groups& groups, int root);
  int wanted_rank(const Groups& groups, const Groups::Nodes& from, int into,
                  const Groups::Nodes& both);

  const graph::Graph& graph_;
  const Rank rank_;
  const Limits limits_;
  const LoopWorkOf loop_work_;
  bool behind_products_ = true;
  std::map<std::string, std::optional<int>> ranks_;      // by identity
  std::map<std::string, std::optional<LoopWork>> work_;  // by identity
};
}  // namespace warploom::plan
