// Plain: a straightforward kernel for any graph, the reference where no library has one.
//
//   WARPLOOM_TRY(const LaunchList list, plain_list(graph, Engine::cpu, "x86-64-v3"));
//
// Made from loop nests (loopnest/loop_nest.h) and nothing else of ours: no tiles, no layouts, no
// device headers. Every reduction and scan is a kernel that writes its value for every index that
// it varies along; what is elementwise is computed where it is read, unless it is dear and would be
// computed again for each element of a reduction. Then one kernel writes each output.
//
//   softmax(x), x [8, 128]:  m[i] = max_j x[i,j]    s[i] = Σ_j exp(x[i,j] - m[i])
//                            y[i,j] = exp(x[i,j] - m[i]) / s[i]
//
// On a CPU a task takes 64 neighbours of one row, in loops that compilers make vectors of, or sums
// a row in 16 parts; on a GPU a thread takes one element, or a block one sum where they are few.
// Arithmetic is fp32; fp64 where an output is of integers or f64.
//
// Where a graph has no nests as a whole, it goes operator by operator. no-schedule where an
// operator has none, or an element type has no plain form.
#pragma once
#include "codegen/launch_list.h"
#include "graph/graph.h"

namespace warploom::vendor {
// Inputs of the list are the graph's, then its constants that are read; outputs are the graph's.
Result<LaunchList> plain_list(const graph::Graph& graph, Engine engine, const std::string& arch);
}  // namespace warploom::vendor
