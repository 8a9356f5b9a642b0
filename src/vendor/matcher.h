// The matcher at work. Private to match*.cpp.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "base/random.h"
#include "graph/operators.h"
#include "vendor/match.h"

namespace warploom::vendor {
using graph::Graph, graph::Node, graph::OpClass, graph::OpKind, graph::TensorId;

class Matcher {
 public:
  Matcher(Graph graph, Track track, Functions functions);
  VendorProblem run();

 private:
  // Rules of the table: whether they took the node.
  using Rule = bool (Matcher::*)(const Node& node);

  struct Row {
    OpKind op;
    Rule rule;
  };

  static std::span<const Row> rules();

  // match_views.cpp
  bool alias(const Node& node);     // the same elements, perhaps under another shape
  bool movement(const Node& node);  // by the operator's access rule
  bool split(const Node& node);
  bool concat(const Node& node);
  bool cast(const Node& node);

  // match_steps.cpp
  Step with_bias(const Node& node, Operation operation);
  bool convolution(const Node& node);
  bool deconvolution(const Node& node);
  bool pool(const Node& node);
  bool global_pool(const Node& node);
  bool matmul(const Node& node);
  bool gemm(const Node& node);
  bool softmax(const Node& node);
  bool batch_norm(const Node& node);
  bool layer_norm(const Node& node);
  bool group_norm(const Node& node);
  bool reduction(const Node& node);
  bool lrn(const Node& node);

  // match_pointwise.cpp
  bool recognized(const Node& node);  // nodes that together are one function of one tensor
  std::optional<After> as_function(TensorId from, TensorId result,
                                   const std::vector<int>& nodes) const;
  std::vector<int> elementwise_from(TensorId from, int first) const;
  std::vector<int> behind(TensorId result, std::span<const int> nodes) const;
  bool is_closed(const std::vector<int>& nodes, TensorId result) const;
  bool unary(const Node& node);  // a function with numbers of its own
  bool binary(const Node& node);
  bool combine(TensorId x, TensorId other, Combine how, TensorId out, bool reversed = false);
  void apply(const std::vector<After>& after, TensorId from, TensorId to,
             const std::vector<int>& nodes);

  const graph::Tensor& tensor(TensorId id) const { return graph().tensor(id); }

  const Graph& graph() const { return problem_.graph; }

  bool floats(const Node& node) const;  // all that it reads and writes, but for constants

  std::optional<double> scalar(TensorId id) const { return constant_scalar(graph(), id); }

  int number_of(const Node& node) const { return static_cast<int>(&node - graph().nodes.data()); }

  // Where a tensor lies. Its own place is a buffer of its own name, packed.
  const Place& place(TensorId id) const { return places_.at(id); }

  bool is_in_own_place(TensorId id) const;
  void copy_to_own_place(TensorId id);
  Place packed(TensorId id);                       // where it lies packed, copied if need be
  Place own_place(TensorId id) const;              // where it would be
  Place along_channels(TensorId id, size_t rank);  // [C] as [1, C, 1, ..]
  // The step that alone wrote what lies in `id`, and may do more to it: what nobody but `readers`
  // reads. `other` must have been there before.
  Step* host(TensorId id, const std::vector<int>& readers, const std::optional<Place>& other);

  bool may_use_tf32(Dtype dtype) const { return dtype == Dtype::f32 && track_ != Track::fp32; }

  void push(Step step, TensorId to);

  void push_alone(Operation operation, TensorId to) { push({std::move(operation), {}}, to); }

  void unmatched(const Node& node);
  void finish();
  bool can_rename(const Place& from) const;
  void rename_buffer(const std::string& from, const std::string& to);

  VendorProblem problem_;
  Track track_;
  Functions functions_;
  std::vector<std::vector<int>> consumers_;  // of each tensor
  std::map<TensorId, Place> places_;
  std::map<std::string, int> writer_;  // the last step that wrote a buffer
  std::set<std::string> parts_;        // buffers that several steps write
  std::vector<bool> done_;             // nodes that a step covers already
};
}  // namespace warploom::vendor
