#include <signal.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/progress.h"
#include "runtime/compile.h"
#include "search/options.h"

namespace warploom::cli {
namespace {
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

// What goes to standard output.
std::string output_of(const Result<Answer>& answer, const Session& session) {
  if (!answer) return dump({{"error", to_json(answer.error())}});
  if (session.json) return dump(answer->json);
  return without_controls(answer->text);
}

int print(const Result<Answer>& answer, const Session& session) {
  const int status = answer ? answer->status : exit_status(answer.error().code);
  if (!answer && !session.json) {
    complain(answer.error());
    return status;
  }
  Status printed = write_all(STDOUT_FILENO, output_of(answer, session), "standard output");
  if (printed || errno == EPIPE) return status;  // a reader that went away is no failure
  printed.error().remedy = "send standard output elsewhere";
  complain(printed.error());
  return 3;
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
  session.shut_in = argc > 1 && std::string_view(argv[1]) == kShutIn;
  if (session.shut_in) {
    --argc;
    ++argv;
  }
#define WARPLOOM_MADE(name) name##_command(),
  std::vector<Command> commands = {WARPLOOM_COMMANDS(WARPLOOM_MADE)};
  commands.push_back(completion_command(commands));
  const auto asked = read_command_line(argc, argv, commands, session);
  if (!asked) return print(fail(asked.error()), session);
  if (asked->command == nullptr) return print(Answer{asked->text, asked->text}, {});
  return print(carried_out(*asked->command, session), session);
}
}  // namespace warploom::cli
