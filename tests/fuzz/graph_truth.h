// What a random graph is meant to compute, and how far what was computed is from it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>
#include "fuzz/graph_case.h"
#include "fuzz/run_list.h"
#include "graph/reference.h"

namespace warploom::fuzz {
struct Expected {
  std::vector<graph::ValueAndMagnitude> outputs;
};

Expected expected_of(const GraphCase& c);

// "" or how the outputs, by their names, differ from FP64 beyond the track's tolerance.
std::string difference(const GraphCase& c, const Expected& expected, const Storage& made);

// So many bytes that show where they were never written.
void poison(std::vector<std::byte>& bytes, int64_t size);
}  // namespace warploom::fuzz
