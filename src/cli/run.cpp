#include <unistd.h>
#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include "base/file.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "runtime/executor.h"

namespace warploom::cli {
namespace {
const std::map<std::string, double> kUnits = {
    {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};  // of time, in seconds

std::atomic<bool> interrupt_flag{false};

extern "C" void on_interrupt(int signal) {
  if (interrupt_flag.exchange(true)) ::_exit(128 + signal);
}

void complain(const Error& error) {
  const std::string text = describe(error) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string dump(const nlohmann::json& json) {
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int print(const Result<Answer>& answer, const Session& session) {
  const int status = answer ? answer->status : exit_status(answer.error().code);
  if (!answer && !session.json) {
    complain(answer.error());
    return status;
  }
  const std::string text = !answer        ? dump({{"error", to_json(answer.error())}})
                           : session.json ? dump(answer->json)
                                          : without_controls(answer->text);
  Status printed = write_all(STDOUT_FILENO, text, "standard output");
  if (printed || errno == EPIPE) return status;  // a reader that went away is no failure
  printed.error().remedy = "send standard output elsewhere";
  complain(printed.error());
  return 3;
}

void add(CLI::App& app, Command& command, const Command*& chosen) {
  CLI::App* sub = app.add_subcommand(command.name, command.help);
  for (Flag& flag : command.flags) {
    CLI::Option* option = std::visit(
        [&](auto* into) {
          if constexpr (std::is_same_v<decltype(into), bool*>)
            return sub->add_flag(flag.name, *into, flag.help);
          else
            return sub->add_option(flag.name, *into, flag.help);
        },
        flag.into);
    if (std::holds_alternative<double*>(flag.into))
      option->transform(CLI::AsNumberWithUnit(kUnits))->check(CLI::Range(1e-3, 1e8));
    if (flag.name[0] != '-' && std::holds_alternative<std::string*>(flag.into)) option->required();
    if (flag.name[0] == '-' && std::holds_alternative<std::vector<std::string>*>(flag.into))
      option->expected(1)->take_all()->allow_extra_args(false);
    if (!flag.among.empty()) option->check(CLI::IsMember(flag.among));
  }
  sub->fallthrough();
  sub->callback([&command, &chosen] { chosen = &command; });
}

// What the command answers; what it is busy with is said meanwhile.
Result<Answer> carried_out(const Command& command, Session session) {
  ProgressLine line(session.json || session.quiet, "warploom " + command.name);
  session.on_progress = [&line](const search::Progress& progress) { line.say(progress); };
  return guarded([&] { return command.action(session); });
}
}  // namespace

const std::atomic<bool>& interrupted() {
  return interrupt_flag;
}

void catch_interrupts() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int run(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  runtime::set_helper_program("/proc/self/exe");
  Session session;
  CLI::App app(
      "warploom: from an ONNX operator and a target to the fastest kernel that is proven right",
      "warploom");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string(kVersion));
  app.add_flag("--json", session.json,
               "print one JSON object on standard output and nothing else there");
  app.add_flag("--quiet,-q", session.quiet, "no progress");
  app.fallthrough();
#define WARPLOOM_MADE(name) name##_command(),
  std::vector<Command> commands = {WARPLOOM_COMMANDS(WARPLOOM_MADE)};
  commands.push_back(completion_command(commands));
  const Command* chosen = nullptr;
  for (Command& command : commands) add(app, command, chosen);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& wanted) {  // --help, --version
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    for (int i = 1; i < argc; ++i) session.json |= std::string_view(argv[i]) == "--json";
    return print(fail({ErrorCode::kUsage, "the command line cannot be read", "command line",
                       "flags as `warploom --help` lists them", error.what(),
                       "run `warploom --help` or `warploom COMMAND --help`"}),
                 session);
  }
  return print(carried_out(*chosen, session), session);
}
}  // namespace warploom::cli
