// Equal products as one: matmuls that read the same left operand, each with constant weights of the
// same shape, become one product over their weights one behind another.
//
//   q = reshape(x·wq + bq)   k = reshape(x·wk + bk)   v = reshape(x·wv + bv)
//
//   y = reshape(x·[wq, wk, wv] + [bq, bk, bv])        one product, [3, …]
//   q = y[0]   k = y[1]   v = y[2]                    pieces of its memory: nothing is copied
//
// What follows all of them alike comes along: arithmetic with constants, shapes and transposes; and
// a scale that some of them have, which is 1 for the others. The stacked weights are made of
// constants alone, and so are computed once, before the calls.
//
// The rule of cost: pieces must be read as they would be from memory anyway. Where an activation, a
// sum with something else, a norm or a softmax follows one of the products by itself, the product
// would have computed it on the way (SwiGLU: silu(x·wg) · (x·wu) is better as two products), and
// the products stay apart; so do outputs of the graph, which have memory of their own. What reads a
// piece is a product, a convolution, a pool, or moves it there.
#pragma once
#include "base/error.h"
#include "graph/graph.h"

namespace warploom::graph {
// The same function of the same inputs. Expects an inferred graph of primitives.
Result<Graph> stack_products(Graph graph);
}  // namespace warploom::graph
