// GraphReader: from a graph of primitives to a nest, backwards. A tensor is read at coordinates,
// and its producer says at which coordinates it reads its inputs.
//
//   y = relu(transpose(x)), x [3,4]
//   y at {i0, i1}  ←  relu of: transpose(x) at {i0, i1}  ←  x at {i1, i0}: a load
//
// A tensor that is read twice at the same coordinates is one value. At other coordinates it is
// another value, made of other values: x + relu(x·w) reads x at {i, j} and at {i, k}, so that
// twelve such layers read the first x at 2^12 places. No kernel computes such a nest; so reading
// ends at a limit (ReadWork::too_large), and the graph has no nest.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include "graph/operators.h"
#include "loopnest/axis_builder.h"
#include "loopnest/expr_builder.h"

namespace warploom::loopnest {
class GraphReader {
 public:
  GraphReader(const graph::Graph& graph, AxisSplits& splits, ReadWork& work);

  // Reads outputs from `begin` on and `size` long along every axis: of equal shape (or of size 1
  // where the first is larger), or whose shape the same elements have under another, or those along
  // some of the axes. False where they have no nest, or an axis is to be split first.
  bool read_outputs(const std::vector<graph::TensorId>& outputs, const graph::Shape& begin,
                    const graph::Shape& size);

  bool split_requested() const { return axes_.split_requested(); }

  LoopNest take_nest() { return std::move(nest_); }

 private:
  using MaybeValue = std::optional<int>;

  // Where an output of that shape is written, at these indices of an output of these sizes.
  std::optional<Coordinates> written_at(const graph::Shape& shape, const Coordinates& indices,
                                        const graph::Shape& sizes);

  // The value of a tensor; unspecified, though not undefined, where a coordinate lies outside.
  MaybeValue read(graph::TensorId id, const Coordinates& at);
  // The value of a tensor, `fill` where a coordinate lies outside (graph_reader_padding.cpp).
  MaybeValue read_padded(graph::TensorId id, const Coordinates& at, double fill);

  MaybeValue read_stored(graph::TensorId id, const Coordinates& at);
  MaybeValue read_node(const graph::Node& node, graph::TensorId id, const Coordinates& at);

  // By class of operator: coordinates and copies (graph_reader_views.cpp), arithmetic
  // (graph_reader_pointwise.cpp), sums and their like (graph_reader_reductions.cpp).
  MaybeValue read_view(const graph::Node& node, const Coordinates& at);
  MaybeValue read_movement(const graph::Node& node, const Coordinates& at);
  MaybeValue read_pad(const graph::Node& node, const Coordinates& at);
  MaybeValue read_concat(const graph::Node& node, const Coordinates& at);
  MaybeValue read_gather(const graph::Node& node, const Coordinates& at);
  MaybeValue read_pointwise(const graph::Node& node, graph::TensorId id, const Coordinates& at);
  MaybeValue read_reduction(const graph::Node& node, const Coordinates& at);
  MaybeValue read_scan(const graph::Node& node, const Coordinates& at);
  MaybeValue read_window(const graph::Node& node, const Coordinates& at);
  MaybeValue read_convolution(const graph::Node& node, const Coordinates& at);
  MaybeValue read_contraction(const graph::Node& node, const Coordinates& at);

  // Where input `i` of a node is read, by the operator's access rule. `combined` gives the
  // coordinate along a dimension that is combined whole, or by which a window moves along one, and
  // its size; nothing where there is such a dimension and `combined` is empty.
  using Combined = std::function<Affine(size_t dim, int64_t size)>;
  std::optional<Coordinates> source_of(const graph::Node& node, size_t i, const Coordinates& at,
                                       const Combined& combined = {}) const;
  std::optional<Coordinates> read_by(const graph::AxisSources& rule, const graph::Shape& shape,
                                     const Coordinates& at, const Combined& combined = {}) const;

  Affine new_axis(int64_t size);
  Access access(graph::TensorId id, const Coordinates& at) const;
  int load_reshaped(graph::TensorId id, const Coordinates& at, const graph::Shape& shape);
  std::optional<Affine> even_steps_of(graph::TensorId id, const Coordinates& at) const;
  bool is_exact(graph::TensorId id, int value) const;

  bool lies_apart(graph::TensorId id, const Coordinates& at) const;

  using Operands = std::vector<int>;
  std::optional<Operands> read_operands(const graph::Node& node, const Coordinates& at);
  bool needs_integers(const graph::Node& node, const graph::Expression& expression,
                      const Operands& operands, Dtype to);

  // A pattern of coordinates: `at`, but for whole axes of their own at the dimensions `whole`.
  struct Pattern {
    const Coordinates& at;
    const std::vector<bool>& whole;
  };

  std::optional<Coordinates> coordinates_read_before(graph::TensorId id, const Pattern& pattern,
                                                     std::set<graph::TensorId>& seen) const;
  bool matches(const Coordinates& at, const Pattern& pattern, const graph::Shape& shape) const;

  // Outside a shape: whether loads leave their tensors there, and what values are there.
  struct Outside {
    const Coordinates& at;
    const graph::Shape& shape;
    std::map<int, std::optional<double>> known = {};
  };

  bool leaves_alike(const Access& load, const Outside& outside) const;
  std::optional<double> value_outside(int value, Outside& outside) const;
  std::optional<double> compute_outside(int value, Outside& outside) const;
  int where_inside(int value, const Coordinates& at, const graph::Shape& shape, int fill,
                   Dtype dtype);

  const graph::Tensor& tensor(graph::TensorId id) const { return graph_.tensor(id); }

  const graph::Tensor& input(const graph::Node& node, size_t i) const {
    return graph_.tensor(node.inputs[i]);
  }

  Dtype result_type(const graph::Node& node) const { return tensor(node.outputs[0]).dtype; }

  const graph::Node& producer_of(graph::TensorId id) const;
  bool is_stored(graph::TensorId id) const;  // an input or a constant: nothing computes it

  const graph::Graph& graph_;
  ReadWork& work_;
  LoopNest nest_;
  AxisBuilder axes_;
  ExprBuilder exprs_;
  std::vector<const graph::Node*> producers_;  // by tensor; null for inputs and constants
  std::vector<int> reductions_;                // by tensor: how many lie on the way to it
  int depth_ = 0;                              // of readings within readings
  std::map<std::pair<graph::TensorId, Coordinates>, int> known_;
  // By the bits of the fill.
  std::map<std::tuple<graph::TensorId, Coordinates, uint64_t>, int> padded_;
  std::map<graph::TensorId, std::vector<Coordinates>> read_at_;
};
}  // namespace warploom::loopnest
