// BoundaryChange: one boundary between a graph's regions that is elsewhere than where fusion would
// have it (fusion.h). A list of them, carried out in its order, says which partition a plan has:
//
//   cut_region t3           what makes t3 becomes a region of its own, which stores it; what was
//                           computed of t3 in its region reads it
//   join_regions t3 + y     the regions that store t3 and y become one, which stores what others
//                           read of them
//
//   to_text(changes)        // "cut_region t3; join_regions t3 + y"; "" where fusion decides all
//
// Tensors are named as the graph that is cut names them. In JSON a change is {"kind", "tensors"}.
// Text and JSON read back as the same list; a name that has " + " or "; " in it can be read from
// JSON alone.
//
// Errors: plan-invalid where a text or JSON is no such list.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"

namespace warploom::plan {
enum class BoundaryKind : uint8_t {
#define WARPLOOM_BOUNDARY_KIND(name, meaning) name,
#include "plan/boundary_kinds.def"
};

struct BoundaryChange {
  BoundaryKind kind = BoundaryKind::cut_region;
  std::string tensor;
  std::string other = {};  // the second of a join

  friend bool operator==(const BoundaryChange&, const BoundaryChange&) = default;
};

using BoundaryChanges = std::vector<BoundaryChange>;

std::string_view name_of(BoundaryKind kind);  // "cut_region"
std::optional<BoundaryKind> boundary_kind_named(std::string_view name);

std::string to_text(const BoundaryChange& change);
std::string to_text(const BoundaryChanges& changes);
Result<BoundaryChanges> boundaries_from_text(const std::string& text);

nlohmann::json to_json(const BoundaryChanges& changes);
Result<BoundaryChanges> boundaries_from_json(const nlohmann::json& json);
}  // namespace warploom::plan
