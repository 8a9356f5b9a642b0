// The reference at work: boxes of tensors, computed node by node. Private to the room.
#pragma once

#include <memory>
#include <vector>

#include "graph/demand.h"
#include "graph/reference.h"

namespace warploom::graph {

struct Storage {  // of a tensor that was computed, over a box
  std::vector<double> value, magnitude;
};

// What is known of a tensor, or of an operand in an output's coordinates: element x (coordinates in the whole tensor) is at origin + Σ x_a · stride_a. Transposes,
// slices, broadcasts and most reshapes only change these numbers; inputs and constants are read where they lie.
struct View {
  const void* data = nullptr;
  Dtype dtype = Dtype::f64;
  const double* magnitude = nullptr;  // at the same addresses; null: all zero
  std::shared_ptr<Storage> owner;     // null: bytes of an input or a constant
  std::int64_t origin = 0;
  std::vector<std::int64_t> strides;
};

class Evaluator {
 public:
  Evaluator(const Graph& graph, std::span<const Bytes> inputs, int threads, bool with_magnitude);
  // Computes what `demand` asks for (propagated already).
  Status run(const Demand& demand);
  // Appends a box of a tensor that was asked for, in row-major order. Ask for each tensor once: storage may be handed over.
  void append(TensorId id, const Box& box, std::vector<double>& value, std::vector<double>* magnitude);

 private:
  const View& view(TensorId id) const { return views_[static_cast<std::size_t>(id)]; }
  const Shape& shape(TensorId id) const { return graph_.tensor(id).shape; }
  std::shared_ptr<Storage> make(const Node& node, const Box& box);
  View projected(const Node& node, std::size_t input) const;
  void contraction(const Node& node, const Box& box);
  void scale_and_add(const Node& node, const Box& box, Storage& fresh);
  void softmax(const Node& node, const Box& box);
  void pointwise(const Node& node, const Box& box);
  void reshape(const Node& node, const Box& box, const Box& source);
  void movement(const Node& node, const Box& box);

  const Graph& graph_;
  std::vector<View> views_;
  int threads_;
  bool with_magnitude_;
};

// Calls body(first, count, coordinates) for runs along the last axis that together make up the box; `coordinates` of a
// run's first element, `first` its place in the packed box. In parallel.
void for_runs(const Box& box, int threads, const std::function<void(std::int64_t, std::int64_t, const Shape&)>& body);

}  // namespace warploom::graph
