#include "cli/command.h"
#include "target/capabilities.h"
namespace warploom::cli {
namespace {
constexpr ErrorCode kCodes[] = {
#define WARPLOOM_ERROR(name, text, exit_status, meaning) ErrorCode::name,
#include "base/error_codes.def"
};

Result<Answer> list_errors(const Session&) {
  Answer answer{nlohmann::json::object(), {}};
  std::size_t width = 0;
  for (const ErrorCode code : kCodes) width = std::max(width, code_text(code).size());
  nlohmann::json rows = nlohmann::json::array();
  for (const ErrorCode code : kCodes) {
    rows.push_back({{"code", code_text(code)}, {"exit_status", exit_status(code)}, {"meaning", code_meaning(code)}});
    answer.text += fmt::format("{:<{}}  {:>3}  {}\n", code_text(code), width, exit_status(code), code_meaning(code));
  }
  answer.json["errors"] = rows;
  return answer;
}
}  // namespace
Command errors_command() { return {"errors", "every error code, its exit status and its meaning", {}, list_errors}; }

Command version_command() {
  return {"version", "the version and the targets it knows", {}, [](const Session&) -> Result<Answer> {
            const auto targets = target::known_targets();
            return Answer{{{"version", kVersion}, {"targets", targets}},
                          fmt::format("warploom {}\ntargets: {}\n", kVersion, fmt::join(targets, ", "))};
          }};
}
}  // namespace warploom::cli
