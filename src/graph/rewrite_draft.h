// Draft: one rewrite while its rule looks at a node and writes what takes its place. Within the
// room only.
//
//   bool products_right_rule(Draft& draft) {           // false: the node is nothing that it fits
//     const Node* left = draft.maker(draft.in(0), OpKind::MatMul);
//     …
//     draft.need(…);                              // what must hold beside that
//     draft.product(a, draft.product(b, c));      // the last node makes the root's tensor
//     return true;
//   }
//
// Nothing of the graph is copied until the rewrite is carried out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"

namespace warploom::graph {
// Who makes and reads what, worked out once a graph.
class GraphIndex {
 public:
  // `known`: inputs that hold the same in every call.
  explicit GraphIndex(const Graph& graph, const std::set<std::string>& known = {});

  const Graph& graph() const { return *graph_; }

  int maker(TensorId id) const { return maker_[static_cast<size_t>(id)]; }  // -1: none

  const std::vector<int>& readers(TensorId id) const { return readers_[static_cast<size_t>(id)]; }

  bool is_output(TensorId id) const { return outputs_.contains(id); }

  // Whether constants alone make it.
  bool is_known(TensorId id) const { return id == kAbsent || known_[static_cast<size_t>(id)]; }

  bool has_name(const std::string& name) const { return names_.contains(name); }

  bool is_multiplied(TensorId id) const;  // whether a product reads it

  NodeWork work_of(const Node& node) const;

 private:
  const Graph* graph_;
  std::vector<int> maker_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> known_;
  std::set<TensorId> outputs_;
  std::set<std::string, std::less<>> names_;
};

// What is put in a graph's place.
struct Edit {
  std::vector<bool> stays;  // by node
  size_t root = 0;          // where the nodes that come stand
  std::vector<Node> made;
  std::vector<Tensor> added;
};

// The graph with it; of tensors that were added, those that nodes make are no constants, whatever
// is known of them: they are computed, once before the calls.
Result<Graph> edited(Graph graph, Edit edit);

class Draft {
 public:
  Draft(const GraphIndex& index, int root, Track track)
      : index_(index), root_(index.graph().nodes[static_cast<size_t>(root)]), track_(track) {}

  // What there is.
  const Node& root() const { return root_; }

  TensorId in(size_t i) const { return root_.inputs[i]; }

  TensorId out() const { return root_.outputs[0]; }

  Track track() const { return track_; }

  const Graph& graph() const { return index_.graph(); }

  const TensorInfo& info(TensorId id) const;

  const Shape& shape(TensorId id) const { return info(id).shape; }

  size_t rank(TensorId id) const { return shape(id).size(); }

  bool is_known(TensorId id) const;
  bool is_float(TensorId id) const;  // of 16 bits or more
  // The node that makes it, where it is of this operator; else null.
  const Node* maker(TensorId id, OpKind op) const;

  // Whether rounding has its part in it: then a bound has it already.
  bool is_computed(TensorId id) const { return id >= 0 && index_.maker(id) >= 0; }

  // What must hold. What the rewrite would leave in place, since others read it, is no gain.
  void need(bool holds, std::string expected, std::string found);
  void need_alone(TensorId id);
  // Terms of a sum taken apart: they may cancel.
  void need_no_cancelling(TensorId a, TensorId b);
  // The tensor holds what is not scaled yet, or what is scaled already: fp16 may lack room for it.
  void need_room_unscaled(TensorId id, OpKind op, TensorId scale);
  void need_room_scaled(TensorId id, OpKind op, TensorId scale);

  // What its words name, in their order.
  void names(const std::vector<TensorId>& tensors);

  // What takes the root's place. Shapes follow from the operands'.
  TensorId product(TensorId a, TensorId b);
  TensorId pointwise(OpKind op, TensorId a, TensorId b);
  TensorId inverse(TensorId a);
  TensorId sum(TensorId a, const std::vector<int64_t>& axes, bool keeps);
  TensorId transposed(TensorId a, const std::vector<int64_t>& order);
  TensorId turned(TensorId a);  // its last two axes
  TensorId reshaped(TensorId a, const Shape& shape);
  TensorId copied(TensorId a);
  TensorId number(Dtype dtype, double value);

  const std::vector<FailedNeed>& why() const { return why_; }

  const std::vector<std::string>& named() const { return named_; }

  NodeWork before() const;
  NodeWork after() const;

  Edit edit() const;

 private:
  TensorId make(OpKind op, std::vector<TensorId> inputs, Shape shape,
                std::map<std::string, Attribute> attributes = {});
  std::string fresh_name() const;
  std::optional<double> factor_of(OpKind op, TensorId scale) const;
  std::set<int> gone() const;
  NodeWork work_of_made(const Node& node) const;

  const GraphIndex& index_;
  const Node& root_;
  Track track_;
  std::vector<FailedNeed> why_;
  std::vector<std::string> named_;
  std::vector<Tensor> added_;
  std::vector<Node> made_;
};

// Whether the node is one that the rule fits; then the draft holds what it needs and writes.
using RewriteRule = bool(Draft& draft);
#define WARPLOOM_REWRITE(name, words, gain) RewriteRule name##_rule;
#include "graph/rewrites.def"
}  // namespace warploom::graph
