#include "base/embedded.h"
#include "base/rendered.h"
#include "cli/command.h"
namespace warploom::cli {
namespace {
// One function for bash and zsh: names of commands, then of the command's flags, then the values that the flag before takes.
std::string completion(const std::vector<Command>& commands) {
  nlohmann::json rows;
  for (const Command& command : commands) {
    nlohmann::json flags = nlohmann::json::array();
    for (const Flag& flag : command.flags)
      flags.push_back(
          {{"flag", flag.name}, {"dashes", flag.name[0] == '-'}, {"chosen", !flag.among.empty()}, {"among", flag.among}});
    rows.push_back({{"name", command.name}, {"flags", flags}});
  }
  return rendered(resource("completion.sh"), {{"commands", rows}});
}
}  // namespace
Command completion_command(const std::vector<Command>& commands) {
  return {"completion",
          "what bash and zsh read to complete command lines: source <(warploom completion)",
          {},
          [script = completion(commands)](const Session&) {
            return Answer{{{"script", script}}, script};
          }};
}
}  // namespace warploom::cli
