// What the tensors of a graph may hold, from its outputs back: the walk behind legal_ranges()
// (range_passes.h). Private to the room.
//
// legal_ranges.cpp has the walk and what operators ask of their inputs whatever becomes of their
// results; legal_ranges_inputs.cpp what inputs must be for a result to be as it is wanted;
// legal_ranges_choices.cpp the same of Where, whose condition says which numbers come to which
// side.
#pragma once
#include <cstddef>
#include <vector>
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/range_passes.h"
#include "graph/ranges.h"

namespace warploom::graph {
// A tensor as scale · root + offset.
struct Affine {
  TensorId root = kAbsent;
  double scale = 1;
  double offset = 0;

  Range root_for(const Range& wanted) const {
    return times(difference(wanted, {offset, offset, true}), 1 / scale);
  }
};

// Where a condition holds: a part of the numbers that a tensor may be, and the rest of them.
struct ConditionSplit {
  TensorId root = kAbsent;
  Range yes = {};
  Range no = {};
};

class LegalRanges {
 public:
  LegalRanges(const Graph& graph, const std::vector<Range>& possible);

  std::vector<Range> run();

 private:
  static size_t at(TensorId id) { return static_cast<size_t>(id); }

  const Range& can(TensorId id) const { return possible_[at(id)]; }

  bool fixed(TensorId id) const { return graph_.tensor(id).constant.has_value(); }

  bool has(const Node& node, size_t i) const { return NodeContext{graph_, node}.has(i); }

  const Node* maker(TensorId id) const { return makers_[at(id)]; }

  void restrict_to(TensorId id, Range to);
  void restrict_input(const Node& node, size_t i, const Range& to);
  TensorId unmoved(TensorId id) const;
  void asks(const Node& node);
  void asks_indices(const Node& node);
  void asks_index(const Node& node);
  void asks_places(const Node& node);
  void asks_classes(const Node& node);
  void asks_variance(const Node& node);
  void asks_divisor(const Node& node);
  void asks_compared(const Node& node);
  void asks_mask(const Node& node);
  void passes_on(const Node& node, const Range& wanted);
  void moves(const Node& node, const Range& wanted);
  void composite(const Node& node, const Range& wanted);
  void sums(const Node& node, const Range& wanted);
  void pointwise(const Node& node, const Range& wanted);
  void adds(const Node& node, const Range& wanted, bool minus);
  void divides(const Node& node, const Range& wanted);
  void multiplies(const Node& node, const Range& wanted);
  void clips(const Node& node, const Range& wanted);
  bool keeps_numbers(const Node& node) const;
  Affine affine(TensorId id) const;
  ConditionSplit split_by(TensorId condition) const;
  void chooses(const Node& node, const Range& wanted);

  const Graph& graph_;
  const std::vector<Range>& possible_;
  std::vector<Range> legal_;
  std::vector<const Node*> makers_;
};
}  // namespace warploom::graph
