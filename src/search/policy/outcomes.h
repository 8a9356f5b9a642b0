// Outcomes: what became of the plans of some problems, recorded once, so that a policy can be
// trained and searches can be replayed without the machine that they were measured on.
//
// It is the offline tree of QiMeng-Kernel's MTMC (arXiv 2511.20100): nodes are plans of a problem,
// each with its time or why it was refused; edges are actions, which lead from plan to plan. A plan
// here is a config of a region, by its text. What an action changes is told by its two ends, so
// edges are not stored but for how each plan was come by.
//
//   problem   conv3x3_64: a graph, its track
//   plan 0    direct tile_x=28 …            812 us   seed
//   plan 1    conv_cpu tile_q=7 …            96 us   seed
//   plan 2    conv_cpu tile_q=14 …           71 us   forward, of plan 1: tile_q 7 → 14
//   plan 3    conv_cpu … block_c=64        refused   backward, of plan 2: resource-limit
//
// "Backward" is a change of the best plan that is known: read the other way it is the last action
// before the best. A `closed` problem holds every legal plan whose fields have the values listed in
// `ranges`, so that whatever a search asks for there is known.
//
// The file is CBOR, the binary form of JSON, compressed by gzip. Errors: file-missing,
// file-unreadable; outcomes-invalid for one that is cut off, empty, of another version, or whose
// plans or parents make no sense.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include "base/error.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "target/capabilities.h"

namespace warploom::search {
// How a plan was come by.
enum class Origin : uint8_t {
  seed,      // the fallback, a family's best guess, or a random one
  forward,   // an action from a plan that was measured before
  backward,  // a change of the best plan that was known
  closed,    // of a closed sub-space
};
inline constexpr const char* kOrigins[] = {"seed", "forward", "backward", "closed"};

// A plan and what became of it. Neither time nor code: not measured yet.
struct RecordedPlan {
  std::string config;
  double us = 0;     // median of its calls; 0: refused, or not measured
  std::string code;  // why it was refused, as in docs/errors.md
  Origin origin = Origin::seed;
  int parent = -1;  // the number of the plan that it was made from; -1: none

  bool is_right() const { return us > 0; }

  bool is_known() const { return is_right() || !code.empty(); }
};

// What a problem is recorded for.
enum class Use : uint8_t { train, hold_out };
inline constexpr const char* kUses[] = {"train", "hold_out"};

struct RecordedProblem {
  std::string name;
  Use use = Use::train;
  Track track = Track::fp32;
  graph::Graph graph;  // of the region, in primitives
  // Closed ones: by family and field the values of its plans; else empty.
  std::map<std::string, std::map<std::string, std::vector<int64_t>>> ranges = {};
  std::vector<RecordedPlan> plans = {};

  bool is_closed() const { return !ranges.empty(); }

  std::optional<double> best_us() const;  // nothing where none is right
};

struct Outcomes {
  std::string machine;  // its processor or card, in words
  target::Capabilities capabilities;
  std::vector<RecordedProblem> problems;
};

// A target with the rates that its card has; from such a record, or json::exception.
nlohmann::json capabilities_to_json(const target::Capabilities& capabilities);
target::Capabilities capabilities_from_json(const nlohmann::json& json);

nlohmann::json to_json(const Outcomes& outcomes);
// `place` names the file in errors.
Result<Outcomes> outcomes_from_json(const nlohmann::json& json, const std::string& place);

Result<Outcomes> read_outcomes(const std::filesystem::path& path);
Status write_outcomes(const std::filesystem::path& path, const Outcomes& outcomes);
}  // namespace warploom::search
