// The meaning of a nest, without any thought of speed: every value at every index, in FP64 and on
// integers of 64 bits, compared with the reference of graphs.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>
#include "loopnest/loop_nest.h"

namespace warploom::test {
// The only nest of a graph, where it is one and gathers nothing.
std::optional<loopnest::LoopNest> nest_of(const graph::Graph& graph);

std::string to_text(const loopnest::LoopNest& nest);  // one line a value

// Whether the nests of a graph compute what the reference does: integers to the last bit. On random
// inputs, on integers that no float holds, on inputs that are given.
void expect_agreement(const graph::Graph& graph);
void expect_exact(const graph::Graph& graph);
void expect_agreement(const graph::Graph& graph, const std::vector<std::vector<std::byte>>& inputs);
}  // namespace warploom::test
