// Freivalds' check: whether c = a·b by the products of both sides with a vector of random signs,
// c·r = a·(b·r), which takes the work of reading a, b and c where the product itself takes a length
// more.
//
//   c [4096,4096] = a·b + bias, r [4096]      c·r by whoever has c,      projected: a·(b·r) +
//   bias·Σr  [4096,1] in FP64
//
// An error e in a row of c shows as e·r, which is as large as e's norm for all but few r: it cannot
// hide where nobody looks, and one vector looks at all of c. The same goes for every chain that is
// linear in what is projected: of pointwise operators sums, products by what does not vary along
// the axis, and casts between floats, beside transposes and views. It does not go through an
// activation, nor through integers, which wrap.
// R. Freivalds, Probabilistic machines can use less running time, IFIP Congress 1977.
#pragma once
#include <optional>
#include "graph/graph.h"

namespace warploom::graph {
struct Projection {
  Graph graph;  // of the same inputs; its one output is the sum over `extent` of the whole's
                // elements, each times its sign
  int64_t before = 1;
  int64_t extent = 1;
  int64_t after = 1;          // the whole output's shape, the axis that is summed in the middle
  std::vector<double> signs;  // one an index of the axis
  double cost = 0;            // operations of evaluating it
};

// Of a float output, along the axis that makes FP64 evaluation cheapest; nothing where none makes
// it eight times cheaper than the output's.
std::optional<Projection> project(const Graph& graph, int output, uint64_t seed);
}  // namespace warploom::graph
