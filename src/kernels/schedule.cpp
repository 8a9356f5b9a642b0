#include "kernels/family.h"
namespace warploom::kernels {
std::string Schedule::text() const {
  std::string out = family;
  for (const auto& [name, value] : fields) out += fmt::format(" {}={}", name, value);
  return out;
}

nlohmann::json to_json(const Schedule& schedule) { return {{"family", schedule.family}, {"fields", schedule.fields}}; }

Result<Schedule> schedule_from_json(const nlohmann::json& json) {
  try {
    return Schedule{json.at("family").get<std::string>(), json.at("fields").get<std::map<std::string, std::int64_t>>()};
  } catch (const nlohmann::json::exception& error) {
    return fail({ErrorCode::kPlanInvalid, "a schedule cannot be read", "", "{\"family\": name, \"fields\": {name: integer}}",
                 error.what(), "make the plan again with `warploom optimize`"});
  }
}

std::int64_t field(const Schedule& schedule, const std::string& name, std::int64_t otherwise) {
  const auto found = schedule.fields.find(name);
  return found == schedule.fields.end() ? otherwise : found->second;
}

Status first_broken(const Schedule& schedule, std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules)
    if (rule.broken)
      return fail({ErrorCode::kScheduleIllegal, "the schedule's fields cannot hold together", schedule.text(), rule.expected,
                   std::to_string(rule.found), "change one of the fields named"});
  return ok();
}

Status fits(const Schedule& schedule, std::int64_t bytes, const target::Capabilities& capabilities) {
  if (bytes <= capabilities.shared_bytes) return ok();
  return fail({ErrorCode::kResourceLimit, "what a block keeps does not fit in shared memory, or a core's L2 cache",
               schedule.text(), fmt::format("at most {} bytes", capabilities.shared_bytes), fmt::format("{} bytes", bytes),
               "use smaller tiles, or fewer stages"});
}

Status Family::admits(const Schedule& schedule) const {
  for (const Field& field : space().fields) {
    const auto found = schedule.fields.find(field.name);
    const std::int64_t least = std::ranges::min(field.values);
    if (found == schedule.fields.end() || found->second < least)
      return fail({ErrorCode::kScheduleIllegal, "a field of the schedule is missing or too small", schedule.text(),
                   fmt::format("{} of at least {}: {}", field.name, least, field.meaning),
                   found == schedule.fields.end() ? "none" : std::to_string(found->second),
                   "`show --what space` lists the fields and their values"});
  }
  return legal(schedule);
}

std::int64_t Space::size() const {
  std::int64_t count = 1;
  for (const Field& field : fields) count *= static_cast<std::int64_t>(field.values.size());
  return count;
}
}  // namespace warploom::kernels
