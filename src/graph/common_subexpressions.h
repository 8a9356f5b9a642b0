// Common subexpressions: what a graph computes twice is computed once.
//
// Two nodes are equal where their operators, their attributes and what they read are, in any order
// for sums and products of two. The first of them stays; who read another reads the first. That is
// done in the nodes' order, so that whole expressions become one, node by node.
//
// Worked example, silu of a convolution that is written out for each of its two readers:
//
//   h1 = Conv(x, w)   h2 = Conv(x, w)   s = Sigmoid(h2)   y = Mul(h1, s)
//   h1 = Conv(x, w)                     s = Sigmoid(h1)   y = Mul(h1, s)
//
// An output that equals another one is still delivered, under its own name, as a copy: y2 =
// Identity(y1).
//
// Constants are equal by their contents where they are numbers, axes, shapes or indices. Weights,
// floating-point data of several elements, are equal only to themselves: two layers whose biases
// are both zero today may be given others tomorrow, by the names that they have in the model.
//
// Nodes that share their name with another are left alone: what decompose() calls the tensors in
// between depends on how many nodes of a name come before, and plans name their constants so.
#pragma once
#include "graph/graph.h"

namespace warploom::graph {
// The same function of the same inputs, simplified. Expects an inferred graph, of composites or
// primitives; what makes several tensors is merged as well.
Result<Graph> merge_common(Graph graph);
}  // namespace warploom::graph
