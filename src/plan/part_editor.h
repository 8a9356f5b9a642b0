// PartEditor: a partition's parts (joins.h) while their boundaries are changed, one change at a
// time. Each change is checked first: what it would make, or the rule that it would break.
//
//   PartEditor editor(graph, legality, in_place, constants, parts);
//   const auto edit = editor.check({BoundaryKind::cut_region, "t3"});
//   if (edit) editor.apply(*edit);
//
// Parts stay in an order in which they can run. Within the room only.
#pragma once
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <tl/expected.hpp>
#include <vector>
#include "graph/graph.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/groups.h"
#include "plan/joins.h"
#include "plan/legality.h"

namespace warploom::plan {
// What a change makes: the places of the parts that go, ascending, and those that come in the place
// of the last of them.
struct PartEdit {
  std::vector<size_t> gone;
  std::vector<Part> made;
};

class PartEditor {
 public:
  // `in_place`: nodes whose results are a part of another's memory. `constants`: inputs of the
  // graph that hold the same in every call. Graph and legality must outlive it.
  PartEditor(const graph::Graph& graph, Legality& legality, const Groups::Nodes& in_place,
             const std::set<std::string>& constants, std::vector<Part> parts);

  tl::expected<PartEdit, BoundaryRefusal> check(const BoundaryChange& change);
  void apply(const PartEdit& edit);

  const std::vector<Part>& parts() const { return parts_; }

 private:
  using Checked = tl::expected<PartEdit, BoundaryRefusal>;

  Checked check_cut(const std::string& tensor);
  Checked check_join(const std::string& one, const std::string& other);
  Checked split(size_t place, graph::TensorId id) const;
  Checked without(size_t place, graph::TensorId id) const;
  std::optional<BoundaryRefusal> refused_pair(size_t first, size_t second) const;
  std::optional<BoundaryRefusal> refused_union(const Part& first, const Part& second,
                                               const Part& both);
  std::optional<BoundaryRefusal> uncovered(const std::vector<Part>& parts);
  Part part_of(const Groups::Nodes& nodes, std::vector<graph::TensorId> stored) const;
  Part joined(size_t first, size_t second) const;
  Groups::Nodes computing(const Groups::Nodes& within, const std::vector<graph::TensorId>& wanted,
                          const std::vector<graph::TensorId>& known) const;
  std::optional<graph::TensorId> id_of(const std::string& name) const;
  std::optional<size_t> storer_of(const std::string& name) const;
  bool is_way_round(size_t first, size_t second) const;
  bool is_in_place(const Part& part) const;
  bool is_prepared(const Part& part) const;
  bool only_moves(const Groups::Nodes& nodes) const;
  bool is_multiplied(const Part& first, const Part& second) const;
  void number();

  const graph::Graph& graph_;
  Legality& legality_;
  Groups::Nodes in_place_;
  std::vector<bool> prepared_;  // by tensor: the same in every call
  std::vector<int> maker_;      // by tensor: the node that makes it; or -1
  std::vector<int> storer_;     // by tensor: the part that stores it; or -1
  std::vector<Part> parts_;
};
}  // namespace warploom::plan
