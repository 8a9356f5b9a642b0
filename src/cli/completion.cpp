#include "cli/command.h"
namespace warploom::cli {
namespace {
// One function for bash and zsh: names of commands, then of the command's flags, then the values that the flag before takes.
std::string completion(const std::vector<Command>& commands) {
  std::string names, flags, values;
  for (const Command& command : commands) {
    names += command.name + " ";
    flags += "    " + command.name + ") words=\"--help --json --quiet";
    for (const Flag& flag : command.flags) {
      if (flag.name[0] == '-') flags += " " + flag.name;
      if (!flag.among.empty())
        values += fmt::format("    '{} {}') words=\"{}\" ;;\n", command.name, flag.name, fmt::join(flag.among, " "));
    }
    flags += "\" ;;\n";
  }
  return "[ -z \"$ZSH_VERSION\" ] || { autoload -U +X bashcompinit && bashcompinit; }\n"
         "_warploom() {\n"
         "  local now=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} words=\n"
         "  case ${COMP_WORDS[1]} in\n" +
         flags + "  esac\n  [ \"$COMP_CWORD\" = 1 ] && words=\"" + names + "--help --version\"\n" +
         "  case \"${COMP_WORDS[1]} $before\" in\n" + values +
         "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$now\"))\n}\ncomplete -o default -F _warploom warploom\n";
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
