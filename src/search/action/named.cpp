#include "search/action/named.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/rows.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"

namespace warploom::search {
namespace {
using kernels::ConfigType;
using kernels::FieldInfo;
using kernels::KernelConfig;

Error not_there(const std::string& name, std::string expected, std::string found) {
  return {ErrorCode::kScheduleIllegal,
          "there is no such action here",
          name,
          std::move(expected),
          std::move(found),
          "see the values with `warploom show MODEL --what space`"};
}

struct NamedValue {
  size_t field = 0;
  int64_t value = 0;
};

Result<NamedValue> value_of(const ConfigType& type, const std::string& word) {
  const size_t sign = word.find('=');
  const std::string name = word.substr(0, sign);
  const auto number = type.find(name);
  if (sign == word.npos || !number)
    return fail(not_there(word, "one of " + listed(type.names()), name));
  const FieldInfo& field = type.fields[*number];
  const auto value = field.value_of(word.substr(sign + 1));
  if (!value) return fail(not_there(word, "a value of " + std::string(field.name), word));
  return NamedValue{*number, *value};
}

std::string why_of(const kernels::FailedConstraints& failed) {
  const auto text = [](const kernels::FailedConstraint& one) {
    return fmt::format("{}, not {}", one.expected, one.found);
  };
  return listed(failed, text, "; ");
}

std::vector<std::string> words_of(const std::string& name) {
  std::istringstream stream(name);
  std::vector<std::string> out;
  for (std::string word; stream >> word;)
    out.push_back(word);
  return out;
}

Result<Action> change_of(const ActionSpace& actions, const KernelConfig& from,
                         const std::string& name) {
  WARPLOOM_TRY(const NamedValue meant, value_of(*from.type(), name));
  const auto is_meant = [&](const Action& one) {
    return one.type == from.type() && !one.changes_family && !one.settings.empty() &&
           one.settings[0].field == meant.field && one.settings[0].to == meant.value;
  };
  const ActionsPtr here = actions.shared_at(from);
  const auto legal = std::ranges::find_if(here->legal, is_meant);
  if (legal != here->legal.end()) return *legal;
  for (const RefusedAction& one : here->refused)
    if (is_meant(one.action)) return fail(not_there(name, why_of(one.why), from.text()));
  const FieldInfo& field = from.field(meant.field);
  const bool is_so = from.get(meant.field) == meant.value;
  const std::string found = is_so ? "it is so already" : "a value that is not offered here";
  return fail(not_there(name, "another value of " + std::string(field.name), found));
}
}  // namespace

Result<KernelConfig> named_config(const ActionSpace& actions, const std::string& name) {
  const std::vector<std::string> words = words_of(name);
  const std::string family_name = words.empty() ? "" : words[0];
  const auto& families = actions.space().families;
  const auto family = std::ranges::find(families, family_name, &kernels::Family::name);
  if (family == families.end()) {
    Error error{ErrorCode::kNoSchedule, "no such family covers the region here", name};
    error.expected = listed(families, &kernels::Family::name);
    error.found = family_name;
    return fail(error);
  }
  const auto& entries = actions.entries(family_name);
  KernelConfig wanted = entries.empty() ? KernelConfig((*family)->type()) : entries[0];
  std::vector<size_t> named;
  for (size_t i = 1; i < words.size(); ++i) {
    WARPLOOM_TRY(const NamedValue one, value_of((*family)->type(), words[i]));
    wanted.set(one.field, one.value);
    named.push_back(one.field);
  }
  if (auto legal = nearest_legal(**family, wanted, named)) return *std::move(legal);
  return fail(not_there(name, why_of((*family)->constraints(wanted)), wanted.text()));
}

Result<Action> named_action(const ActionSpace& actions, const KernelConfig& from,
                            const std::string& name) {
  if (auto own = actions.own(name, from)) return *std::move(own);
  const bool is_change = name.find('=') < name.find(' ');
  if (is_change) return change_of(actions, from, name);
  WARPLOOM_TRY(const KernelConfig to, named_config(actions, name));
  auto action = action_between(from, to);
  if (!action) return fail(not_there(name, "another config", "it is so already"));
  return *std::move(action);
}
}  // namespace warploom::search
