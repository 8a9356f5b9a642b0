#include "plan/boundary_change.h"
#include <fmt/format.h>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"

namespace warploom::plan {
namespace {
using nlohmann::json;

constexpr std::string_view kKinds[] = {
#define WARPLOOM_BOUNDARY_KIND(name, meaning) #name,
#include "plan/boundary_kinds.def"
};

constexpr std::string_view kBetweenChanges = "; ";
constexpr std::string_view kBetweenTensors = " + ";

Error no_changes(std::string found) {
  return {ErrorCode::kPlanInvalid,
          "this says of no boundaries between regions",
          "",
          "cut_region TENSOR or join_regions TENSOR + TENSOR, with \"; \" between several",
          std::move(found),
          "see them with `warploom show MODEL --what boundaries`"};
}

std::vector<std::string> parts_of(const std::string& text, std::string_view between) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t end = text.find(between); end != text.npos; end = text.find(between, begin)) {
    out.push_back(text.substr(begin, end - begin));
    begin = end + between.size();
  }
  out.push_back(text.substr(begin));
  return out;
}

Result<BoundaryChange> change_of(std::string_view kind, const std::vector<std::string>& tensors,
                                 const std::string& found) {
  const auto known = boundary_kind_named(kind);
  if (!known) return fail(no_changes(found));
  const bool is_join = *known == BoundaryKind::join_regions;
  if (tensors.size() != (is_join ? 2 : 1) || contains(tensors, std::string()))
    return fail(no_changes(found));
  return BoundaryChange{*known, tensors.front(), is_join ? tensors.back() : ""};
}

std::vector<std::string> tensors_of(const BoundaryChange& change) {
  if (change.kind == BoundaryKind::cut_region) return {change.tensor};
  return {change.tensor, change.other};
}
}  // namespace

std::string_view name_of(BoundaryKind kind) {
  return kKinds[as_size(kind)];
}

std::optional<BoundaryKind> boundary_kind_named(std::string_view name) {
  return row_where<BoundaryKind>(kKinds, name);
}

std::string to_text(const BoundaryChange& change) {
  return fmt::format("{} {}", name_of(change.kind),
                     listed(tensors_of(change), {}, kBetweenTensors));
}

std::string to_text(const BoundaryChanges& changes) {
  const auto text = [](const BoundaryChange& one) { return to_text(one); };
  return listed(changes, text, kBetweenChanges);
}

Result<BoundaryChanges> boundaries_from_text(const std::string& text) {
  BoundaryChanges out;
  if (text.empty()) return out;
  for (const std::string& one : parts_of(text, kBetweenChanges)) {
    const size_t space = one.find(' ');
    if (space == one.npos) return fail(no_changes(one));
    const auto tensors = parts_of(one.substr(space + 1), kBetweenTensors);
    WARPLOOM_TRY(BoundaryChange change, change_of(one.substr(0, space), tensors, one));
    out.push_back(std::move(change));
  }
  return out;
}

json to_json(const BoundaryChanges& changes) {
  json out = json::array();
  for (const BoundaryChange& one : changes)
    out.push_back({{"kind", name_of(one.kind)}, {"tensors", tensors_of(one)}});
  return out;
}

Result<BoundaryChanges> boundaries_from_json(const json& json) {
  BoundaryChanges out;
  if (!json.is_array()) return fail(no_changes(json.dump()));
  try {
    for (const auto& one : json) {
      const auto kind = one.at("kind").get<std::string>();
      const auto tensors = one.at("tensors").get<std::vector<std::string>>();
      WARPLOOM_TRY(BoundaryChange change, change_of(kind, tensors, one.dump()));
      out.push_back(std::move(change));
    }
  } catch (const nlohmann::json::exception& error) {
    return fail(no_changes(error.what()));
  }
  return out;
}
}  // namespace warploom::plan
