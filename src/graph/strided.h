// Strided views seen from an operator's output: how an axis rule (operators.h) moves a view's
// origin and strides. Shared by the evaluator and by the plan of its steps. Private to the room.
//
//   y = transpose(x), x [3,4] with strides [4,1]: in the output's coordinates x has strides [1,4]
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include "graph/graph.h"
#include "graph/operators.h"

namespace warploom::graph {
// What an output takes in of an input: so many elements, so far apart, along each of the input's
// axes.
struct Taps {
  Shape count;
  std::vector<int64_t> steps;
};

// An input in the output's coordinates. A view has an `origin` and `strides`, in elements.
template <class AnyView>
AnyView projected(const Graph& graph, const Node& node, size_t input, AnyView to) {
  const size_t rank = graph.tensor(node.outputs[0]).shape.size();
  const std::vector<int64_t> strides = std::exchange(to.strides, Shape(rank, 0));
  const auto sources = axis_sources(graph, node, input);
  for (size_t i = 0; sources && i < sources->size(); ++i) {
    const AxisSource& source = (*sources)[i];
    if (source.axis == AxisSource::kWhole) continue;
    to.origin += source.begin * strides[i];
    to.strides[static_cast<size_t>(source.axis)] = source.step * strides[i];
  }
  return to;
}

inline Taps taps_of(const Graph& graph, const Node& node, size_t input,
                    const std::vector<int64_t>& strides) {
  Taps taps;
  const AxisSources sources = *axis_sources(graph, node, input);
  const Shape& size = graph.tensor(node.inputs[input]).shape;
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool all = sources[i].axis == AxisSource::kWhole;
    taps.count.push_back(all ? size[i] : sources[i].taps);
    taps.steps.push_back(sources[i].dilation * strides[i]);
  }
  return taps;
}
}  // namespace warploom::graph
