// OwnAction: an action that a user adds in a file, without building anything: fields of one
// family's config that are changed together.
//
//   {"name": "taller_tiles",
//    "family": "matmul_cpu",
//    "kind": "tiling", "code_region": "register tile", "eases": "cache",
//    "words": "register tiles twice as high and half as wide",
//    "set": {"tile_m": "*2", "tile_n": "/2"}}
//
// A field is set to a value ("8", 8, a word), or changed from what it is: "*2", "/2", "+1", "-1".
// Kinds are rows of action_kinds.def, what it eases one of bottlenecks.def; "code_region" and
// "eases" may be left out.
//
//   WARPLOOM_TRY(const OwnActions own, read_own_actions({"examples/actions/taller_tiles.json"}));
//   space.own_actions = …;        // ActionSpace then has it wherever it can be carried out
//
// What it makes is held to the family's values and constraints as any other action's: the fields
// that constraints couple to its own are set as well, or it is refused with what forbids it. An
// archive that has it needs no file to replay it: its settings are kept like those of others.
//
// Errors: file-missing, file-unreadable; plan-invalid for a file that says of no action, with what
// is wrong in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include "base/error.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/action/action.h"

namespace warploom::search {
// What becomes of one field.
struct OwnChange {
  enum class How : uint8_t { set, add, multiply, divide };

  size_t field = 0;  // of the family's table
  How how = How::set;
  int64_t by = 0;  // or to

  // Nothing where a division leaves a rest, or a number is too large for one.
  std::optional<int64_t> of(int64_t value) const;

  friend bool operator==(const OwnChange&, const OwnChange&) = default;
};

struct OwnAction {
  std::string name;
  const kernels::ConfigType* type = nullptr;
  ActionKind kind = ActionKind::tiling;
  std::string code_region;
  Bottleneck eases = Bottleneck::unknown;
  std::string words;
  std::vector<OwnChange> changes;  // the first one is what is meant
};

struct OwnActions {
  std::vector<OwnAction> all;
};

// What an own action is at a config: legal, refused with the constraints, or neither, where it is
// of another family or changes nothing.
struct OwnActionHere {
  std::optional<Action> action = {};
  kernels::FailedConstraints why = {};  // none: it is legal
};

Result<OwnAction> own_action_from_json(const nlohmann::json& json);
Result<OwnActions> read_own_actions(const std::vector<std::string>& files);

OwnActionHere action_at(const OwnAction& own, const kernels::Family& family,
                        const kernels::KernelConfig& config);
}  // namespace warploom::search
