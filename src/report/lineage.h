// Lineage: what became of what in a search, and which of its steps paid.
//
// Of each candidate that came from another one by an action the archive has the action; a parent
// may have many children. A tree in lines, the children of one beneath it, the fastest first:
//
//   #1            began with direct tile_x=16 …                 812 µs
//   · #4          another way: conv_cpu …                       110 µs   0.14 of the one before
//   · · #9        register tiles of 8 rows …  tile_m 4 → 8       71 µs   0.65
//   · · #7        …                                             refused: resource-limit
//
// A candidate that began from nothing, or from one that the archive has lost, is a root.
#pragma once
#include <nlohmann/json.hpp>

namespace warploom::report {
// The tree in rows {"step", "idea", "difference", "verdict", "median_us", "of_parent", "part",
// "round", "chance"} of candidates as a history has them; `bound_us`: the roofline's time, or null.
// Of more than some hundreds only the fastest with all that led to them, and `left_out` says how
// many more there are.
struct LineageTable {
  nlohmann::json rows = nlohmann::json::array();
  size_t left_out = 0;
};

LineageTable lineage_of(const nlohmann::json& candidates, const nlohmann::json& bound_us);

// Which kinds of actions paid: rows {"kind", "tried", "refused", "faster", "median_gain",
// "best_gain", "best"}, the most gained first. A gain is the parent's time over the child's; of a
// kind of which nothing was timed there is none. `best` is the sentence of the best of them.
nlohmann::json paid_by(const nlohmann::json& candidates);

// What a step changed: "block_m 64 → 128, stages 2 → 4", of a whole plan "cut_region t3"; "" where
// nothing was kept of it, or the family changed with all of its fields.
std::string difference_of(const nlohmann::json& action);
}  // namespace warploom::report
