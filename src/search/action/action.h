// Action: a typed step from one config to another (macro thinking, as QiMeng-Kernel's MTMC calls
// it; micro coding is what carries it out: search/coder/coder.h).
//
// It sets config fields, several at once where constraints couple them, or goes to another family.
// Each kind is a row of action_kinds.def, and each field of each family belongs to one kind by its
// row of action_fields.def, with the region of code that it is about and what it says in words.
//
//   kind      pipelining
//   settings  stages 2 -> 4, block_k 128 -> 64     the change that is meant, then what it needs
//   sentence  "keep 4 tiles in flight instead of 2 (with block_k=64): more work hides the latency
//   of
//              loads"
//
// One of a whole plan changes no config: its steps say what becomes of the graph, or of the
// boundaries between its regions (plan_actions.h):
//
//   kind        rewrite
//   plan_steps  {"scale_after_sum y", "sum_before y"}
//
//   Result<KernelConfig> next = carry_out(space, action, config);
//   to_json(action)   // what the archive keeps
//
// Which actions there are in a place says actions_of() (actions_of.h).
//
// Errors: kScheduleIllegal or kResourceLimit with the constraint that the result would fail;
// kNoSchedule where no family of the space is the action's; kScheduleIllegal for an idea in free
// words, which no rule carries out, and for an action of a whole plan.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"
#include "kernels/config/kernel_config.h"
#include "search/search_space.h"

namespace warploom::search {
enum class ActionKind : uint8_t {
#define WARPLOOM_ACTION_KIND(name, macro_type, meaning) name,
#include "search/action/action_kinds.def"
};

struct ActionKindRow {
  std::string_view name;
  std::string_view macro_type;  // of MTMC's four; empty: none of them
  std::string_view meaning;
};

inline constexpr ActionKindRow kActionKinds[] = {
#define WARPLOOM_ACTION_KIND(name, macro_type, meaning) {#name, macro_type, meaning},
#include "search/action/action_kinds.def"
};

// What holds a kernel back, as far as a roofline and its time tell (search/policy/state.h).
enum class Bottleneck : uint8_t {
#define WARPLOOM_BOTTLENECK(name, gain) name,
#include "search/action/bottlenecks.def"
};

struct BottleneckRow {
  std::string_view name;
  std::string_view gain;  // of an action that eases it
};

inline constexpr BottleneckRow kBottlenecks[] = {
#define WARPLOOM_BOTTLENECK(name, gain) {#name, gain},
#include "search/action/bottlenecks.def"
};

// What raising and lowering one config field means.
struct ActionField {
  std::string_view field;  // its name in the families' tables
  ActionKind kind;
  std::string_view code_region;
  Bottleneck raise_eases;
  std::string_view raise_words;  // with {from} and {to}
  Bottleneck lower_eases;
  std::string_view lower_words;
};

// The row of a field; null where it has none.
const ActionField* action_field(std::string_view field);

// One field's change. Values are numbers, as KernelConfig has them.
struct Setting {
  size_t field = 0;  // of the family's table
  int64_t from = 0;  // where the family changes: nothing is told by it
  int64_t to = 0;

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct Action {
  ActionKind kind = ActionKind::tiling;
  // Of the config that it makes; null: of an idea, or of a whole plan.
  const kernels::ConfigType* type = nullptr;
  std::string code_region;
  // The change that is meant first, then those that constraints ask for beside it. All of a
  // config's fields where the family changes.
  std::vector<Setting> settings;
  bool changes_family = false;
  Bottleneck eases = Bottleneck::unknown;
  std::string sentence;                      // what it does, and what that is expected to gain
  std::vector<std::string> plan_steps = {};  // of a whole plan; none: of a config

  bool is_of_plan() const { return !plan_steps.empty(); }

  std::string family() const { return type ? std::string(type->family) : ""; }

  friend bool operator==(const Action&, const Action&) = default;
};

// The action from one config to another: of the kind of the first field that differs, or algorithm
// where the families do. Nothing where nothing differs.
std::optional<Action> action_between(const kernels::KernelConfig& from,
                                     const kernels::KernelConfig& to);

// The action of one family that sets these fields; the first one is what is meant.
Action action_of(const kernels::ConfigType& type, std::vector<Setting> settings);

// An idea in free words, as a language model has them.
Action idea_of(std::string sentence);

// The config that an action makes of another one, which is legal in the space.
Result<kernels::KernelConfig> carry_out(const SearchSpace& space, const Action& action,
                                        const kernels::KernelConfig& config);

// {"kind", "family", "code_region", "changes_family", "settings": {name: number or word, …},
// "eases", "sentence", and of a whole plan "plan_steps"}: what a step of a lineage is, and what
// replays it. Back, for a space of the same families, and from what programs before this one wrote
// of a whole plan; plan-invalid for what is no action there.
nlohmann::json to_json(const Action& action);
Result<Action> action_from_json(const nlohmann::json& json, const SearchSpace& space);
}  // namespace warploom::search
