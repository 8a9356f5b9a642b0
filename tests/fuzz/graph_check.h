// Runs random graphs through everything that computes them: decomposed, cut into regions for each
// target, each region under a random legal schedule of a random family that covers it. Its tile
// programs go through the interpreter and, joined for the whole graph, through the emulator or this
// machine's CPU; both must agree with FP64 evaluation within the tolerance of the graph's track.
//
// Outcomes of kind "graph" are such runs; of kind "schedule", the schedules that were drawn for
// regions: built, or refused by name. Another schedule is then drawn, up to kDraws times.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include "check.h"
#include "graph_case.h"

namespace warploom::fuzz {
inline constexpr int kDraws = 8;

// `draw`: another one, other schedules. Schedules follow from it and the region alone.
std::vector<Outcome> check_graphs(
    std::span<const GraphCase> cases, const WorkingOn& working_on = [](int) {}, uint64_t draw = 0);
std::vector<Outcome> check_graph_seeds(uint64_t first, int count, const WorkingOn& working_on);

// One without a fault: nothing wrong, or refused by name.
bool is_fine(const std::vector<Outcome>& outcomes);

// The fewest operators in a row that still fail so on the target: what came before them is given as
// inputs.
GraphCase smaller(const GraphCase& failing, const std::string& target, const std::string& code);

nlohmann::json graph_figures(const Run& run, const std::vector<Outcome>& outcomes, double seconds);
}  // namespace warploom::fuzz
