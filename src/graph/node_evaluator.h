// Computes boxes of a primitive graph's tensors, node by node, in FP64. Private to the room.
//
// evaluator.cpp has the walk over the nodes and what all of them share; evaluate_products.cpp
// contractions and convolutions; evaluate_reductions.cpp reductions, windows and scans;
// evaluate_elements.cpp pointwise operators and those that move elements.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "graph/box.h"
#include "graph/evaluator.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/strided.h"
#include "graph/tensor_view.h"

namespace warploom::graph {
class NodeEvaluator {
 public:
  NodeEvaluator(const Graph& graph, std::span<const Bytes> inputs, const EvalOptions& options);

  // As compute() has it (evaluator.h).
  Status run(const Demand& demand, TensorId wanted, const Box& box_wanted, ValueAndMagnitude& to);

 private:
  const View& view(TensorId id) const { return views_[id]; }

  const Tensor& output_of(const Node& node) const { return graph_.tensor(node.outputs[0]); }

  const Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }

  std::vector<size_t> last_uses() const;
  Status evaluate(const Node& node, const Box& box);
  // Storage for a box of the node's output, which is a view of it from now on.
  Storage& make(const Node& node, const Box& box);
  void append(TensorId id, const Box& box, ValueAndMagnitude& to) const;

  // Whether a number of the node's output is more than its type holds, noted in `to`. `last`: it is
  // the output that is wanted, which is not stored in its type.
  void note_overflow(const Node& node, bool last, ValueAndMagnitude& to);
  bool mark_overflow(const Node& node, bool last);
  bool overflows(const Node& node, bool last) const;

  // An input as a view in the output's coordinates: strides of 0 along axes that it lacks or that
  // stretch.
  View projected(const Node& node, size_t input, View to) const {
    return graph::projected(graph_, node, input, std::move(to));
  }

  Taps taps_of(const Node& node, size_t input, const View& in) const {
    return graph::taps_of(graph_, node, input, in.strides);
  }

  Fill fill_of(TensorId id, double value) const;
  // What a box of the output reads of the first input, packed, `fill` where that leaves the input;
  // in the input's coordinates.
  View padded(const Node& node, const Box& box, const Fill& fill) const;
  // A region packed, of which a part is copied.
  View stored(const View& from, const Box& region, const Box& part, const Fill& fill = {}) const;

  void product(const Node& node, const Box& box, Storage& fresh) const;
  void convolution(const Node& node, const Box& box, Storage& to) const;
  void multiply(const Node& node, const Box& box, size_t left, const View& a, const View& b,
                Storage& to) const;

  void reduce(const Node& node, const Box& box, Storage& fresh) const;
  void scan(const Node& node, const Box& box, Storage& fresh) const;

  void pointwise(const Node& node, const Box& box, Storage& fresh) const;
  void reshape(const Node& node, const Box& box);
  void movement(const Node& node, const Box& box);
  void gather(const Node& node, const Box& box);
  void concat(const Node& node, const Box& box);

  const Graph& graph_;
  std::vector<View> views_;
  const EvalOptions& options_;
  bool by_element_ = false;  // no operator combines elements of one tensor
};

// Copies a part of a tensor to where `place` says, both in the tensor's coordinates. `To` is
// Storage or ValueAndMagnitude.
template <class To>
void copy(const View& from, const Box& part, const View& place, int threads, To& to) {
  for_runs(part, threads, [&](int64_t, int64_t count, const Shape& at) {
    const int64_t first = address(place, at);
    double* const magnitude = to.magnitude.empty() ? nullptr : to.magnitude.data() + first;
    if (!to.value.empty()) load(from, at, count, to.value.data() + first, magnitude);
    if (!to.integers.empty()) load(from, at, count, to.integers.data() + first);
  });
}
}  // namespace warploom::graph
