#include "search/action/own_action.h"
#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rows.h"
#include "kernels/config/configs.h"
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
using nlohmann::json;

constexpr int64_t kMostBy = 1 << 20;  // more than any field is changed by

Error no_action(std::string place, std::string expected, std::string found) {
  return {ErrorCode::kPlanInvalid, "this is no action of one's own",
          std::move(place),        std::move(expected),
          std::move(found),        "see examples/actions"};
}

std::optional<int64_t> number_of(std::string_view text) {
  int64_t out = 0;
  const auto* const end = text.data() + text.size();
  const auto [read, fault] = std::from_chars(text.data(), end, out);
  if (fault != std::errc() || read != end) return std::nullopt;
  return out;
}

// "*2" and the like; nothing where it is another text.
std::optional<OwnChange> relative(const std::string& text) {
  using How = OwnChange::How;
  const std::string signs = "*/+-";
  const How hows[] = {How::multiply, How::divide, How::add, How::add};
  const size_t sign = text.empty() ? signs.npos : signs.find(text[0]);
  if (sign == signs.npos) return std::nullopt;
  const auto by = number_of(std::string_view(text).substr(1));
  if (!by || *by < 1 || *by > kMostBy) return std::nullopt;
  return OwnChange{.how = hows[sign], .by = text[0] == '-' ? -*by : *by};
}

Result<OwnChange> change_from(const std::string& name, const json& record, const ConfigType& type) {
  const auto field = type.find(name);
  if (!field)
    return fail(
        no_action("set", fmt::format("fields of {}: {}", type.family, listed(type.names())), name));
  const FieldInfo& info = type.fields[*field];
  const std::string text = record.is_string() ? record.get<std::string>() : record.dump();
  auto out = relative(text);
  const auto value = info.value_of(text);
  if (!out && value) out = OwnChange{.how = OwnChange::How::set, .by = *value};
  if (!out)
    return fail(no_action("set." + name, "a value, or *2, /2, +1 or -1 from what it is", text));
  out->field = *field;
  return *out;
}

// A row by its name; an empty name is the value that is left out.
template <class Value, class Rows, class Member>
Result<Value> named_row(const Rows& rows, Member member, const std::string& key,
                        const std::string& name) {
  const auto found = row_where<Value>(rows, name, member);
  if (!found) return fail(no_action(key, "one of " + listed(rows, member), name));
  return *found;
}

Result<OwnAction> parsed(const json& record) {
  OwnAction out;
  out.name = record.at("name").get<std::string>();
  out.words = record.at("words").get<std::string>();
  const bool is_word = out.name.find_first_of(" =") == out.name.npos;
  if (out.name.empty() || out.words.empty() || !is_word)
    return fail(no_action("name", "a name without spaces and signs, and words", out.name));
  const auto family = record.at("family").get<std::string>();
  const auto types = kernels::config_types();
  const auto type = std::ranges::find(types, family, &ConfigType::family);
  if (type == types.end())
    return fail(no_action("family", "one of " + listed(types, &ConfigType::family), family));
  out.type = *type;
  WARPLOOM_TRY(out.kind, named_row<ActionKind>(kActionKinds, &ActionKindRow::name, "kind",
                                               record.at("kind").get<std::string>()));
  const std::string unknown(kBottlenecks[as_size(Bottleneck::unknown)].name);
  WARPLOOM_TRY(out.eases, named_row<Bottleneck>(kBottlenecks, &BottleneckRow::name, "eases",
                                                record.value("eases", unknown)));
  out.code_region = record.value("code_region", "kernel");
  const auto& set = record.at("set");
  if (!set.is_object() || set.empty())
    return fail(no_action("set", "fields with what becomes of them", set.dump()));
  for (const auto& [name, value] : set.items()) {
    WARPLOOM_TRY(const OwnChange change, change_from(name, value, *out.type));
    out.changes.push_back(change);
  }
  return out;
}
}  // namespace

std::optional<int64_t> OwnChange::of(int64_t value) const {
  int64_t out = 0;
  bool is_large = false;
  switch (how) {
    case How::set: return by;
    case How::add: is_large = __builtin_add_overflow(value, by, &out); break;
    case How::multiply: is_large = __builtin_mul_overflow(value, by, &out); break;
    case How::divide:
      if (value % by != 0) return std::nullopt;
      out = value / by;
      break;
  }
  return is_large ? std::nullopt : std::optional(out);
}

Result<OwnAction> own_action_from_json(const json& record) {
  if (!record.is_object())
    return fail(no_action("", "a JSON object", record.is_discarded() ? "no JSON" : record.dump()));
  try {
    return parsed(record);
  } catch (const nlohmann::json::exception& error) {
    return fail(no_action("", "name, family, kind, words and set", error.what()));
  }
}

Result<OwnActions> read_own_actions(const std::vector<std::string>& files) {
  OwnActions out;
  for (const std::string& file : files) {
    WARPLOOM_TRY(const std::string text, read_file(file));
    auto one = own_action_from_json(json::parse(text, nullptr, false));
    if (!one) {
      Error error = one.error();
      error.place = error.place.empty() ? file : file + ", " + error.place;
      return fail(error);
    }
    if (contains(out.all, one->name, &OwnAction::name))
      return fail(no_action(file, "a name of its own", one->name));
    out.all.push_back(*std::move(one));
  }
  return out;
}

OwnActionHere action_at(const OwnAction& own, const kernels::Family& family,
                        const KernelConfig& config) {
  if (config.family() != own.type->family || family.name() != own.type->family) return {};
  const kernels::Space space = family.space();
  KernelConfig wanted = config;
  std::vector<size_t> keep;
  OwnActionHere out;
  std::vector<Setting> settings;
  for (const OwnChange& change : own.changes) {
    const int64_t now = config.get(change.field);
    const auto value = change.of(now);
    const auto field = std::ranges::find(space.fields, change.field, &kernels::Field::number);
    const bool is_offered = value && field != space.fields.end() && contains(field->values, *value);
    const FieldInfo& info = config.field(change.field);
    if (value) settings.push_back({change.field, now, *value});
    if (value) wanted.set(change.field, *value);
    keep.push_back(change.field);
    if (is_offered || value == now) continue;
    out.why.push_back({.expected = fmt::format("a value of {} that is offered here", info.name),
                       .found = value ? info.text_of(*value) : info.text_of(now) + " before it",
                       .fields = {change.field}});
  }
  std::erase_if(settings, [](const Setting& one) { return one.from == one.to; });
  if (settings.empty() && out.why.empty()) return {};
  if (settings.empty()) settings.push_back({own.changes[0].field, 0, 0});
  if (out.why.empty()) {
    const auto legal = nearest_legal(family, wanted, keep);
    if (!legal) out.why = family.constraints(wanted);
    for (size_t i = 0; legal && i < legal->size(); ++i)
      if (!contains(keep, i) && legal->get(i) != config.get(i))
        settings.push_back({i, config.get(i), legal->get(i)});
  }
  std::vector<std::string> beside;
  for (const Setting& one : settings)
    if (!contains(keep, one.field))
      beside.push_back(fmt::format("{}={}", config.field(one.field).name,
                                   config.field(one.field).text_of(one.to)));
  Action action = action_of(*own.type, std::move(settings));
  action.kind = own.kind;
  action.code_region = own.code_region;
  action.eases = own.eases;
  const std::string with = beside.empty() ? "" : fmt::format(" (with {})", listed(beside));
  action.sentence = fmt::format("{}{}: {}", own.words, with, kBottlenecks[as_size(own.eases)].gain);
  out.action = std::move(action);
  return out;
}
}  // namespace warploom::search
